"""When a run prepared (reads, writes, samples) and when it worked, as sets of moments.

Seconds that threads spent on either say nothing about what ran side by side: two threads
that sample add up to more than went by. Of sets the shared part is never longer than
either, so the overlap of the two is between 0 and 1.
"""

from collections.abc import Callable, Sequence

from graphsys.analysis.intervals import Intervals
from graphsys.core.events import Event

OF_BATCH = ("forward", "backward", "step")
COMMUNICATION = "communication"
"""Span of an exchange of parameters or gradients: a transfer, and no work."""
_NO_WORK = ("wait", "compile", COMMUNICATION)
PREPARING = ("sample", "gather", COMMUNICATION)


def sides_of(events: Sequence[Event], observing: Intervals) -> tuple[Intervals, Intervals]:
    """Return when a run prepared and when it worked, in whichever threads.

    Args:
        events: All of a run.
        observing: When observers were at work, which takes none of the run's own time.
    """

    def when(matches: Callable[[Event], bool]) -> Intervals:
        return Intervals(own_span(e, observing) for e in events if matches(e))

    if is_by_batch(events):
        prepare = when(lambda e: e.name in PREPARING)
        work = when(lambda e: e.name in OF_BATCH)
        return prepare, work.without(when(lambda e: e.name == COMMUNICATION))
    # a unit of a training reads and cuts its edges first
    work = when(lambda e: e.name in ("superstep", "compute") or _is_cut(e))
    return when(is_transfer), work.without(when(lambda e: e.name in _NO_WORK))


def observing_of(events: Sequence[Event]) -> Intervals:
    """Return when observers were at work, in whichever thread: not the run's own time."""
    return Intervals(
        (e.start_ns, e.start_ns + e.duration_ns) for e in events if e.name == "observing"
    )


def working_clock(events: Sequence[Event]) -> Intervals:
    """Return when observers kept the threads from their work that do it.

    Observers in threads that make batches ahead keep no work waiting, so their time is not
    taken out of the clock.
    """
    working = {e.thread_id for e in events if e.name in ("superstep", "compute", *OF_BATCH)}
    return observing_of(
        [e for e in events if e.thread_id in working] if working else events
    )


def is_by_batch(events: Sequence[Event]) -> bool:
    """Tell whether a run trained batches, made while others are trained."""
    names = {event.name for event in events}
    return "step" in names and not names & {"superstep", "compute"}


def is_transfer(event: Event) -> bool:
    """Tell whether partitions or streamed rows are read, or written, or exchanged."""
    is_read = event.name == "read" and not _is_cut(event)
    return is_read or event.name in ("write_back", COMMUNICATION)


def _is_cut(event: Event) -> bool:
    return event.name == "read" and "bucket" in event.attributes


def own_span(event: Event, observing: Intervals) -> tuple[int, int]:
    """Return when an event began and ended, by a clock that stands while observers work."""
    begin = event.start_ns - observing.before(event.start_ns)
    return begin, begin + event.duration_ns
