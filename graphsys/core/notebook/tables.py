"""Small tables that notebooks show of results; everything in them is escaped."""

import html
from collections.abc import Iterable, Mapping
from typing import Any


def html_table(
    caption: str,
    rows: Iterable[Iterable[Any]],
    head: Iterable[str] = (),
    *,
    note: str = "",
) -> str:
    """Return a table as HTML; everything in it is escaped.

    Args:
        caption: What it is of.
        rows: Cells; numbers stand on the right.
        head: Names of the columns. Without them rows are facts, and numbers get separators.
        note: A line below.

    Examples:
        >>> html_table("a < b", [("c",)])
        '<table><caption>a &lt; b</caption><tr><td>c</td></tr></table>'
    """
    names = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    lines = "".join(
        f"<tr>{''.join(_cell(it, is_fact=not names) for it in row)}</tr>" for row in rows
    )
    top = f"<tr>{names}</tr>" if names else ""
    below = f"<p>{html.escape(note)}</p>" if note else ""
    return f"<table><caption>{html.escape(caption)}</caption>{top}{lines}</table>{below}"


def fields_table(caption: str, fields: Mapping[str, Any]) -> str:
    """Return names and values as a table, without what is None or of many values."""
    plain = (bool, int, float, str)
    return html_table(caption, [it for it in fields.items() if isinstance(it[1], plain)])


def _cell(value: Any, *, is_fact: bool) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"<td>{html.escape(str(value))}</td>"
    mark = "," if is_fact else ""  # ids and counts of a column are read below each other
    text = format(value, mark if isinstance(value, int) else f"{mark}.6g")
    return f'<td align="right">{text}</td>'
