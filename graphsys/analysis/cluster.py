"""What a run on a cluster says of its workers: load, waiting, bytes against their bound."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from graphsys.analysis.host import figures_of
from graphsys.core.events import Event


def cluster_of(events: Sequence[Event]) -> dict[str, Any] | None:
    """Return the workers of a profiled run, or None where it had none.

    Args:
        events: All of the run; the last one named ``cluster`` counts.

    Returns:
        ``workers`` (of each ``work_seconds``, ``waiting_seconds``, ``sent_bytes``,
        ``overlap_alpha`` and what it was told), ``supersteps`` (``sent_bytes``, and the
        most and the mean time at work), ``load_imbalance``, ``waiting_share``,
        ``bound_bytes`` and ``restarts``.
    """
    told = [event for event in events if event.name == "cluster"]
    if not told:
        return None
    facts: Mapping[str, Any] = told[-1].attributes
    workers = [_worker(row) for row in facts["workers"]]
    busy = [row["work_seconds"] for row in workers]
    whole = sum(row["seconds"] for row in workers)
    return {
        "workers": workers,
        "supersteps": [_step(k, row) for k, row in enumerate(facts["steps"])],
        "load_imbalance": _ratio(busy),
        "waiting_share": (
            sum(row["waiting_seconds"] for row in workers) / whole if whole > 0 else None
        ),
        "sent_bytes": sum(row["sent_bytes"] for row in workers),
        "bound_bytes": facts["bound_bytes"],
        "restarts": facts["restarts"],
    }


def _worker(row: Mapping[str, Any]) -> dict[str, Any]:
    known = {name: value for name, value in row.items() if name != "events"}
    return {
        **known,
        "work_seconds": max(
            row["seconds"] - row["waiting_seconds"] - row["compile_seconds"], 0.0
        ),
        "overlap_alpha": figures_of(row["events"]).overlap_alpha,
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
