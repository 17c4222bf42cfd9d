"""``graphsys ingest``: files become a graph."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphsys.cli.help_pages.declarations import described
from graphsys.cli.options import (
    ClusterOption,
    GraphOutOption,
    JsonOption,
    MemoryOption,
    OrderOption,
    OverwriteOption,
    PartitionerOption,
    PartitionsOption,
    SeedOption,
    examples,
    parse_cluster,
    parse_partitions,
)
from graphsys.cli.report import print_ingest_report

if TYPE_CHECKING:
    from graphsys.storage.ingest.ingest import IngestReport
    from graphsys.storage.reader import GraphReader

EPILOG = examples(
    "graphsys ingest wiki-Vote.txt.gz -o votes",
    "graphsys ingest links.csv -o web --skip 1 --partitions 8 --memory 2GB",
    "graphsys ingest --nodes user=users.csv --edges user,trusts,user=trust.csv -o net",
    "graphsys ingest trust.csv -o trust --split 0.8,0.1,0.1",
    "graphsys ingest votes.csv -o votes --columns src,dst,weight --signed",
    "graphsys ingest messages.csv -o messages --split 0.7,0.15,0.15 --by time",
    "graphsys ingest train.txt valid.txt test.txt -o kg --format triples",
    "graphsys ingest day-*.csv -o web --partitions 16 --cluster local:4",
)


# long: all that the library takes is handed on by name
@described
def ingest(
    out: GraphOutOption,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILES",
            help="Files to read; - is standard input.",
            show_default=False,
        ),
    ] = None,
    nodes: list[str] | None = None,
    edges: list[str] | None = None,
    format_: str | None = None,
    ids: str = "auto",
    columns: str | None = None,
    separator: str | None = None,
    skip: int = 0,
    time_unit: str | None = None,
    signed: bool = False,
    undirected: bool = False,
    coalesce: bool = False,
    drop_self_loops: bool = False,
    split: str | None = None,
    by: str | None = None,
    negatives: int | None = None,
    inverse: str | None = None,
    missing_nodes: str | None = None,
    features_as: str = "given",
    partitions: PartitionsOption = "1",
    partitioner: PartitionerOption = "hash",
    order: OrderOption = "auto",
    memory: MemoryOption = "4GB",
    seed: SeedOption = 0,
    cluster: ClusterOption = None,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Read edges and nodes from files and write a graph.

    The files may be larger than the memory given. A graph appears whole or not at all.

    Input:
        --nodes TYPE=FILE: A table of nodes (CSV, Parquet, Arrow): id, label, split, time by
            name, lists become features. Other names: --columns TYPE.id=NAME.
        --edges SRC,RELATION,DST=FILE: Edges of a type, instead of FILES; once for each
            file.
        --format NAME: Format of the files: edgelist, csv, parquet, arrow, mtx, triples,
            ...; guessed from their names where that is safe.
        --ids KIND: Kind of the ids: auto, int or string.
        --columns NAMES: Names of the columns, for example src,dst,weight.
        --separator CHAR: What separates columns; by default what the format says.
        --skip N>=0: Lines to skip first.
        --time-unit UNIT: Unit of times that are integers, since 1970: s, ms, us, ns or d.
        --signed: The sign of an edge's weight becomes its relation, positive or negative,
            and its size the weight.
        --undirected: An edge stands for both directions.
        --coalesce: Keep one of equal edges; weights are summed.
        --drop-self-loops: Leave out edges u -> u.
        --split SHARES: Hold out edges: shares of train, valid and test (0.8,0.1,0.1), or
            numbers of edges of valid and test (1000,1000). See graphsys split.
        --by HOW: How --split chooses: random (by default); time (the last are held out);
            relation (of each its share).
        --negatives N: With --split: pairs to draw for each edge of valid and test that are
            no edges.
        --inverse HOW: With --split: edges of inverse relations (parent, child) are held out
            together, or apart (by default, with a warning).
        --missing-nodes HOW: Nodes that edges name and no table of nodes lists: make (by
            default), drop their edges, or refuse.
        --features-as FORM: How dense features are stored: given, float16, int8 (a scale per
            row), shared (each distinct row once, where that is smaller), or int8,shared.
    """
    from graphsys import datasets, distributed
    from graphsys.cli.progress import open_progress
    from graphsys.core.errors import ConfigError
    from graphsys.datasets.pipes import is_pipe
    from graphsys.datasets.whole_files import may_hold_text, unpacked_bytes, whole_bytes
    from graphsys.storage.ingest.process_budget import kept_bytes

    node_files, edge_files = by_type("--nodes", nodes), by_type("--edges", edges)
    given = [
        path for found in (node_files, edge_files) for it in found.values() for path in it
    ]
    if bool(files) == bool(given):
        raise ConfigError("expected either FILES, or tables with --nodes and --edges")
    plain = [Path(file) for file in [*(files or []), *given]]
    sizes = unpacked_bytes(plain), whole_bytes(plain)
    room = kept_bytes(memory, *sizes, has_text=may_hold_text(plain))
    reading: dict[str, Any] = {
        "format": format_,
        "ids": ids,
        "columns": columns,
        "separator": separator,
        "skip": skip,
        "time_unit": time_unit,
        "signed": signed,
    }
    writing: dict[str, Any] = {
        "undirected": undirected,
        "coalesce": coalesce,
        "drop_self_loops": drop_self_loops,
        "partitions": parse_partitions(partitions),
        "partitioner": partitioner,
        "order": order,
        "memory": room,
        "seed": seed,
        "overwrite": overwrite,
        "progress": open_progress(),
        "features_as": features_as,
        "nodes": {name: one for name, (one,) in node_files.items()} or None,
        "edges": edge_files or None,
    }
    if cluster is not None:
        if pipes := [path for path in plain if is_pipe(path)]:
            raise ConfigError(
                f"{pipes[0]}: a pipe, which workers cannot read; leave out --cluster, or "
                "copy what it gives to a file"
            )
        where = parse_cluster(
            cluster,
            split=split,
            by=by,
            negatives=negatives,
            inverse=inverse,
            missing_nodes=missing_nodes,
        )
        report: IngestReport[GraphReader] = distributed.ingest(
            files or [], out, cluster=where, reading=reading, **writing
        )
    else:
        report = datasets.ingest(
            files or None,
            out,
            split=split,
            by=by,
            negatives=negatives,
            inverse=inverse,
            missing_nodes=missing_nodes or "make",
            **reading,
            **writing,
        )
    print_ingest_report(report, as_json=json)


def by_type(option: str, pairs: list[str] | None) -> dict[str, list[Path]]:
    """Read ``TYPE=FILE`` pairs; a type of edges may have several files.

    Raises:
        ConfigError: one is none, or a type of nodes is given twice.
    """
    from graphsys.core.errors import ConfigError

    found: dict[str, list[Path]] = {}
    for pair in pairs or []:
        name, _, file = pair.partition("=")
        is_second = name in found and option == "--nodes"
        if not name or not file or is_second:
            what = "a type that is given twice" if is_second else "no TYPE=FILE"
            raise ConfigError(
                f"{option}: got {pair!r}, {what}; give one file for each type"
            )
        found.setdefault(name, []).append(Path(file))
    return found
