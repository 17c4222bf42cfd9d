"""Runs the SIMT model on the rows of every superstep, as they are offered, and adds up."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.analysis.model.degrees import DegreeTotals, degrees_of
from graphsys.analysis.model.devices import Gpu
from graphsys.analysis.model.sectors import LoadRequests, requests_of, sampled_requests
from graphsys.analysis.model.simt import (
    MAPPINGS,
    SimtLaunch,
    place,
    resident_ctas,
    walk,
    walk_by_entry,
)
from graphsys.analysis.model.totals import Mapped, MappingTotals
from graphsys.analysis.model.transfers import PAGE_BYTES
from graphsys.core.events import count
from graphsys.core.row_trace import RowVisit
from graphsys.engine.cuda.strategy import choose, predicted_work

AUTO = "auto"
"""What ``graphsys run --device cuda`` would choose, launch by launch."""
_CHOICES = ("thread", "warp", "block", "twc")
PREPARING = ("sampling", "gather")
"""Parts that make batches ready, in threads ahead of the work."""
_CACHED = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSummary:
    """What the per-superstep table shows of one launch over rows.

    Attributes:
        kind: ``pull`` or ``push``.
        part: Which part of a training it is, or empty.
        rows: Rows of the list.
        entries: Entries visited.
        chosen: The mapping that a device took, or would.
        utilization: Share of lanes at work, by mapping.
        steps: Steps of all warps, by mapping.
        active: Lanes at work in them, by mapping.
        sm_most: Work of the busiest SM, by the mapping chosen.
        sm_mean: Work of the mean SM.
        degrees: Lanes at work by the lengths of the rows.
    """

    kind: str
    part: str
    rows: int
    entries: int
    chosen: str
    utilization: dict[str, float | None]
    steps: dict[str, int]
    active: dict[str, int]
    sm_most: float
    sm_mean: float
    degrees: DegreeTotals


@dataclass(slots=True, kw_only=True)
class PartTotals:
    """What the launches of one part of a training do.

    Attributes:
        totals: By the mapping chosen for each launch.
        is_exact: Whether all rows had the lengths that the run visits.
        entries: Entries visited.
        reasons: Why some rows' addresses were not at hand.
    """

    totals: MappingTotals
    is_exact: bool = True
    entries: int = 0
    reasons: list[str] = field(default_factory=list)


class RowModel:
    """Models every launch over rows that a run offers.

    Args:
        gpu: The GPU.
        shape: How kernels are launched.
        sampled_sms: SMs whose requests stand for all in large launches; 0: all are counted.

    Attributes:
        totals: By mapping, and under ``auto`` by the one chosen for each launch.
        parts: Totals of the parts of a training, by their names.
        launches: A summary of each launch, in order.
        degrees: Lanes at work by the lengths of rows, of all launches.
        is_exact: Whether all rows had the lengths that the run visits.
        row_bytes: Bytes of the rows that were at hand, each counted once.
        new_row_bytes: Of them, those of arrays that each launch was the first to touch.
        new_pages: Pages of rows that each launch was the first to touch.
        num_rows: Rows of the longest list: the nodes, where a superstep takes all.
        value_bytes: Size of what is read at a neighbor.
        reasons: Why some rows' neighbors were not at hand.
        samples: Requests of each SM that was looked at, in sampled launches, by mapping.
    """

    def __init__(
        self,
        gpu: Gpu,
        shape: SimtLaunch = SimtLaunch(),  # noqa: B008  (frozen)
        sampled_sms: int = 0,
    ) -> None:
        self.gpu, self.shape = gpu, shape
        self.sampled_sms = min(sampled_sms, gpu.num_sms)
        self.samples: list[dict[str, LoadRequests]] = [{} for _ in range(self.sampled_sms)]
        self.resident = resident_ctas(gpu, shape)
        self.totals = {name: self._nothing() for name in (AUTO, *MAPPINGS)}
        self.parts: dict[str, PartTotals] = {}
        self.launches: list[LaunchSummary] = []
        self.degrees = DegreeTotals()
        self.is_exact = True
        self.row_bytes = 0
        self.new_row_bytes: list[int] = []
        self.new_pages: list[int] = []
        self.num_rows = self.value_bytes = 0
        self.reasons: list[str] = []
        self._known: dict[Any, tuple[Any, dict[str, Mapped], LaunchSummary]] = {}
        self._held: dict[int, tuple[Any, npt.NDArray[np.bool_]]] = {}
        self._lock = Lock()  # batches are made in threads

    def __call__(self, visits: Iterable[RowVisit]) -> None:
        """Model launches; emit ``rows`` with the entries that each visits.

        What prepares batches ahead belongs to no superstep: ``prepared_rows``.
        """
        with self._lock:
            for visit in visits:
                self._add(visit)

    def _add(self, visit: RowVisit) -> None:
        before = self.row_bytes
        self.new_pages.append(self._touch(visit))
        self.new_row_bytes.append(self.row_bytes - before)
        found, summary = self._modelled(visit)
        for name, mapped in found.items():
            self.totals[name].add(mapped)
        self.totals[AUTO].add(found[summary.chosen])
        self.degrees.add(summary.degrees)
        self.is_exact &= visit.is_exact
        if visit.part:
            self._add_part(visit, found[summary.chosen], summary.entries)
        else:
            self.num_rows = max(self.num_rows, summary.rows)
            self.value_bytes = max(self.value_bytes, visit.value_bytes)
        if visit.reason and visit.reason not in self.reasons:
            self.reasons.append(visit.reason)
        name = "prepared_rows" if visit.part in PREPARING else "rows"
        count(name, summary.entries, launch=len(self.launches))
        self.launches.append(summary)

    def _add_part(self, visit: RowVisit, mapped: Mapped, entries: int) -> None:
        own = self.parts.setdefault(visit.part, PartTotals(totals=self._nothing()))
        own.totals.add(mapped)
        own.is_exact &= visit.is_exact
        own.entries += entries
        if visit.reason and visit.reason not in own.reasons:
            own.reasons.append(visit.reason)

    def _nothing(self) -> MappingTotals:
        sms = self.gpu.num_sms
        return MappingTotals(ctas_per_sm=np.zeros(sms, dtype=np.int64), busy=np.zeros(sms))

    def _modelled(self, visit: RowVisit) -> tuple[dict[str, Mapped], LaunchSummary]:
        """Return a launch by every mapping; the same rows again are not modelled again."""
        if visit.key is not None and visit.key in self._known:
            return self._known[visit.key][1:]
        requests, is_sampled = self._requests(visit)
        found = {
            name: self._map(visit, name, requests.get(name), is_sampled)
            for name in MAPPINGS
        }
        lengths = np.asarray(visit.lengths, dtype=np.int64)
        chosen = visit.mapping
        if not chosen:
            chosen = choose(predicted_work(visit.steps, self.shape.threads), _CHOICES)
        busy = found[chosen].greedy.busy
        summary = LaunchSummary(
            kind=visit.kind,
            part=visit.part,
            rows=len(lengths),
            entries=int(lengths.sum()),
            chosen=chosen,
            sm_most=float(busy.max()),
            sm_mean=float(busy.mean()),
            degrees=degrees_of(
                lengths, visit.steps, chosen, visit.width if visit.by_entry else 0
            ),
            utilization={name: it.walk.utilization for name, it in found.items()},
            steps={name: it.walk.steps for name, it in found.items()},
            active={name: it.walk.active for name, it in found.items()},
        )
        if visit.key is not None and len(self._known) < _CACHED:
            # the key holds addresses of arrays: keep them, so that none is used twice
            self._known[visit.key] = (visit, found, summary)
        return found, summary

    def _requests(self, visit: RowVisit) -> tuple[dict[str, LoadRequests], bool]:
        """Return a launch's requests by mapping, and whether they are those of some SMs."""
        sampled = None
        if self.sampled_sms:
            sampled = sampled_requests(
                visit, self.gpu.num_sms, self.sampled_sms, self.shape.threads
            )
        if sampled is None:
            return requests_of(visit, self.shape.threads), False
        factor, by_sm = sampled
        sums: dict[str, LoadRequests] = {}
        for kept, own in zip(self.samples, by_sm, strict=True):
            for name, it in own.items():
                kept[name] = kept[name] + it if name in kept else it
                sums[name] = sums[name] + it if name in sums else it
        return {name: it.scaled(factor) for name, it in sums.items()}, True

    def sampling_error(self, mapping: str = "thread") -> float | None:
        """Return the standard error of sectors per request for values, relative.

        By how the SMs that were looked at differ, in the launches that were sampled.
        """
        rates = [
            own[mapping].value_sectors / own[mapping].requests
            for own in self.samples
            if mapping in own and own[mapping].requests
        ]
        if len(rates) < 2:
            return None
        left = 1 - len(rates) / self.gpu.num_sms
        error = float(np.std(rates, ddof=1)) * math.sqrt(left / len(rates))
        return error / float(np.mean(rates))

    def _map(
        self, visit: RowVisit, mapping: str, requests: LoadRequests | None, is_sampled: bool
    ) -> Mapped:
        if visit.by_entry and mapping == "warp":
            walked = walk_by_entry(visit.lengths, visit.width, self.shape)
        else:
            walked = walk(visit.steps, mapping, self.shape)
        times = walked.cta_times
        return Mapped(
            walk=walked,
            greedy=place(times, self.gpu, resident=self.resident),
            static=place(times, self.gpu, resident=self.resident, policy="static"),
            requests=requests,
            is_sampled=is_sampled,
        )

    def _touch(self, visit: RowVisit) -> int:
        """Count the bytes of neighbors that a GPU would need, once per array.

        Those of batches come anew with each.

        Returns:
            Pages of neighbors that nobody has touched before.
        """
        if visit.indices is None or not visit.has_index_loads or visit.part:
            return 0
        if visit.key is not None and visit.key in self._known:
            return 0  # the same rows again
        size, name = visit.indices.nbytes, id(visit.indices)
        if name not in self._held:
            touched = np.zeros(-(-size // PAGE_BYTES), dtype=np.bool_)
            self._held[name] = visit.indices, touched
            self.row_bytes += size
        touched = self._held[name][1]
        if visit.starts is None or not len(touched):
            return 0
        lengths = np.asarray(visit.lengths, dtype=np.int64)
        starts = np.asarray(visit.starts, dtype=np.int64)[lengths > 0]
        width = visit.indices.itemsize
        ends = (starts + lengths[lengths > 0]) * width - 1
        # +1 where a row's pages begin, -1 behind them
        edges = np.bincount(starts * width // PAGE_BYTES, minlength=len(touched) + 1)
        edges -= np.bincount(ends // PAGE_BYTES + 1, minlength=len(touched) + 1)
        now = np.cumsum(edges[:-1]) > 0
        count = int((now & ~touched).sum())
        touched |= now
        return count
