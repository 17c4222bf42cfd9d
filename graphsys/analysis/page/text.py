"""Reports and events for people and for other tools, without a page."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphsys.analysis.page.timeline import plain
from graphsys.core.events import Event
from graphsys.core.memory import format_bytes

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = (
    "wall_seconds",
    "supersteps",
    "kernel_invocations",
    "work_per_invocation",
    "transfer_count",
    "transfer_bytes",
    "transfer_seconds",
    "overlap_alpha",
    "thread_imbalance",
    "bandwidth_share",
    "peak_memory_bytes",
    "lane_utilization",
    "warp_variance",
    "cta_variance",
    "ctas_per_sm",
    "sm_imbalance",
)


def summary_of(report: Mapping[str, Any]) -> str:
    """Return the verdict, then the main figures, one a line."""
    metrics = {metric["name"]: metric for metric in report["metrics"]}
    lines = [report["verdict"]["summary"]]
    width = max(len(name) for name in _SHOWN)
    for name in _SHOWN:
        if name in metrics:
            lines.append(f"{name:<{width}}  {figure_text(metrics[name])}")
    if text := memory_text(report):
        lines.append(f"{'memory':<{width}}  {text}")
    return "\n".join(lines)


def memory_text(report: Mapping[str, Any]) -> str:
    """Write the parts of a training's memory where it had the most; "" without any.

    Examples:
        >>> parts = {"process": 3 << 20, "activations": 1 << 20, "caches": 0}
        >>> memory_text({"memory": [{"bytes": 1 << 22, "parts": parts}]})
        '4.0 MiB: process 3.0 MiB, activations 1.0 MiB'
    """
    points = report.get("memory") or []
    if not points:
        return ""
    peak = max(points, key=lambda it: it["bytes"])
    sizes = {name: size for name, size in peak["parts"].items() if size}
    told = ", ".join(f"{name} {format_bytes(size)}" for name, size in sizes.items())
    return f"{format_bytes(peak['bytes'])}: {told}"


def figure_text(metric: Mapping[str, Any]) -> str:
    """Write a metric's value with its unit, or why there is none.

    Examples:
        >>> figure_text({"value": 0.25, "unit": "share", "exact": True})
        '25.0 %'
        >>> figure_text({"value": 2048, "unit": "bytes", "exact": False})
        'about 2.0 KiB'
        >>> figure_text({"value": None, "unit": "s", "reason": "no superstep was timed"})
        'not measured: no superstep was timed'
    """
    value, unit = metric["value"], metric["unit"]
    if value is None:
        return f"not measured: {str(metric['reason']).removeprefix('not measured ')}"
    if unit == "bytes":
        text = format_bytes(value)
    elif unit == "share":
        text = f"{100 * value:.1f} %"
    else:
        text = f"{number_text(value)} {unit}"
    return text if metric["exact"] else f"about {text}"


def number_text(value: float | int | None) -> str:
    """Write a number for people.

    Examples:
        >>> [number_text(value) for value in (1234567, 0.12345, 12.0, None)]
        ['1,234,567', '0.1235', '12', '']
    """
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def events_table(events: Sequence[Event]) -> "pa.Table":
    """Return events as an Arrow table; attributes are JSON text."""
    import pyarrow as pa

    return pa.table(
        {
            "name": pa.array([event.name for event in events], pa.string()),
            "start_ns": pa.array([event.start_ns for event in events], pa.int64()),
            "duration_ns": pa.array([event.duration_ns for event in events], pa.int64()),
            "value": pa.array([event.value for event in events], pa.float64()),
            "thread_id": pa.array([event.thread_id for event in events], pa.int64()),
            "attributes": pa.array(
                [
                    json.dumps({k: plain(v) for k, v in event.attributes.items()})
                    for event in events
                ],
                pa.string(),
            ),
        }
    )
