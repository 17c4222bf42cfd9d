"""``graphsys mine GRAPH --pattern TEXT``: options alone choose what is mined.

This was the only form until 0.4. It goes with one version more, and this file with it.
"""

from functools import partial
from typing import Annotated

from graphsys.cli.help_pages.declarations import described, option
from graphsys.cli.help_pages.verbs import Verb
from graphsys.cli.mining import options, work
from graphsys.cli.mining.facts import (
    is_store_wanted,
    refuse_device,
    refuse_on_cluster,
    refuse_tables,
    refuse_without_support,
)
from graphsys.cli.mining.mine import BY_OPTIONS, count, frequent, list_, motifs
from graphsys.cli.mining.mine import app as app
from graphsys.cli.options import (
    ClusterOption,
    GraphArgument,
    JsonOption,
    OverwriteOption,
    SafeCellsOption,
    TableOption,
    examples,
)
from graphsys.cli.results import FormatOption, check_target
from graphsys.core.errors import ConfigError

ListOption = Annotated[
    bool,
    option(
        "--list",
        "Write the matches of --pattern to -o FILE.parquet, not only count.",
        options.PATTERNS,
    ),
]


@app.command(
    BY_OPTIONS,
    cls=Verb,
    hidden=True,
    epilog=examples(
        "graphsys mine web --pattern triangle --pattern house",
        "graphsys mine web --pattern house --list -o houses.parquet",
        "graphsys mine web --motifs 4",
        "graphsys mine papers --frequent --support 300",
    ),
)
@partial(described, like=(count, motifs, list_, frequent))
def by_options(
    graph: GraphArgument,
    pattern: list[str] | None = None,
    motifs_: int | None = None,
    induced: str | None = None,
    disconnected: bool = False,
    explain: bool = False,
    per_node: bool = False,
    per_edge: bool = False,
    features: bool = False,
    frequent_: bool = False,
    support: int | None = None,
    max_edges: int = 4,
    labels: str | None = None,
    edge_labels: bool = False,
    is_list: ListOption = False,
    limit: int | None = None,
    out: TableOption = None,
    format_: FormatOption = None,
    threads: int | None = None,
    device: str = "cpu",
    memory: str | None = None,
    cluster: ClusterOption = None,
    overwrite: OverwriteOption = False,
    safe_cells: SafeCellsOption = False,
    json: JsonOption = False,
) -> None:
    """Count patterns or motifs of a graph, or find its frequent patterns.

    The graph counts as simple and, but for arrows of a pattern, undirected; every set of
    nodes, or of edges, counts once.

    Patterns:
        --pattern TEXT: Count a pattern: triangle, 5-clique, house, or its edges, 'a-b b-c
            c-a'; a>b: an arrow, a!b: no edge, a:user-[likes]-b: labels. May be repeated.
        --motifs K: Count all connected motifs of 3, 4 or 5 nodes.

    Frequent patterns:
        --frequent: Find the labeled patterns with at least --support.
        --support N: Least nodes that each node of a frequent pattern can be (MNI).
    """
    _refuse_mixed(pattern, motifs_, is_frequent=frequent_)
    asked = {
        "--list": is_list,
        "--limit": limit is not None,
        "--explain": explain,
        "--disconnected": disconnected,
        "--support": support is not None or edge_labels,
        "--labels": labels is not None,
        "--memory": memory is not None,
    }
    of = "--pattern" if pattern else "--frequent" if frequent_ else "--motifs"
    _refuse_others({name for name, is_asked in asked.items() if is_asked}, of)
    is_one_count = not (is_list or frequent_ or per_node or per_edge or explain)
    refuse_device(device, is_one_count=is_one_count)
    if cluster is not None:
        refuse_on_cluster(is_one_count=is_one_count, device=device, memory=memory)
    if not is_store_wanted(out, features=features, per_node=per_node):
        check_target(out, format_, overwrite=overwrite, as_json=json)
    run = (threads, device, memory, cluster, json)
    table = (per_node, per_edge, features, out, format_, overwrite, safe_cells)
    if frequent_:
        least = refuse_without_support(support, out)
        frequent(graph, least, max_edges, labels, edge_labels, threads, json)
    elif motifs_ is not None:
        motifs(graph, motifs_, induced, *table, *run)
    elif is_list and not explain:
        one, file = work.one_listed(pattern or [], out)
        how = (limit, induced, labels, overwrite)
        list_(graph, one, file, *how, threads, memory, json)
    else:
        refuse_tables(out, per_node or per_edge or features)
        count(graph, pattern or [], induced, disconnected, labels, explain, *run)


def _refuse_mixed(
    pattern: list[str] | None, size: int | None, *, is_frequent: bool
) -> None:
    """Refuse to be asked for several things, or for none."""
    if is_frequent + (size is not None) + bool(pattern) != 1:
        raise ConfigError(
            "ask for one thing: --pattern triangle, --motifs 4, for example, or --frequent"
        )


def _refuse_others(asked: set[str], of: str) -> None:
    """Refuse options that are for other things than what is mined."""
    if "--explain" in asked and of != "--pattern":
        raise ConfigError("--explain is for --pattern; motifs are always counted one way")
    if "--disconnected" in asked and (of != "--pattern" or "--list" in asked):
        raise ConfigError("--disconnected is for counts of --pattern; leave it out")
    if "--support" in asked and of != "--frequent":
        raise ConfigError("--support and --edge-labels are for --frequent; leave them out")
    if "--labels" in asked and of == "--motifs":
        raise ConfigError("--labels is for --pattern and --frequent; motifs have none")
    if "--memory" in asked and of == "--frequent":
        raise ConfigError(
            "--memory is for --pattern and --motifs; --frequent keeps all labeled edges in "
            "memory: leave it out"
        )
    is_listed = of == "--pattern" and "--list" in asked
    if not is_listed and asked & {"--list", "--limit"}:
        raise ConfigError("--list is for --pattern, --limit for --list; leave it out")
