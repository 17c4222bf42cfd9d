"""The simulation of warp schedulers against another one, written plainly."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from graphsys.analysis.model.caches import CacheModel
from graphsys.analysis.model.devices import GPUS
from graphsys.analysis.model.schedulers import (
    POLICIES,
    SchedulerModel,
    Timing,
    loads_of,
    schedule,
    sectors_of,
)
from graphsys.core.errors import UnknownNameError
from graphsys.core.row_trace import RowVisit
from graphsys.kernels.cpu.simt import warp_schedulers as kernels


class Warp:
    def __init__(self, number: int, bursts: int, length: int, ready: int) -> None:
        self.number, self.todo, self.left = number, bursts, length
        self.ready, self.is_active, self.end = ready, False, 0


def plain(
    bursts: list[int],
    places: int,
    warps: int,
    length: int,
    latency: int,
    pipe: int,
    policy: str,
    group: int,
) -> int:
    """Run every cycle, the idle ones too."""
    waiting = [Warp(k, count, length, 0) for k, count in enumerate(bursts)]
    held: list[Warp | None] = [None] * places
    for place in range(places):
        if waiting:
            held[place] = waiting.pop(0)
    now, free, last, end = 0, 0, 0, 0

    def ready(active: bool | None = None) -> list[int]:
        return [
            p
            for p, warp in enumerate(held)
            if warp
            and warp.todo
            and warp.ready <= now
            and (active is None or warp.is_active == active)
        ]

    def in_turn(some: list[int]) -> int:
        return min(some, key=lambda p: (p - last - 1) % places)

    def at(p: int) -> Any:
        return held[p]

    while any(warp and warp.todo for warp in held):
        chosen = None
        if policy == "two-level":
            while sum(bool(w and w.is_active) for w in held) < group and ready(False):
                at(min(ready(False), key=lambda p: at(p).number)).is_active = True
            chosen = in_turn(ready(True)) if ready(True) else None
        elif ready():
            chosen = in_turn(ready())
            if policy == "gto":
                oldest = min(ready(), key=lambda p: at(p).number)
                chosen = last if last in ready() else oldest
        now += 1
        if chosen is None:
            continue
        last, warp = chosen, at(chosen)
        warp.left -= 1
        if warp.left:
            continue
        free = max(now, free) + pipe
        warp.ready = warp.end = free + latency
        warp.left, warp.is_active, warp.todo = length, False, warp.todo - 1
        end = max(end, warp.end)
        first = chosen // warps * warps
        mates = [at(p) for p in range(first, first + warps)]
        if all(mate is None or not mate.todo for mate in mates):
            done = max(mate.end for mate in mates if mate)
            for p in range(first, first + warps):
                held[p] = waiting.pop(0) if waiting else None
                if held[p] is not None:
                    at(p).ready = done
    return end


@pytest.mark.parametrize("policy", POLICIES)
def test_cycles_are_those_of_a_plain_simulation(policy: str) -> None:
    rng = np.random.default_rng(5)
    for _ in range(60):
        warps = int(rng.integers(1, 3))
        places = warps * int(rng.integers(1, 4))
        bursts = rng.integers(1, 6, warps * int(rng.integers(1, 9)))
        length, latency, pipe = (int(x) for x in rng.integers(1, 12, 3))
        group = int(rng.integers(1, 4))
        state = np.zeros((kernels.NUM_STATES, places), dtype=np.int64)
        cycles = kernels.run_warps(
            bursts,
            warps,
            length,
            latency,
            pipe,
            POLICIES[policy],
            group,
            state,
            np.zeros(places // warps, dtype=np.int64),
        )
        given = (bursts.tolist(), places, warps, length, latency, pipe, policy, group)
        assert cycles == plain(*given), given


def test_one_warp_waits_for_every_load_and_many_hide_it() -> None:
    timing = Timing(schedulers=1, length=10, latency=90, sector_cycles=0.0)
    alone = schedule(
        np.array([4]), GPUS["h100"], "gto", sectors=1.0, threads=32, timing=timing
    )
    assert (alone.instructions, alone.cycles) == (50, 5 * 100)
    rows = np.full(32 * 64 * 132, 4)  # 64 warps on each of the SMs
    many = schedule(rows, GPUS["h100"], "gto", sectors=1.0, threads=32, timing=timing)
    assert many.instructions == 64 * 50
    assert many.ipc > 0.9


def test_several_sms_are_simulated_one_by_one() -> None:
    gpu = GPUS["m2050"]
    rng = np.random.default_rng(8)
    lengths = rng.integers(0, 30, 256 * 40)
    timing = Timing(schedulers=2, length=3, latency=40)
    found = schedule(lengths, gpu, "gto", sectors=2.0, timing=timing, sms=2)
    own = []
    for first in (0, 7):  # of 14 SMs
        ctas = lengths.reshape(40, 256)[first::14]
        alone = ctas.repeat(14, axis=0).reshape(-1)  # so that they are SM 0's
        own.append(schedule(alone, gpu, "gto", sectors=2.0, timing=timing))
    assert found.cycles == sum(it.cycles for it in own)
    assert found.instructions == sum(it.instructions for it in own)
    few = schedule(lengths[:256], gpu, "gto", sectors=2.0, timing=timing, sms=14)
    one = schedule(lengths[:256], gpu, "gto", sectors=2.0, timing=timing)
    assert few == one  # the other SMs have nothing to do


def test_a_run_is_simulated_launch_by_launch() -> None:
    model = SchedulerModel(GPUS["h100"], sms=1)
    assert model.ipc("gto") is None
    lengths = np.arange(100) % 9
    indices = np.arange(lengths.sum(), dtype=np.uint32)
    starts = np.cumsum(lengths) - lengths
    visit = RowVisit(
        superstep=0,
        kind="pull",
        lengths=lengths,
        starts=starts,
        indices=indices,
        key="rows",
    )
    model([visit, visit])
    model([visit])
    assert model.launches == 3
    one = schedule(lengths, GPUS["h100"], "two-level", sectors=sectors_of(visit))
    assert model.instructions("two-level") == 3 * one.instructions
    assert model.ipc("two-level") == one.ipc
    assert sectors_of(replace(visit, indices=None)) == 1.0


def test_the_caches_say_how_long_loads_take() -> None:
    lengths = np.full(64, 40)
    visit = RowVisit(
        superstep=0,
        kind="pull",
        lengths=lengths,
        starts=np.arange(64) * 40,
        indices=np.zeros(64 * 40, dtype=np.uint32),
        key="rows",
    )
    caches = CacheModel(GPUS["h100"], sms=1)
    model = SchedulerModel(GPUS["h100"], sms=1, caches=caches)
    model([visit])
    latency = caches.latency()
    assert latency is not None
    assert latency < 100  # one value, read over and over
    timing = Timing(latency=round(latency))
    sectors = sectors_of(visit)
    wanted = schedule(lengths, GPUS["h100"], "gto", sectors=sectors, timing=timing)
    assert model.ipc("gto") == wanted.ipc
    before = model.ipc("round-robin")
    assert before is not None
    assert model.waiting() == 1 - before
    model([visit])  # the L2 has the value now: sooner, though the rows are the same
    assert caches.launches == 2
    after = model.ipc("round-robin")
    assert after is not None
    assert after > before


def test_a_program_waits_for_its_loads_not_for_its_steps() -> None:
    lengths, loads = np.array([32, 32, 16]), np.array([4, 4, 2])
    visit = RowVisit(superstep=0, kind="pull", lengths=lengths, loads=loads)
    found, timing = loads_of(visit, Timing(length=20))
    assert found.tolist() == [4, 4, 2]
    assert timing.length == 20 * 80 // 10
    found, timing = loads_of(replace(visit, loads=None), Timing(length=20))
    assert found.tolist() == [32, 32, 16]
    assert timing.length == 20


def test_an_unknown_scheduler_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="unknown warp scheduler 'fifo'"):
        schedule(np.array([1]), GPUS["h100"], "fifo", sectors=1.0)
