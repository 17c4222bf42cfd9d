"""``graphsys predict``: which edges are missing, or which classes nodes have."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from graphsys.cli.console import print_json, print_note
from graphsys.cli.help_pages.declarations import described
from graphsys.cli.options import (
    ClusterOption,
    JsonOption,
    LimitOption,
    ModelOption,
    NameColumnOption,
    OverwriteOption,
    RunArgument,
    SafeCellsOption,
    by_names,
    examples,
    network_on,
    require_no_model,
)
from graphsys.cli.results import STDOUT, FormatOption, check_target, write_result

if TYPE_CHECKING:
    import pyarrow as pa

    from graphsys.storage.reader import GraphReader

EPILOG = examples(
    "graphsys predict run --relation likes --top-k 10 -o likes.parquet",
    "graphsys predict run --nodes users.txt --relation likes -o likes.csv",
    "graphsys predict run --nodes questions.csv --known mark -o answers.parquet",
    "graphsys predict run --relation capital --name-column name -o capitals.csv",
    "graphsys predict gnn-run -o classes.parquet",
    "graphsys predict recommender --top-k 20 --nodes users.txt -o recommended.csv",
    "graphsys predict gnn-run --graph grown --nodes new.txt -o classes.parquet",
    "graphsys predict gnn-run -o classes.parquet --cluster local:2",
)


@described
def predict(
    run: RunArgument,
    out: Path,
    nodes: Path | None = None,
    relation: str | None = None,
    graph: Path | None = None,
    top_k: int | None = None,
    known: str | None = None,
    known_splits: str | None = None,
    format_: FormatOption = None,
    memory: LimitOption = None,
    name_column: NameColumnOption = None,
    model: ModelOption = None,
    cluster: ClusterOption = None,
    overwrite: OverwriteOption = False,
    safe_cells: SafeCellsOption = False,
    json: JsonOption = False,
) -> None:
    """Predict edges (embeddings), or classes and rows of nodes (graph neural networks).

    Embeddings answer (head, relation, ?) and (?, relation, tail) with the k best: columns
    query, rank, head, relation, tail and score; so do networks of links with --top-k: what
    to recommend to each node. Else networks say for every node: columns id, prediction and
    probability, or id and embedding.

    Output:
        -o, --out FILE: The table to write: .parquet, .arrow, .csv, .tsv, .json or .jsonl,
            or - for stdout.

    Input:
        --nodes FILE: Who is asked about: a node per line (.txt), or a table (.csv, .tsv,
            .parquet, .arrow) with columns head, relation, tail, where one end is empty and
            asked for, or with a column id. All heads of the relation, or all nodes, by
            default.
        --relation NAME: The relation asked about; needed where the run has several and FILE
            does not say.
        --graph PATH: The graph, if it is not where the training found it; for a network
            also another with the same features and edge types: with new nodes, say.

    Options:
        -k, --top-k N>=1: Answers to each question, 10 by default; a network of links
            answers with it, and gives rows of nodes without.
        --known NAME: Answers that are edges already: drop them (by default), mark them in a
            column, or keep them unmarked.
        --known-splits SPLITS: The splits whose edges --known is about: all, by default, or
            some, such as train, so that answers can be compared with the edges of test.
    """
    from graphsys.core.errors import ConfigError
    from graphsys.storage.reader import open_graph
    from graphsys.storage.runs.run_folder import is_gnn_run

    check_target(out, format_, overwrite=overwrite, as_json=json)
    target = _Target(out, format_, overwrite, json)
    is_network = is_gnn_run(run)
    if not is_network:
        require_no_model(model)
    chosen = None if graph is None else open_graph(graph)
    if is_network and top_k is not None:
        _recommend(
            run,
            chosen,
            target,
            nodes,
            relation,
            memory,
            name_column,
            model,
            cluster,
            top_k,
            _KnownAnswers(known or "drop", known_splits),
        )
    elif is_network:
        if known_splits is not None:
            raise ConfigError(
                f"--known-splits {known_splits} is about answers; ask for them with --top-k"
            )
        _predict_nodes(
            run,
            chosen,
            target,
            nodes,
            relation,
            memory,
            name_column,
            model,
            cluster,
            known,
        )
    elif cluster is not None:
        raise ConfigError(
            f"--cluster: {run} is a run of embeddings, whose questions one machine answers "
            "here; leave it out"
        )
    else:
        how = _KnownAnswers(known or "drop", known_splits)
        _answer(run, chosen, target, nodes, relation, memory, name_column, top_k or 10, how)


class _KnownAnswers(NamedTuple):
    """What becomes of answers that are edges already, and of which splits."""

    how: str
    chosen: str | None

    @property
    def splits(self) -> str:
        """The splits, as the library takes them."""
        return self.chosen or "all"

    def told(self, graph: "GraphReader") -> list[str]:
        """Say of which splits; return them."""
        from graphsys.core.types import known_splits

        every = dict.fromkeys(it for kind in graph.edge_types for it in graph.splits(kind))
        order = ["train", "valid", "test"]
        ordered = [name for name in order if name in every]
        ordered += [name for name in every if name not in order]
        splits = known_splits(ordered, self.splits)
        if self.how != "keep" and self.chosen is None and len(splits) > 1:
            what = "leaves out" if self.how == "drop" else "marks"
            print_note(
                f"note: {what} answers that are edges of {', '.join(splits)}; to compare "
                "answers with held-out edges pass --known-splits train"
            )
        return splits if self.how != "keep" else []


class _Target(NamedTuple):
    """Where the table goes, and how that is told."""

    out: Path
    kind: str | None
    overwrite: bool
    as_json: bool

    def write(self, table: "pa.Table", facts: dict[str, Any], note: str) -> None:
        """Write the table, and say so."""
        write_result(table, self.out, self.kind, overwrite=self.overwrite)
        if self.as_json:
            print_json({"output": str(self.out), **facts})
        elif self.out != STDOUT:
            print_note(f"wrote {self.out}: {note}")


def _answer(
    run: Path,
    chosen: "GraphReader | None",
    target: _Target,
    nodes: Path | None,
    relation: str | None,
    memory: str | None,
    name_column: str | None,
    k: int,
    known: _KnownAnswers,
) -> None:
    """Answer questions with a run of embeddings."""
    from graphsys import embedding
    from graphsys.cli.progress import open_progress
    from graphsys.embedding.files.question_files import all_questions, read_questions

    opened = by_names(embedding.open_run(run, graph=chosen), name_column)
    if nodes is not None:
        questions = read_questions(nodes, relation)
    else:
        questions = all_questions(opened, relation)
    begin = time.monotonic()
    splits = known.told(opened.graph)
    progress = open_progress()
    found = embedding.predict(
        opened,
        questions,
        k,
        known=known.how,  # type: ignore[arg-type]  # checked there
        known_splits=known.splits,
        memory=memory,
        progress=progress,
    )
    progress.close()
    facts = {
        "num_queries": questions.num_rows,
        "num_answers": found.num_rows,
        "seconds": time.monotonic() - begin,
        "known_splits": splits,
    }
    target.write(
        found, facts, f"{found.num_rows:,} answers to {questions.num_rows:,} questions"
    )


def _recommend(
    run: Path,
    graph: "GraphReader | None",
    target: _Target,
    nodes: Path | None,
    relation: str | None,
    memory: str | None,
    name_column: str | None,
    model: str | None,
    cluster: str | None,
    k: int,
    known: _KnownAnswers,
) -> None:
    """Answer with a network of links what each node should be linked to."""
    from graphsys import gnn
    from graphsys.cli.progress import open_progress
    from graphsys.gnn.inference.predict import read_nodes

    begin = time.monotonic()
    chosen = None if nodes is None else read_nodes(nodes)
    progress = open_progress()
    with network_on(cluster, run, graph, memory=memory, model=model) as (opened, told):
        by_names(opened, name_column)
        told["known_splits"] = known.told(opened.graph)
        found = gnn.recommend(
            opened,
            chosen,
            k,
            relation=relation,
            graph=graph,
            progress=progress,
            known_splits=known.splits,
            known=known.how,  # type: ignore[arg-type]  # checked there
        )
        progress.close()
    asked = len(found["query"].unique()) if chosen is None else len(chosen)
    facts = {
        "num_queries": asked,
        "num_answers": found.num_rows,
        "seconds": time.monotonic() - begin,
        **told,
    }
    target.write(found, facts, f"{found.num_rows:,} answers for {asked:,} nodes")


def _predict_nodes(
    run: Path,
    graph: "GraphReader | None",
    target: _Target,
    nodes: Path | None,
    relation: str | None,
    memory: str | None,
    name_column: str | None,
    model: str | None,
    cluster: str | None,
    known: str | None,
) -> None:
    """Predict with a run of a graph neural network."""
    from graphsys import gnn
    from graphsys.cli.progress import open_progress
    from graphsys.core.errors import ConfigError
    from graphsys.gnn.inference.predict import read_nodes

    if known is not None:
        raise ConfigError(f"--known {known} is about answers; ask for them with --top-k")
    begin = time.monotonic()
    progress = open_progress()
    chosen = None if nodes is None else read_nodes(nodes)
    with network_on(cluster, run, graph, memory=memory, model=model) as (opened, told):
        found = gnn.predict(
            by_names(opened, name_column),
            chosen,
            graph=graph,
            relation=relation,
            memory=memory,
            progress=progress,
        )
        progress.close()
    facts = {"num_nodes": found.num_rows, "seconds": time.monotonic() - begin, **told}
    target.write(found, facts, f"{found.num_rows:,} nodes")
