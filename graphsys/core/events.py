"""What a room wants seen, emitted here and read by ``analysis``: spans, counters, objects.

Nobody imports ``analysis`` to be profiled. While no recorder listens an event costs one
``if``. An observation is a whole object (the rows that a superstep walks) which is made
only if the recorder asked for its name; the time to make and to look at it is not part of
any span around it, but an event ``observing`` of its own.

Examples:
    >>> with recording() as recorder:
    ...     with span("read", bucket=3):
    ...         count("edges", 10)
    >>> [event.name for event in recorder.events]
    ['edges', 'read']
    >>> seen = []
    >>> with recording({"rows": seen.append}):
    ...     observe("rows", lambda: [1, 2])
    ...     observe("nobody asked", lambda: 1 / 0)
    >>> seen
    [[1, 2]]
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

Observer = Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class Event:
    """One record.

    Attributes:
        name: What happened ("read", "edges").
        start_ns: ``time.perf_counter_ns`` at its start.
        duration_ns: Length of a span, without the time of observers; 0 for a counter.
        value: Amount of a counter; 0 for a span.
        thread_id: Python's identifier of the emitting thread.
        attributes: Whatever the emitter added.
    """

    name: str
    start_ns: int
    duration_ns: int = 0
    value: float = 0.0
    thread_id: int = 0
    attributes: Mapping[str, object] = field(default_factory=dict)


class Recorder:
    """Collects events of all threads, in the order of their ends.

    Args:
        observers: Who wants to see which observations, by name.

    Attributes:
        events: What was emitted.
        observing_ns: Time that observers took, by thread.
        observing: Threads in which an observer is at work.
    """

    def __init__(self, observers: Mapping[str, Observer] | None = None) -> None:
        self.events: list[Event] = []
        self.observers = dict(observers or {})
        self.observing_ns: dict[int, int] = {}
        self.observing: set[int] = set()

    def add(self, event: Event) -> None:
        """Append one event (thread-safe: list appends are atomic)."""
        self.events.append(event)

    def show(self, name: str, make: Callable[[], Any]) -> None:
        """Make an observation and hand it to its observer; note the time that took."""
        began, thread = time.perf_counter_ns(), threading.get_ident()
        self.observing.add(thread)
        try:
            self.observers[name](make())
        finally:
            self.observing.discard(thread)
            took = time.perf_counter_ns() - began
            self.observing_ns[thread] = self.observing_ns.get(thread, 0) + took
            self.add(Event("observing", began, duration_ns=took, thread_id=thread))

    def total_seconds(self, name: str) -> float:
        """Return the summed length of all spans called ``name``, in seconds."""
        return sum(event.duration_ns for event in self.events if event.name == name) / 1e9


_recorder: Recorder | None = None


@contextmanager
def recording(observers: Mapping[str, Observer] | None = None) -> Iterator[Recorder]:
    """Listen to all events of the process inside the ``with`` block.

    Args:
        observers: Who wants to see which observations, by name.
    """
    global _recorder
    outer, _recorder = _recorder, Recorder(observers)
    try:
        yield _recorder
    finally:
        _recorder = outer


class Span:
    """Times a block and emits it; one object per use."""

    __slots__ = ("_attributes", "_name", "_observing", "_recorder", "_start")

    def __init__(
        self, recorder: Recorder, name: str, attributes: dict[str, object]
    ) -> None:
        self._recorder = recorder
        self._name = name
        self._attributes = attributes
        self._start = self._observing = 0

    def add(self, **attributes: object) -> None:
        """Add what is known only inside the block."""
        self._attributes.update(attributes)

    def __enter__(self) -> "Span":
        self._observing = self._recorder.observing_ns.get(threading.get_ident(), 0)
        self._start = time.perf_counter_ns()
        return self

    def __exit__(self, *exc: object) -> None:
        length = time.perf_counter_ns() - self._start
        thread = threading.get_ident()
        observing = self._recorder.observing_ns.get(thread, 0) - self._observing
        self._recorder.add(
            Event(
                self._name,
                self._start,
                duration_ns=length - observing,
                thread_id=thread,
                attributes=self._attributes,
            )
        )


class NoSpan:
    """Stands for a span while nobody listens."""

    __slots__ = ()

    def add(self, **attributes: object) -> None:
        """Do nothing."""

    def __enter__(self) -> "NoSpan":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


_NO_SPAN = NoSpan()


def span(name: str, **attributes: object) -> Span | NoSpan:
    """Return a context manager that emits the time spent inside it."""
    if _recorder is None:
        return _NO_SPAN
    return Span(_recorder, name, attributes)


def count(name: str, value: float, **attributes: object) -> None:
    """Emit an amount: edges, bytes copied, kernel launches."""
    if _recorder is not None:
        now = time.perf_counter_ns()
        _recorder.add(
            Event(
                name,
                now,
                value=value,
                thread_id=threading.get_ident(),
                attributes=attributes,
            )
        )


def ended(name: str, start_ns: int, duration_ns: int | None, **attributes: object) -> None:
    """Emit a span that has ended; a length of None is one that nobody could measure."""
    if _recorder is not None:
        if duration_ns is None:
            attributes["is_timed"] = False
        _recorder.add(
            Event(
                name,
                start_ns,
                duration_ns=duration_ns or 0,
                thread_id=threading.get_ident(),
                attributes=attributes,
            )
        )


def add_event(event: Event) -> None:
    """Emit what another process recorded; its times are to be of this one's clock."""
    if _recorder is not None:
        _recorder.add(event)


def launched(
    kernel: str, start_ns: int, busy_ns: tuple[int, ...], *, wall_ns: int, **facts: object
) -> None:
    """Emit one launch of a kernel on the host.

    Args:
        kernel: Its name.
        start_ns: ``time.perf_counter_ns`` at its start.
        busy_ns: How long each thread worked on it.
        wall_ns: Until the last of them was done.
        facts: Whatever else is known.
    """
    if _recorder is not None:
        attributes = {"kernel": kernel, "busy_ns": busy_ns, **facts}
        _recorder.add(
            Event(
                "kernel_launches",
                start_ns,
                duration_ns=wall_ns,
                value=1,
                thread_id=threading.get_ident(),
                attributes=attributes,
            )
        )


def observe(name: str, make: Callable[[], Any]) -> None:
    """Show what ``make`` returns to whoever asked for ``name``; else do not call it."""
    if _recorder is not None and name in _recorder.observers:
        _recorder.show(name, make)


def is_asked(name: str) -> bool:
    """Return whether a recorder wants to see an observation."""
    return _recorder is not None and name in _recorder.observers


def is_recording() -> bool:
    """Return whether anybody listens: for facts that cost more than an ``if`` to gather."""
    return _recorder is not None


def is_observing() -> bool:
    """Return whether this thread is at work for an observer."""
    return _recorder is not None and threading.get_ident() in _recorder.observing


def observing_seconds() -> float:
    """Return how long observers have kept this thread from its work so far, in seconds."""
    if _recorder is None:
        return 0.0
    return _recorder.observing_ns.get(threading.get_ident(), 0) / 1e9
