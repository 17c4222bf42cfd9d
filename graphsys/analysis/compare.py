"""Two reports side by side: what changed from one run to the other."""

import math
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

_MEASURED = ("started", "model_seconds", "copied_bytes_per_second", "gemm_flop_per_second")
"""Of the configuration, what differs from run to run."""


@dataclass(frozen=True, slots=True)
class Change:
    """A metric in two reports.

    Attributes:
        name: The metric.
        unit: Its unit.
        before: Its value in the first; None where it was not measured.
        after: In the second.
        ratio: ``after / before``; None where there is none.
    """

    name: str
    unit: str
    before: float | int | None
    after: float | int | None
    ratio: float | None


def compare_reports(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return what differs between two reports of one schema version.

    Returns:
        ``commands`` (of both), ``unlike`` (why their figures hardly compare: other verbs,
        algorithms or graphs; None where they do), ``configuration`` (name to both values,
        where they differ), and ``changes``: metrics whose value differs, the largest ratios
        first.
    """
    left = {metric["name"]: metric for metric in before["metrics"]}
    right = {metric["name"]: metric for metric in after["metrics"]}
    changes = []
    for name in [*left, *(name for name in right if name not in left)]:
        first, second = left.get(name, {}), right.get(name, {})
        old, new = first.get("value"), second.get("value")
        if old == new:
            continue
        ratio = new / old if old and new is not None else None
        unit = str(first.get("unit", second.get("unit", "")))
        changes.append(Change(name, unit, old, new, ratio))
    changes.sort(key=_size, reverse=True)
    return {
        "commands": [before["command"], after["command"]],
        "unlike": _unlike(before["command"], after["command"]),
        "configuration": _differences(before, after),
        "changes": [asdict(change) for change in changes],
    }


def _unlike(before: str, after: str) -> str | None:
    """Say in which words two commands are of different work, or None.

    The words of a command that are neither options nor their values: the verb, what it
    runs, and the graph or run.
    """
    left, right = (_work(command) for command in (before, after))
    if left == right:
        return None
    return (
        f"these are reports of unlike runs, {' '.join(left)!r} and {' '.join(right)!r}: "
        "figures of one say little about the other"
    )


def _work(command: str) -> list[str]:
    found: list[str] = []
    for word in shlex.split(command)[1:]:
        if word.startswith("-"):
            break
        found.append(word)
    return found


def _size(change: Change) -> float:
    """Order changes: those without a ratio first, then by how far it is from 1."""
    if change.ratio is None or change.ratio <= 0:
        return math.inf
    return abs(math.log(change.ratio))


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    left, right = _flat("", _setting(before)), _flat("", _setting(after))
    names = [*left, *(name for name in right if name not in left)]
    return {
        name: [left.get(name), right.get(name)]
        for name in names
        if left.get(name) != right.get(name)
    }


def _setting(report: Mapping[str, Any]) -> dict[str, Any]:
    own = dict(report.get("configuration", {}))
    for name in _MEASURED:
        own.pop(name, None)
    machine = {k: v for k, v in report["machine"].items() if k != "load_average"}
    return {**own, "machine": machine, "status": report["status"]}


def _flat(prefix: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {prefix: value}
    found: dict[str, Any] = {}
    for name, inner in value.items():
        found |= _flat(f"{prefix}.{name}" if prefix else str(name), inner)
    return found
