"""What a profile of a cluster's run sees: workers record themselves, the driver adds it up.

The steps, kernels and waiting of the page are those of the first worker, which took every
step together with the others, or trained its share; what all of them did is told by one
event ``cluster``, and what each waited for the others by spans of its own.
"""

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from graphsys.core.events import Event, add_event, is_recording, recording

EXCHANGE: Final = "exchange"
"""Span of a worker that waits for what others send, or for a bucket."""
COMMUNICATION: Final = "communication"
"""Span of a training that exchanges parameters or gradients."""
_OF_ALL = (EXCHANGE, COMMUNICATION)


def recorded(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Do a worker's part, and return what it returns with what was recorded of it.

    Returns:
        ``events``, ``clock_ns`` (what is added to their times to get the time of day),
        ``elapsed_s`` and ``host`` besides.
    """
    began = time.perf_counter()
    with recording() as recorder:
        done = work()
    return {
        **done,
        "events": list(recorder.events),
        "elapsed_s": time.perf_counter() - began,
        "clock_ns": time.time_ns() - time.perf_counter_ns(),
        "host": socket.gethostname(),
    }


def tell_parts(
    parts: Sequence[Mapping[str, Any]], restarts: int, bound_bytes: int | None = None
) -> None:
    """Tell who profiles this process of what workers recorded, if anybody does.

    Args:
        parts: What they returned.
        restarts: How often they were started again.
        bound_bytes: What a superstep must move at least, by the partitioning.
    """
    if not is_recording() or not all("events" in part for part in parts):
        return
    for rank, part in enumerate(parts):
        _tell_events(rank, _here(part))
    rows = [_row(rank, part) for rank, part in enumerate(parts)]
    _tell_cluster("run", rows, restarts, _steps(parts), bound_bytes)


def tell_trainers(
    kind: str,
    parts: Sequence[tuple[int, Mapping[str, Any]]],
    facts: Sequence[Mapping[str, Any]],
    restarts: int,
) -> None:
    """Tell who profiles this process of what workers of a training recorded.

    Args:
        kind: ``embedding`` or ``gnn``.
        parts: Ranks and what they returned; a rank may have several, one after the other.
        facts: Of every worker that told any: ``rank``, ``units`` (buckets or batches),
            ``sent_bytes``, ``read_bytes`` and ``written_bytes`` (None where not counted).
        restarts: How often workers were started again.
    """
    parts = [(rank, part) for rank, part in parts if "events" in part]
    if not is_recording() or not parts:
        return
    events: dict[int, list[Event]] = {}
    for rank, part in parts:
        moved = _here(part)
        events.setdefault(rank, []).extend(moved)
        _tell_events(rank, moved)
    hosts = {rank: part["host"] for rank, part in parts}
    rows = [
        {**row, "host": hosts[row["rank"]], "events": events[row["rank"]]}
        for row in facts
        if row["rank"] in events
    ]
    _tell_cluster(kind, rows, restarts, [], None)


def _here(part: Mapping[str, Any]) -> list[Event]:
    """Return a worker's events by the clock of this process."""
    moved = part["clock_ns"] - (time.time_ns() - time.perf_counter_ns())
    return [replace(e, start_ns=e.start_ns + moved) for e in part["events"]]


def _tell_events(rank: int, events: Sequence[Event]) -> None:
    for event in events:
        if rank == 0 and event.name != EXCHANGE:
            add_event(event)
        if event.name in _OF_ALL:
            add_event(replace(event, name=f"worker {rank} waits"))


def _tell_cluster(
    kind: str,
    rows: Sequence[Mapping[str, Any]],
    restarts: int,
    steps: Sequence[Mapping[str, Any]],
    bound_bytes: int | None,
) -> None:
    facts = {
        "kind": kind,
        "workers": rows,
        "steps": steps,
        "bound_bytes": bound_bytes,
        "restarts": restarts,
    }
    now_ns = time.perf_counter_ns()
    add_event(Event("cluster", now_ns, value=len(rows), attributes=facts))


def _row(rank: int, part: Mapping[str, Any]) -> dict[str, Any]:
    events: Sequence[Event] = part["events"]

    def seconds(name: str) -> float:
        return sum(event.duration_ns for event in events if event.name == name) / 1e9

    sent = part["bytes"]
    return {
        "rank": rank,
        "host": part["host"],
        "nodes": part.get("nodes"),
        "edges": int(sum(event.value for event in events if event.name == "edges")),
        "seconds": part["elapsed_s"],
        "compile_seconds": part["compile_seconds"],
        "waiting_seconds": part["waited_s"],
        "kernel_seconds": seconds("kernel_launches"),
        "read_seconds": seconds("read"),
        "sent_bytes": int(sum(sent) if isinstance(sent, list) else sent),
        "events": events,
    }


def _steps(parts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return of every superstep what all workers sent, and how long each worked."""
    told = [part.get("steps") or [] for part in parts]
    return [
        {
            "sent_bytes": int(sum(row[k]["sent_bytes"] for row in told)),
            "waiting_seconds": [row[k]["waiting_seconds"] for row in told],
            "seconds": [row[k]["seconds"] for row in told],
        }
        for k in range(min(map(len, told), default=0))
    ]
