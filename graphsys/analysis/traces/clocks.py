"""Level L3: what instrumented CUDA kernels wrote down of their warps, added up.

Lanes are those of the loops over rows, as in the SIMT model; a CTA's time runs from its
first warp's beginning to its last one's end, by its SM's clock. Counting lanes and reading
clocks takes time itself, so times are approximate; shares of lanes are a lower bound.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.analysis.metrics import Metric, measured
from graphsys.analysis.model.devices import WARP
from graphsys.core.clocks import KernelClocks

_OVER_ROWS = ("pull", "gather", "push")
NO_CLOCKS = "no instrumented kernel ran; give the command --device cuda"


@dataclass(slots=True)
class ClockTotals:
    """What launches wrote down, together.

    Attributes:
        launches: Launches of instrumented kernels.
        num_ctas: Their CTAs.
        cycles: Sum of the CTAs' times.
        lane_steps: Steps of the loops over rows by active lanes, int64 ``[33]``.
        num_sms: SMs of the device, M.
        ctas_by_id: CTAs by ``%smid``, int64; the numbers of SMs may have gaps.
        busy_by_id: Sum of the CTAs' times by ``%smid``, float64.
        longest: Sum over launches of the busiest SM's.
        warp_cv_sum: Sum over CTAs of sigma / mu of their warps' times.
        cta_cv_sum: Sum over launches of sigma / mu of the CTAs' times, times the CTAs.
    """

    launches: int = 0
    num_ctas: int = 0
    cycles: float = 0.0
    lane_steps: npt.NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(WARP + 1, dtype=np.int64)
    )
    num_sms: int = 0
    ctas_by_id: npt.NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(0, dtype=np.int64)
    )
    busy_by_id: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    longest: float = 0.0
    warp_cv_sum: float = 0.0
    cta_cv_sum: float = 0.0

    def add(self, launch: KernelClocks) -> None:
        """Add a launch."""
        warps = launch.block // WARP
        begins, ends = launch.begins.reshape(-1, warps), launch.ends.reshape(-1, warps)
        times = (ends.max(axis=1) - begins.min(axis=1)).astype(np.float64)
        own = (ends - begins).astype(np.float64)
        sms = launch.sms.reshape(-1, warps)[:, 0]
        self.num_sms = launch.num_sms
        size = max(launch.num_sms, int(sms.max(initial=0)) + 1, len(self.busy_by_id))
        longer = (0, size - len(self.busy_by_id))
        self.busy_by_id = np.pad(self.busy_by_id, longer)
        self.ctas_by_id = np.pad(self.ctas_by_id, longer)
        busy = np.bincount(sms, times, size)
        self.launches += 1
        self.num_ctas += len(times)
        self.cycles += float(times.sum())
        self.lane_steps += launch.lane_steps
        self.ctas_by_id += np.bincount(sms, minlength=size)
        self.busy_by_id += busy
        self.longest += float(busy.max())
        self.warp_cv_sum += float((own.std(axis=1) / np.maximum(own.mean(axis=1), 1)).sum())
        self.cta_cv_sum += float(times.std() / max(times.mean(), 1)) * len(times)

    @property
    def utilization(self) -> float | None:
        """Share of lanes at work in the steps of the loops over rows."""
        steps = int(self.lane_steps.sum())
        active = int(self.lane_steps @ np.arange(WARP + 1))
        return active / (WARP * steps) if steps else None

    @property
    def warp_variance(self) -> float | None:
        """Sigma / mu of the warps' times within a CTA, mean over all CTAs."""
        return self.warp_cv_sum / self.num_ctas if self.num_ctas else None

    @property
    def cta_variance(self) -> float | None:
        """Sigma / mu of the CTAs' times of a launch, mean over launches by their CTAs."""
        return self.cta_cv_sum / self.num_ctas if self.num_ctas else None

    @property
    def sms(self) -> npt.NDArray[np.int64]:
        """The numbers of the SMs ``[M]``: those seen, and the lowest of the others."""
        seen_first = np.argsort(self.ctas_by_id == 0, kind="stable")
        return np.sort(seen_first[: self.num_sms])

    @property
    def ctas_per_sm(self) -> npt.NDArray[np.int64]:
        """CTAs of every SM, int64 ``[M]``."""
        return self.ctas_by_id[self.sms]

    @property
    def busy(self) -> npt.NDArray[np.float64]:
        """Sum of the CTAs' times of every SM, float64 ``[M]``."""
        return self.busy_by_id[self.sms]

    @property
    def sm_imbalance(self) -> float | None:
        """Most time of an SM's CTAs over the mean, launch by launch."""
        mean = float(self.busy_by_id.sum()) / max(self.num_sms, 1)
        return self.longest / mean if mean > 0 else None


class ClockModel:
    """Adds up every launch that is offered.

    Attributes:
        total: All launches.
        over_rows: Those that walked rows: what the SIMT model speaks of.
        kernels: By name.
    """

    def __init__(self) -> None:
        self.total, self.over_rows = ClockTotals(), ClockTotals()
        self.kernels: dict[str, ClockTotals] = {}

    def __call__(self, launch: KernelClocks) -> None:
        """Add a launch."""
        self.total.add(launch)
        self.kernels.setdefault(launch.kernel, ClockTotals()).add(launch)
        if launch.kernel.startswith(_OVER_ROWS):
            self.over_rows.add(launch)


def clock_metrics(model: ClockModel) -> list[Metric]:
    """Return what the clocks say of the kernels over rows, as metrics."""
    found = model.over_rows
    reason = NO_CLOCKS if not model.total.launches else "no kernel walked rows"
    sms = found.ctas_per_sm
    mean = float(sms.mean()) if len(sms) else None

    def metric(name: str, value: float | None, unit: str, *, exact: bool = False) -> Metric:
        return measured(name, value, unit, source="clock", exact=exact, reason=reason)

    least, most = (int(sms.min()), int(sms.max())) if len(sms) else (None, None)
    return [
        metric("launches_over_rows.clock", found.launches or None, "launches", exact=True),
        metric("lane_utilization.clock", found.utilization, "share"),
        metric("warp_variance.clock", found.warp_variance, "sigma/mu"),
        metric("cta_variance.clock", found.cta_variance, "sigma/mu"),
        metric("ctas_per_sm.clock", mean, "CTAs", exact=True),
        metric("ctas_per_sm_min.clock", least, "CTAs", exact=True),
        metric("ctas_per_sm_max.clock", most, "CTAs", exact=True),
        metric("sm_imbalance.clock", found.sm_imbalance, "max/mean"),
    ]


def clock_facts(model: ClockModel) -> list[dict[str, Any]] | None:
    """Return the report's part about every instrumented kernel, the longest first."""
    if not model.total.launches:
        return None
    rows = sorted(model.kernels.items(), key=lambda item: -item[1].cycles)
    return [
        {
            "name": name,
            "launches": it.launches,
            "ctas": it.num_ctas,
            "cycles": it.cycles,
            "lane_utilization": it.utilization,
            "active_lane_histogram": it.lane_steps.tolist(),
            "warp_variance": it.warp_variance,
            "cta_variance": it.cta_variance,
            "sm_ctas": it.ctas_per_sm.tolist(),
            "sm_work": it.busy.tolist(),
            "sm_imbalance": it.sm_imbalance,
        }
        for name, it in rows
    ]
