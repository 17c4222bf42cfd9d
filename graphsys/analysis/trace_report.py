"""A GPU's trace as a report: the same JSON and page as that of a profiled command."""

from pathlib import Path
from typing import Any

from graphsys.analysis.intervals import Intervals
from graphsys.analysis.metrics import Metric, by_name
from graphsys.analysis.page.timeline import NUM_BINS
from graphsys.analysis.report import SCHEMA_VERSION, describe_host, transfer_sizes
from graphsys.analysis.traces.trace import TraceFigures, read_trace, trace_metrics
from graphsys.analysis.verdict import Finding, verdict_from

_SMALL_COPY = 64 << 10
"""Bytes below which a copy takes as long as its latency, about 10 us over PCIe."""
_MANY_SHORT_US = 10.0
"""Kernels shorter than this take less time than their launch."""


def report_of_trace(path: Path, own: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the report of a trace.

    Args:
        path: A Kineto or Chrome trace, plain or gzipped.
        own: The report of the run that was traced, whose count of launches tells what the
            profiler lost; None without.

    Raises:
        InputError: it is empty, cut short or no trace.
    """
    found = read_trace(path)
    launches = None
    if own is not None:
        launches = next(
            m["value"] for m in own["metrics"] if m["name"] == "kernel_invocations"
        )
    metrics = trace_metrics(found, launches)
    reach = _reach(found)
    return {
        "schema_version": SCHEMA_VERSION,
        "command": f"trace {path.name}",
        "status": "ok",
        "error": None,
        "machine": describe_host(),
        "verdict": verdict_from(_findings(found, metrics), _nothing(found)),
        "configuration": {
            "level": "L2",
            "trace": path.name,
            "events": found.num_events,
            "host_launches": found.num_launches,
        },
        "metrics": [metric.as_mapping() for metric in metrics],
        "supersteps": [],
        "operators": _operators(found),
        "transfers": transfer_sizes(found.copies),
        "wall_time": _wall_parts(found, reach),
        "timeline": {
            "seconds": (reach[1] - reach[0]) / 1e9,
            "lanes": [
                {"name": name, "shares": _shares(spans, reach)}
                for name, spans in (
                    ("kernels", found.kernel_spans.united()),
                    ("copies", found.copy_spans.united()),
                )
                if spans.length
            ],
        },
        "gpu": None,
    }


def _reach(found: TraceFigures) -> tuple[int, int]:
    ends = [
        span
        for span in (found.kernel_spans.reach(), found.copy_spans.reach())
        if span is not None
    ]
    if not ends:
        return 0, 0
    return min(begin for begin, _ in ends), max(end for _, end in ends)


def _wall_parts(found: TraceFigures, reach: tuple[int, int]) -> list[dict[str, Any]]:
    """Return what the device's time went into: kernels, copies beside none, nothing."""
    kernels = found.kernel_spans.united()
    copies = found.copy_spans.united().without(kernels)
    idle = reach[1] - reach[0] - kernels.length - copies.length
    rows = (
        ("reading", "copying", copies.length),
        ("kernel", "kernels", kernels.length),
        ("waiting", "idle", idle),
    )
    return [
        {"part": part, "name": name, "seconds": ns / 1e9}
        for part, name, ns in rows
        if ns > 0
    ]


def _shares(spans: Intervals, reach: tuple[int, int]) -> list[float]:
    begin, length = reach[0], max(reach[1] - reach[0], 1)
    edges = [begin + length * k // NUM_BINS for k in range(NUM_BINS + 1)]
    return [
        round(spans.inside(edges[k], edges[k + 1]) / max(edges[k + 1] - edges[k], 1), 3)
        for k in range(NUM_BINS)
    ]


def _operators(found: TraceFigures) -> list[dict[str, Any]]:
    kernels = sorted(found.kernels.values(), key=lambda kernel: -kernel.total_us)
    rows = [(it.name, "kernel", it.calls, it.total_us) for it in kernels]
    rows += [
        (f"copy {direction}", "span", int(count), us)
        for direction, (count, _, us) in sorted(found.copied.items())
    ]
    return [
        {
            "name": name,
            "kind": kind,
            "device": "cuda",
            "calls": calls,
            "seconds": us / 1e6,
            "busy_seconds": None,
            "imbalance": None,
            "waiting": None,
            "flop": None,
            "bytes": None,
            "limit_share": None,
        }
        for name, kind, calls, us in rows
    ]


def _nothing(found: TraceFigures) -> str:
    if not found.num_events:
        return "The trace has no events: nothing was recorded."
    if not found.num_kernels:
        return (
            f"The trace has {found.num_events:,} events but no kernel of a GPU: it was "
            "taken on the CPU, or without CUDA activities."
        )
    return "Nothing stands out: kernels follow each other closely, and copies overlap."


def _findings(found: TraceFigures, metrics: list[Metric]) -> list[Finding]:
    known = by_name(metrics)
    findings = []
    idle = known["device_idle_share"].value
    if idle:
        findings.append(
            Finding(
                idle,
                f"The device idled {100 * idle:.0f} % of the time between its first and "
                "its last kernel.",
                "Launch more work at once: fuse supersteps, or let the host run ahead.",
            )
        )
    lost = known["lost_kernels"].value
    if lost:
        findings.append(
            Finding(
                lost / (lost + found.num_kernels),
                f"{lost:,} kernels were launched but are not in the trace: the profiler "
                "lost them.",
                "Synchronize and warm up before it starts, and flush at its end.",
            )
        )
    total_us = sum(kernel.total_us for kernel in found.kernels.values())
    if found.num_kernels and total_us / found.num_kernels < _MANY_SHORT_US:
        mean = total_us / found.num_kernels
        findings.append(
            Finding(
                1.0 - mean / _MANY_SHORT_US,
                f"Kernels take {mean:.1f} us on average, less than their launch.",
                "Give each more work, or enqueue several supersteps at once.",
            )
        )
    small = sum(1 for size in found.copies if size < _SMALL_COPY)
    if found.copies and small > len(found.copies) // 2:
        findings.append(
            Finding(
                0.05 + 0.05 * small / len(found.copies),
                f"{small:,} of {len(found.copies):,} copies are smaller than 64 KiB, so "
                "latency decides.",
                "Keep counters on the device and copy them together.",
            )
        )
    return findings
