"""What the command line prints: results to stdout, the rest to stderr.

Results on a terminal are laid out for the eye; piped, they are plain lines and
tab-separated tables, never wrapped and never colored; with ``--json``, one object.
"""

import contextlib
import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from graphsys.core.remote.locations import shown

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Of ASCII and Latin-1 all but tabs and ends of lines, and marks that turn text around."""


def is_terminal(stream: Any) -> bool:
    """Return whether a person looks at the stream; a closed one has no reader."""
    return stream is not None and not stream.closed and stream.isatty()


def visible(text: str) -> str:
    r"""Return a text whose control characters are escapes, which no terminal obeys.

    Ids and names of relations are the data's: they may hold a terminal's commands. Tabs
    and ends of lines stay.

    Examples:
        >>> visible("a\x1b[2Jb")
        'a\\x1b[2Jb'
    """
    return _CONTROLS.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


def plain(value: Any) -> Any:
    """Turn a result into what JSON has: numpy scalars to Python's, NaN to null.

    Examples:
        >>> plain({"mrr": float("nan"), "sizes": (1, 2), "run": Path("a")})
        {'mrr': None, 'sizes': [1, 2], 'run': 'a'}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, str | bool | int) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Path):
        return shown(str(value)) if isinstance(value, Path) else str(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return [plain(item) for item in value]


def print_json(result: Mapping[str, Any]) -> None:
    """Print one JSON object on one line, escaped where stdout cannot show its text."""
    text = json.dumps(plain(result), ensure_ascii=False, allow_nan=False)
    text = _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)  # the same value
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(plain(result), allow_nan=False)
    sys.stdout.write(text + "\n")


def format_value(value: Any) -> str:
    """Write a value for people: integers with commas, fractions with four digits."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {format_value(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        items = (list(it) if isinstance(it, list | tuple) else [it] for it in value)
        return ", ".join(" ".join(map(format_value, it)) for it in items) or "none"
    return visible(shown(str(value)))


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print names and values, one pair a line, the values in one column."""
    width = max((len(name) for name in facts), default=0)
    for name, value in facts.items():
        sys.stdout.write(f"{visible(name):<{width}}  {format_value(value)}\n")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table: aligned on a terminal, else tab-separated with a header line."""
    if not is_terminal(sys.stdout):
        for row in (columns, *rows):
            sys.stdout.write("\t".join(visible(str(cell)) for cell in row) + "\n")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(visible(name), overflow="fold")
    for row in rows:
        table.add_row(*(Text(format_value(cell)) for cell in row))
    Console().print(table)


def print_note(text: str) -> None:
    """Print a line for people to stderr."""
    sys.stderr.write(visible(shown(text)) + "\n")


_told: list[str] = []
"""What was said of an interruption: the first to know what is kept says it, once."""


def print_interrupted(what: str) -> None:
    """Say that the command was interrupted, and what is kept, unless that was said."""
    if not _told:
        _told.append(what)
        print_note(f"interrupted: {what}")


def forget_interruption() -> None:
    """Begin a command line: nothing was said yet."""
    _told.clear()


@contextlib.contextmanager
def telling_what_is_kept(what: Callable[[], str]) -> Iterator[None]:
    """Say after Ctrl-C what a command keeps, and how to go on.

    Args:
        what: Returns it, when it is asked for.
    """
    try:
        yield
    except KeyboardInterrupt:
        print_interrupted(what())
        raise


def print_error(message: str) -> None:
    """Print an error as exactly one line that begins with ``error:``."""
    sys.stderr.write(f"error: {visible(shown(' '.join(message.split())))}\n")
