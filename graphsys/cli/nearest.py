"""``graphsys nearest``: which nodes are most like one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphsys.cli.console import print_json, print_table
from graphsys.cli.help_pages.declarations import described
from graphsys.cli.options import (
    ClusterOption,
    JsonOption,
    LimitOption,
    ModelOption,
    NameColumnOption,
    RunArgument,
    by_names,
    examples,
    network_on,
    parse_cluster,
    require_no_model,
    require_no_relation,
)

if TYPE_CHECKING:
    import pyarrow as pa

EPILOG = examples(
    "graphsys nearest run user:17 -k 5",
    "graphsys nearest run user:17 --index hnsw",
    "graphsys nearest run Berlin --name-column name",
)


@described
def nearest(
    run: RunArgument,
    node: Annotated[
        str, typer.Argument(metavar="NODE", help="A node's id.", show_default=False)
    ],
    k: int = 10,
    node_type: str | None = None,
    relation: str | None = None,
    index: str = "exact",
    memory: LimitOption = None,
    name_column: NameColumnOption = None,
    model: ModelOption = None,
    cluster: ClusterOption = None,
    json: JsonOption = False,
) -> None:
    """Show the nodes whose rows are most like that of NODE.

    Options:
        -k N>=1: How many neighbors.
        --node-type NAME: The node's type; needed where several types have such an id.
        --relation NAME: Whose rows are compared, of a network with a row per relation
            (gatne).
        --index NAME: How to search: exact, or faster and approximately: hnsw or ivf, by an
            index that is built once and kept in the run's folder.
    """
    from graphsys.storage.runs.run_folder import is_gnn_run

    facts: dict[str, Any] = {}
    if not is_gnn_run(run):
        require_no_model(model)
    if is_gnn_run(run):
        found, facts = _by_network(
            run, node, k, node_type, relation, index, memory, name_column, model, cluster
        )
    elif cluster is None:
        found = _on_one_machine(
            run, node, k, node_type, relation, index, memory, name_column
        )
    else:
        from graphsys import distributed

        where = parse_cluster(
            cluster,
            memory=memory,
            relation=relation,
            index=None if index == "exact" else index,
            name_column=name_column,
        )
        found, facts["workers"] = distributed.nearest(
            run, node, k, cluster=where, node_type=node_type
        )
    rows = found.to_pylist()
    if json:
        print_json({"neighbors": rows} | facts)
    else:
        print_table(found.column_names, [list(row.values()) for row in rows])


def _on_one_machine(
    run: Path,
    node: str,
    k: int,
    node_type: str | None,
    relation: str | None,
    index: str,
    memory: str | None,
    name_column: str | None,
) -> "pa.Table":
    from graphsys import embedding

    require_no_relation(relation)
    return embedding.nearest(
        by_names(embedding.open_run(run), name_column),
        node,
        k,
        node_type=node_type,
        memory=memory,
        index=index,  # type: ignore[arg-type]  # checked there
    )


def _by_network(
    run: Path,
    node: str,
    k: int,
    node_type: str | None,
    relation: str | None,
    index: str,
    memory: str | None,
    name_column: str | None,
    model: str | None,
    cluster: str | None,
) -> "tuple[pa.Table, dict[str, Any]]":
    from graphsys import gnn
    from graphsys.cli.progress import open_progress
    from graphsys.core.errors import ConfigError

    if index != "exact":
        raise ConfigError(
            f"--index {index} is for runs of embeddings; of a network all rows are "
            "computed and looked at: leave it out"
        )
    progress = open_progress()
    with network_on(cluster, run, memory=memory, model=model) as (opened, facts):
        found = gnn.nearest(
            by_names(opened, name_column),
            node,
            k,
            node_type=node_type,
            relation=relation,
            memory=memory,
            progress=progress,
        )
        progress.close()
    return found, facts
