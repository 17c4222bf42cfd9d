"""Sums over launches by one mapping: lanes, balance, how they fill the SMs, requests."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from graphsys.analysis.model.devices import WARP
from graphsys.analysis.model.sectors import LoadRequests
from graphsys.analysis.model.simt import Placement, Walk

FILLINGS = ("fewer", "exact", "more")
"""Launches of fewer CTAs than there are places at once, of as many, and of more."""


@dataclass(slots=True)
class Filling:
    """Launches that fill the SMs' places alike.

    Attributes:
        launches: How many.
        waves: Sum over them of CTAs per place.
        ctas: Sum over them of an SM's most CTAs over the mean.
        work: Sum over them of an SM's most work over the mean.
    """

    launches: int = 0
    waves: float = 0.0
    ctas: float = 0.0
    work: float = 0.0

    def add(self, placed: Placement) -> None:
        """Add a launch."""
        self.launches += 1
        self.waves += placed.waves
        self.ctas += placed.cta_imbalance or 0.0
        self.work += placed.imbalance or 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    """One launch by one mapping."""

    walk: Walk
    greedy: Placement
    static: Placement
    requests: LoadRequests | None
    is_sampled: bool = False


@dataclass(slots=True, kw_only=True)
class MappingTotals:
    """What all launches of a run do by one mapping.

    Attributes:
        launches: Kernels launched.
        steps: Steps of all warps.
        active: Lanes at work in them.
        intra: Idle lanes whose row is not done.
        inter: Idle lanes without a row, or with a shorter one.
        warps: Warps.
        num_ctas: CTAs.
        histogram: Steps by active lanes, int64 ``[33]``.
        warp_cv_sum: Sum over CTAs of sigma / mu of their warps' times.
        cta_cv_sum: Sum over launches of sigma / mu of the CTAs' times, times the CTAs.
        ctas_per_sm: CTAs of every SM over the run, greedy, int64 ``[M]``.
        busy: Work of every SM over the run, greedy, float64 ``[M]``.
        longest: Sum over launches of the most work of an SM, greedy.
        longest_static: The same, round-robin.
        makespan: Sum over launches of the time until the last SM ends, greedy.
        fillings: Launches that have CTAs, by :data:`FILLINGS`, greedy.
        requests: Memory requests of the launches whose addresses are known; None where
            those of none are.
        unknown: Launches whose addresses are not known.
        is_sampled: Whether requests of some launches are those of some SMs, scaled.
    """

    launches: int = 0
    steps: int = 0
    active: int = 0
    intra: int = 0
    inter: int = 0
    warps: int = 0
    num_ctas: int = 0
    histogram: npt.NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(WARP + 1, dtype=np.int64)
    )
    warp_cv_sum: float = 0.0
    cta_cv_sum: float = 0.0
    ctas_per_sm: npt.NDArray[np.int64]
    busy: npt.NDArray[np.float64]
    longest: float = 0.0
    longest_static: float = 0.0
    makespan: float = 0.0
    fillings: dict[str, Filling] = field(
        default_factory=lambda: {name: Filling() for name in FILLINGS}
    )
    requests: LoadRequests | None = None
    unknown: int = 0
    is_sampled: bool = False

    def add(self, found: Mapped) -> None:
        """Add a launch."""
        walked = found.walk
        self.is_sampled |= found.is_sampled
        for name in ("launches", "steps", "active", "intra", "inter", "warps"):
            setattr(self, name, getattr(self, name) + getattr(walked, name))
        num_ctas = len(walked.cta_times)
        self.num_ctas += num_ctas
        self.histogram += walked.histogram
        self.warp_cv_sum += float(walked.cta_cvs.sum())
        self.cta_cv_sum += (walked.cta_variance or 0.0) * num_ctas
        self.ctas_per_sm += found.greedy.ctas
        self.busy += found.greedy.busy
        self.longest += float(found.greedy.busy.max())
        self.longest_static += float(found.static.busy.max())
        self.makespan += found.greedy.makespan
        if num_ctas:
            places = len(self.busy) * found.greedy.resident
            which = 1 + (num_ctas > places) - (num_ctas < places)
            self.fillings[FILLINGS[which]].add(found.greedy)
        if found.requests is None:
            self.unknown += 1
        elif self.requests is None:
            self.requests = found.requests
        else:
            self.requests += found.requests

    @property
    def utilization(self) -> float | None:
        """Share of lanes at work in the loops' steps."""
        return self.active / (WARP * self.steps) if self.steps else None

    @property
    def warp_variance(self) -> float | None:
        """Sigma / mu of the warps' times within a CTA, mean over all CTAs."""
        return self.warp_cv_sum / self.num_ctas if self.num_ctas else None

    @property
    def cta_variance(self) -> float | None:
        """Sigma / mu of the CTAs' times of a launch, mean over launches by their CTAs."""
        return self.cta_cv_sum / self.num_ctas if self.num_ctas else None

    @property
    def sm_imbalance(self) -> float | None:
        """Most work of an SM over the mean, launch by launch, greedy."""
        mean = float(self.busy.mean())
        return self.longest / mean if mean > 0 else None

    @property
    def sm_imbalance_static(self) -> float | None:
        """The same where CTAs go round."""
        mean = float(self.busy.mean())
        return self.longest_static / mean if mean > 0 else None

    def tail_efficiency(self, resident: int) -> float | None:
        """Return the share of the SMs' places that hold a CTA, until each launch ends."""
        places = len(self.busy) * resident * self.makespan
        return float(self.busy.sum()) / places if places > 0 else None
