"""The report of a run: one mapping, the same for the JSON file and for the page."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphsys.analysis.cluster import cluster_of
from graphsys.analysis.host import figures_of
from graphsys.analysis.host_steps import HostStep
from graphsys.analysis.measured import RunConditions, host_metrics
from graphsys.analysis.metrics import by_name
from graphsys.analysis.model.caches import cache_metrics
from graphsys.analysis.model.copies import copies_of, transfer_metrics
from graphsys.analysis.model.predicted import (
    NO_ROWS,
    gpu_facts,
    predicted_metrics,
)
from graphsys.analysis.model.row_model import RowModel
from graphsys.analysis.model.schedulers import SchedulerModel, scheduler_metrics
from graphsys.analysis.next_command import ProfiledCommand, next_of
from graphsys.analysis.operators import operator_rows
from graphsys.analysis.overlaps import overlap_tables
from graphsys.analysis.page.timeline import lanes_of
from graphsys.analysis.side_by_side import comparison
from graphsys.analysis.sides import observing_of
from graphsys.analysis.traces.clocks import ClockModel, clock_facts, clock_metrics
from graphsys.analysis.verdict import verdict_of
from graphsys.analysis.wall_time import wall_parts
from graphsys.core.deps import own_version
from graphsys.core.events import Event
from graphsys.core.machine import cpu_model, describe_gpu
from graphsys.core.threads import num_cores
from graphsys.training.memory_split import MEMORY

SCHEMA_VERSION = 1
L0_ONLY = "not asked for: level L0"
_STREAMED = "the neighbors of the rows walked are not at hand"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What a profile has collected.

    Attributes:
        command: What ran.
        events: All events, in the order of their ends.
        model: Has seen the rows; None at level L0.
        clocks: Has seen inside CUDA kernels; None below level L3.
        schedulers: Has simulated the warp schedulers; None where nobody asked.
        around: What was measured around the run.
        start_ns: When it began.
        end_ns: When it ended.
        error: Why it failed, or None.
        configuration: How it was profiled.
    """

    command: str
    events: Sequence[Event]
    model: RowModel | None
    clocks: ClockModel | None = None
    schedulers: SchedulerModel | None = None
    around: RunConditions
    start_ns: int
    end_ns: int
    error: str | None = None
    configuration: Mapping[str, Any] = field(default_factory=dict)


def report_of(recorded: Recorded) -> dict[str, Any]:
    """Return the report as ``report_schema.json`` describes it."""
    figures = figures_of(recorded.events)
    cluster = cluster_of(recorded.events, recorded.start_ns)
    machine = describe_host()
    model = recorded.model
    visited = None
    if model is not None and any(not launch.part for launch in model.launches):
        visited = sum(launch.entries for launch in model.launches if not launch.part)
    reason = L0_ONLY if model is None else (_STREAMED if model.launches else NO_ROWS)
    copies = copies_of(model, figures.steps)
    metrics = [
        *host_metrics(figures, recorded.around, machine, visited=visited),
        *predicted_metrics(model, reason),
        *transfer_metrics(copies, reason),
    ]
    if recorded.clocks is not None:
        metrics += clock_metrics(recorded.clocks)
    if recorded.schedulers is not None:
        metrics += scheduler_metrics(recorded.schedulers)
        if recorded.schedulers.caches is not None:
            metrics += cache_metrics(recorded.schedulers.caches)
    told = [metric.as_mapping() for metric in metrics]
    has_model = model is not None and bool(model.launches)
    command = ProfiledCommand(
        recorded.command, str(recorded.configuration.get("level", "L1"))
    )
    verdict = verdict_of(figures, by_name(metrics), machine, cluster, command)
    return {
        "schema_version": SCHEMA_VERSION,
        "command": recorded.command,
        "status": "ok" if recorded.error is None else "failed",
        "error": recorded.error,
        "machine": machine,
        "verdict": verdict
        | {"next": _next(recorded, verdict, command, machine, has_rows=has_model)},
        "configuration": {
            **recorded.configuration,
            "copied_bytes_per_second": recorded.around.bandwidth,
            "gemm_flop_per_second": recorded.around.gemm_rate,
        },
        "metrics": told,
        "supersteps": [
            _step_facts(k, step, model)
            | {"predicted_transfers": copies[k] if copies else None}
            for k, step in enumerate(figures.steps)
        ],
        "numbers": _numbers(recorded.events),
        "memory": memory_points(recorded.events, recorded.start_ns, recorded.end_ns),
        "overlap": overlap_tables(recorded.events),
        "operators": operator_rows(figures, recorded.events, recorded.around),
        "transfers": transfer_sizes(figures.transfers),
        "wall_time": wall_parts(
            recorded.events, recorded.start_ns, recorded.end_ns, recorded.around.wall_s
        ),
        "timeline": {"seconds": recorded.around.wall_s, "lanes": _lanes(recorded)},
        "gpu": gpu_facts(model) if model is not None and has_model else None,
        "clocks": None if recorded.clocks is None else clock_facts(recorded.clocks),
        "comparison": comparison(told),
        "cluster": cluster,
    }


def _next(
    recorded: Recorded,
    verdict: Mapping[str, Any],
    command: ProfiledCommand,
    machine: Mapping[str, Any],
    *,
    has_rows: bool,
) -> dict[str, str] | None:
    """Return what to do next; of what failed, the message says it."""
    if recorded.error is not None:
        return None
    settings = recorded.configuration
    return next_of(verdict, command, machine, settings, has_rows=has_rows)


def _lanes(recorded: Recorded) -> list[dict[str, Any]]:
    return [
        {"name": name, "shares": [round(share, 3) for share in shares]}
        for name, shares in lanes_of(recorded.events, recorded.start_ns, recorded.end_ns)
    ]


def _numbers(events: Sequence[Event]) -> list[dict[str, Any]]:
    """Return what a training counted of its numbers, epoch by epoch, if it was to."""
    return [
        {"epoch": int(str(event.attributes["epoch"])) + 1, **row}
        for event in events
        if event.name == "numbers"
        for row in event.attributes["rows"]  # type: ignore[attr-defined]
    ]


def describe_host() -> dict[str, Any]:
    """Return what of this machine bears on a run's times."""
    from platform import machine, python_version, release, system

    return {
        "cpu": {"model": cpu_model(), "cores": os.cpu_count(), "usable_cores": num_cores()},
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "load_average": os.getloadavg()[0],
        "gpu": describe_gpu(),
        "system": f"{system()} {release()} {machine()}",
        "python": python_version(),
        "graphsys": own_version(),
    }


def _step_facts(place: int, step: HostStep, model: RowModel | None) -> dict[str, Any]:
    """Return a row of the per-superstep table; what is unknown is None."""
    facts = step.facts
    is_exact = not step.at_most
    edges, utilization, mapping, imbalance = step.edges, None, None, None
    if model is not None and step.launches:
        launches = [model.launches[k] for k in step.launches]
        visited = [it.entries for it in launches if it.part in ("", "messages")]
        if visited:  # an embedding training tells its edges itself
            edges, is_exact = sum(visited), model.is_exact
        steps = sum(it.steps[it.chosen] for it in launches)
        active = sum(it.active[it.chosen] for it in launches)
        utilization = active / (32 * steps) if steps else None
        mapping = ", ".join(sorted({it.chosen for it in launches}))
        mean = sum(it.sm_mean for it in launches)
        imbalance = sum(it.sm_most for it in launches) / mean if mean > 0 else None
    epoch = facts.get("epoch")
    return {
        "number": facts.get("number", place),
        "phase": str(
            facts.get("phase") or (f"epoch {epoch + 1}" if isinstance(epoch, int) else "")
        ),
        "mode": str(facts.get("mode", "train" if epoch is not None else "")),
        "senders": facts.get("senders"),
        "messages": facts.get("messages"),
        "changed": facts.get("changed"),
        "edges": edges,
        "edges_exact": is_exact,
        "seconds": step.seconds,
        "kernels": step.kernels,
        "kernel_seconds": step.kernel_s,
        "gpu_mapping": mapping,
        "lane_utilization": utilization,
        "sm_imbalance": imbalance,
    }


def transfer_sizes(sizes: Sequence[int]) -> list[dict[str, int]]:
    """Return how many transfers there were, by powers of two of their size.

    Examples:
        >>> transfer_sizes([3, 4, 5])
        [{'at_most': 4, 'count': 2, 'bytes': 7}, {'at_most': 8, 'count': 1, 'bytes': 5}]
    """
    bins: dict[int, list[int]] = {}
    for size in sizes:
        bins.setdefault(1 << max(size - 1, 0).bit_length(), []).append(size)
    return [
        {"at_most": top, "count": len(own), "bytes": sum(own)}
        for top, own in sorted(bins.items())
    ]


MOST_POINTS = 120


def memory_points(
    events: Sequence[Event], start_ns: int, end_ns: int
) -> list[dict[str, Any]]:
    """Return when a training had how much memory, and its parts.

    Args:
        events: All of a run.
        start_ns: When it began.
        end_ns: When it ended.

    Returns:
        In order of time, of a long run the largest of each of :data:`MOST_POINTS` equal
        spans: ``seconds`` since the beginning without those of observers, ``phase`` that
        had ended, ``bytes`` of the process, ``parts`` in bytes by name.
    """
    told = [event for event in events if event.name == MEMORY]
    observing = observing_of(events) if told else None
    largest: dict[int, tuple[float, dict[str, Any]]] = {}
    for number, event in enumerate(told):
        assert observing is not None  # something was told
        inside = observing.inside(start_ns, event.start_ns)
        at = event.start_ns - start_ns - inside
        place = number
        if len(told) > MOST_POINTS:
            place = (event.start_ns - start_ns) * MOST_POINTS // max(end_ns - start_ns, 1)
        if place in largest and largest[place][0] >= event.value:
            continue
        point = {
            "seconds": at / 1e9,
            "phase": event.attributes["phase"],
            "bytes": int(event.value),
            "parts": event.attributes["parts"],
        }
        largest[place] = event.value, point
    return [point for _, (_, point) in sorted(largest.items())]
