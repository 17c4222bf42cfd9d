"""The report as one HTML page: nothing is fetched, everything is drawn here."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphsys.analysis.page import bars, charts
from graphsys.analysis.page.cluster import cluster_rows
from graphsys.analysis.page.copies import copies_of_step, copies_part
from graphsys.analysis.page.first_screen import first_screen
from graphsys.analysis.page.gpu import bandwidth_part, gpu_part
from graphsys.analysis.page.template import filled, milliseconds, percent
from graphsys.analysis.page.text import figure_text, number_text
from graphsys.core.memory import format_bytes

MAIN = (
    ("wall_seconds", "Time, without the model's"),
    ("superstep_seconds", "Time in supersteps"),
    ("compile_seconds", "Compiling, or loading compiled kernels"),
    ("peak_memory_bytes", "Peak memory"),
    ("kernel_invocations", "Kernel invocations"),
    ("work_per_invocation", "Work per invocation"),
    ("thread_imbalance", "Busiest thread over the mean"),
    ("partition_imbalance", "Busiest partition over the mean"),
    ("partition_hit_rate", "Partitions found in memory"),
    ("thread_waiting", "Threads waiting for the busiest"),
    ("thread_handover", "Kernels starting and ending threads"),
    ("kernel_share", "Share of supersteps inside kernels"),
    ("bandwidth_share", "Useful bytes over what memory copies"),
    ("transfer_count", "Transfers"),
    ("transfer_bytes", "Bytes transferred"),
    ("transfer_seconds", "Time of transfers"),
    ("waiting_share", "Share of the time that waited for them"),
    ("overlap_alpha", "Overlap of transfers with work, 0 to 1"),
    ("kernel_seconds", "Time of kernels"),
    ("l1_hit_rate", "L1 hits"),
    ("l2_hit_rate", "L2 hits"),
    ("dram_bytes", "Bytes from and to the device's memory"),
    ("device_idle_share", "Device idle between kernels"),
    ("lost_kernels", "Kernels that the profiler lost"),
    ("load_average", "Load average of the machine"),
)
_STEP_COLUMNS = (
    ("number", "step", "count"),
    ("phase", "phase", "text"),
    ("mode", "mode", "text"),
    ("senders", "senders", "count"),
    ("messages", "messages", "count"),
    ("changed", "changed", "count"),
    ("edges", "entries visited", "count"),
    ("seconds", "ms", "ms"),
    ("kernel_seconds", "in kernels, ms", "ms"),
    ("kernels", "kernels", "count"),
    ("gpu_mapping", "GPU mapping", "text"),
    ("lane_utilization", "lanes at work", "share"),
    ("sm_imbalance", "SM max / mean", "count"),
    ("copies_host-driven", "copies, host-driven", "count"),
    ("copies_ours", "copies, ours", "count"),
)
MAX_STEPS = 500
"""Supersteps that the page lists; the JSON has them all."""


def page_of(report: Mapping[str, Any]) -> str:
    """Return a report as HTML.

    Args:
        report: As :func:`graphsys.analysis.report.report_of` makes it.
    """
    metrics = {metric["name"]: metric for metric in report["metrics"]}
    is_training = any(step["mode"] == "train" for step in report["supersteps"])
    main = [
        (label.replace("supersteps", "epochs") if is_training else label, metrics[name])
        for name, label in MAIN
        if name in metrics
    ]
    return filled(
        "report.html",
        report=report,
        first=first_screen(report),
        main=[(label, figure_text(it)) for label, it in main if it["value"]],
        folded=[(label, figure_text(it)) for label, it in main if not it["value"]],
        is_training=is_training,
        epochs=_epochs(report["supersteps"]) if is_training else [],
        metrics=[(metric, figure_text(metric)) for metric in report["metrics"]],
        steps=_step_table(report["supersteps"][:MAX_STEPS]),
        num_steps=len(report["supersteps"]),
        numbers=_last_numbers(report.get("numbers") or []),
        memory=_memory(report.get("memory") or []),
        overlap=_overlap_rows(report.get("overlap")),
        lanes=metrics["lane_utilization"],
        copies=copies_part(report["supersteps"], metrics),
        cluster=cluster_rows(report, MAX_STEPS),
        **gpu_part(report),
        **_drawings(report),
    )


def _step_table(steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the per-superstep table without the columns that are empty in all rows."""
    steps = [{**step, **copies_of_step(step)} for step in steps]
    shown = [
        (name, label, kind)
        for name, label, kind in _STEP_COLUMNS
        if any(step.get(name) not in (None, "") for step in steps)
    ]
    is_training = any(step["mode"] == "train" for step in steps)
    return {
        "title": "Steps" if is_training else "Supersteps",
        "heads": [{"label": label, "is_text": kind == "text"} for _, label, kind in shown],
        "rows": [
            [_step_cell(step, name, kind) for name, _, kind in shown] for step in steps
        ],
    }


def _epochs(steps: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a training's epochs: their steps, edges and seconds."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for step in steps:
        found.setdefault(step["phase"], []).append(step)
    return [
        {
            "name": name,
            "steps": len(own),
            "edges": sum(step["edges"] or 0 for step in own),
            "seconds": sum(step["seconds"] or 0.0 for step in own),
        }
        for name, own in found.items()
    ]


def _last_numbers(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the numbers of the last epoch as texts."""
    shares = ("over_float16", "under_float16", "over_bfloat16", "under_bfloat16")
    return [
        {
            "kind": row["kind"],
            "layer": row["layer"],
            "cells": [
                *(
                    "" if row[it] is None else number_text(row[it])
                    for it in ("count", "mean", "deviation", "largest")
                ),
                *(percent(row[f"{it}_share"]) for it in shares),
            ],
        }
        for row in rows
        if row["epoch"] == rows[-1]["epoch"]
    ]


def _memory(points: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the chart of a training's memory and the parts at its peak, if it has any.

    What the process had before is not drawn: it would dwarf the others.
    """
    if not points:
        return None
    drawn = [
        (
            f"{it['seconds']:.3g} s, after {it['phase']}",
            {name: size for name, size in it["parts"].items() if name != "process"},
        )
        for it in points
    ]
    peak = max(points, key=lambda it: it["bytes"])
    names = list(drawn[0][1])
    return {
        "chart": charts.memory_over_time(
            drawn, (points[0]["seconds"], points[-1]["seconds"])
        ),
        "names": [name for name in names if any(parts[name] for _, parts in drawn)],
        "places": {name: place for place, name in enumerate(names)},
        "process": peak["parts"]["process"],
        "peak": peak,
    }


def _overlap_rows(overlap: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return the rows of the table of overlap; none where nothing was prepared."""
    if overlap is None or not overlap["stages"][0]["prepare_seconds"]:
        return []
    rows = [("run", row) for row in overlap["stages"]]
    rows += [(f"epoch {row['epoch']}", row) for row in overlap["epochs"][:MAX_STEPS]]
    names = ("prepare_seconds", "compute_seconds", "overlap_seconds", "rho", "alpha")
    return [
        {
            "when": when,
            "stage": row["stage"],
            "cells": [
                "" if row[name] is None else number_text(row[name])
                for name in (*names, "utilization")
            ],
        }
        for when, row in rows
    ]


def _step_cell(step: Mapping[str, Any], name: str, kind: str) -> dict[str, Any]:
    value = step.get(name)
    texts: dict[str, Callable[[Any], str]] = {
        "text": str,
        "count": number_text,
        "ms": milliseconds,
        "share": percent,
    }
    text = "" if value is None else texts[kind](value)
    if name == "edges" and value is not None and not step["edges_exact"]:
        text = f"at most {text}"
    return {"text": text, "value": value, "is_text": kind == "text"}


def _drawings(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the page's charts by name."""
    spans = report["timeline"]
    return {
        "comparison": [_side_by_side(row) for row in report.get("comparison") or []],
        "clocks": [
            {
                "facts": it,
                "histogram": charts.lane_histogram(it["active_lane_histogram"], it["name"]),
                "balance": charts.sm_balance(it["sm_work"], it["name"]),
            }
            for it in report.get("clocks") or []
        ],
        "roofline": charts.roofline(*_roofs(report)),
        "bandwidth": bandwidth_part(report),
        "timeline": bars.timeline(
            [(lane["name"], lane["shares"]) for lane in spans["lanes"]], spans["seconds"]
        ),
        "sizes": charts.size_histogram(
            [
                (format_bytes(row["at_most"]), row["count"], row["bytes"])
                for row in report["transfers"]
            ]
        ),
    }


def _side_by_side(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of the table of predicted and measured values, as texts."""

    def text(value: float | None) -> str:
        if value is None:
            return "not measured"
        return percent(value) if row["unit"] == "share" else number_text(value)

    found = {name: text(row[name]) for name in ("predicted", "host", "clock", "ncu")}
    label = str(row["name"]).replace("_", " ")
    return {**row, **found, "name": f"{label}, {row['unit']}"}


def _roofs(report: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the operators that tell operations and bytes, and the machine's rates."""
    settings = report["configuration"]
    known = [
        (str(row["name"]), row["flop"] / row["bytes"], row["flop"] / row["seconds"])
        for row in report["operators"]
        if row["flop"] and row["bytes"] and row["seconds"]
    ]
    rates = ("copied_bytes_per_second", "gemm_flop_per_second")
    return (known, *(settings.get(name) for name in rates))
