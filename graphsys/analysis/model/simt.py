"""The SIMT model: what a launch over given rows does on a GPU, mapping by mapping.

Definitions and formulas are those of "Graph Processing on GPUs: Where are the
Bottlenecks?" (Xu, Jeon, Annavaram, IISWC 2014) as far as they could be read, else ours; see
this folder's README. The model claims lanes, transactions and launches, never seconds:
times here are instructions of a warp, good for ratios.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from graphsys.analysis.model.devices import WARP, Gpu, occupancy
from graphsys.kernels.cpu.simt import lanes as kernels

Lengths = npt.NDArray[np.int64]

MAPPINGS = ("thread", "sub-warp", "warp", "block", "twc", "edge", "merge-path")
"""Who walks a row: a thread, 8 lanes, a warp, a CTA, one of thread, warp and CTA by the
row's length, a thread per edge, or a thread per equal share of rows and edges."""
SUB_WARP_LANES = 8
MERGE_ITEMS = 8
"""Rows and edges that a thread of merge-path takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimtLaunch:
    """How kernels are launched, and what they cost.

    Attributes:
        threads: Threads of a CTA.
        registers: Registers of a thread.
        shared_bytes: Shared memory of a CTA.
        per_item: Instructions of a warp to begin and end its rows.
        per_step: Instructions of a warp per step of its loop.
        per_search: Instructions per halving where a thread searches its row.
    """

    threads: int = 256
    registers: int = 32
    shared_bytes: int = 0
    per_item: float = 10.0
    per_step: float = 20.0
    per_search: float = 6.0

    @property
    def warps(self) -> int:
        """Warps of a CTA."""
        return self.threads // WARP


@dataclass(slots=True, kw_only=True)
class Walk:
    """What warps do, by one mapping.

    Attributes:
        launches: Kernels launched.
        steps: Steps of all warps.
        active: Lanes at work in them.
        intra: Idle lanes whose row is not done.
        inter: Idle lanes whose row is done, or that have none.
        warps: Warps.
        histogram: Steps by active lanes, int64 ``[33]``.
        cta_times: Instructions of every CTA's longest warp, float64 ``[C]``.
        cta_cvs: Sigma / mu of the times of every CTA's warps, float64 ``[C]``.
    """

    launches: int
    steps: int
    active: int
    intra: int
    inter: int
    warps: int
    histogram: npt.NDArray[np.int64]
    cta_times: npt.NDArray[np.float64]
    cta_cvs: npt.NDArray[np.float64]

    @property
    def utilization(self) -> float | None:
        """Share of lanes at work in the loop's steps; None where there are none."""
        return self.active / (WARP * self.steps) if self.steps else None

    @property
    def warp_variance(self) -> float | None:
        """Sigma / mu of the warps' times within a CTA, mean over CTAs."""
        return float(self.cta_cvs.mean()) if len(self.cta_cvs) else None

    @property
    def cta_variance(self) -> float | None:
        """Sigma / mu of the CTAs' times."""
        return variation(self.cta_times)


def variation(values: npt.NDArray[np.float64]) -> float | None:
    """Return sigma / mu of values, 0 where all are 0, None where there are none."""
    if not len(values):
        return None
    mean = float(values.mean())
    return float(values.std()) / mean if mean > 0 else 0.0


class _Pass:
    """Totals that several kernels add to."""

    def __init__(self, shape: SimtLaunch) -> None:
        self.shape = shape
        self.histogram = np.zeros(WARP + 1, dtype=np.int64)
        self.counts = np.zeros(kernels.NUM_COUNTS, dtype=np.int64)
        self.times: list[npt.NDArray[np.float64]] = []
        self.cvs: list[npt.NDArray[np.float64]] = []
        self._scratch = np.zeros((2, WARP), dtype=np.int64)

    def by_groups(self, lengths: Lengths, lanes: int, *, extra: float = 0.0) -> None:
        """Walk rows with some lanes each; ``extra`` instructions of a warp come on top."""
        shape = self.shape
        num_warps = -(-len(lengths) // (WARP // lanes))
        times, cvs = self._new_ctas(-(-num_warps // shape.warps))
        cost = np.array([shape.per_item + extra, shape.per_step])
        kernels.walk_by_groups(
            lengths,
            lanes,
            shape.warps,
            cost,
            self._scratch,
            self.histogram,
            self.counts,
            times,
            cvs,
        )

    def by_ctas(self, lengths: Lengths) -> None:
        """Walk each row with a CTA."""
        times, cvs = self._new_ctas(len(lengths))
        cost = np.array([self.shape.per_item, self.shape.per_step])
        kernels.walk_by_ctas(
            lengths, self.shape.warps, cost, self.histogram, self.counts, times, cvs
        )

    def evenly(self, threads: int, each: int, last: int, *, extra: float) -> None:
        """Give every thread ``each`` steps, the last one ``last`` of them."""
        shape = self.shape
        whole = max(threads - 1, 0) // shape.threads  # CTAs with nothing special
        steps = whole * shape.warps * each
        self.histogram[WARP] += steps
        self.counts[[kernels.STEPS, kernels.ACTIVE]] += steps, steps * WARP
        self.counts[kernels.WARPS] += whole * shape.warps
        times, _ = self._new_ctas(whole)
        times[:] = shape.per_item + extra + shape.per_step * each
        rest = np.full(threads - whole * shape.threads, each, dtype=np.int64)
        rest[-1:] = last
        self.by_groups(rest, 1, extra=extra)

    def _new_ctas(self, count: int) -> tuple[npt.NDArray[np.float64], ...]:
        self.times.append(np.zeros(count))
        self.cvs.append(np.zeros(count))
        return self.times[-1], self.cvs[-1]

    def walk(self, launches: int) -> Walk:
        """Return the totals."""
        steps, active, intra, inter, warps = self.counts.tolist()
        return Walk(
            launches=launches,
            steps=steps,
            active=active,
            intra=intra,
            inter=inter,
            warps=warps,
            histogram=self.histogram,
            cta_times=np.concatenate([np.zeros(0), *self.times]),
            cta_cvs=np.concatenate([np.zeros(0), *self.cvs]),
        )


def walk(lengths: Lengths, mapping: str, shape: SimtLaunch = SimtLaunch()) -> Walk:
    """Model one launch over rows.

    Args:
        lengths: Entries visited of each row, in the order of the list, int64 ``[n]``; rows
            that are looked at but not entered count as 0.
        mapping: One of :data:`MAPPINGS`.
        shape: How it is launched.

    Complexity:
        O(n) time; 16 bytes per CTA.
    """
    lengths = np.ascontiguousarray(lengths, dtype=np.int64)
    return _WALKS[mapping](lengths, _Pass(shape))


def walk_by_entry(lengths: Lengths, width: int, shape: SimtLaunch = SimtLaunch()) -> Walk:
    """Model warps that walk a row each, one entry after the other, lanes over its values.

    Args:
        lengths: Entries visited of each row, as :func:`walk` takes them.
        width: Values of an entry; lanes beyond the last are idle.
        shape: How it is launched.
    """
    rounded = -(-width // WARP) * WARP
    lengths = np.ascontiguousarray(lengths, dtype=np.int64)
    found = walk(lengths * rounded, "warp", shape)
    idle, entries = rounded - width, int(lengths.sum())
    found.histogram[WARP] -= entries
    found.histogram[WARP - idle] += entries
    found.active -= entries * idle
    found.intra += entries * idle
    return found


def _by_lanes(lanes: int) -> Callable[[Lengths, _Pass], Walk]:
    def model(lengths: Lengths, work: _Pass) -> Walk:
        work.by_groups(lengths, lanes)
        return work.walk(1)

    return model


def _by_block(lengths: Lengths, work: _Pass) -> Walk:
    work.by_ctas(lengths)
    return work.walk(1)


def _by_length(lengths: Lengths, work: _Pass) -> Walk:
    """Thread, warp, CTA: three lists, launched one after the other (TWC)."""
    small, medium, large = rows_by_length(lengths, work.shape.threads)
    if len(small):
        work.by_groups(lengths[small], 1)
    if len(medium):
        work.by_groups(lengths[medium], WARP)
    if len(large):
        work.by_ctas(lengths[large])
    return work.walk(sum(1 for rows in (small, medium, large) if len(rows)))


def rows_by_length(lengths: Lengths, threads: int) -> list[Lengths]:
    """Return the rows that TWC gives to threads, to warps and to CTAs, in their order."""
    rows = np.empty(len(lengths), dtype=np.int64)
    found = []
    for low, high in ((0, WARP), (WARP, threads), (threads, 2**62)):
        count = kernels.split_by_length(lengths, low, max(high, low), rows)
        found.append(rows[:count].copy())
    return found


def _by_edge(lengths: Lengths, work: _Pass) -> Walk:
    """A thread per edge: each searches its row first, then takes one step."""
    search = math.ceil(math.log2(len(lengths))) if len(lengths) > 1 else 0
    work.evenly(int(lengths.sum()), 1, 1, extra=search * work.shape.per_search)
    return work.walk(1)


def _by_merge(lengths: Lengths, work: _Pass) -> Walk:
    """Rows and edges in equal shares, found by a search along two lists (merge-path)."""
    items = len(lengths) + int(lengths.sum())
    search = math.ceil(math.log2(items)) if items > 1 else 0
    last = items % MERGE_ITEMS or MERGE_ITEMS
    extra = search * work.shape.per_search
    work.evenly(-(-items // MERGE_ITEMS), MERGE_ITEMS, last, extra=extra)
    return work.walk(1)


_WALKS: dict[str, Callable[[Lengths, _Pass], Walk]] = {
    "thread": _by_lanes(1),
    "sub-warp": _by_lanes(SUB_WARP_LANES),
    "warp": _by_lanes(WARP),
    "block": _by_block,
    "twc": _by_length,
    "edge": _by_edge,
    "merge-path": _by_merge,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where CTAs run.

    Attributes:
        policy: ``greedy`` (to the SM that is free first) or ``static`` (round-robin).
        ctas: CTAs of every SM, int64 ``[M]``.
        busy: Summed time of every SM's CTAs, float64 ``[M]``.
        resident: CTAs that an SM holds at once.
        makespan: When the last SM ends.
    """

    policy: str
    ctas: npt.NDArray[np.int64]
    busy: npt.NDArray[np.float64]
    resident: int
    makespan: float = field(default=0.0)

    @property
    def imbalance(self) -> float | None:
        """Most work of an SM over the mean; None without work."""
        mean = float(self.busy.mean())
        return float(self.busy.max()) / mean if mean > 0 else None

    @property
    def cta_imbalance(self) -> float | None:
        """Most CTAs of an SM over the mean; None without CTAs."""
        mean = float(self.ctas.mean())
        return float(self.ctas.max()) / mean if mean > 0 else None

    @property
    def idle_sms(self) -> int:
        """SMs that got no CTA."""
        return int((self.ctas == 0).sum())

    @property
    def waves(self) -> float:
        """CTAs over the places that there are at once."""
        return float(self.ctas.sum()) / (len(self.ctas) * self.resident)

    @property
    def tail_efficiency(self) -> float | None:
        """Share of all places' time until the end in which they hold a CTA."""
        places = len(self.ctas) * self.resident * self.makespan
        return float(self.busy.sum()) / places if places > 0 else None


def place(
    cta_times: npt.NDArray[np.float64],
    gpu: Gpu,
    *,
    resident: int,
    policy: str = "greedy",
) -> Placement:
    """Give CTAs to SMs.

    Args:
        cta_times: Time of every CTA, in the order of their numbers ``[C]``.
        gpu: Has the SMs.
        resident: CTAs that an SM holds at once.
        policy: ``greedy`` or ``static``.
    """
    num_sms = gpu.num_sms
    if policy == "static":
        sms = np.arange(len(cta_times)) % num_sms
        busy = np.bincount(sms, cta_times, num_sms).astype(np.float64)
        ctas = np.bincount(sms, minlength=num_sms).astype(np.int64)
        makespan = float(busy.max()) / resident
        # an SM ends no sooner than its longest CTA
        makespan = max(makespan, float(cta_times.max(initial=0.0)))
        return Placement(
            policy=policy, ctas=ctas, busy=busy, resident=resident, makespan=makespan
        )
    busy, finish = np.zeros(num_sms), np.zeros(num_sms)
    ctas = np.zeros(num_sms, dtype=np.int64)
    slots = np.arange(num_sms * resident, dtype=np.int64)
    kernels.dispatch_greedily(
        cta_times, num_sms, np.zeros(len(slots)), slots, busy, ctas, finish
    )
    return Placement(
        policy=policy, ctas=ctas, busy=busy, resident=resident, makespan=float(finish.max())
    )


def resident_ctas(gpu: Gpu, shape: SimtLaunch) -> int:
    """Return how many CTAs of a shape an SM holds at once."""
    return occupancy(
        gpu,
        threads=shape.threads,
        registers=shape.registers,
        shared_bytes=shape.shared_bytes,
    ).ctas
