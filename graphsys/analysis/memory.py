"""What a training's memory was made of while it ran, as its trainer told."""

from collections.abc import Sequence
from typing import Any

from graphsys.analysis.sides import observing_of
from graphsys.core.events import Event
from graphsys.training.memory_split import MEMORY

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
