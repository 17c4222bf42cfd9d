"""The cache model against a simulation that writes every address down first."""

from collections import OrderedDict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from graphsys.analysis.model.caches import (
    ARRAYS,
    CacheModel,
    Caches,
    cache_metrics,
    slots_of,
)
from graphsys.analysis.model.devices import GPUS, Gpu
from graphsys.analysis.model.simt import SimtLaunch, resident_ctas
from graphsys.core.row_trace import RowVisit

TINY = replace(GPUS["m2050"], num_sms=3, max_threads=128, max_ctas=2)
SHAPE = SimtLaunch(threads=64)
Request = tuple[int, list[int]]
"""An array, and the sectors that a warp asks of it."""


class Cache:
    """Sets of lines, the least recently used first; a line is a set of sectors."""

    def __init__(self, num_bytes: int, ways: int) -> None:
        self.ways = ways
        count = max(num_bytes // 128 // ways, 1)
        self.sets: list[OrderedDict[int, set[int]]] = [OrderedDict() for _ in range(count)]

    def ask(self, sector: int, brings: set[int]) -> bool:
        line = sector // 4
        lines = self.sets[line % len(self.sets)]
        if line in lines:
            lines.move_to_end(line)
            was_there = sector in lines[line]
            lines[line] |= brings
            return was_there
        if len(lines) == self.ways:
            lines.popitem(last=False)
        lines[line] = set(brings)
        return False


def requests_of(visit: RowVisit, place: int, lanes: int) -> list[list[list[Request]]]:
    """Return the requests of every step of every warp, addresses written out."""
    assert visit.indices is not None
    assert visit.starts is not None
    lengths = visit.lengths * visit.width if visit.loads is None else visit.loads
    found = []
    for first in range(0, len(lengths), 32 // lanes):
        rows = range(first, min(first + 32 // lanes, len(lengths)))
        begin: list[Request] = []
        if visit.has_index_loads:
            begin = [(0, [8 * (row + end) // 32 for row in rows]) for end in (0, 1)]
        steps = [begin]
        for at in range(max(-(-int(lengths[row]) // lanes) for row in rows)):
            pairs = [  # lanes take an entry's columns, then the next entry's
                (int(visit.starts[row]) + e // visit.width, e % visit.width)
                for row in rows
                for e in range(at * lanes, min((at + 1) * lanes, int(lengths[row])))
            ]
            size = visit.indices.dtype.itemsize
            step = [(1, [(place + e * size) // 32 for e, _ in pairs])]
            columns = [int(visit.indices[e]) * visit.width + c for e, c in pairs]
            values = (2, [((1 << 40) + c * visit.value_bytes) // 32 for c in columns])
            steps.append([*(step if visit.has_index_loads else []), values])
        found.append(steps)
    return found


class Plain:
    """Simulates all launches of a run."""

    def __init__(
        self, gpu: Gpu, caches: Caches, sms: int, slots: tuple[int, ...] = ()
    ) -> None:
        self.gpu, self.caches, self.sms, self.slots = gpu, caches, sms, slots
        self.l2 = Cache(caches.l2_bytes * sms // gpu.num_sms, caches.l2_ways)
        self.tallies = np.zeros((sms, 5, 3), dtype=np.int64)

    def run(self, visit: RowVisit, place: int) -> None:
        lanes = 32 if visit.mapping == "warp" else 1
        warps, held = SHAPE.warps, resident_ctas(self.gpu, SHAPE)
        work = requests_of(visit, place, lanes)
        ctas = [work[k : k + warps] for k in range(0, len(work), warps)]
        queues, slots, last, l1 = [], [], [], []
        for sm in range(self.sms):
            first = sm * (self.gpu.num_sms // self.sms)
            queues.append([list(map(list, cta)) for cta in ctas[first :: self.gpu.num_sms]])
            slots.append([None for _ in range(held)])
            last.append(-1)
            l1.append(Cache(self.caches.l1_bytes, self.caches.l1_ways))
        is_pull = visit.kind == "pull"
        while True:
            went = False
            for sm in range(self.sms):
                own: list[Any] = slots[sm]
                for k in range(held):
                    if not any(own[k] or []) and queues[sm]:
                        own[k] = queues[sm].pop(0)
                flat = [
                    (k * warps + w, warp)
                    for k, cta in enumerate(own)
                    for w, warp in enumerate(cta or [])
                    if warp
                ]
                if not flat:
                    continue
                size = held * warps
                at, warp = min(flat, key=lambda it: (it[0] - last[sm] - 1) % size)
                last[sm], went = at, True
                for kind, sectors in warp.pop(0):
                    if self.caches.brings_lines and (is_pull or kind < 2):
                        sectors = [sector // 4 * 4 for sector in sectors]
                    for sector in dict.fromkeys(sectors):
                        self.ask(sm, kind, sector, l1[sm], is_pull or kind < 2)
            if not went:
                return

    def ask(self, sm: int, kind: int, sector: int, l1: Cache, by_l1: bool) -> None:
        line = set(range(sector // 4 * 4, sector // 4 * 4 + 4))
        brings = line if self.caches.brings_lines and by_l1 else {sector}
        own = self.tallies[sm]
        if self.slots:  # all sets are there, some are counted
            slot = self.slots[sector // 4 % len(self.slots)]
            own = self.tallies[slot] if slot >= 0 else np.zeros_like(own)
        own[0, kind] += 1
        if by_l1:
            own[1, kind] += 1
            if l1.ask(sector, brings):
                own[2, kind] += 1
                return
        for it in sorted(brings):
            own[3, kind] += 1
            own[4, kind] += self.l2.ask(it, {it})


def random_visit(seed: int, width: int = 1) -> RowVisit:
    rng = np.random.default_rng(seed)
    num = int(rng.integers(1, 500 // width))
    lengths = np.minimum(rng.zipf(1.7, num) - 1, 40).astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    indices = rng.integers(0, rng.choice([30, 900]), lengths.sum()).astype(np.uint32)
    has_rows = bool(rng.random() < 0.8)
    return RowVisit(
        superstep=0,
        kind=str(rng.choice(["pull", "push"])),
        lengths=lengths,
        starts=starts,
        indices=indices,
        value_bytes=int(rng.choice([4, 8])),
        has_index_loads=has_rows,
        mapping=str(rng.choice(["", "warp"])),
        width=width,
    )


@pytest.mark.parametrize("brings_lines", [False, True])
@pytest.mark.parametrize("sms", [1, 3])
def test_hits_are_those_of_a_plain_simulation(brings_lines: bool, sms: int) -> None:
    caches = Caches(
        l1_bytes=8 * 128,
        l2_bytes=3 * 32 * 128,
        l1_ways=2,
        l2_ways=4,
        brings_lines=brings_lines,
    )
    assert resident_ctas(TINY, SHAPE) == 2
    total = np.zeros(5, dtype=np.int64)
    for seed in range(25):
        model = CacheModel(TINY, caches, sms, SHAPE)
        plain = Plain(TINY, caches, sms)
        width = (1, 1, 3, 16)[seed % 4]
        one, other = random_visit(seed, width), random_visit(100 + seed, width)
        for visit, place in ((one, 2), (other, 3), (one, 2)):  # the L2 goes on, L1 does not
            model([visit])
            plain.run(visit, place << 40)
            assert model.tallies.tolist() == plain.tallies.tolist(), seed
        total += model.tallies.sum(axis=(0, 2))
    assert total[0] > total[1] > total[2] > 0
    assert total[3] > total[4] > 0


@pytest.mark.parametrize("brings_lines", [False, True])
def test_sampled_sets_do_what_they_do_among_all(brings_lines: bool) -> None:
    """Requests and hits of their lines are those of a simulation that has all sets."""
    caches = Caches(
        l1_bytes=8 * 128,
        l2_bytes=3 * 32 * 128,
        l1_ways=2,
        l2_ways=4,
        brings_lines=brings_lines,
    )
    slots = slots_of(4, 2)  # as many classes as divide the sets of both
    total = np.zeros(5, dtype=np.int64)
    for seed in range(12):
        model = CacheModel(TINY, caches, shape=SHAPE, sampled_sets=2)
        plain = Plain(TINY, caches, 3, tuple(slots.tolist()))
        width = (1, 3)[seed % 2]
        one, other = random_visit(seed, width), random_visit(100 + seed, width)
        for visit, place in ((one, 2), (other, 3), (one, 2)):
            model([visit])
            plain.run(visit, place << 40)
            assert model.tallies.tolist() == plain.tallies[:2].tolist(), seed
        total += model.tallies.sum(axis=(0, 2))
    assert total[0] > total[1] > total[2] > 0
    assert total[3] > total[4] > 0


def test_sets_are_drawn_once_and_all_are_taken_where_there_are_no_more() -> None:
    slots = slots_of(32, 8)
    assert sorted(slots.tolist()) == [-1] * 24 + list(range(8))
    assert len(set(np.diff(np.flatnonzero(slots >= 0)).tolist())) > 1  # not every fourth
    assert slots_of(32, 8).tolist() == slots.tolist()
    assert slots_of(8, 8).tolist() == slots_of(32, 0).tolist() == [0]


def visit_of(indices: Any, lengths: Any, **options: Any) -> RowVisit:
    lengths = np.asarray(lengths)
    return RowVisit(
        superstep=0,
        kind="pull",
        lengths=lengths,
        starts=np.cumsum(lengths) - lengths,
        indices=np.asarray(indices, dtype=np.uint32),
        **options,
    )


def test_a_warp_that_reads_one_value_over_and_over_hits_but_once() -> None:
    model = CacheModel(GPUS["h100"], sms=1)
    model([visit_of(np.zeros(32 * 50), np.full(32, 50))])
    assert model.hit_rate(1, "states") == 49 / 50
    assert model.hit_rate(2, "states") == 0.0
    # indices: each lane walks its own row of 200 bytes, 4 bytes at a time
    sectors = 32 * 50 * 4 // 32
    asked = model.tallies[:, 1, 1].sum()
    assert model.tallies[:, 2, 1].sum() == asked - sectors
    near, _, far = model.caches.latencies
    assert model.latency() == pytest.approx((49 * near + far) / 50)


def test_values_that_lie_far_apart_miss_and_come_from_the_l2_the_second_time() -> None:
    nodes = np.arange(32 * 8) * 1000
    model = CacheModel(GPUS["h100"], sms=132)
    visit = visit_of(nodes, np.full(32, 8))
    model([visit])
    assert model.hit_rate(1, "states") == model.hit_rate(2, "states") == 0.0
    model([visit])  # another launch
    assert model.hit_rate(1, "states") == 0.0
    assert model.hit_rate(2, "states") == 0.5
    assert model.launches == 2
    assert model.sampling_error() == 0.0  # nothing was sampled
    few = CacheModel(GPUS["h100"], sms=4)
    few([visit])
    assert few.sampling_error() is None  # one SM alone had work


def test_a_warp_asks_a_fermi_for_lines() -> None:
    side_by_side = visit_of(np.arange(32), np.ones(32, dtype=np.int64), value_bytes=4)
    for gpu, asked in (("h100", 4), ("m2050", 1)):
        model = CacheModel(GPUS[gpu], sms=1)
        model([side_by_side])
        assert model.tallies[0, 0, 2] == asked  # 128 bytes of values
        assert model.tallies[0, 3, 2] == 4  # sectors of the L2, either way
        assert model.hit_rate(1, "states") == 0.0


def test_what_is_not_there_has_a_reason() -> None:
    model = CacheModel(GPUS["h100"])
    model([RowVisit(superstep=0, kind="pull", lengths=np.ones(3, dtype=np.int64))])
    assert model.launches == 0
    found = {metric.name: metric for metric in cache_metrics(model)}
    assert len(found) == 2 * (1 + len(ARRAYS)) + 3
    assert all(metric.value is None and metric.reason for metric in found.values())
    model([visit_of(np.zeros(4), [1, 1, 1, 1], has_index_loads=False)])
    found = {metric.name: metric for metric in cache_metrics(model)}
    assert found["l1_hit_rate.states"].value == 0.0
    assert found["l1_hit_rate.indices"].reason == "nothing of it was asked of the L1"
    assert found["value_latency"].value == 600


def test_the_error_of_sampling_shrinks_with_the_sms_and_covers_the_whole() -> None:
    rng = np.random.default_rng(4)
    lengths = np.minimum(rng.zipf(1.6, 60_000), 200)
    indices = rng.zipf(1.5, lengths.sum()) % 60_000
    visit = visit_of(indices, lengths)
    found = []
    for sms in (4, 33, 132):
        model = CacheModel(GPUS["h100"], sms=sms)
        model([visit])
        found.append((model.hit_rate(1) or 0.0, model.sampling_error()))
    (few, wide), (more, narrow), (whole, none) = found
    assert none == 0.0
    assert wide is not None
    assert narrow is not None
    assert 0 < narrow < wide < 0.1
    assert abs(few - whole) < 4 * wide
    assert abs(more - whole) < 4 * narrow


def test_sampled_sets_tell_what_sms_find_in_the_l2_because_others_asked() -> None:
    """Values that all SMs share; a few SMs with their share of the L2 know too little."""
    rng = np.random.default_rng(5)
    lengths = rng.integers(4, 12, 60_000)
    visit = visit_of(rng.integers(0, 60_000, lengths.sum()), lengths)
    whole, few = CacheModel(GPUS["h100"]), CacheModel(GPUS["h100"], sms=4)
    sampled = [CacheModel(GPUS["h100"], sampled_sets=k) for k in (4, 16)]
    for model in (whole, few, *sampled):
        model([visit])
    errors = []
    for level in (1, 2):
        wanted = whole.hit_rate(level) or 0.0
        assert whole.sampling_error(level) == 0.0
        for model in sampled:
            error = model.sampling_error(level)
            assert error is not None
            assert abs((model.hit_rate(level) or 0.0) - wanted) < 4 * error < 0.02
            errors.append(error)
    assert errors[1] < errors[0]
    assert (whole.hit_rate(2, "states") or 0) > 0.9
    assert (few.hit_rate(2, "states") or 0) < 0.6
