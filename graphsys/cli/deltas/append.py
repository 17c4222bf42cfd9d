"""``graphsys append``: new edges and nodes, and deletions, become a delta of a graph."""

from pathlib import Path
from typing import Annotated

import typer

from graphsys.cli.console import print_facts, print_json
from graphsys.cli.ingest import by_type
from graphsys.cli.options import CONTROL, INPUT, GraphArgument, JsonOption, examples

EPILOG = examples(
    "graphsys append web new-links.csv",
    "graphsys append shop --edges user,buys,item=today.csv --nodes user=new-users.csv",
    "graphsys append web --delete gone.csv --missing-deletes count",
)


def append(
    graph: GraphArgument,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILES", help="Files of new edges.", show_default=False),
    ] = None,
    nodes: Annotated[
        list[str] | None,
        typer.Option(
            "--nodes",
            metavar="TYPE=FILE",
            help="A table of new nodes (CSV, Parquet, Arrow), with the columns that the "
            "graph's have.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    edges: Annotated[
        list[str] | None,
        typer.Option(
            "--edges",
            metavar="SRC,RELATION,DST=FILE",
            help="New edges of a type, instead of FILES; once for each file.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    delete: Annotated[
        list[Path] | None,
        typer.Option(
            "--delete",
            metavar="FILE",
            help="Edges to remove, before the new ones are added: src, dst and, where the "
            "edges have them, relation and time (when it is deleted).",
            rich_help_panel=INPUT,
        ),
    ] = None,
    missing_deletes: Annotated[
        str,
        typer.Option(
            "--missing-deletes",
            metavar="HOW",
            help="What becomes of deletions of edges that are not there: error, or count.",
            rich_help_panel=CONTROL,
        ),
    ] = "error",
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="Format of the files, where their names do not tell.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    ids: Annotated[
        str,
        typer.Option(
            "--ids",
            metavar="KIND",
            help="Kind of the ids: auto (the graph's), int or string.",
            rich_help_panel=INPUT,
        ),
    ] = "auto",
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns",
            metavar="NAMES",
            help="Names of the columns, for example src,dst,time.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    delete_columns: Annotated[
        str | None,
        typer.Option(
            "--delete-columns",
            metavar="NAMES",
            help="Names of the columns of --delete, for example src,dst,time.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    separator: Annotated[
        str | None,
        typer.Option(
            "--separator",
            metavar="CHAR",
            help="What separates columns; by default what the format says.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    skip: Annotated[
        int,
        typer.Option(
            "--skip", metavar="N", min=0, help="Lines to skip first.", rich_help_panel=INPUT
        ),
    ] = 0,
    json: JsonOption = False,
) -> None:
    """Add edges and nodes to a graph and remove edges, at the cost of what changes.

    Who reads the graph goes on reading what it was. The change appears whole or not at all.
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
