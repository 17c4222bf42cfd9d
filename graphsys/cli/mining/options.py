"""What ``graphsys mine`` takes: options that its commands share."""

from pathlib import Path
from typing import Annotated

import typer

from graphsys.cli.options import CONTROL, OUTPUT

PATTERNS = "Patterns"
FREQUENT = "Frequent patterns"
_FORMS = (
    "triangle, 5-clique, house, or edges, 'a-b b-c c-a'; a>b: an arrow, a!b: no edge, "
    "a:user-[likes]-b: labels."
)

PatternsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="PATTERN...",
        help=f"Patterns: {_FORMS}",
        show_default=False,
    ),
]
PatternArgument = Annotated[
    str,
    typer.Argument(
        metavar="PATTERN",
        help=f"A pattern: {_FORMS}",
        show_default=False,
    ),
]
SizeArgument = Annotated[
    int, typer.Argument(metavar="SIZE", help="Nodes of a motif: 3, 4 or 5.")
]
MatchesOption = Annotated[
    Path,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="The file to write: .parquet.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
LeastSupportOption = Annotated[
    int,
    typer.Option(
        "--support",
        metavar="N",
        help="Least nodes that each node of a frequent pattern can be (MNI).",
        show_default=False,
    ),
]
PatternOption = Annotated[
    list[str] | None,
    typer.Option(
        "--pattern",
        metavar="TEXT",
        help="Count a pattern: triangle, 5-clique, house, or its edges, 'a-b b-c c-a'; "
        "a>b: an arrow, a!b: no edge, a:user-[likes]-b: labels. May be repeated.",
        show_default=False,
        rich_help_panel=PATTERNS,
    ),
]
MotifsOption = Annotated[
    int | None,
    typer.Option(
        "--motifs",
        metavar="K",
        help="Count all connected motifs of 3, 4 or 5 nodes.",
        show_default=False,
        rich_help_panel=PATTERNS,
    ),
]
InducedOption = Annotated[
    str | None,
    typer.Option(
        "--induced",
        metavar="KIND",
        help="vertex: sets of nodes whose edges are the pattern (so motifs count); edge: "
        "sets of edges (so patterns).",
        show_default=False,
        rich_help_panel=PATTERNS,
    ),
]
DisconnectedOption = Annotated[
    bool,
    typer.Option(
        "--disconnected",
        help="Count a pattern in several parts too, 'a-b c-d'.",
        rich_help_panel=PATTERNS,
    ),
]
ExplainOption = Annotated[
    bool,
    typer.Option(
        "--explain",
        help="Say how the patterns would be counted, and end.",
        rich_help_panel=PATTERNS,
    ),
]
PerNodeOption = Annotated[
    bool,
    typer.Option(
        "--per-node",
        help="Of 4 nodes: in which places (orbits) every node stands how often.",
        rich_help_panel=PATTERNS,
    ),
]
PerEdgeOption = Annotated[
    bool,
    typer.Option(
        "--per-edge",
        help="The same of every edge.",
        rich_help_panel=PATTERNS,
    ),
]
FeaturesOption = Annotated[
    bool,
    typer.Option(
        "--features",
        help="With --per-node: a column of lists, log(1 + count). -o GRAPH2, without a "
        "suffix, writes the graph again with this feature of its nodes, for train gnn.",
        rich_help_panel=PATTERNS,
    ),
]
FrequentOption = Annotated[
    bool,
    typer.Option(
        "--frequent",
        help="Find the labeled patterns with at least --support.",
        rich_help_panel=FREQUENT,
    ),
]
SupportOption = Annotated[
    int | None,
    typer.Option(
        "--support",
        metavar="N",
        help="Least nodes that each node of a frequent pattern can be (MNI).",
        show_default=False,
        rich_help_panel=FREQUENT,
    ),
]
MaxEdgesOption = Annotated[
    int,
    typer.Option(
        "--max-edges",
        metavar="N",
        help="Most edges of a frequent pattern, 1 to 4.",
        rich_help_panel=FREQUENT,
    ),
]
LabelsOption = Annotated[
    str | None,
    typer.Option(
        "--labels",
        metavar="NAME",
        help="Labels of nodes: type, or a column; types where there are several, else "
        "the column label, by default.",
        show_default=False,
        rich_help_panel=PATTERNS,
    ),
]
EdgeLabelsOption = Annotated[
    bool,
    typer.Option(
        "--edge-labels",
        help="Relations and edge types are labels of edges.",
        rich_help_panel=FREQUENT,
    ),
]
ListOption = Annotated[
    bool,
    typer.Option(
        "--list",
        help="Write the matches of --pattern to -o FILE.parquet, not only count.",
        rich_help_panel=PATTERNS,
    ),
]
LimitOption = Annotated[
    int | None,
    typer.Option(
        "--limit",
        metavar="N",
        help="Most matches.",
        show_default=False,
        rich_help_panel=PATTERNS,
    ),
]
OutOption = Annotated[
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
]
ThreadsOption = Annotated[
    int | None,
    typer.Option(
        "--threads",
        metavar="N",
        min=1,
        help="Threads; all cores by default.",
        show_default=False,
        rich_help_panel=CONTROL,
    ),
]
DeviceOption = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="NAME",
        help="Where to count: cpu or cuda (stars, cliques, all of 3 and 4 nodes).",
        rich_help_panel=CONTROL,
    ),
]
MemoryOption = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="Most memory to use, of the whole process; rows that do not fit are read "
        "from a file without a name.",
        show_default=False,
        rich_help_panel=CONTROL,
    ),
]
