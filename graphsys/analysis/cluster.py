"""What a run on a cluster says of its workers: load, waiting, bytes against their bound."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from graphsys.analysis.host import figures_of
from graphsys.analysis.host_steps import span_of
from graphsys.analysis.intervals import Intervals
from graphsys.analysis.page.timeline import span_of_workers, worker_lanes
from graphsys.analysis.sides import COMMUNICATION, is_transfer, observing_of
from graphsys.core.events import Event

_OF_TRAININGS = (
    "units",
    "sample_seconds",
    "gather_seconds",
    "write_seconds",
    "idle_seconds",
    "communication_seconds",
    "read_bytes",
    "written_bytes",
)


def cluster_of(events: Sequence[Event], start_ns: int = 0) -> dict[str, Any] | None:
    """Return the workers of a profiled run, or None where it had none.

    Args:
        events: All of the run; the last one named ``cluster`` counts.
        start_ns: When it began.

    Returns:
        ``kind`` (``run``, ``embedding`` or ``gnn``), ``workers`` (of each
        ``work_seconds``, ``waiting_seconds``, ``sent_bytes``, ``overlap_alpha``,
        ``overlap_rho``, ``overlap_utilization``, ``thread_seconds`` in kernels by thread,
        ``lanes`` and what it was told; of trainings :func:`_trainer`), ``supersteps``
        (``sent_bytes``, and the most and the mean time at work), ``load_imbalance``,
        ``waiting_share``, ``bound_bytes``, ``restarts`` and ``lanes_seconds``, when all
        lanes begin and end, since the run began.
    """
    told = [event for event in events if event.name == "cluster"]
    if not told:
        return None
    facts: Mapping[str, Any] = told[-1].attributes
    kind = facts["kind"]
    workers = [
        _worker(_trainer(row, kind) if kind != "run" else row) for row in facts["workers"]
    ]
    span = span_of_workers([row["events"] for row in facts["workers"]])
    for row, given in zip(workers, facts["workers"], strict=True):
        row["thread_seconds"] = _thread_seconds(given["events"])
        row["lanes"] = [
            {"name": name, "shares": [round(it, 3) for it in shares]}
            for name, shares in worker_lanes(given["events"], *span)
        ]
    observed = observing_of(events).inside(start_ns, span[0])
    begin_s = (span[0] - start_ns - observed) / 1e9 if any(span) else 0.0
    busy = [row["work_seconds"] for row in workers]
    whole = sum(row["seconds"] for row in workers)
    return {
        "kind": kind,
        "workers": workers,
        "supersteps": [_step(k, row) for k, row in enumerate(facts["steps"])],
        "load_imbalance": _ratio(busy),
        "waiting_share": (
            sum(row["waiting_seconds"] for row in workers) / whole if whole > 0 else None
        ),
        "sent_bytes": sum(row["sent_bytes"] for row in workers),
        "bound_bytes": facts["bound_bytes"],
        "restarts": facts["restarts"],
        "lanes_seconds": [begin_s, begin_s + (span[1] - span[0]) / 1e9],
    }


def _worker(row: Mapping[str, Any]) -> dict[str, Any]:
    known = {name: value for name, value in row.items() if name != "events"}
    figures = figures_of(row["events"])
    rho, utilization = figures.overlap_shares
    return {
        **dict.fromkeys(_OF_TRAININGS),
        **known,
        "work_seconds": max(
            row["seconds"] - row["waiting_seconds"] - row["compile_seconds"], 0.0
        ),
        "overlap_alpha": figures.overlap_alpha,
        "overlap_rho": rho,
        "overlap_utilization": utilization,
    }


def _thread_seconds(events: Sequence[Event]) -> list[float]:
    """Return how long each thread worked in kernels, without launches that compiled."""
    compiling = Intervals(span_of(e) for e in events if e.name == "compile")
    found: list[float] = []
    for event in events:
        busy = event.attributes.get("busy_ns")
        if event.name != "kernel_launches" or not isinstance(busy, tuple):
            continue
        if not compiling.inside(*span_of(event)):
            found += [0.0] * (len(busy) - len(found))
            for thread, took in enumerate(busy):
                found[thread] += took / 1e9
    return found


def _trainer(row: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return a worker of a training with its times within epochs, in seconds.

    Times are those in which some thread did it: ``idle_seconds`` without a bucket,
    ``communication_seconds`` in exchanges of parameters or gradients, ``waiting_seconds``
    both; ``read_seconds`` and ``write_seconds`` of partitions, ``sample_seconds`` and
    ``gather_seconds`` of batches.
    """
    events: Sequence[Event] = row["events"]
    epochs = Intervals(span_of(e) for e in events if e.name == "epoch")

    def seconds(*names: str) -> float:
        found = Intervals(
            span_of(e)
            for e in events
            if e.name in names and (e.name != "read" or is_transfer(e))
        )
        return found.shared(epochs) / 1e9

    is_gnn = kind == "gnn"
    return {
        **row,
        "nodes": None,
        "edges": int(sum(e.value for e in events if e.name == "edges")),
        "seconds": epochs.length / 1e9,
        "compile_seconds": seconds("compile"),
        "kernel_seconds": seconds("kernel_launches"),
        "idle_seconds": None if is_gnn else seconds("exchange"),
        "communication_seconds": seconds(COMMUNICATION),
        "waiting_seconds": seconds("exchange", COMMUNICATION),
        "read_seconds": None if is_gnn else seconds("read"),
        "write_seconds": None if is_gnn else seconds("write_back"),
        "sample_seconds": seconds("sample") if is_gnn else None,
        "gather_seconds": seconds("gather") if is_gnn else None,
    }


def _step(number: int, row: Mapping[str, Any]) -> dict[str, Any]:
    pairs = zip(row["seconds"], row["waiting_seconds"], strict=True)
    busy = [max(took - waited, 0.0) for took, waited in pairs]
    return {
        "number": number,
        "sent_bytes": row["sent_bytes"],
        "most_work_seconds": max(busy, default=0.0),
        "mean_work_seconds": statistics.fmean(busy) if busy else 0.0,
        "waiting_seconds": max(row["waiting_seconds"], default=0.0),
    }


def _ratio(values: Sequence[float]) -> float | None:
    mean = statistics.fmean(values) if values else 0.0
    return max(values) / mean if mean > 0 else None
