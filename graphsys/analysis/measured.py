"""The host's counters as metrics (level L0)."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphsys.analysis.host import HostFigures
from graphsys.analysis.metrics import Metric, measured

_NO_PARTS = "nothing worked partition by partition"
ENTRY_BYTES = 12
"""Bytes that one entry of a row moves at least: an index of 4 and a value of 8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConditions:
    """What was measured around the run.

    Attributes:
        wall_s: Its length without the time of observers, in seconds.
        peak_bytes: Most anonymous memory that was sampled.
        bandwidth: What the machine copies, bytes/s; None where nothing asks for it.
        gemm_rate: What it multiplies, float32 FLOP/s; None where nothing asks for it.
    """

    wall_s: float
    peak_bytes: int
    bandwidth: float | None
    gemm_rate: float | None = None


def host_metrics(
    figures: HostFigures,
    around: RunConditions,
    machine: Mapping[str, Any],
    *,
    visited: int | None = None,
) -> list[Metric]:
    """Return the metrics of level L0.

    Args:
        figures: The host's counters.
        around: What was measured around the run.
        machine: Its load.
        visited: Entries that the SIMT model saw visited; None where it saw nothing.
    """
    return [
        *_launches(figures, visited),
        *_transfers(figures),
        *_times(figures, around),
        *_threads(figures),
        _bandwidth(figures, around, visited),
        measured("peak_memory_bytes", around.peak_bytes, "bytes", exact=False),
        measured("load_average", machine["load_average"], "processes", exact=False),
    ]


def _launches(figures: HostFigures, visited: int | None) -> list[Metric]:
    launches = figures.num_launches
    edges = figures.edges if figures.has_edges else None
    if figures.at_most and visited is not None:
        edges = visited
    reason = "nobody counted the edges of these kernels"
    if not launches:
        reason = "no kernel was launched"
    work = None if edges is None or not launches else edges / launches
    exact = not figures.at_most or visited is not None
    return [
        measured("kernel_invocations", launches, "launches"),
        measured("work_per_invocation", work, "edges/launch", exact=exact, reason=reason),
        measured("supersteps", len(figures.steps), "supersteps"),
    ]


def _transfers(figures: HostFigures) -> list[Metric]:
    seconds = figures.transfer_s
    later = "copies to a device are not waited for; a trace of the run times them"
    alpha_reason = later if seconds is None else "nothing was transferred"
    if figures.transfers and seconds is not None:
        alpha_reason = "there was no work to overlap with"
    rho, busy = figures.overlap_shares
    hits = 1 - figures.loaded / figures.wanted if figures.wanted else None
    loads = list(figures.parts.values())
    mean = statistics.fmean(loads) if loads else 0.0
    ratio = max(loads) / mean if mean > 0 else None
    spread = statistics.pstdev(loads) / mean if mean > 0 else None
    return [
        measured("transfer_count", len(figures.transfers), "transfers"),
        measured("transfer_bytes", sum(figures.transfers), "bytes"),
        measured("transfer_seconds", seconds, "s", reason=later),
        measured("overlap_alpha", figures.overlap_alpha, "of 1", reason=alpha_reason),
        measured("overlap_rho", rho, "N/C", reason=alpha_reason),
        measured("overlap_utilization", busy, "C/T", reason=alpha_reason),
        measured("swaps", figures.swaps, "partitions"),
        measured("partition_hit_rate", hits, "share", reason="no partition was asked for"),
        measured("partition_imbalance", ratio, "max/mean", reason=_NO_PARTS),
        measured("partition_variance", spread, "sigma/mu", reason=_NO_PARTS),
    ]


def _times(figures: HostFigures, around: RunConditions) -> list[Metric]:
    known = [step.seconds for step in figures.steps if step.seconds is not None]
    inside = sum(step.kernel_s for step in figures.steps if step.seconds is not None)
    inside += figures.device_s
    total = sum(known)
    share = min(inside / total, 1.0) if total > 0 and inside > 0 else None
    waiting = figures.waiting_s / around.wall_s if around.wall_s > 0 else None
    none = "no kernel ran in a timed superstep"
    return [
        measured("wall_seconds", around.wall_s, "s"),
        measured(
            "superstep_seconds",
            total if known else None,
            "s",
            reason="no superstep was timed",
        ),
        measured("compile_seconds", figures.compile_s, "s"),
        measured("waiting_share", waiting, "share", reason="it took no time"),
        measured("kernel_share", share, "share", reason=none),
    ]


def _threads(figures: HostFigures) -> list[Metric]:
    kernels = figures.kernels.values()
    longest = sum(kernel.longest_s for kernel in kernels)
    mean = sum(kernel.mean_s for kernel in kernels)
    threads = sum(kernel.threads_s for kernel in kernels)
    busy = sum(kernel.busy_s for kernel in kernels)
    ratio = longest / mean if mean > 0 else None
    sigma = sum(kernel.sigma_s for kernel in kernels)
    spread = sigma / mean if mean > 0 else None
    waiting = 1 - busy / threads if threads > 0 else None
    launches = sum(kernel.launches_s for kernel in kernels)
    handing_over = max(1 - longest / launches, 0.0) if launches > 0 else None
    reason = "no kernel's threads were timed"
    return [
        measured("thread_imbalance", ratio, "max/mean", reason=reason),
        measured("thread_variance", spread, "sigma/mu", reason=reason),
        measured("thread_waiting", waiting, "share", reason=reason),
        measured("thread_handover", handing_over, "share", reason=reason),
    ]


def _bandwidth(figures: HostFigures, around: RunConditions, visited: int | None) -> Metric:
    known = sum(step.seconds or 0.0 for step in figures.steps)
    edges = visited
    if edges is None and figures.has_edges and not figures.at_most:
        edges = figures.edges
    is_training = any("epoch" in step.facts for step in figures.steps)
    if edges is None or around.bandwidth is None or known <= 0 or is_training:
        reason = "nobody counted the bytes of these kernels"
        return measured("bandwidth_share", None, "share", reason=reason)
    share = edges * ENTRY_BYTES / known / around.bandwidth
    return measured("bandwidth_share", share, "share", exact=False)
