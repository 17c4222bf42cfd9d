"""What the warp scheduler would change: a simulation, since no GPU lets it be chosen.

One scheduler of each of some SMs runs the warps that the thread-per-row mapping gives it,
with assumed latencies: good for comparing policies with each other on the same rows, for
nothing else. See ``kernels/cpu/simt/warp_schedulers.py``.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.analysis.metrics import Metric, measured
from graphsys.analysis.model.caches import CacheModel
from graphsys.analysis.model.devices import WARP, Gpu
from graphsys.analysis.model.sectors import requests_of
from graphsys.core.errors import unknown_name
from graphsys.core.row_trace import RowVisit
from graphsys.kernels.cpu.simt import warp_schedulers as kernels

POLICIES = {
    "round-robin": kernels.ROUND_ROBIN,
    "gto": kernels.GREEDY,
    "two-level": kernels.TWO_LEVEL,
}
"""Loose round-robin, greedy-then-oldest, and two-level with an active set."""
_KNOWN = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What is assumed of an SM's scheduler; nothing of it was measured.

    Attributes:
        schedulers: Schedulers of an SM, which share its warps.
        length: Instructions of a step of the loop.
        latency: Cycles from a load to its value.
        sector_cycles: Cycles that a sector keeps the scheduler's share of the memory.
        group: Warps of the two-level policy's active set.
        max_ctas: CTAs that are simulated, the first ones of the SM.
    """

    schedulers: int = 4
    length: int = 20
    latency: int = 500
    sector_cycles: float = 9.0
    group: int = 8
    max_ctas: int = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduled:
    """What a simulation says.

    Attributes:
        policy: Its name.
        instructions: Warp instructions issued.
        cycles: Cycles until the last value is there.
    """

    policy: str
    instructions: int
    cycles: int

    @property
    def ipc(self) -> float:
        """Instructions per cycle, at most 1."""
        return self.instructions / self.cycles if self.cycles else 0.0


def schedule(
    lengths: npt.NDArray[np.int64],
    gpu: Gpu,
    policy: str,
    *,
    sectors: float,
    threads: int = 256,
    timing: Timing = Timing(),
    sms: int = 1,
) -> Scheduled:
    """Simulate one scheduler of some SMs over rows that have a thread each.

    Args:
        lengths: Entries of each row, int64 ``[n]``.
        gpu: CTAs go round its SMs; its residency limits how many run at once.
        policy: One of :data:`POLICIES`.
        sectors: Sectors that a load touches.
        threads: Threads of a CTA.
        timing: What is assumed.
        sms: SMs that are simulated, evenly spread; their cycles are added up.

    Raises:
        UnknownNameError: no such policy.
    """
    if policy not in POLICIES:
        raise unknown_name("warp scheduler", policy, POLICIES)
    warps = max(threads // WARP // timing.schedulers, 1)
    all_ctas = warp_bursts(lengths, threads)
    places = max(gpu.max_threads // threads, 1) * warps
    issued = cycles = 0
    for first in range(0, gpu.num_sms, max(gpu.num_sms // sms, 1)):
        ctas = all_ctas[first :: gpu.num_sms][: timing.max_ctas]
        if not len(ctas):
            break  # and those after it are idle too
        bursts = np.ascontiguousarray(ctas[:, :: timing.schedulers][:, :warps]).reshape(-1)
        cycles += kernels.run_warps(
            bursts,
            warps,
            timing.length,
            timing.latency,
            round(timing.sector_cycles * sectors),
            POLICIES[policy],
            timing.group,
            np.zeros((kernels.NUM_STATES, places), dtype=np.int64),
            np.zeros(places // warps, dtype=np.int64),
        )
        issued += int(bursts.sum()) * timing.length
    return Scheduled(policy=policy, instructions=issued, cycles=cycles)


def warp_bursts(lengths: npt.NDArray[np.int64], threads: int) -> npt.NDArray[np.int64]:
    """Return the steps of every warp, and one to begin with, CTA by CTA ``[C, warps]``.

    Examples:
        >>> warp_bursts(np.array([3, 1, 4]), 64)
        array([[5, 1]])
    """
    num_ctas = max(-(-len(lengths) // threads), 1)
    padded = np.zeros(num_ctas * threads, dtype=np.int64)
    padded[: len(lengths)] = lengths
    steps: npt.NDArray[np.int64] = padded.reshape(num_ctas, -1, WARP).max(axis=2) + 1
    return steps


@dataclass(slots=True)
class _Sums:
    instructions: int = 0
    cycles: int = 0


class SchedulerModel:
    """Simulates the warp schedulers on every launch over rows that a run offers.

    A thread walks each row. Rows that were walked before are not simulated again.

    Args:
        gpu: The GPU.
        sms: SMs that are simulated, evenly spread.
        timing: What is assumed.
        caches: Runs every launch first and says how long its loads take; without it they
            take what ``timing`` assumes.

    Attributes:
        launches: How many were simulated.
    """

    def __init__(
        self,
        gpu: Gpu,
        sms: int = 4,
        timing: Timing = Timing(),
        caches: CacheModel | None = None,
    ) -> None:
        self.gpu, self.sms, self.timing, self.caches = gpu, sms, timing, caches
        self.launches = 0
        self._sums = {policy: _Sums() for policy in POLICIES}
        self._known: dict[Any, tuple[RowVisit, dict[str, Scheduled]]] = {}

    def __call__(self, visits: Iterable[RowVisit]) -> None:
        """Simulate launches."""
        for visit in visits:
            for policy, found in self._simulated(visit).items():
                self._sums[policy].instructions += found.instructions
                self._sums[policy].cycles += found.cycles
            self.launches += 1

    def _simulated(self, visit: RowVisit) -> dict[str, Scheduled]:
        timing = self.timing
        if self.caches is not None:
            own = self.caches.run(visit)
            latency = None if own is None else self.caches.latency(own)
            timing = replace(timing, latency=round(latency or timing.latency))
        key = (visit.key, timing.latency)
        if visit.key is not None and key in self._known:
            return self._known[key][1]
        lengths, timing = loads_of(visit, timing)
        sectors = sectors_of(visit)
        found = {
            policy: schedule(
                lengths, self.gpu, policy, sectors=sectors, timing=timing, sms=self.sms
            )
            for policy in POLICIES
        }
        if visit.key is not None and len(self._known) < _KNOWN:
            self._known[key] = (visit, found)
        return found

    def instructions(self, policy: str) -> int:
        """Return the warp instructions that were issued."""
        return self._sums[policy].instructions

    def ipc(self, policy: str) -> float | None:
        """Return instructions per cycle of a scheduler; None before any launch."""
        sums = self._sums[policy]
        return sums.instructions / sums.cycles if sums.cycles else None

    def waiting(self) -> float | None:
        """Return the share of cycles in which all warps wait for loads, round-robin.

        Other reasons to stall are not simulated.
        """
        ipc = self.ipc("round-robin")
        return None if ipc is None else 1 - ipc


def scheduler_metrics(model: SchedulerModel) -> list[Metric]:
    """Return instructions per cycle by policy, and how far the policies lie apart."""
    found = {policy: model.ipc(policy) for policy in POLICIES}
    known = [ipc for ipc in found.values() if ipc]
    spread = max(known) / min(known) - 1 if known else None
    wait = model.waiting()
    reason = "nothing here walked rows superstep by superstep"
    return [
        *(
            measured(
                f"scheduler_ipc.{policy}",
                ipc,
                "instructions/cycle",
                source="model",
                exact=False,
                reason=reason,
            )
            for policy, ipc in found.items()
        ),
        measured(
            "predicted_stall_share",
            wait,
            "share",
            source="model",
            exact=False,
            reason=reason,
        ),
        measured(
            "scheduler_spread", spread, "share", source="model", exact=False, reason=reason
        ),
    ]


def loads_of(visit: RowVisit, timing: Timing) -> tuple[npt.NDArray[np.int64], Timing]:
    """Return the loads that each row waits for, and how many instructions lie between.

    A row of neighbors waits for each entry. Where a program says what it loads, the
    instructions of all its steps are shared out among the loads.
    """
    if visit.loads is None:
        return np.ascontiguousarray(visit.lengths, dtype=np.int64), timing
    loads = np.ascontiguousarray(visit.loads, dtype=np.int64)
    steps = int(np.asarray(visit.lengths).sum())
    each = round(timing.length * steps / max(int(loads.sum()), 1))
    return loads, replace(timing, length=max(each, 1))


def sectors_of(visit: RowVisit) -> float:
    """Return the sectors of a load of a value, a thread per row; 1 where unknown."""
    found = requests_of(visit).get("thread")
    return (found.per_request(found.value_sectors) or 1.0) if found else 1.0
