"""Which columns are the source, the destination, the weight, the time, the relation."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from graphsys.core.caller_warnings import note
from graphsys.core.errors import InputError, cut_list, unknown_name
from graphsys.datasets.base import ReadOptions

_ENDS: Final = (
    ("src", "dst"),
    ("src", "dest"),
    ("source", "target"),
    ("source", "destination"),
    ("source", "dest"),
    ("from", "to"),
    ("head", "tail"),
    ("subject", "object"),
    ("origin", "destination"),
    ("sender", "receiver"),
    ("start", "end"),
    ("citing", "cited"),
    ("follower", "followee"),
    ("u", "v"),
    ("h", "t"),
    ("_start", "_end"),
)
_ENDINGS: Final = ("", "_id", "_node", "_node_id", "id", "node", "nodeid")
PAIRS: Final = tuple(
    (src + ending, dst + ending) for ending in _ENDINGS for src, dst in _ENDS
)
"""Names of source and destination, in lower case; the first pair that is there counts."""

ROLES: Final = {
    "weight": ("weight",),
    "time": ("time", "timestamp"),
    "relation": ("relation", "rel", "predicate"),
}


_NUMBERED: Final = re.compile(
    r"(?P<stem>[a-z][a-z _.-]*?)[ _.-]?(?P<number>[12]|(?<=[ _.-])[ab])"
)


def numbered_pair(names: Sequence[str]) -> tuple[str, str] | None:
    """Return the one pair of names that differ by 1 and 2, or by a and b; else None.

    Examples:
        >>> numbered_pair(["id_1", "id_2", "weight"])
        ('id_1', 'id_2')
        >>> numbered_pair(["x1", "x2", "y1", "y2"]) is None
        True
    """
    pairs = _numbered_pairs(names)
    return pairs[0] if len(pairs) == 1 else None


def _numbered_pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    by_stem: dict[str, dict[str, str]] = {}
    for name in names:
        match = _NUMBERED.fullmatch(name.lower())
        if match and len(match["stem"]) > 1:
            by_stem.setdefault(match["stem"], {})[match["number"]] = name
    return [
        (found[first], found[second])
        for found in by_stem.values()
        for first, second in (("1", "2"), ("a", "b"))
        if first in found and second in found
    ]


def is_header(names: Sequence[str]) -> bool:
    """Tell whether fields are column names that are known here."""
    lowered = {name.lower() for name in names}
    return any(src in lowered and dst in lowered for src, dst in PAIRS)


def find_roles(names: Sequence[str], options: ReadOptions, where: str) -> dict[str, str]:
    """Give every column of a table its name in the graph.

    Args:
        names: The table's columns.
        options: With ``columns`` (the columns to take) or ``roles`` (the name of a role).
        where: What messages call the table.

    Returns:
        Name in the graph of every column taken, by the table's name.

    Raises:
        InputError: source and destination cannot be told.
        UnknownNameError: a column that was asked for does not exist.
    """
    for asked in (*(options.columns or ()), *options.roles.values()):
        if asked not in names and asked != "_":
            raise _unknown_column(asked, names, where)
    doubled = sorted(name for name, count in Counter(names).items() if count > 1)
    if doubled:
        raise InputError(
            f"{where}: column {doubled[0][:60]!r} occurs twice, expected different names"
        )
    taken = list(options.columns or names)
    found = {column: role for role, column in options.roles.items()}
    lowered = {name.lower(): name for name in reversed(taken) if name not in found}
    if not {"src", "dst"} & set(found.values()):
        for pair in PAIRS:
            if pair[0] in lowered and pair[1] in lowered:
                found |= {lowered[pair[0]]: "src", lowered[pair[1]]: "dst"}
                break
        else:
            ends = (taken[0], taken[1]) if options.columns and len(taken) >= 2 else None
            if pair_named := ends or numbered_pair(taken):
                found |= dict(zip(pair_named, ("src", "dst"), strict=True))
    for role, aliases in ROLES.items():
        alias = next((lowered[name] for name in aliases if name in lowered), None)
        if alias is not None and role not in found.values() and alias not in found:
            found[alias] = role
    missing = [role for role in ("src", "dst") if role not in found.values()]
    if missing:
        raise InputError(
            f"{where}: no column for {' and '.join(missing)} among {_shown(names)}; "
            f"say which they are with {_suggested(names, found)}"
        )
    others = {*taken} - {*found, *found.values(), "_"}
    return found | {name: name for name in taken if name in others}


def warn_of_left_out(names: Sequence[str], called: Mapping[str, str], where: str) -> None:
    """Name the columns that are left out since others were given their names.

    Args:
        names: The table's columns.
        called: Name in the graph of every column taken; ``x[0]`` is a part of ``x``.
        where: What messages call the table.
    """
    free = {*names} - {*called}
    for column, role in called.items():
        base = role.partition("[")[0]
        if base in free:
            free.remove(base)  # told once
            note(
                f"{where}: the column {base!r} is left out, for {column!r} is taken as "
                f"{base}; to keep both, call one otherwise in the file"
            )


def _suggested(names: Sequence[str], found: Mapping[str, str]) -> str:
    """Return the command that names both ends, of the first columns that may be them.

    Columns that differ by 1 and 2, or by A and B, come before the others.
    """
    ends = {role: column for column, role in found.items() if role in ("src", "dst")}
    paired = [name for pair in _numbered_pairs(names) for name in pair] if not ends else []
    free = [
        name
        for name in dict.fromkeys([*paired, *names])
        if name not in found and "," not in name
    ]
    for role in ("src", "dst"):
        if role not in ends:
            ends[role] = free.pop(0) if free else "NAME"
    pairs = f"src={ends['src']},dst={ends['dst']}"
    return (
        f"--columns {pairs}"
        if pairs.isascii() and " " not in pairs
        else (f'--columns "{pairs}"')
    )


def _shown(names: Sequence[str]) -> str:
    """Return names for a message: on one line, and not too long."""
    lines = (re.sub(r"[ \t\r\n]+", " ", name) for name in names)
    lines = (it if it.isprintable() else repr(it)[1:-1] for it in lines)
    shown = cut_list((it if len(it) <= 60 else f"{it[:60]}..." for it in lines), 8)
    return shown or "none"


def _unknown_column(asked: str, names: Sequence[str], where: str) -> Exception:
    err = unknown_name("column", asked, names)
    return type(err)(f"{where}: {err}")
