"""``graphsys predict``: which edges are missing, or which classes nodes have."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphsys.cli.console import print_json, print_note
from graphsys.cli.options import (
    INPUT,
    OUTPUT,
    JsonOption,
    OverwriteOption,
    RunArgument,
    examples,
)

if TYPE_CHECKING:
    from graphsys.storage.reader import Graph

EPILOG = examples(
    "graphsys predict run --relation likes -k 10 -o likes.parquet",
    "graphsys predict run --nodes users.txt --relation likes -o likes.csv",
    "graphsys predict run --nodes questions.csv --known mark -o answers.parquet",
    "graphsys predict gnn-run -o classes.parquet",
    "graphsys predict gnn-run --graph grown --nodes new.txt -o classes.parquet",
)


# long: an option takes several lines of its signature, and a command has them all
def predict(
    run: RunArgument,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="The table to write: .parquet, .arrow, .csv or .tsv.",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ],
    nodes: Annotated[
        Path | None,
        typer.Option(
            "--nodes",
            metavar="FILE",
            help="Who is asked about: a node per line (.txt), or a table (.csv, .tsv, "
            ".parquet, .arrow) with columns head, relation, tail, where one end is empty "
            "and asked for, or with a column id. All heads of the relation, or all nodes, "
            "by default.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    relation: Annotated[
        str | None,
        typer.Option(
            "--relation",
            metavar="NAME",
            help="The relation asked about; needed where the run has several and FILE "
            "does not say.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    graph: Annotated[
        Path | None,
        typer.Option(
            "--graph",
            metavar="PATH",
            help="The graph, if it is not where the training found it; for a network also "
            "another with the same features and edge types: with new nodes, say.",
            show_default=False,
            rich_help_panel=INPUT,
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Answers to each question.")] = 10,
    known: Annotated[
        str,
        typer.Option(
            "--known",
            metavar="NAME",
            help="Answers that are edges already: drop them, mark them in a column, or "
            "keep them unmarked.",
        ),
    ] = "drop",
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Predict edges (embeddings), or classes and rows of nodes (graph neural networks).

    Embeddings answer (head, relation, ?) and (?, relation, tail) with the k best: columns
    query, rank, head, relation, tail and score. Networks say for every node: columns id,
    prediction and probability, or id and embedding.
    """
    from graphsys import embedding
    from graphsys.cli.progress import open_progress
    from graphsys.embedding.files.question_files import all_questions, read_questions
    from graphsys.engine.output import check_output, write_table
    from graphsys.storage.reader import open_graph
    from graphsys.storage.runs.run_folder import is_gnn_run

    check_output(out, overwrite=overwrite)
    chosen = None if graph is None else open_graph(graph)
    if is_gnn_run(run):
        _predict_nodes(run, chosen, out, nodes, relation, overwrite=overwrite, json=json)
        return
    opened = embedding.open_run(run, graph=chosen)
    if nodes is not None:
        questions = read_questions(nodes, relation)
    else:
        questions = all_questions(opened, relation)
    begin = time.monotonic()
    progress = open_progress()
    found = embedding.predict(
        opened,
        questions,
        k,
        known=known,  # type: ignore[arg-type]  # checked there
        progress=progress,
    )
    progress.close()
    write_table(found, out, overwrite=overwrite)
    if json:
        print_json(
            {
                "output": str(out),
                "num_queries": questions.num_rows,
                "num_answers": found.num_rows,
                "seconds": time.monotonic() - begin,
            }
        )
    else:
        print_note(
            f"wrote {out}: {found.num_rows:,} answers to {questions.num_rows:,} questions"
        )


def _predict_nodes(
    run: Path,
    graph: "Graph | None",
    out: Path,
    nodes: Path | None,
    relation: str | None,
    *,
    overwrite: bool,
    json: bool,
) -> None:
    """Predict with a run of a graph neural network."""
    from graphsys import gnn
    from graphsys.cli.progress import open_progress
    from graphsys.engine.output import write_table
    from graphsys.gnn.use.predict import read_nodes

    begin = time.monotonic()
    progress = open_progress()
    chosen = None if nodes is None else read_nodes(nodes)
    found = gnn.predict(run, chosen, graph=graph, relation=relation, progress=progress)
    progress.close()
    write_table(found, out, overwrite=overwrite)
    if json:
        print_json(
            {
                "output": str(out),
                "num_nodes": found.num_rows,
                "seconds": time.monotonic() - begin,
            }
        )
    else:
        print_note(f"wrote {out}: {found.num_rows:,} nodes")
