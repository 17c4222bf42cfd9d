"""``graphsys run bfs --help``: what the docstring of ``gs.algorithms.bfs`` says."""

import inspect
import re
import textwrap
from typing import TYPE_CHECKING, Any, Final

import typer

from graphsys.cli.help_pages.verbs import Verb

if TYPE_CHECKING:
    from graphsys.engine.algorithms import Algorithm


_GIVEN = "graphsys.arguments"
_SECTIONS = (
    ("Returns", "Output"),
    ("Complexity", "Cost"),
    ("References", "Sources"),
    ("Example", "In Python"),
)


class AlgorithmVerb(Verb):
    """A verb whose first argument may be an algorithm, which then is what is explained."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Remember the arguments: help is asked for before they are parsed."""
        ctx.meta[_GIVEN] = list(args)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the page of the algorithm that is named, or the verb's."""
        words = [word for word in ctx.meta.get(_GIVEN, ()) if not word.startswith("-")]
        if words:
            from graphsys.engine.algorithms import ALGORITHMS

            if words[0] in ALGORITHMS:
                _write(ALGORITHMS[words[0]], formatter)
                return
        super().format_help(ctx, formatter)


def _write(algorithm: "Algorithm", formatter: Any) -> None:

    sections = sections_of(algorithm.function)
    formatter.write_usage(f"graphsys run {algorithm.name}", "GRAPH [OPTIONS]")
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(_plain(sections[""]))
    told = entries_of(sections["Args"])
    rows = [
        (_setting(parameter), _plain(told[name]))
        for name, parameter in inspect.signature(algorithm.function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    if rows:
        with formatter.section(_bold("Parameters, each as --param NAME=VALUE")):
            formatter.write_dl(rows)
    for name, heading in _SECTIONS:
        with formatter.section(_bold(heading)):
            text = _plain(sections[name]) if name != "Example" else sections[name]
            block = textwrap.dedent(text)
            formatter.write(textwrap.indent(block, " " * formatter.current_indent) + "\n")
    formatter.write_paragraph()
    formatter.write_text("Options of all algorithms: graphsys run --help")


def _setting(parameter: inspect.Parameter) -> str:
    """Return a parameter with its default, as it is written on the command line."""
    if parameter.default is inspect.Parameter.empty:
        return f"{parameter.name}=..."
    default = parameter.default
    shown = str(default).lower() if default is None or default is True else default
    return f"{parameter.name}={'false' if default is False else shown}"


def _bold(heading: str) -> str:
    return typer.style(heading, bold=True)


def _plain(text: str) -> str:
    """Drop what marks code in a docstring."""
    return re.sub(r"``([^`]+)``", r"\1", text)


_HEADING: Final = re.compile(r"^(Args|Returns|Raises|Complexity|References|Example):$")
_ENTRY: Final = re.compile(r"^    (\w+): (.*)$")


def sections_of(documented: Any) -> dict[str, str]:
    """Return the sections of a docstring by heading, without their indentation.

    Args:
        documented: A function or class.

    Returns:
        "" holds what stands before the first heading.

    Examples:
        >>> def area(side):
        ...     '''Return the area.
        ...
        ...     Args:
        ...         side: In meters, so that the area is in square meters and
        ...             fits.
        ...     '''
        >>> sections_of(area)[""]
        'Return the area.'
        >>> entries_of(sections_of(area)["Args"])
        {'side': 'In meters, so that the area is in square meters and fits.'}
    """
    found: dict[str, list[str]] = {"": []}
    heading = ""
    for line in (inspect.getdoc(documented) or "").splitlines():
        match = _HEADING.match(line)
        if match:
            heading = match[1]
            found[heading] = []
        else:
            found[heading].append(line)
    return {name: "\n".join(lines).strip("\n") for name, lines in found.items()}


def entries_of(section: str) -> dict[str, str]:
    """Return the entries of a section like ``Args`` by name, each in one line."""
    entries: dict[str, str] = {}
    name = ""
    for line in section.splitlines():
        match = _ENTRY.match(line)
        if match:
            name, text = match.groups()
            entries[name] = text
        elif name:
            entries[name] += f" {line.strip()}"
    return entries
