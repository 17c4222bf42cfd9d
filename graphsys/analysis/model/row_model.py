"""Runs the SIMT model on the rows of every superstep, as they are offered, and adds up."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.analysis.model.devices import WARP, Gpu
from graphsys.analysis.model.sectors import Requests, requests_of
from graphsys.analysis.model.simt import (
    MAPPINGS,
    LaunchShape,
    Placement,
    Walk,
    place,
    resident_ctas,
    walk,
)
from graphsys.core.events import count
from graphsys.core.visits import RowVisit
from graphsys.engine.cuda.strategy import choose, predicted_work

AUTO = "auto"
"""What ``graphsys run --device cuda`` would choose, launch by launch."""
_CHOICES = ("thread", "warp", "block", "twc")
_CACHED = 64
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
    requests: Requests | None


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
        requests: Memory requests, None where not all launches have them.
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
    requests: Requests | None = None
    has_requests: bool = True

    def add(self, found: Mapped) -> None:
        """Add a launch."""
        walked = found.walk
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
            self.has_requests = False
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSummary:
    """What the per-superstep table shows of one launch over rows.

    Attributes:
        kind: ``pull`` or ``push``.
        rows: Rows of the list.
        entries: Entries visited.
        chosen: The mapping that a device took, or would.
        utilization: Share of lanes at work, by mapping.
        steps: Steps of all warps, by mapping.
        active: Lanes at work in them, by mapping.
    """

    kind: str
    rows: int
    entries: int
    chosen: str
    utilization: dict[str, float | None]
    steps: dict[str, int]
    active: dict[str, int]


class RowModel:
    """Models every launch over rows that a run offers.

    Args:
        gpu: The GPU.
        shape: How kernels are launched.

    Attributes:
        totals: By mapping, and under ``auto`` by the one chosen for each launch.
        launches: A summary of each launch, in order.
        is_exact: Whether all rows had the lengths that the run visits.
        row_bytes: Bytes of the rows that were at hand, each counted once.
        num_rows: Rows of the longest list: the nodes, where a superstep takes all.
        value_bytes: Size of what is read at a neighbor.
        reasons: Why some rows' neighbors were not at hand.
    """

    def __init__(self, gpu: Gpu, shape: LaunchShape = LaunchShape()) -> None:  # noqa: B008  (frozen)
        self.gpu, self.shape = gpu, shape
        self.resident = resident_ctas(gpu, shape)
        self.totals = {name: self._nothing() for name in (AUTO, *MAPPINGS)}
        self.launches: list[LaunchSummary] = []
        self.is_exact = True
        self.row_bytes = 0
        self.num_rows = self.value_bytes = 0
        self.reasons: list[str] = []
        self._known: dict[Any, tuple[Any, dict[str, Mapped], LaunchSummary]] = {}
        self._held: dict[int, Any] = {}

    def __call__(self, visits: Iterable[RowVisit]) -> None:
        """Model launches; emit ``rows`` with the entries that each visits."""
        for visit in visits:
            found, summary = self._modelled(visit)
            for name, mapped in found.items():
                self.totals[name].add(mapped)
            self.totals[AUTO].add(found[summary.chosen])
            self.is_exact &= visit.is_exact
            self.num_rows = max(self.num_rows, summary.rows)
            self.value_bytes = max(self.value_bytes, visit.value_bytes)
            if visit.reason and visit.reason not in self.reasons:
                self.reasons.append(visit.reason)
            count("rows", summary.entries, launch=len(self.launches))
            self.launches.append(summary)

    def _nothing(self) -> MappingTotals:
        sms = self.gpu.num_sms
        return MappingTotals(ctas_per_sm=np.zeros(sms, dtype=np.int64), busy=np.zeros(sms))

    def _modelled(self, visit: RowVisit) -> tuple[dict[str, Mapped], LaunchSummary]:
        """Return a launch by every mapping; the same rows again are not modelled again."""
        if visit.key is not None and visit.key in self._known:
            return self._known[visit.key][1:]
        self._hold(visit)
        requests = requests_of(visit, self.shape.threads)
        found = {name: self._map(visit, name, requests.get(name)) for name in MAPPINGS}
        lengths = np.asarray(visit.lengths, dtype=np.int64)
        summary = LaunchSummary(
            kind=visit.kind,
            rows=len(lengths),
            entries=int(lengths.sum()),
            chosen=visit.mapping
            or choose(predicted_work(lengths, self.shape.threads), _CHOICES),
            utilization={name: it.walk.utilization for name, it in found.items()},
            steps={name: it.walk.steps for name, it in found.items()},
            active={name: it.walk.active for name, it in found.items()},
        )
        if visit.key is not None and len(self._known) < _CACHED:
            # the key holds addresses of arrays: keep them, so that none is used twice
            self._known[visit.key] = (visit, found, summary)
        return found, summary

    def _map(self, visit: RowVisit, mapping: str, requests: Requests | None) -> Mapped:
        walked = walk(visit.lengths, mapping, self.shape)
        times = walked.cta_times
        return Mapped(
            walk=walked,
            greedy=place(times, self.gpu, resident=self.resident),
            static=place(times, self.gpu, resident=self.resident, policy="static"),
            requests=requests,
        )

    def _hold(self, visit: RowVisit) -> None:
        """Count the bytes of neighbors that a GPU would need, once per array."""
        if visit.indices is None or not visit.has_index_loads:
            return
        if id(visit.indices) not in self._held:
            self._held[id(visit.indices)] = visit.indices
            self.row_bytes += visit.indices.nbytes
