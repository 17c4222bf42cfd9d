"""``graphsys export``: embeddings and graphs leave for other tools."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
    parse_cluster,
    require_no_model,
    require_no_relation,
)

EPILOG = examples(
    "graphsys export run -o emb.parquet",
    "graphsys export run -o emb.npy",
    "graphsys export run -o emb.csv --name-column title",
    "graphsys export run --format hub -o my-model",
    "graphsys export gnn-run -o items.csv --node-type item",
    "graphsys export run -o emb.parquet --cluster local:2",
    "graphsys export graph --format csr -o arrays",
    "graphsys export graph --format graphar -o archive",
)


@described
def export(
    run: RunArgument,
    out: Path,
    node_type: str | None = None,
    relation: str | None = None,
    relation_types: Path | None = None,
    format_: str | None = None,
    memory: LimitOption = None,
    name_column: NameColumnOption = None,
    model: ModelOption = None,
    cluster: ClusterOption = None,
    overwrite: OverwriteOption = False,
    safe_cells: SafeCellsOption = False,
    json: JsonOption = False,
) -> None:
    """Write the rows of a run's nodes (of users and of items) to a file, with their ids.

    With --format, write a graph (its folder in place of RUN) to a folder of files.

    Output:
        -o, --out FILE: The file to write: .parquet, .arrow, .csv, .tsv, .json, .jsonl, .npy
            or .safetensors; of --format the folder to make.
        --format NAME: Of a run hub: a folder for a model hub, with safetensors, config.json
            and a card; it is taken wherever a run is. Of a graph csr (NumPy arrays),
            graphar (a GraphAr archive) or networkit (icebug-disk). By default what the name
            of the file says.
        --relation-types FILE: Write the operators too, both .tsv files as PyTorch-BigGraph
            does.

    Input:
        --node-type NAME: Only nodes of this type; all that have rows by default.
        --relation NAME: Whose rows, of a network with a row per relation (gatne).
    """
    from graphsys.storage.runs.run_folder import is_gnn_run
    from graphsys.training.row_files import check_target

    if format_ is not None:
        others = {
            "--node-type": node_type,
            "--relation": relation,
            "--relation-types": relation_types,
            "--name-column": name_column,
            "--model": model,
            "--cluster": cluster,
            "--safe-cells": safe_cells or None,
        }
        _export_folder(run, out, format_, memory, others, overwrite=overwrite, as_json=json)
        return
    facts: dict[str, Any] = {}
    is_network = is_gnn_run(run)
    if not is_network:
        require_no_model(model)
    if relation_types is not None:
        _check_operators(node_type, memory, is_network=is_network)
    if relation_types is None:
        check_target(out, overwrite=overwrite)  # before anything is loaded
    if is_network:
        facts = _export_network(
            run,
            out,
            node_type,
            relation,
            memory,
            name_column,
            model,
            cluster,
            overwrite=overwrite,
        )
    elif cluster is not None:
        where = parse_cluster(
            cluster,
            memory=memory,
            relation=relation,
            relation_types=relation_types,
            name_column=name_column,
        )
        facts["workers"] = _export_on(
            where, run, out, node_type=node_type, overwrite=overwrite
        )
    else:
        require_no_relation(relation)
        _export_here(
            run, out, node_type, relation_types, memory, name_column, overwrite=overwrite
        )
    if json:
        print_json({"output": str(out)} | facts)
    else:
        written = filter(None, (out, relation_types))
        print_note(f"wrote {' and '.join(map(str, written))}")


def _export_here(
    run: Path,
    out: Path,
    node_type: str | None,
    relation_types: Path | None,
    memory: str | None,
    name_column: str | None,
    *,
    overwrite: bool,
) -> None:
    """Export a run of embeddings on this machine."""
    from graphsys import embedding

    opened = by_names(embedding.open_run(run), name_column)
    how: dict[str, Any] = {"overwrite": overwrite}
    if relation_types is None:
        embedding.export(opened, out, node_type=node_type, memory=memory, **how)
    else:
        embedding.export_pbg(opened, out, relation_types, **how)


def _check_operators(
    node_type: str | None, memory: str | None, *, is_network: bool
) -> None:
    """Refuse what does not go with a file of the operators."""
    from graphsys.core.errors import ConfigError

    if is_network or node_type is not None:
        raise ConfigError(
            "--relation-types writes all of a run of embeddings, as PyTorch-BigGraph does; "
            "leave it out for a network, and with --node-type"
        )
    if memory is not None:
        raise ConfigError(
            "--memory does not go with --relation-types, which writes rows as they are "
            "mapped; leave it out"
        )


_OF_GRAPHS = ("csr", "graphar", "networkit", "pyg", "dgl")


def _export_folder(
    source: Path,
    out: Path,
    kind: str,
    memory: str | None,
    others: Mapping[str, object],
    *,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Write a folder that --format names: a run for a model hub, or a graph.

    Args:
        source: The run's folder, or the graph's.
        out: The folder to make.
        kind: The format.
        memory: Budget of the process; None: no limit.
        others: Options that go with no such folder, None where they are not given.
        overwrite: Replace a folder that an earlier call made.
        as_json: Whether to say so for programs.
    """
    from graphsys.core.errors import ConfigError
    from graphsys.interop.graph_files import check_format
    from graphsys.training.hub import export_hub

    if kind in _OF_GRAPHS:
        check_format(kind)
    elif kind != "hub":
        raise ConfigError(
            f"format: got {kind!r}, expected hub, or of a graph csr, graphar or networkit; "
            "of a file its name says the format"
        )
    elif memory is not None:
        others = {"--memory": memory, **others}
    for name, value in others.items():
        if value is not None:
            raise ConfigError(
                f"{name} does not go with --format {kind}; leave out one of them"
            )
    facts: dict[str, Any] = {"output": str(out)}
    if kind in _OF_GRAPHS:
        facts = _export_graph(source, out, kind, memory, overwrite=overwrite)
    else:
        export_hub(source, out, overwrite=overwrite)
    if as_json:
        print_json(facts)
    else:
        print_note(f"wrote {out}")


def _export_on(where: Any, run: Path, out: Path, **options: Any) -> int:
    """Export from a cluster; return how many workers there were."""
    from graphsys import distributed
    from graphsys.cli.progress import open_progress

    progress = open_progress()
    workers = distributed.export(run, out, cluster=where, progress=progress, **options)
    progress.close()
    return workers


def _export_network(
    run: Path,
    out: Path,
    node_type: str | None,
    relation: str | None,
    memory: str | None,
    name_column: str | None,
    model: str | None,
    cluster: str | None,
    *,
    overwrite: bool,
) -> dict[str, Any]:
    from graphsys import gnn
    from graphsys.cli.progress import open_progress

    progress = open_progress()
    with network_on(cluster, run, memory=memory, model=model) as (opened, facts):
        gnn.export(
            by_names(opened, name_column),
            out,
            node_type=node_type,
            relation=relation,
            overwrite=overwrite,
            memory=memory,
            progress=progress,
        )
        progress.close()
    return facts


def _export_graph(
    path: Path, out: Path, kind: str, memory: str | None, *, overwrite: bool
) -> dict[str, Any]:
    """Write a graph as a folder of files of another system."""
    from graphsys.cli.progress import open_progress
    from graphsys.interop.graph_files import write_graph
    from graphsys.storage.reader import open_graph

    progress = open_progress()
    with open_graph(path) as graph:
        facts = write_graph(
            graph,
            out,
            format=kind,
            memory=memory,
            overwrite=overwrite,
            progress=progress,
        )
    for name, splits in facts["splits_left_out"].items():
        print_note(f"edges {name}: {', '.join(splits)} left out, train alone is written")
    return facts
