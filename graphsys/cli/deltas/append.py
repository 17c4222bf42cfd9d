"""``graphsys append``: new edges and nodes, and deletions, become a delta of a graph."""

from pathlib import Path
from typing import Annotated

import typer

from graphsys.cli.console import print_facts, print_json
from graphsys.cli.help_pages.declarations import described
from graphsys.cli.ingest import by_type
from graphsys.cli.options import GraphArgument, JsonOption, examples

EPILOG = examples(
    "graphsys append web new-links.csv",
    "graphsys append shop --edges user,buys,item=today.csv --nodes user=new-users.csv",
    "graphsys append web --delete gone.csv --missing-deletes count",
)


@described
def append(
    graph: GraphArgument,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILES", help="Files of new edges.", show_default=False),
    ] = None,
    nodes: list[str] | None = None,
    edges: list[str] | None = None,
    delete: list[Path] | None = None,
    missing_deletes: str = "error",
    format_: str | None = None,
    ids: str = "auto",
    columns: str | None = None,
    delete_columns: str | None = None,
    separator: str | None = None,
    skip: int = 0,
    signed: bool = False,
    json: JsonOption = False,
) -> None:
    """Add edges and nodes to a graph and remove edges, at the cost of what changes.

    Who reads the graph goes on reading what it was. The change appears whole or not at all.

    Input:
        --nodes TYPE=FILE: A table of new nodes (CSV, Parquet, Arrow), with the columns that
            the graph's have.
        --edges SRC,RELATION,DST=FILE: New edges of a type, instead of FILES; once for each
            file.
        --delete FILE: Edges to remove, before the new ones are added: src, dst and, where
            the edges have them, relation and time (when it is deleted).
        --format NAME: Format of the files, where their names do not tell.
        --ids KIND: Kind of the ids: auto (the graph's), int or string.
        --columns NAMES: Names of the columns, for example src,dst,time.
        --delete-columns NAMES: Names of the columns of --delete, for example src,dst,time.
        --separator CHAR: What separates columns; by default what the format says.
        --skip N>=0: Lines to skip first.
        --signed: The sign of an edge's weight becomes its relation, positive or negative,
            and its size the weight.

    Run:
        --missing-deletes HOW: What becomes of deletions of edges that are not there: error,
            or count.
    """
    from graphsys.datasets.append import append as library

    node_files, edge_files = by_type("--nodes", nodes), by_type("--edges", edges)
    report = library(
        graph,
        files or None,
        nodes={name: one for name, (one,) in node_files.items()} or None,
        edges=edge_files or None,
        delete=delete or None,
        missing_deletes=missing_deletes,
        format=format_,
        ids=ids,
        columns=columns,
        delete_columns=delete_columns,
        separator=separator,
        skip=skip,
        signed=signed,
    )
    with report.graph as now:
        facts = {
            "num_nodes": now.num_nodes,
            "num_edges": now.num_edges,
            "deltas": len(now.manifest.deltas),
            "bytes_written": report.bytes_written,
            "seconds": report.seconds,
        }
    if missing_deletes == "count":
        facts["missing_deletes"] = report.missing_deletes
    if json:
        print_json(facts)
    else:
        print_facts({"graph": str(graph), **facts})
