"""``graphsys mine``: how often small patterns are in a graph, and where."""

from pathlib import Path
from typing import Any, Final

import typer

from graphsys.cli.help_pages.declarations import described
from graphsys.cli.help_pages.verbs import Verb, VerbGroup
from graphsys.cli.mining import options, work
from graphsys.cli.mining.facts import (
    is_store_wanted,
    refuse_device,
    refuse_on_cluster,
    refuse_other_orbits,
    report_cluster,
    report_counts,
    report_listing,
    report_patterns,
    report_store,
    report_table,
)
from graphsys.cli.options import (
    ClusterOption,
    GraphArgument,
    JsonOption,
    OverwriteOption,
    SafeCellsOption,
    TableOption,
    ThreadsOption,
    examples,
)
from graphsys.cli.results import FormatOption, check_target
from graphsys.core.errors import ConfigError

BY_OPTIONS: Final = "by-options"
"""Name of the command that options alone choose what of: the only one until 0.4."""
_CHOOSING: Final = {"--pattern", "--motifs", "--frequent"}
"""What that one alone has: with it the first word is a graph, even one named ``count``."""


class MineGroup(VerbGroup):
    """The commands, and what begins with no command's name: a graph and its options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give what is no command to the one that is chosen by options."""
        is_command = not args or args[0] in (*self.commands, "-h", "--help")
        is_chosen = bool(_CHOOSING & {it.partition("=")[0] for it in args})
        if not is_command or (is_chosen and args[0] != BY_OPTIONS):
            args = [BY_OPTIONS, *args]
        parsed: list[str] = super().parse_args(ctx, args)
        return parsed


app = typer.Typer(
    help="Count patterns and motifs, list their matches, find frequent patterns.",
    epilog="The graph counts as simple and, but for arrows of a pattern, undirected.\n\n"
    "`graphsys mine GRAPH --pattern TEXT`, `--motifs K`, `--list` and `--frequent` say\n"
    "the same as the commands, for one version more.",
    cls=MineGroup,
    rich_markup_mode=None,
)


@app.command(
    cls=Verb,
    epilog=examples(
        "graphsys mine count web triangle 'a-b b-c c-d d-a'",
        "graphsys mine count web 6-cycle --explain",
        "graphsys mine count shop 'a:user>b:item c:user>b a!c'",
        "graphsys mine count web house --cluster local:2",
    ),
)
@described
def count(
    graph: GraphArgument,
    patterns: options.PatternsArgument,
    induced: options.InducedOption = None,
    disconnected: bool = False,
    labels: options.LabelsOption = None,
    explain: bool = False,
    threads: ThreadsOption = None,
    device: options.DeviceOption = "cpu",
    memory: options.MemoryOption = None,
    cluster: ClusterOption = None,
    json: JsonOption = False,
) -> None:
    """Count patterns: every set of edges, or of nodes, that is one counts once.

    Patterns:
        --disconnected: Count a pattern in several parts too, 'a-b c-d'.
        --explain: Say how the patterns would be counted, and end.
    """
    kind = induced or "edge"
    refuse_device(device, is_one_count=not explain)
    if cluster is not None:
        refuse_on_cluster(is_one_count=not explain, device=device, memory=memory)
    if explain:
        work.explain(graph, patterns, kind, labels, memory, disconnected, as_json=json)
    elif cluster is not None:
        asked = {"patterns": patterns, "labels": labels, "disconnected": disconnected}
        done = work.count_on_cluster(graph, cluster, kind, threads, asked)
        report_cluster(done, kind, as_json=json)
    else:
        counts, facts = work.timed(
            lambda: work.count(
                graph, patterns, kind, labels, threads, device, memory, disconnected
            )
        )
        report_counts(counts, kind, facts, as_json=json)


@app.command(
    cls=Verb,
    epilog=examples(
        "graphsys mine motifs web 4",
        "graphsys mine motifs web 4 --per-node -o orbits.parquet",
        "graphsys mine motifs web 4 --per-node --features -o web-with-orbits",
        "graphsys mine motifs web 4 --cluster local:2",
    ),
)
@described
def motifs(
    graph: GraphArgument,
    size: options.SizeArgument,
    induced: options.InducedOption = None,
    per_node: bool = False,
    per_edge: bool = False,
    features: bool = False,
    out: TableOption = None,
    format_: FormatOption = None,
    overwrite: OverwriteOption = False,
    safe_cells: SafeCellsOption = False,
    threads: ThreadsOption = None,
    device: options.DeviceOption = "cpu",
    memory: options.MemoryOption = None,
    cluster: ClusterOption = None,
    json: JsonOption = False,
) -> None:
    """Count all connected motifs of 3, 4 or 5 nodes, or where each node stands in them.

    Patterns:
        --per-node: Of 4 nodes: in which places (orbits) every node stands how often.
        --per-edge: The same of every edge.
        --features: With --per-node: a column of lists, log(1 + count). -o GRAPH2, without a
            suffix, writes the graph again with this feature of its nodes, for train gnn.
    """
    kind, is_one_count = induced or "vertex", not (per_node or per_edge)
    is_store = is_store_wanted(out, features=features, per_node=per_node)
    if not is_store:
        check_target(out, format_, overwrite=overwrite, as_json=json)
    refuse_device(device, is_one_count=is_one_count)
    if cluster is not None:
        refuse_on_cluster(is_one_count=is_one_count, device=device, memory=memory)
    if not is_one_count:
        refuse_other_orbits(size, kind, per_node and per_edge, out is None and json)
    elif features or out is not None:
        given = "--features" if features else "--out"
        raise ConfigError(f"{given} is for counts of every node or edge; add --per-node")
    if is_store:
        assert out is not None  # a store has a name
        report, facts = work.timed(
            lambda: work.store(graph, out, threads, memory, overwrite)
        )
        report_store(report, facts, out, as_json=json)
    elif not is_one_count:
        table, facts = work.timed(
            lambda: work.orbits(graph, per_edge, features, threads, memory)
        )
        report_table(table, facts, out, format_, overwrite=overwrite, as_json=json)
    elif cluster is not None:
        done = work.count_on_cluster(graph, cluster, kind, threads, {"motifs": size})
        report_cluster(done, kind, as_json=json)
    else:
        counts, facts = work.timed(
            lambda: work.census(graph, size, kind, threads, device, memory)
        )
        report_counts(counts, kind, facts, as_json=json)


@app.command(
    "list",
    cls=Verb,
    epilog=examples(
        "graphsys mine list web house -o houses.parquet --limit 1000",
        "graphsys mine list shop 'a:user>b:item c:user>b a!c' -o pairs.parquet",
    ),
)
@described
def list_(
    graph: GraphArgument,
    pattern: options.PatternArgument,
    out: Path,
    limit: int | None = None,
    induced: options.InducedOption = None,
    labels: options.LabelsOption = None,
    overwrite: OverwriteOption = False,
    threads: ThreadsOption = None,
    memory: options.MemoryOption = None,
    json: JsonOption = False,
) -> None:
    """Write the matches of a pattern to a file: a row each, a column per node.

    Output:
        -o, --out FILE: The file to write: .parquet.

    Patterns:
        --limit N: Most matches.
    """
    kind = induced or "edge"
    listed, facts = work.timed(
        lambda: work.list_matches(
            graph, pattern, kind, labels, out, limit, threads, overwrite, memory
        )
    )
    report_listing(listed, kind, str(out), facts, as_json=json)


@app.command(
    cls=Verb,
    epilog=examples("graphsys mine frequent papers --support 300 --max-edges 3 --json"),
)
@described
def frequent(
    graph: GraphArgument,
    support: int,
    max_edges: int = 4,
    labels: options.LabelsOption = None,
    edge_labels: bool = False,
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Find the labeled patterns that are frequent: with at least --support.

    Options:
        --support N: Least nodes that each node of a frequent pattern can be (MNI).

    Frequent patterns:
        --max-edges N: Most edges of a frequent pattern, 1 to 4.
        --edge-labels: Relations and edge types are labels of edges.
    """
    wanted = {"support": support, "max_edges": max_edges, "labels": labels}
    wanted |= {"edge_labels": edge_labels, "num_threads": threads}
    found, facts = work.timed(lambda: work.frequent(graph, wanted))
    report_patterns(found, facts, as_json=json)
