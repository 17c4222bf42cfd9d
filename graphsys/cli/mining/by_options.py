"""``graphsys mine GRAPH --pattern TEXT``: options alone choose what is mined.

This was the only form until 0.4. It goes with one version more, and this file with it.
"""

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
    examples,
)
from graphsys.cli.results import FormatOption, check_target
from graphsys.core.errors import ConfigError


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
def by_options(
    graph: GraphArgument,
    pattern: options.PatternOption = None,
    motifs_: options.MotifsOption = None,
    induced: options.InducedOption = None,
    disconnected: options.DisconnectedOption = False,
    explain: options.ExplainOption = False,
    per_node: options.PerNodeOption = False,
    per_edge: options.PerEdgeOption = False,
    features: options.FeaturesOption = False,
    frequent_: options.FrequentOption = False,
    support: options.SupportOption = None,
    max_edges: options.MaxEdgesOption = 4,
    labels: options.LabelsOption = None,
    edge_labels: options.EdgeLabelsOption = False,
    is_list: options.ListOption = False,
    limit: options.LimitOption = None,
    out: options.OutOption = None,
    format_: FormatOption = None,
    threads: options.ThreadsOption = None,
    device: options.DeviceOption = "cpu",
    memory: options.MemoryOption = None,
    cluster: ClusterOption = None,
    overwrite: OverwriteOption = False,
    safe_cells: SafeCellsOption = False,
    json: JsonOption = False,
) -> None:
    """Count patterns or motifs of a graph, or find its frequent patterns.

    The graph counts as simple and, but for arrows of a pattern, undirected; every set of
    nodes, or of edges, counts once.
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
