"""What a room wants seen: spans and counters, emitted here, read by ``analysis``.

Nobody imports ``analysis`` to be profiled. While no recorder listens an event costs one
``if``.

Examples:
    >>> with recording() as recorder:
    ...     with span("read", bucket=3):
    ...         count("edges", 10)
    >>> [event.name for event in recorder.events]
    ['edges', 'read']
"""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType


@dataclass(frozen=True, slots=True)
class Event:
    """One record.

    Attributes:
        name: What happened ("read", "edges").
        start_ns: ``time.perf_counter_ns`` at its start.
        duration_ns: Length of a span; 0 for a counter.
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
    """Collects events of all threads, in the order of their ends."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, event: Event) -> None:
        """Append one event (thread-safe: list appends are atomic)."""
        self.events.append(event)

    def total_seconds(self, name: str) -> float:
        """Return the summed length of all spans called ``name``, in seconds."""
        return sum(event.duration_ns for event in self.events if event.name == name) / 1e9


_recorder: Recorder | None = None


@contextmanager
def recording() -> Iterator[Recorder]:
    """Listen to all events of the process inside the ``with`` block."""
    global _recorder
    outer, _recorder = _recorder, Recorder()
    try:
        yield _recorder
    finally:
        _recorder = outer


class _Span:
    """Times a block and emits it; one object per use."""

    __slots__ = ("_attributes", "_name", "_recorder", "_start")

    def __init__(
        self, recorder: Recorder, name: str, attributes: dict[str, object]
    ) -> None:
        self._recorder = recorder
        self._name = name
        self._attributes = attributes
        self._start = 0

    def __enter__(self) -> None:
        self._start = time.perf_counter_ns()

    def __exit__(self, *exc: object) -> None:
        length = time.perf_counter_ns() - self._start
        self._recorder.add(
            Event(
                self._name,
                self._start,
                duration_ns=length,
                thread_id=threading.get_ident(),
                attributes=self._attributes,
            )
        )


class _NoSpan:
    __slots__ = ()

    def __enter__(self) -> None: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


_NO_SPAN = _NoSpan()


def span(name: str, **attributes: object) -> _Span | _NoSpan:
    """Return a context manager that emits the time spent inside it."""
    if _recorder is None:
        return _NO_SPAN
    return _Span(_recorder, name, attributes)


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
