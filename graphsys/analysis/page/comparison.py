"""Two reports beside each other as one HTML page."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from graphsys.analysis.compare import compare_reports
from graphsys.analysis.page import bars, charts
from graphsys.analysis.page.first_screen import first_screen
from graphsys.analysis.page.page import MAIN
from graphsys.analysis.page.template import filled
from graphsys.analysis.page.text import figure_text

MAX_BARS = 100
"""Pairs of bars along the supersteps; of more, several in a row share one."""
MAX_OPERATORS = 60

Report = Mapping[str, Any]


def comparison_page(before: Report, after: Report, names: tuple[str, str]) -> str:
    """Return two reports beside each other as HTML; nothing is fetched.

    Args:
        before: The first, as :func:`graphsys.analysis.report.report_of` makes it.
        after: The second.
        names: What the page calls them.
    """
    found = compare_reports(before, after)
    pair = (before, after)
    steps, per_bar = _steps(pair, names)
    firsts = [first_screen(report) for report in pair]
    return filled(
        "comparison.html",
        sides=[
            {
                "name": name,
                "report": report,
                "timeline": _timeline(report),
                "first": first,
            }
            for name, report, first in zip(names, pair, firsts, strict=True)
        ],
        numbers=list(zip(*(first["numbers"] for first in firsts), strict=True)),
        unlike=found["unlike"],
        main=_main(before, after),
        steps=steps,
        per_bar=per_bar,
        is_training=any(step["mode"] == "train" for step in before["supersteps"]),
        lanes=_lanes(pair),
        operators=_operators(before, after),
        changes=found["changes"],
        configuration=found["configuration"],
    )


def _main(before: Report, after: Report) -> list[dict[str, Any]]:
    """Return the main figures that both reports have, without those that are zero."""
    left, right = ({it["name"]: it for it in r["metrics"]} for r in (before, after))
    rows = []
    for name, label in MAIN:
        old, new = left.get(name), right.get(name)
        if old is None or new is None or None in (old["value"], new["value"]):
            continue
        values = old["value"], new["value"]
        if not any(values):
            continue
        rows.append(
            {
                "label": label,
                "before": values[0],
                "after": values[1],
                "texts": [figure_text(old), figure_text(new)],
                "ratio": values[1] / values[0] if values[0] else None,
                "bars": charts.pair_of_bars(*values, label),
            }
        )
    return rows


def _timeline(report: Report) -> Markup:
    spans = report["timeline"]
    lanes = [(lane["name"], lane["shares"]) for lane in spans["lanes"]]
    return bars.timeline(lanes, spans["seconds"])


def _steps(pair: tuple[Report, Report], names: tuple[str, str]) -> tuple[Markup, int]:
    """Draw how long each superstep took in both, and say how many share a bar."""
    seconds = [[step["seconds"] for step in report["supersteps"]] for report in pair]
    if not all(own and None not in own for own in seconds):
        return Markup(""), 1
    per_bar = -(-max(map(len, seconds)) // MAX_BARS)
    num_bars = -(-max(map(len, seconds)) // per_bar)
    means = {}
    for name, own in zip(names, seconds, strict=True):
        parts = [own[k : k + per_bar] for k in range(0, len(own), per_bar)]
        found = [sum(part) / len(part) for part in parts]
        means[name] = found + [0.0] * (num_bars - len(found))  # it had fewer
    return charts.times_by_step(means), per_bar


def _lanes(pair: tuple[Report, Report]) -> Markup:
    """Draw lanes at work and idle, by mapping, of one report above the other."""
    found = [report["gpu"]["mappings"] if report["gpu"] else {} for report in pair]
    rows = [
        (
            name if own is found[0] else "",
            it["active_lane_steps"],
            it["intra_task_idle"],
            it["inter_task_idle"],
        )
        for name in found[0]
        for own in found
        if (it := own.get(name)) is not None
    ]
    return bars.lane_shares(rows) if all(found) else Markup("")


def _operators(before: Report, after: Report) -> list[dict[str, Any]]:
    """Return calls and seconds of operators by name, those first that changed most."""
    left, right = _by_name(before["operators"]), _by_name(after["operators"])
    rows = []
    for name in dict.fromkeys([*left, *right]):
        (calls, seconds), (calls_then, seconds_then) = (
            side.get(name, (None, None)) for side in (left, right)
        )
        ratio = seconds_then / seconds if seconds and seconds_then is not None else None
        cells = [calls, calls_then, seconds, seconds_then, ratio]
        rows.append({"name": name, "cells": cells})

    def apart(row: Mapping[str, Any]) -> float:
        seconds, seconds_then = (float(it or 0) for it in row["cells"][2:4])
        return abs(seconds_then - seconds)

    return sorted(rows, key=apart, reverse=True)[:MAX_OPERATORS]


def _by_name(
    operators: Sequence[Mapping[str, Any]],
) -> dict[str, tuple[int | None, float | None]]:
    """Return calls and seconds, added up over rows of one name."""
    found: dict[str, tuple[int | None, float | None]] = {}
    for row in operators:
        calls, seconds = found.get(str(row["name"]), (None, None))
        found[str(row["name"])] = (
            _sum(calls, row.get("calls")),
            _sum(seconds, row.get("seconds")),
        )
    return found


def _sum(left: Any, right: Any) -> Any:
    return right if left is None else left if right is None else left + right
