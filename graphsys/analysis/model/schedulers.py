"""What the warp scheduler would change: a simulation, since no GPU lets it be chosen.

One scheduler of one SM runs the warps that the thread-per-row mapping gives it, with
assumed latencies: good for comparing policies with each other on the same rows, for nothing
else. See ``kernels/cpu/simt/warp_schedulers.py``.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphsys.analysis.model.devices import WARP, Gpu
from graphsys.core.errors import unknown_name
from graphsys.kernels.cpu.simt import warp_schedulers as kernels

POLICIES = {
    "round-robin": kernels.ROUND_ROBIN,
    "gto": kernels.GREEDY,
    "two-level": kernels.TWO_LEVEL,
}
"""Loose round-robin, greedy-then-oldest, and two-level with an active set."""


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
) -> Scheduled:
    """Simulate one scheduler of SM 0 over rows that have a thread each.

    Args:
        lengths: Entries of each row, int64 ``[n]``.
        gpu: CTAs go round its SMs; its residency limits how many run at once.
        policy: One of :data:`POLICIES`.
        sectors: Sectors that a load touches.
        threads: Threads of a CTA.
        timing: What is assumed.

    Raises:
        UnknownNameError: no such policy.
    """
    if policy not in POLICIES:
        raise unknown_name("warp scheduler", policy, POLICIES)
    warps = max(threads // WARP // timing.schedulers, 1)
    ctas = warp_bursts(lengths, threads)[:: gpu.num_sms][: timing.max_ctas]
    bursts = np.ascontiguousarray(ctas[:, :: timing.schedulers][:, :warps]).reshape(-1)
    places = max(gpu.max_threads // threads, 1) * warps
    cycles = kernels.run_warps(
        bursts, warps, timing.length, timing.latency,
        round(timing.sector_cycles * sectors), POLICIES[policy], timing.group,
        np.zeros((kernels.NUM_STATES, places), dtype=np.int64),
        np.zeros(places // warps, dtype=np.int64),
    )  # fmt: skip
    issued = int(bursts.sum()) * timing.length
    return Scheduled(policy=policy, instructions=issued, cycles=int(cycles))


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
