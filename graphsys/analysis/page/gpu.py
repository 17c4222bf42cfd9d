"""What the page shows of the modelled GPU, and of bytes below the machine's copies."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from markupsafe import Markup

from graphsys.analysis.measured import ENTRY_BYTES
from graphsys.analysis.page import bars, charts
from graphsys.analysis.page.template import percent
from graphsys.analysis.page.text import number_text

MAX_BARS: Final = 100
"""Bars along the supersteps; of more, several in a row share one."""
_LEAST_CLASS: Final = 0.001
"""Share of all entries below which a class of degrees is not drawn."""
_TITLES: Final = {
    "auto": "the mapping chosen for each launch (auto)",
    "thread": "a thread a row",
    "warp": "a warp a row",
}

Report = Mapping[str, Any]
_Row = tuple[str, Callable[[Mapping[str, Any]], str]]


def gpu_part(report: Report) -> dict[str, Any]:
    """Return what the page shows of the mappings and of the degrees, empty without."""
    gpu = report["gpu"]
    if gpu is None:
        return {
            "mappings": [],
            "mapping_table": {"names": [], "rows": []},
            "shares": Markup(""),
            "degrees": None,
        }
    found = gpu["mappings"]
    shares = [
        (name, it["active_lane_steps"], it["intra_task_idle"], it["inter_task_idle"])
        for name, it in found.items()
    ]
    return {
        "mappings": [
            {
                "name": name,
                "histogram": charts.lane_histogram(it["active_lane_histogram"], name),
                "balance": charts.sm_balance(it["sm_work"], name),
            }
            for name, it in found.items()
        ],
        "mapping_table": {
            "names": list(found),
            "rows": [
                {"label": label, "cells": [text(it) for it in found.values()]}
                for label, text in _mapping_rows()
            ],
        },
        "shares": bars.lane_shares(shares),
        "degrees": _degrees(gpu.get("degrees") or []),
    }


def _mapping_rows() -> list[_Row]:
    """Return the rows of the mappings' table: a label, and a figure's text."""

    def of(name: str, text: Callable[[Any], str] = number_text) -> _Row:
        return _LABELS[name], lambda it: text(it[name])

    def inside(name: str, key: str, label: str) -> _Row:
        return label, lambda it: number_text(it[name][key])

    def requests(name: str, text: Callable[[Any], str] = number_text) -> _Row:
        def cell(it: Mapping[str, Any]) -> str:
            return "" if it["requests"] is None else text(it["requests"][name])

        return _LABELS[name], cell

    return [
        of("launches"),
        of("lane_utilization", percent),
        of("warp_variance"),
        of("cta_variance"),
        of("ctas"),
        inside("ctas_per_sm", "min", "CTAs per SM, least"),
        inside("ctas_per_sm", "mean", "CTAs per SM, mean"),
        inside("ctas_per_sm", "max", "CTAs per SM, most"),
        of("idle_sms"),
        of("sm_imbalance"),
        of("sm_imbalance_static"),
        of("tail_efficiency", percent),
        requests("index_sectors_per_request"),
        requests("value_sectors_per_request"),
        requests("value_efficiency", percent),
        requests("atomics"),
        requests("conflicts_per_request"),
    ]


_LABELS: Final = {
    "launches": "launches",
    "lane_utilization": "lanes at work",
    "warp_variance": "warp \u03c3/\u03bc",
    "cta_variance": "CTA \u03c3/\u03bc",
    "ctas": "CTAs",
    "idle_sms": "idle SMs",
    "sm_imbalance": "SM max / mean, greedy",
    "sm_imbalance_static": "SM max / mean, round-robin",
    "tail_efficiency": "tail efficiency",
    "index_sectors_per_request": "sectors a request, indices",
    "value_sectors_per_request": "sectors a request, values",
    "value_efficiency": "coalescing, values",
    "atomics": "atomics",
    "conflicts_per_request": "conflicts a request",
}


def _degrees(rows: list[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the chart of lanes by degree; None where no row had an entry."""
    whole = sum(row["entries"] for row in rows)
    shown = [row for row in rows if whole and row["entries"] >= _LEAST_CLASS * whole]
    if not shown:
        return None
    names = [
        name
        for name in _TITLES
        if any(row["lane_utilization"].get(name) is not None for row in shown)
    ]
    return {
        "names": names,
        "titles": _TITLES,
        "chart": bars.lanes_by_degree(
            [
                (
                    _range_text(row["at_least"], row["at_most"]),
                    row["entries"] / whole,
                    [(name, row["lane_utilization"].get(name)) for name in names],
                )
                for row in shown
            ]
        ),
    }


def _range_text(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def bandwidth_part(report: Report) -> dict[str, Any] | None:
    """Return the chart of useful bytes a second; None where nobody counted them."""
    metrics = {metric["name"]: metric for metric in report["metrics"]}
    share = metrics.get("bandwidth_share")
    copied = report["configuration"].get("copied_bytes_per_second")
    if share is None or share["value"] is None or not copied:
        return None
    rates = [
        step["edges"] * ENTRY_BYTES / step["seconds"]
        if step["edges"] and step["seconds"] and step["edges_exact"]
        else None
        for step in report["supersteps"]
    ]
    size, means = charts.means_of_parts(rates, MAX_BARS)
    axis = f"{len(rates):,} supersteps, first to last"
    chart = charts.bandwidth(means, copied, axis, "superstep")
    if not chart:
        return None
    return {"chart": chart, "per_bar": size, "entry_bytes": ENTRY_BYTES}
