"""What commands of ``graphsys mine`` share."""

from typing import Annotated

import typer

from graphsys.cli.help_pages.declarations import option
from graphsys.cli.options import CONTROL

PATTERNS = "Patterns"
_FORMS = (
    "triangle, 5-clique, house, or edges, 'a-b b-c c-a'; a>b: an arrow, a!b: no edge, "
    "a:user-[likes]-b: labels."
)

PatternsArgument = Annotated[
    list[str],
    typer.Argument(metavar="PATTERN...", help=f"Patterns: {_FORMS}", show_default=False),
]
PatternArgument = Annotated[
    str, typer.Argument(metavar="PATTERN", help=f"A pattern: {_FORMS}", show_default=False)
]
SizeArgument = Annotated[
    int, typer.Argument(metavar="SIZE", help="Nodes of a motif: 3, 4 or 5.")
]
InducedOption = Annotated[
    str | None,
    option(
        "--induced KIND",
        "vertex: sets of nodes whose edges are the pattern (so motifs count); edge: "
        "sets of edges (so patterns).",
        PATTERNS,
    ),
]
LabelsOption = Annotated[
    str | None,
    option(
        "--labels NAME",
        "Labels of nodes: type, or a column; types where there are several, else "
        "the column label, by default.",
        PATTERNS,
    ),
]
DeviceOption = Annotated[
    str,
    option(
        "--device NAME",
        "Where to count: cpu or cuda (stars, cliques, all of 3 and 4 nodes).",
        CONTROL,
    ),
]
MemoryOption = Annotated[
    str | None,
    option(
        "--memory SIZE",
        "Most memory to use, of the whole process; rows that do not fit are read "
        "from a file without a name.",
        CONTROL,
    ),
]
