"""Caches: how many of a run's sectors an SM's L1, and the L2, would still hold.

A model: sizes are NVIDIA's, ways and latencies are assumed, sets are taken in turn and the
least recently used line goes. L1 is empty when a kernel begins, the L2 is not. Rows have a
thread each, or, where a GPU walked them, a warp. Stores of a node's own state are left out,
as the other models leave them out. See ``kernels/cpu/simt/caches.py``.

Some sets of all caches may stand for the others (R. E. Kessler, M. D. Hill, D. A. Wood, "A
comparison of trace-sampling techniques for multi-megabyte caches", IEEE Transactions on
Computers 43(6), 1994): every SM runs, and requests for the lines of the other sets are left
out. What the sets that are looked at do is what they do where all are; how far they differ
says how well they stand for all. Some SMs with their share of the L2 could be simulated
instead, but would say too little of what one SM finds in the L2 because another asked.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.analysis.metrics import Metric, measured
from graphsys.analysis.model.devices import WARP, Gpu
from graphsys.analysis.model.simt import SimtLaunch, resident_ctas
from graphsys.core.row_trace import RowVisit
from graphsys.kernels.cpu.simt import caches as kernels

LINE_BYTES = 128
ARRAYS = ("offsets", "indices", "states")
"""What is read: where rows begin, their neighbors, and what is known of those."""
_APART = 40
"""Log2 of the bytes between the places of two arrays."""
CLASSES = 32
"""Classes of sets, by the remainder of a line's number."""
SAMPLED_SETS = 8
"""Of them, those that are looked at where all would take long."""
_TABLES = 1 << 20
"""Place of the second table of values, beyond those of all neighbors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caches:
    """The caches of a GPU.

    Attributes:
        l1_bytes: Of an SM, where no shared memory is taken from it.
        l2_bytes: Of all SMs together.
        brings_lines: Whether a miss of the L1 brings a line, not a sector of it.
        l1_ways: Assumed, as all that follows.
        l2_ways: Lines of a set.
        latencies: Cycles until a value is there, from L1, L2 and memory.
    """

    l1_bytes: int
    l2_bytes: int
    brings_lines: bool = False
    l1_ways: int = 4
    l2_ways: int = 16
    latencies: tuple[int, int, int] = (33, 230, 600)


CACHES = {
    "H100 SXM": Caches(l1_bytes=256 << 10, l2_bytes=50 << 20),
    "H200": Caches(l1_bytes=256 << 10, l2_bytes=50 << 20),
    "A100": Caches(l1_bytes=192 << 10, l2_bytes=40 << 20),
    "Fermi M2050": Caches(
        l1_bytes=16 << 10, l2_bytes=768 << 10, brings_lines=True, latencies=(45, 250, 550)
    ),
}
"""By the GPU's name; sizes from NVIDIA's papers on the architectures."""


class CacheModel:
    """Runs every launch over rows that a run offers through the caches.

    Args:
        gpu: The GPU.
        caches: Its caches; those of :data:`CACHES` by default.
        sms: SMs that are simulated, evenly spread, with their share of the L2; all of them
            by default.
        shape: How kernels are launched.
        sampled_sets: Of :data:`CLASSES` classes of sets, how many are looked at, drawn
            once; 0 for all. Fewer where a cache has fewer sets.
        whole_up_to: Neighbors of the first launch's array up to which all sets are looked
            at nevertheless: few of them may lie in no set that was drawn.

    Attributes:
        tallies: Sums over all launches by SM, or by the class of sets where they are
            sampled, int64 ``[S, NUM_TALLIES, arrays]``.
        launches: How many were run.
    """

    def __init__(
        self,
        gpu: Gpu,
        caches: Caches | None = None,
        sms: int | None = None,
        shape: SimtLaunch = SimtLaunch(),  # noqa: B008  (frozen)
        sampled_sets: int = 0,
        whole_up_to: int = -1,
    ) -> None:
        self._whole_up_to = whole_up_to
        self.gpu, self.shape = gpu, shape
        self.caches = CACHES[gpu.name] if caches is None else caches
        self.sms = min(sms or gpu.num_sms, gpu.num_sms)
        self.launches = 0
        self._l1 = self._empty(self.caches.l1_bytes, self.caches.l1_ways, self.sms)
        share = self.caches.l2_bytes * self.sms // gpu.num_sms
        self._l2 = self._empty(share, self.caches.l2_ways, 1)[:, 0].copy()
        self._clock = np.zeros(1, dtype=np.int64)
        self._look_at(sampled_sets)
        self._places: dict[int, tuple[int, Any]] = {}
        self._tables: dict[tuple[str, int], int] = {}

    def _look_at(self, sampled_sets: int) -> None:
        """Begin to count in some classes of sets, or with 0 in all."""
        classes = math.gcd(CLASSES, self._l1.shape[2], self._l2.shape[1])
        self._slots = slots_of(classes, sampled_sets)
        is_sampled = len(self._slots) > 1
        rows = sampled_sets if is_sampled else self.sms
        self._share = rows / (classes if is_sampled else self.gpu.num_sms)
        self.tallies = np.zeros(
            (rows, kernels.NUM_TALLIES, kernels.NUM_ARRAYS), dtype=np.int64
        )

    @staticmethod
    def _empty(num_bytes: int, ways: int, count: int) -> npt.NDArray[np.int64]:
        sets = max(num_bytes // LINE_BYTES // ways, 1)
        state = np.zeros((3, count, sets, ways), dtype=np.int64)
        state[0] = -1
        return state

    def __call__(self, visits: Iterable[RowVisit]) -> None:
        """Run launches; those whose neighbors are not at hand are left out."""
        for visit in visits:
            self.run(visit)

    def run(self, visit: RowVisit) -> npt.NDArray[np.int64] | None:
        """Run a launch; return its own tallies, None where it was left out."""
        if visit.indices is None or visit.starts is None:
            return None
        if not self.launches and len(visit.indices) <= self._whole_up_to:
            self._look_at(0)
        own = np.zeros_like(self.tallies)
        lengths = visit.steps if visit.loads is None else visit.loads
        warps, places = self.shape.warps, resident_ctas(self.gpu, self.shape)
        self._l1[0] = -1  # kernels find the L1 empty; older stamps are given up first
        turns = np.zeros((2, self.sms), dtype=np.int64)
        turns[0] = np.arange(self.sms) * (self.gpu.num_sms // self.sms)
        kernels.run_caches(
            np.ascontiguousarray(visit.starts, dtype=np.int64),
            np.ascontiguousarray(lengths, dtype=np.int64),
            visit.indices,
            self._config(visit, warps, places * warps),
            self._slots,
            self._l1,
            self._l2,
            self._clock,
            np.zeros((self.sms, 4, places * warps), dtype=np.int64),
            turns,
            np.zeros((2, WARP), dtype=np.int64),
            self.gpu.num_sms,
            own,
        )
        self.tallies += own
        self.launches += 1
        return own

    def _config(self, visit: RowVisit, warps: int, places: int) -> npt.NDArray[np.int64]:
        assert visit.indices is not None  # run() looked
        config = np.zeros(kernels.NUM_CONFIG, dtype=np.int64)
        config[kernels.LANES] = WARP if visit.mapping in ("warp", "block") else 1
        config[kernels.WARPS], config[kernels.PLACES] = warps, places
        config[kernels.INDEX_SHIFT] = visit.indices.dtype.itemsize.bit_length() - 1
        config[kernels.VALUE_SHIFT] = visit.value_bytes.bit_length() - 1
        config[kernels.OFFSETS + 1] = self._place(visit.indices)
        config[kernels.OFFSETS + 2] = self._values(visit)
        config[kernels.WIDTH] = visit.width
        config[kernels.HAS_INDICES] = visit.has_index_loads
        config[kernels.IS_ATOMIC] = visit.kind == "push"
        config[kernels.UNIT] = 7 if self.caches.brings_lines else 5
        return config

    def _place(self, indices: npt.NDArray[Any]) -> int:
        """Return where an array begins; the same array begins there again."""
        address = indices.__array_interface__["data"][0]
        if address not in self._places:
            # kept, so that no other array gets its address
            self._places[address] = (len(self._places) + 2) << _APART, indices
        return self._places[address][0]

    def _values(self, visit: RowVisit) -> int:
        """Return where values begin: those of a part, as wide, are one array."""
        known = len(self._tables)
        found = self._tables.setdefault(
            (visit.part, visit.width), known and _TABLES + known
        )
        return (found or 1) << _APART

    def latency(self, own: npt.NDArray[np.int64] | None = None) -> float | None:
        """Return the cycles until a value of a node is there, mean over sectors.

        Args:
            own: Tallies of a launch; of all by default.
        """
        tallies = (self.tallies if own is None else own).sum(axis=0)[:, -1]
        asked, _, first, second, found = (int(it) for it in tallies)
        if not asked:
            return None
        near, middle, far = self.caches.latencies
        share = found / second if second else 0.0
        return (
            first * near + (asked - first) * (share * middle + (1 - share) * far)
        ) / asked

    def hit_rate(self, level: int, array: str = "") -> float | None:
        """Return hits over sectors asked for; None where none was.

        Args:
            level: 1 or 2.
            array: One of :data:`ARRAYS`; all together by default.
        """
        asked, hits = self._counts(level, array)
        return float(hits.sum() / asked.sum()) if asked.sum() else None

    def _counts(self, level: int, array: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return sectors asked for and hits by SM or class; atomics do not ask the L1."""
        ask, hit = (
            (kernels.L1_ASKED, kernels.L1_HITS)
            if level == 1
            else (kernels.L2_ACCESSES, kernels.L2_HITS)
        )
        which = slice(None) if not array else [ARRAYS.index(array)]
        asked, hits = (self.tallies[:, it, which].sum(axis=1) for it in (ask, hit))
        return asked, hits

    def sampling_error(self, level: int = 1, array: str = "") -> float | None:
        """Return the standard error of a hit rate, by how sets (or SMs) differ.

        That of a ratio of sums over clusters: W. G. Cochran, "Sampling techniques", 3rd
        edition, 1977, section 6.3. None where fewer than two were asked for anything.

        Args:
            level: 1 or 2.
            array: One of :data:`ARRAYS`; all together by default.
        """
        asked, hits = self._counts(level, array)
        if self._share == 1:
            return 0.0 if asked.any() else None
        if np.count_nonzero(asked) < 2:
            return None
        beyond = hits - asked * (hits.sum() / asked.sum())
        error = math.sqrt((1 - self._share) / len(asked)) * float(beyond.std(ddof=1))
        return error / float(asked.mean())


def slots_of(classes: int, sampled: int) -> npt.NDArray[np.int64]:
    """Return where requests of each class of sets are counted; -1: they are left out.

    Args:
        classes: How many there are.
        sampled: How many are drawn; 0, or no fewer than there are, for all.

    Returns:
        int64 ``[classes]``, or ``[1]`` where nothing is left out.
    """
    if not 0 < sampled < classes:
        return np.zeros(1, dtype=np.int64)
    # drawn: nodes and rows are often arranged by powers of two
    chosen = np.random.default_rng(0).permutation(classes)[:sampled]
    slots = np.full(classes, -1, dtype=np.int64)
    slots[np.sort(chosen)] = np.arange(sampled)
    return slots


def cache_metrics(model: CacheModel) -> list[Metric]:
    """Return hit rates by array, and how well the sets looked at stand for all."""
    found = [
        measured(
            f"l{level}_hit_rate{f'.{array}' if array else ''}",
            model.hit_rate(level, array),
            "share",
            source="model",
            exact=False,
            reason=f"nothing of it was asked of the L{level}",
        )
        for level in (1, 2)
        for array in ("", *ARRAYS)
    ]
    return [
        *found,
        *(
            measured(
                f"l{level}_hit_rate_error",
                model.sampling_error(level),
                "share",
                source="model",
                exact=False,
                reason=f"fewer than two of the sampled sets of the L{level} had work",
            )
            for level in (1, 2)
        ),
        measured(
            "value_latency",
            model.latency(),
            "cycles",
            source="model",
            exact=False,
            reason="no value was read",
        ),
    ]
