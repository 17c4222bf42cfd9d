"""What a docstring in Google's style says, taken apart, for help pages."""

import inspect
import re
from typing import Any, Final

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
