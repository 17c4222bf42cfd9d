"""Times of two kinds of work, and of both at once."""

import threading
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsys.metrics.overlap import Overlap, overlap_alpha


def test_what_runs_in_turn_does_not_overlap() -> None:
    ticks = iter(range(0, 50, 10))
    measured = Overlap(lambda: next(ticks))
    with measured.preparing():
        pass
    with measured.working():
        pass
    assert (measured.prepare_s, measured.work_s, measured.both_s) == (1e-8, 1e-8, 0.0)
    assert overlap_alpha(measured.prepare_s, measured.work_s, measured.both_s) == 0.0


def test_threads_that_prepare_at_once_are_counted_once() -> None:
    now = 0
    measured = Overlap(lambda: now)
    with ExitStack() as two, ExitStack() as one:
        one.enter_context(measured.preparing())
        now = 4
        two.enter_context(measured.preparing())
        now = 6
        one.close()
        with measured.working():
            now = 9
        now = 20
    assert measured.prepare_s == pytest.approx(20e-9)
    assert measured.work_s == measured.both_s == pytest.approx(3e-9)


@pytest.mark.parametrize(
    ("sides", "alpha"),
    [((4.0, 8.0, 1.0), 0.25), ((8.0, 4.0, 3.0), 0.75), ((0.0, 4.0, 0.0), None)],
)
def test_alpha_is_the_share_of_the_shorter_one(
    sides: tuple[float, float, float], alpha: float | None
) -> None:
    assert overlap_alpha(*sides) == alpha


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=40))
def test_alpha_lies_between_0_and_1_in_any_order(moves: list[tuple[int, int]]) -> None:
    now = 0
    measured = Overlap(lambda: now)
    kinds = (measured.preparing, measured.working) * 2
    expected = [0, 0, 0]
    with ExitStack() as stack:
        held: dict[int, ExitStack] = {}
        for place, step in moves:
            is_on = bool(held.keys() & {0, 2}), bool(held.keys() & {1, 3})
            for k, counts in enumerate((*is_on, all(is_on))):
                expected[k] += step * counts
            now += step
            if place in held:
                held.pop(place).close()
            else:
                held[place] = stack.enter_context(ExitStack())
                held[place].enter_context(kinds[place]())
    found = [measured.prepare_s, measured.work_s, measured.both_s]
    assert found == [ns / 1e9 for ns in expected]
    alpha = overlap_alpha(*found)
    assert alpha is None or 0.0 <= alpha <= 1.0


def test_threads_lose_nothing() -> None:
    measured = Overlap()

    def work() -> None:
        for _ in range(300):
            with measured.preparing():
                pass
            with measured.working():
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    before = measured.prepare_s, measured.work_s
    with measured.working():  # nobody is left preparing
        pass
    assert measured.prepare_s == before[0]
    assert measured.work_s > before[1]
