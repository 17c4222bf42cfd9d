"""Arguments and options that several verbs share, so that they read the same everywhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphsys.cli.help_pages.declarations import option

if TYPE_CHECKING:
    from graphsys.distributed.cluster import Cluster

OUTPUT = "Output"
INPUT = "Input"
LAYOUT = "Store"
CONTROL = "Run"

GraphArgument = Annotated[
    Path,
    typer.Argument(
        metavar="GRAPH", help="A graph's folder, or s3://...", show_default=False
    ),
]
RunArgument = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", help="A training run's folder, or s3://...", show_default=False
    ),
]
JsonOption = Annotated[
    bool,
    option("--json", "Print one JSON object and nothing else.", OUTPUT),
]


def _choose_safe_cells(is_chosen: bool) -> bool:
    from graphsys.storage.text_cells import choose_safe_cells

    return choose_safe_cells(is_chosen)


SafeCellsOption = Annotated[
    bool,
    option(
        "--safe-cells",
        "In .csv and .tsv put ' before texts that begin with =, +, -, @, a tab or a "
        "carriage return, which spreadsheets compute; by default they stay as they are.",
        OUTPUT,
        callback=_choose_safe_cells,
    ),
]
OverwriteOption = Annotated[
    bool,
    option(
        "--overwrite", "Replace an existing output; the old one survives a failure.", OUTPUT
    ),
]
GraphOutOption = Annotated[
    Path,
    option("-o, --out GRAPH", "The folder to write, or s3://...; must not exist.", OUTPUT),
]
MemoryOption = Annotated[
    str,
    option(
        "--memory SIZE",
        "Most memory to use, of the whole process: 4GB or 512MiB, for example.",
        CONTROL,
    ),
]
LimitOption = Annotated[
    str | None,
    option(
        "--memory SIZE",
        "Most memory to use, of the whole process: fewer questions or rows at a time "
        "where it is short; what needs more is refused.",
        CONTROL,
    ),
]
ThreadsOption = Annotated[
    int | None, option("--threads N>=1", "Threads; all cores by default.", CONTROL)
]
DeviceOption = Annotated[
    str, option("--device NAME", "Where to compute: cpu or cuda.", CONTROL)
]
TableOption = Annotated[
    Path | None,
    option(
        "-o, --out FILE",
        "The file to write: .parquet, .arrow, .csv, .tsv, .json or .jsonl, or - "
        "for stdout; without it the first rows are shown.",
        OUTPUT,
    ),
]
ClusterOption = Annotated[
    str | None,
    option(
        "--cluster WHERE",
        "Run on a Ray cluster: local:4 starts 4 workers here, HOST:PORT is a running one.",
        CONTROL,
    ),
]


NameColumnOption = Annotated[
    str | None,
    option(
        "--name-column COLUMN",
        "The column of the nodes that they go by, asked and answered, instead of their id: "
        "name, say.",
        INPUT,
    ),
]
ModelOption = Annotated[
    str | None,
    option(
        "--model FILE.py:NAME",
        "The file of a network's own model, which is executed; needed where it has moved, "
        "has changed, or was not trained with here.",
        INPUT,
    ),
]


def by_names(run: Any, column: str | None) -> Any:
    """Return an open run whose nodes go by a column, if one is given.

    Raises:
        ConfigError: Nodes have no such column; the message lists those there are.
    """
    if column is not None:
        run.graph = run.graph.named_by(column)
    return run


def require_no_model(model: str | None) -> None:
    """Refuse the file of a model where a run is of embeddings.

    Raises:
        ConfigError: One is given.
    """
    from graphsys.core.errors import ConfigError

    if model is not None:
        raise ConfigError(f"--model {model} is for runs of networks; leave it out")


def parse_cluster(text: str, **refused: object) -> "Cluster":
    """Read ``--cluster``.

    Args:
        text: What it was given.
        **refused: Values of options that do not go with it, by name.

    Raises:
        ConfigError: It names nothing, or one of those was given too.
    """
    from graphsys.core.errors import ConfigError
    from graphsys.distributed.cluster import Cluster

    for name, value in refused.items():
        if value is not None:
            option = "--" + name.replace("_", "-")
            raise ConfigError(f"{option} does not go with --cluster; leave out one of them")
    return Cluster.parse(text)


@contextmanager
def network_on(
    cluster: str | None,
    run: Path,
    graph: Any = None,
    *,
    memory: str | None,
    model: str | None,
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield what functions of :mod:`graphsys.gnn` take as a run, and what to tell of it.

    Args:
        cluster: What ``--cluster`` was given.
        run: Folder of the run.
        graph: The graph, if it is not where it was.
        memory: What ``--memory`` was given, which a cluster does not take.
        model: What ``--model`` was given.

    Yields:
        The run, and ``workers`` where there are any.
    """
    if cluster is None:
        from graphsys import gnn

        yield gnn.open_run(run, graph=graph, memory=memory, model=model), {}
        return
    where = parse_cluster(cluster, memory=memory)
    from graphsys import distributed

    with distributed.opened_network(run, cluster=where, graph=graph, model=model) as opened:
        yield opened, {"workers": opened.workers}


PartitionsOption = Annotated[
    str,
    option("--partitions N", "Partitions of each node type: 4, or user=8,item=8.", LAYOUT),
]
PartitionerOption = Annotated[
    str,
    option(
        "--partitioner NAME",
        "Who lives where: hash, random, range, ldg, fennel, reldg, refennel, buckets, "
        "metis, kahip.",
        LAYOUT,
    ),
]
OrderOption = Annotated[
    str,
    option(
        "--order NAME",
        "Order of nodes in a partition: auto, degree, original, rabbit or rcm.",
        LAYOUT,
    ),
]
SeedOption = Annotated[
    int,
    option("--seed N", "Seed of everything drawn.", CONTROL),
]


def require_no_relation(relation: str | None) -> None:
    """Refuse a relation where nodes have one row for all.

    Raises:
        ConfigError: One is given.
    """
    from graphsys.core.errors import ConfigError

    if relation is not None:
        raise ConfigError(
            f"--relation {relation}: in a run of embeddings a node has one row for all "
            "relations; leave it out"
        )


def examples(*lines: str) -> str:
    """Return an epilog that shows commands, one a line."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def parse_partitions(text: str) -> int | dict[str, int]:
    """Read ``4`` or ``user=8,item=8``.

    Raises:
        ConfigError: not a count >= 1, or not pairs of a node type and one.

    Examples:
        >>> parse_partitions("4"), parse_partitions("user=8, item=2")
        (4, {'user': 8, 'item': 2})
    """
    from graphsys.core.errors import ConfigError

    counts: dict[str, int] = {}
    for pair in text.split(","):
        name, _, count = pair.rpartition("=")
        name, count = name.strip(), count.strip()
        is_count = count.isascii() and count.isdigit() and int(count) >= 1
        if not is_count or name in counts or (not name and "=" in pair):
            raise ConfigError(
                f"--partitions: got {text!r}, expected a count >= 1, or one for each node "
                "type, such as user=8,item=8"
            )
        counts[name] = int(count)
    if "" not in counts:
        return counts
    if len(counts) > 1:
        raise ConfigError(
            f"--partitions: {text!r} mixes a count for all node types with counts by name; "
            "give one or the other"
        )
    return counts[""]
