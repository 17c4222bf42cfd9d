"""Help pages that read the same on a terminal and in a pipe.

Options stand in groups (an option's ``rich_help_panel``), headings are bold where the
reader is a person, and an epilog keeps its lines.
"""

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

OTHER = "Options"


class Verb(TyperCommand):
    """A command whose help shows its options in groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then each group of options."""
        write_options(self, ctx, formatter)


class VerbGroup(TyperGroup):
    """A group of commands, shown in panels."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, then the options."""
        panels: dict[str, list[tuple[str, str]]] = {}
        shown = [(name, it) for name, it in self.commands.items() if not it.hidden]
        for name, command in sorted(
            shown, key=lambda it: not isinstance(it[1], TyperGroup)
        ):
            panel = str(getattr(command, "rich_help_panel", None) or "Commands")
            panels.setdefault(panel, []).append((name, command.get_short_help_str(100)))
        width = max((len(name) for name, _ in shown), default=0)
        for panel, rows in panels.items():
            with _section(formatter, panel):
                formatter.write_dl([(name.ljust(width), text) for name, text in rows])
        write_options(self, ctx, formatter)


def write_options(command: Any, ctx: Any, formatter: Any) -> None:
    """Write a command's arguments and options, grouped."""
    panels: dict[str, list[tuple[str, str]]] = {}
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx)
        if record is None:
            continue
        name, text = record
        if param.param_type_name == "argument":
            panels.setdefault("Arguments", []).append((name.partition(" <")[0], text))
        else:
            panel = getattr(param, "rich_help_panel", None)
            panels.setdefault(panel or OTHER, []).append(record)
    last = panels.pop(OTHER, [])
    width = max(
        (len(row[0]) for rows in (*panels.values(), last) for row in rows), default=0
    )
    for panel, rows in (*panels.items(), (OTHER, last)):
        if rows:
            with _section(formatter, panel):
                formatter.write_dl([(name.ljust(width), text) for name, text in rows])


def _section(formatter: Any, heading: str) -> Any:
    return formatter.section(typer.style(heading, bold=True))
