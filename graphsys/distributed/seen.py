"""What a profile of a cluster's run sees: workers record themselves, the driver adds it up.

The steps, kernels and waiting of the page are those of the first worker, which took every
step together with the others; what all of them did is told by one event ``cluster``, and
what each waited for the others by spans of its own.
"""

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from graphsys.core.events import Event, add_event, is_recording, recording

EXCHANGE: Final = "exchange"
"""Span of a worker that waits for what others send."""
_OF_ALL = (EXCHANGE,)


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
    here = time.time_ns() - time.perf_counter_ns()
    for rank, part in enumerate(parts):
        moved = part["clock_ns"] - here
        for event in part["events"]:
            event = replace(event, start_ns=event.start_ns + moved)
            if rank == 0 and event.name != EXCHANGE:
                add_event(event)
            elif event.name in _OF_ALL:
                add_event(replace(event, name=f"worker {rank} waits"))
    add_event(
        Event(
            "cluster",
            time.perf_counter_ns(),
            value=len(parts),
            attributes={
                "workers": [_row(rank, part) for rank, part in enumerate(parts)],
                "steps": _steps(parts),
                "bound_bytes": bound_bytes,
                "restarts": restarts,
            },
        )
    )


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
