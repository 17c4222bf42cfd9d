"""What is counted as compiling, and for whom."""

from typing import Any

import numba

from graphsys.core.compiling import CompileWatch, compile_ahead
from graphsys.core.events import observe, recording


def fresh() -> Any:
    """A kernel that nobody has compiled."""
    return numba.njit(lambda thread, value: value + thread)


def test_compiling_is_counted_once_and_nothing_after() -> None:
    kernel = fresh()
    with CompileWatch() as watch:
        assert kernel(0, 1) == 1
        first = watch.seconds
        assert kernel(0, 2) == 2
    assert 0 < first == watch.seconds


def test_what_observers_compile_is_not_counted() -> None:
    kernel = fresh()
    with (
        recording({"rows": lambda made: None}) as recorder,
        CompileWatch(emits=True) as watch,
    ):
        observe("rows", lambda: kernel(0, 1))
    assert watch.seconds == 0.0
    assert [event.name for event in recorder.events] == ["observing"]


def test_a_kernel_is_compiled_before_its_first_recorded_launch() -> None:
    kernel = fresh()
    compile_ahead(kernel, 0, 1)  # nobody listens
    assert not kernel.overloads
    with recording() as recorder:
        compile_ahead(kernel, 0, 1)
        compile_ahead(kernel, 0, 1)
        compile_ahead(print, 0)
    assert len(kernel.overloads) == 1
    assert [event.name for event in recorder.events] == ["compile"]
    assert recorder.events[0].duration_ns > 0


def test_spans_tell_how_many_kernels_were_made() -> None:
    first, second = fresh(), fresh()
    with recording() as recorder, CompileWatch(emits=True):
        first(0, 1)
        second(0, 1)
        second(0, 2)  # is there
        second(0, 2.5)  # for another type
    told = [event.attributes["compiled"] for event in recorder.events]
    assert sum(map(int, map(str, told))) == 3
