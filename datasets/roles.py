"""Which columns are the source, the destination, the weight, the time, the relation."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from graphsys.core.errors import InputError, cut_list, unknown_name
from graphsys.datasets.base import ReadOptions

_ENDS: Final = (
    ("src", "dst"),
    ("source", "target"),
    ("source", "destination"),
    ("from", "to"),
    ("head", "tail"),
    ("subject", "object"),
    ("u", "v"),
    ("h", "t"),
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
            if options.columns and len(taken) >= 2:
                found |= {taken[0]: "src", taken[1]: "dst"}
    for role, aliases in ROLES.items():
        alias = next((lowered[name] for name in aliases if name in lowered), None)
        if alias is not None and role not in found.values() and alias not in found:
            found[alias] = role
    missing = [role for role in ("src", "dst") if role not in found.values()]
    if missing:
        raise InputError(
            f"{where}: no column for {' and '.join(missing)} among {_shown(names)}; "
            "say which they are with --columns src=NAME,dst=NAME"
        )
    return found | {name: name for name in taken if name not in found and name != "_"}


def _shown(names: Sequence[str]) -> str:
    """Return names for a message: on one line, and not too long."""
    lines = (" ".join(name.split()) for name in names)
    return cut_list((it if len(it) <= 60 else f"{it[:60]}..." for it in lines), 8)


def _unknown_column(asked: str, names: Sequence[str], where: str) -> Exception:
    err = unknown_name("column", asked, names)
    return type(err)(f"{where}: {err}")
