"""``graphsys mine``: how often small patterns are in a graph, and where."""

from pathlib import Path
from typing import Annotated, Any

import typer

from graphsys.cli import mining_work as work
from graphsys.cli.mining_facts import (
    is_store_wanted,
    refuse_device,
    refuse_on_cluster,
    refuse_other_orbits,
    refuse_tables,
    refuse_without_support,
    report_cluster,
    report_counts,
    report_listing,
    report_patterns,
    report_store,
    report_table,
)
from graphsys.cli.options import (
    CONTROL,
    OUTPUT,
    ClusterOption,
    GraphArgument,
    JsonOption,
    OverwriteOption,
    SafeCellsOption,
    examples,
)
from graphsys.cli.results import FormatOption, check_target

EPILOG = examples(
    "graphsys mine web --pattern triangle --pattern 'a-b b-c c-d d-a'",
    "graphsys mine web --pattern 6-cycle --explain",
    "graphsys mine shop --pattern 'a:user>b:item c:user>b a!c'",
    "graphsys mine web --pattern house --list -o houses.parquet --limit 1000",
    "graphsys mine web --motifs 4",
    "graphsys mine web --motifs 4 --per-node -o orbits.parquet",
    "graphsys mine web --motifs 4 --per-node --features -o web-with-orbits",
    "graphsys mine web --motifs 4 --cluster local:2",
    "graphsys mine papers --frequent --support 300 --max-edges 3 --json",
)

PATTERNS = "Patterns"
FREQUENT = "Frequent patterns"


# long: an option takes several lines of its signature, and a command has them all
def mine(
    graph: GraphArgument,
    pattern: Annotated[
        list[str] | None,
        typer.Option(
            "--pattern",
            metavar="TEXT",
            help="Count a pattern: triangle, 5-clique, house, or its edges, 'a-b b-c c-a'; "
            "a>b: an arrow, a!b: no edge, a:user-[likes]-b: labels. May be repeated.",
            show_default=False,
            rich_help_panel=PATTERNS,
        ),
    ] = None,
    motifs: Annotated[
        int | None,
        typer.Option(
            "--motifs",
            metavar="K",
            help="Count all connected motifs of 3, 4 or 5 nodes.",
            show_default=False,
            rich_help_panel=PATTERNS,
        ),
    ] = None,
    induced: Annotated[
        str | None,
        typer.Option(
            "--induced",
            metavar="KIND",
            help="vertex: sets of nodes whose edges are the pattern (so --motifs counts); "
            "edge: sets of edges (so --pattern).",
            show_default=False,
            rich_help_panel=PATTERNS,
        ),
    ] = None,
    disconnected: Annotated[
        bool,
        typer.Option(
            "--disconnected",
            help="Count a --pattern in several parts too, 'a-b c-d'.",
            rich_help_panel=PATTERNS,
        ),
    ] = False,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Say how --pattern would be counted, and end.",
            rich_help_panel=PATTERNS,
        ),
    ] = False,
    per_node: Annotated[
        bool,
        typer.Option(
            "--per-node",
            help="With --motifs 4: in which places (orbits) every node stands how often.",
            rich_help_panel=PATTERNS,
        ),
    ] = False,
    per_edge: Annotated[
        bool,
        typer.Option(
            "--per-edge",
            help="The same of every edge.",
            rich_help_panel=PATTERNS,
        ),
    ] = False,
    features: Annotated[
        bool,
        typer.Option(
            "--features",
            help="With --per-node: a column of lists, log(1 + count). -o GRAPH2, without a "
            "suffix, writes the graph again with this feature of its nodes, for train gnn.",
            rich_help_panel=PATTERNS,
        ),
    ] = False,
    frequent: Annotated[
        bool,
        typer.Option(
            "--frequent",
            help="Find the labeled patterns with at least --support.",
            rich_help_panel=FREQUENT,
        ),
    ] = False,
    support: Annotated[
        int | None,
        typer.Option(
            "--support",
            metavar="N",
            help="Least nodes that each node of a frequent pattern can be (MNI).",
            show_default=False,
            rich_help_panel=FREQUENT,
        ),
    ] = None,
    max_edges: Annotated[
        int,
        typer.Option(
            "--max-edges",
            metavar="N",
            help="Most edges of a frequent pattern, 1 to 4.",
            rich_help_panel=FREQUENT,
        ),
    ] = 4,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            metavar="NAME",
            help="Labels of nodes: type, or a column; types where there are several, else "
            "the column label, by default.",
            show_default=False,
            rich_help_panel=PATTERNS,
        ),
    ] = None,
    edge_labels: Annotated[
        bool,
        typer.Option(
            "--edge-labels",
            help="Relations and edge types are labels of edges.",
            rich_help_panel=FREQUENT,
        ),
    ] = False,
    list_: Annotated[
        bool,
        typer.Option(
            "--list",
            help="Write the matches of --pattern to -o FILE.parquet, not only count.",
            rich_help_panel=PATTERNS,
        ),
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            metavar="N",
            help="With --list: most matches.",
            show_default=False,
            rich_help_panel=PATTERNS,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="The file to write: .parquet, .arrow, .csv, .tsv, .json or .jsonl, or - "
            "for stdout; without it the first rows are shown.",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    format_: FormatOption = None,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            metavar="N",
            min=1,
            help="Threads; all cores by default.",
            show_default=False,
            rich_help_panel=CONTROL,
        ),
    ] = None,
    device: Annotated[
        str,
        typer.Option(
            "--device",
            metavar="NAME",
            help="Where to count: cpu or cuda (stars, cliques, all of 3 and 4 nodes).",
            rich_help_panel=CONTROL,
        ),
    ] = "cpu",
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            metavar="SIZE",
            help="Most memory to use, of the whole process; rows that do not fit are read "
            "from a file without a name. For --pattern and --motifs.",
            show_default=False,
            rich_help_panel=CONTROL,
        ),
    ] = None,
    cluster: ClusterOption = None,
    overwrite: OverwriteOption = False,
    safe_cells: SafeCellsOption = False,
    json: JsonOption = False,
) -> None:
    """Count patterns or motifs of a graph, or find its frequent patterns.

    The graph counts as simple and, but for arrows of a pattern, undirected; every set of
    nodes, or of edges, counts once.
    """
    from graphsys.core.errors import ConfigError

    is_store = is_store_wanted(out, features=features, per_node=per_node)
    if not is_store:
        check_target(out, format_, overwrite=overwrite, as_json=json)
    if frequent + (motifs is not None) + bool(pattern) != 1:
        raise ConfigError(
            "ask for one thing: --pattern triangle, --motifs 4, for example, or --frequent"
        )
    if explain and not pattern:
        raise ConfigError("--explain is for --pattern; motifs are always counted one way")
    if disconnected and (not pattern or list_):
        raise ConfigError("--disconnected is for counts of --pattern; leave it out")
    if not frequent and (support is not None or edge_labels):
        raise ConfigError("--support and --edge-labels are for --frequent; leave them out")
    if labels is not None and motifs is not None:
        raise ConfigError("--labels is for --pattern and --frequent; motifs have none")
    if frequent and memory is not None:
        raise ConfigError(
            "--memory is for --pattern and --motifs; --frequent keeps all labeled edges in "
            "memory: leave it out"
        )
    is_one_count = not (list_ or frequent or per_node or per_edge or explain)
    refuse_device(device, is_one_count=is_one_count)
    if cluster is not None:
        refuse_on_cluster(is_one_count=is_one_count, device=device, memory=memory)
    if frequent:
        refuse_without_support(support, out)
        wanted = {"support": support, "max_edges": max_edges, "labels": labels}
        wanted |= {"edge_labels": edge_labels, "num_threads": threads}
        found, facts = work.timed(lambda: work.frequent(graph, wanted))
        report_patterns(found, facts, as_json=json)
        return
    if (list_ and not pattern) or (limit is not None and not list_):
        raise ConfigError("--list is for --pattern, --limit for --list; leave it out")
    if pattern and list_ and not explain:
        listed, facts = work.timed(
            lambda: work.list_matches(
                graph,
                pattern,
                induced or "edge",
                labels,
                out,
                limit,
                threads,
                overwrite,
                memory,
            )
        )
        report_listing(listed, induced or "edge", str(out), facts, as_json=json)
        return
    if pattern:
        refuse_tables(out, per_node or per_edge or features)
        kind = induced or "edge"
        if explain:
            work.explain(graph, pattern, kind, labels, memory, disconnected, as_json=json)
            return
        if cluster is not None:
            asked: dict[str, Any] = {
                "patterns": pattern,
                "labels": labels,
                "disconnected": disconnected,
            }
            done = work.count_on_cluster(graph, cluster, kind, threads, asked)
            report_cluster(done, kind, as_json=json)
            return
        counts, facts = work.timed(
            lambda: work.count(
                graph, pattern, kind, labels, threads, device, memory, disconnected
            )
        )
        report_counts(counts, kind, facts, as_json=json)
        return
    assert motifs is not None  # one of the three
    induced = induced or "vertex"
    if per_node or per_edge:
        refuse_other_orbits(motifs, induced, per_node and per_edge, out is None and json)
        if is_store:
            assert out is not None  # a store has a name
            report, facts = work.timed(
                lambda: work.store(graph, out, threads, memory, overwrite)
            )
            report_store(report, facts, out, as_json=json)
            return
        table, facts = work.timed(
            lambda: work.orbits(graph, per_edge, features, threads, memory)
        )
        report_table(table, facts, out, format_, overwrite=overwrite, as_json=json)
        return
    if features or out is not None:
        given = "--features" if features else "--out"
        raise ConfigError(f"{given} is for counts of every node or edge; add --per-node")
    if cluster is not None:
        done = work.count_on_cluster(graph, cluster, induced, threads, {"motifs": motifs})
        report_cluster(done, induced, as_json=json)
        return
    counts, facts = work.timed(
        lambda: work.census(graph, motifs, induced, threads, device, memory)
    )
    report_counts(counts, induced, facts, as_json=json)
