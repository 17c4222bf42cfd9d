"""The cache model on a processor's caches: against a plain simulation, and its counters."""

import importlib
import mmap
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT


@pytest.fixture
def counters(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return importlib.import_module("bench.study.cpu_counters")


class Level:
    """Sets of lines, the least recently used of which goes."""

    def __init__(self, cache: Any) -> None:
        self.num_sets = cache.num_bytes // 64 // cache.ways
        self.ways = cache.ways
        self.sets: list[OrderedDict[int, None]] = [
            OrderedDict() for _ in range(self.num_sets)
        ]

    def misses(self, line: int) -> bool:
        own = self.sets[line % self.num_sets]
        if line in own:
            own.move_to_end(line)
            return False
        if len(own) == self.ways:
            own.popitem(last=False)
        own[line] = None
        return True


def walked(traversal: Any, first: Any, last: Any) -> list[int]:
    """Return the misses of values, load by load, neighbors' numbers passing through."""
    levels, found = [Level(first), Level(last)], [0, 0]
    for e, node in enumerate(traversal.indices.tolist()):
        for line, is_value in (((1 << 40) + e // 16, False), ((2 << 40) + node // 8, True)):
            for k, level in enumerate(levels):
                if not level.misses(line):
                    break
                found[k] += is_value
    return found


@pytest.mark.parametrize("num_nodes", [500, 3000, 20_000])
def test_the_model_misses_as_a_plain_simulation_does(counters: Any, num_nodes: int) -> None:
    first, last = counters.Cache(8 << 10, 8), counters.Cache(64 << 10, 16)
    traversal = counters.random_traversal(num_nodes, 8, seed=2)
    expected = walked(traversal, first, last)
    found = counters.predicted(traversal, first, last)
    for one, other in zip(found, expected, strict=True):
        # a warp's 32 loads are one step of the model: their order differs a little
        assert one == pytest.approx(other, rel=0.02, abs=30)


def test_the_kernel_counts_page_faults(counters: Any) -> None:
    def touch() -> None:
        with mmap.mmap(-1, 64 * mmap.PAGESIZE) as room:
            for page in range(64):
                room[page * mmap.PAGESIZE] = 1

    try:
        found = counters.counted(counters.PAGE_FAULTS, touch)
    except counters.CountersMissingError as err:
        pytest.skip(str(err))
    assert 1 <= found < 1000  # pages may be large


def test_misses_are_as_many_as_the_processor_counts(counters: Any) -> None:
    try:
        inside = counters.compared(1_000, 512)["L1"]
        beyond = counters.compared(2_000_000, 4)["L1"]
    except counters.CountersMissingError as err:
        pytest.skip(str(err))
    # hardware loads ahead, and a miss under way is counted once or twice
    assert inside[1] < 0.02 * 1_000 * 512
    assert beyond[1] == pytest.approx(beyond[0], rel=0.25)


def test_a_refusal_says_why(
    counters: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(counters.platform, "machine", lambda: "pdp11")
    with pytest.raises(counters.CountersMissingError, match="no perf_event_open on"):
        counters.counted(counters.PAGE_FAULTS, lambda: None)
    monkeypatch.undo()
    with pytest.raises(counters.CountersMissingError, match="perf_event_open: "):
        counters.counted((99, 0), lambda: None)  # no such type of event
    with pytest.raises(counters.CountersMissingError, match="does not tell"):
        counters.own_caches(tmp_path)
