"""Memory requests of warps: sectors and lines per request, coalescing, conflicts."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.analysis.model.devices import WARP
from graphsys.analysis.model.simt import SUB_WARP_LANES, rows_by_length
from graphsys.core.row_trace import RowVisit
from graphsys.kernels.cpu.simt import sectors as kernels
from graphsys.kernels.cpu.simt import value_row_sectors as wide

SECTOR_BYTES = 32
LINE_BYTES = 128
_AT_A_TIME = 1 << 20
"""Entries whose places are written out at once."""
SAMPLED_FROM = 1 << 17
"""Rows from which on a launch is sampled, where sampling was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequests:
    """The loop's requests for ``indices`` and, as many, for ``x[indices]``.

    Attributes:
        requests: Requests of each kind.
        lanes: Lanes active in them.
        index_bytes: Bytes of the indices that those lanes want; of one that several columns
            of a row of values share, once a request.
        value_bytes: Bytes of the values that they want.
        index_sectors: Sectors that the requests for indices touch.
        index_lines: Their lines.
        value_sectors: Sectors that the requests for values touch.
        value_lines: Their lines.
        atomics: Additions to values, or to rows, by atomics.
        conflicts: Sum over requests of the most lanes at one address; 0 without atomics.
    """

    requests: int
    lanes: int
    index_bytes: int
    value_bytes: int
    index_sectors: int
    index_lines: int
    value_sectors: int
    value_lines: int
    atomics: int
    conflicts: int

    @property
    def index_efficiency(self) -> float | None:
        """Useful bytes over bytes moved for indices."""
        return _share(self.index_bytes, self.index_sectors * SECTOR_BYTES)

    @property
    def value_efficiency(self) -> float | None:
        """Bytes that lanes want over bytes moved for values; above 1 if lanes share one."""
        return _share(self.value_bytes, self.value_sectors * SECTOR_BYTES)

    def per_request(self, amount: int) -> float | None:
        """Return an amount divided by the requests; None without any."""
        return _share(amount, self.requests)

    def scaled(self, factor: float) -> "LoadRequests":
        """Return the same requests, so many times as many."""
        return LoadRequests(
            **{name: round(getattr(self, name) * factor) for name in self.__slots__}
        )

    def __add__(self, other: "LoadRequests") -> "LoadRequests":
        sums = {name: getattr(self, name) + getattr(other, name) for name in self.__slots__}
        return LoadRequests(**sums)


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def requests_of(visit: RowVisit, threads: int = 256) -> dict[str, LoadRequests]:
    """Count the requests of one launch over rows, by every mapping.

    A warp walks its row in the same chunks wherever it stands, so what warps do for short
    and for long rows is counted apart and serves ``warp``, ``block`` and ``twc``.

    Args:
        visit: The rows, with their neighbors.
        threads: Threads of a CTA, which bound the rows that TWC gives to a warp.

    Returns:
        By mapping; without ``merge-path``, whose requests depend on how it stages its tiles
        in shared memory. Empty where the neighbors are not at hand.
    """
    if visit.indices is None or visit.starts is None:
        return {}
    loads = visit.lengths if visit.loads is None else visit.loads
    lengths = np.ascontiguousarray(loads, dtype=np.int64)
    everyone = np.arange(len(lengths), dtype=np.int64)
    small, medium, large = rows_by_length(lengths * visit.width, threads)
    longer = _by_groups(visit, lengths, np.concatenate([medium, large]), WARP)
    by_warp = longer + _by_groups(visit, lengths, small, WARP)
    return {
        "thread": _by_groups(visit, lengths, everyone, 1),
        "sub-warp": _by_groups(visit, lengths, everyone, SUB_WARP_LANES),
        "warp": _by_entry(visit, lengths) if visit.by_entry else by_warp,
        "block": by_warp,
        "twc": longer + _by_groups(visit, lengths, small, 1),
        "edge": _by_edges(visit, lengths),
    }


def sampled_requests(
    visit: RowVisit, num_sms: int, sms: int, threads: int = 256
) -> tuple[float, list[dict[str, LoadRequests]]] | None:
    """Count the requests of those CTAs alone that some SMs get, a CTA being given in turn.

    Args:
        visit: The rows, with their neighbors.
        num_sms: SMs of the GPU.
        sms: How many of them are looked at, evenly spread.
        threads: Rows of a CTA, a thread each.

    Returns:
        Entries of the launch over those of the SMs together, and what each of those asks
        for by mapping; None where the launch is so small that it is counted as it is.
    """
    rows = len(visit.lengths)
    if visit.starts is None or rows < threads * num_sms or rows < SAMPLED_FROM:
        return None
    found, entries = [], 0
    for sm in np.arange(sms) * (num_sms // sms):
        ctas = np.arange(sm, -(-rows // threads), num_sms)
        own = (ctas[:, None] * threads + np.arange(threads)).ravel()
        own = own[own < rows]
        lengths = np.asarray(visit.lengths)[own]
        loads = None if visit.loads is None else np.asarray(visit.loads)[own]
        part = replace(
            visit, lengths=lengths, starts=visit.starts[own], loads=loads, key=None
        )
        entries += int(lengths.sum())
        found.append(requests_of(part, threads))
    if not entries or not found[0]:
        return None
    return int(np.asarray(visit.lengths).sum()) / entries, found


def _by_groups(
    visit: RowVisit, lengths: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], lanes: int
) -> LoadRequests:
    assert visit.indices is not None  # requests_of() checked
    assert visit.starts is not None
    tallies, scratch, shifts = _arrays(visit)
    starts, indices = visit.starts, visit.indices
    if visit.width > 1:
        sizes = _sizes(visit, shifts)
        if lanes == 1:
            wide.tally_wide_by_threads(
                starts, lengths, rows, indices, sizes, scratch, tallies
            )
        else:
            wide.tally_wide_by_groups(
                starts, lengths, rows, lanes, indices, sizes, scratch, tallies
            )
        return _requests(visit, tallies, has_atomics=False)
    order = np.zeros(WARP, dtype=np.int64)
    kernels.tally_by_groups(
        visit.starts,
        lengths,
        rows,
        lanes,
        visit.indices,
        shifts,
        visit.kind == "push",
        order,
        scratch,
        tallies,
    )
    return _requests(visit, tallies, has_atomics=visit.kind == "push")


def _by_entry(visit: RowVisit, lengths: npt.NDArray[np.int64]) -> LoadRequests:
    """Count the requests of warps that take one entry at a time: each a row of its own."""
    assert visit.starts is not None  # requests_of() checked
    ends = np.cumsum(lengths)
    first = np.asarray(visit.starts, dtype=np.int64) - (ends - lengths)
    found = _by_groups(visit, lengths, np.zeros(0, dtype=np.int64), WARP)
    num_entries = int(ends[-1]) if len(ends) else 0
    for begin in range(0, num_entries, _AT_A_TIME):
        entries = np.arange(begin, min(begin + _AT_A_TIME, num_entries))
        starts = first[np.searchsorted(ends, entries, side="right")] + entries
        ones = np.ones(len(entries), dtype=np.int64)
        alone = replace(visit, lengths=ones, starts=starts, key=None)
        found += _by_groups(alone, ones, np.arange(len(entries)), WARP)
    return found


def _by_edges(visit: RowVisit, lengths: npt.NDArray[np.int64]) -> LoadRequests:
    assert visit.indices is not None  # requests_of() checked
    assert visit.starts is not None
    tallies, scratch, shifts = _arrays(visit)
    if visit.width > 1:
        wide.tally_wide_by_edges(
            visit.starts, lengths, visit.indices, _sizes(visit, shifts), scratch, tallies
        )
        return _requests(visit, tallies, has_atomics=True)
    kernels.tally_by_edges(
        visit.starts, lengths, visit.indices, shifts, visit.kind == "push", scratch, tallies
    )
    return _requests(visit, tallies, has_atomics=True)


def _arrays(visit: RowVisit) -> tuple[npt.NDArray[np.int64], ...]:
    assert visit.indices is not None  # requests_of() checked
    sizes = (visit.indices.dtype.itemsize, visit.value_bytes)
    shifts = [(SECTOR_BYTES // size).bit_length() - 1 for size in sizes]
    tallies = np.zeros(kernels.NUM_TALLIES, dtype=np.int64)
    scratch = np.zeros((kernels.TABLES, 2 * WARP), dtype=np.int64)
    return tallies, scratch, np.array(shifts, dtype=np.int64)


def _sizes(visit: RowVisit, shifts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    assert visit.kind == "pull"  # nothing here scatters rows of values
    sizes = np.zeros(wide.NUM_SIZES, dtype=np.int64)
    sizes[wide.WIDTH], sizes[wide.VALUE_BYTES] = visit.width, visit.value_bytes
    sizes[wide.INDEX_SHIFT] = shifts[0]
    return sizes


def _requests(visit: RowVisit, tallies: Any, *, has_atomics: bool) -> LoadRequests:
    assert visit.indices is not None  # requests_of() checked
    if not visit.has_index_loads:
        tallies[[kernels.INDEX_SECTORS, kernels.INDEX_LINES]] = 0
    found = tallies.tolist()
    lanes = found[kernels.LANES]
    entries = found[kernels.ENTRIES] if visit.width > 1 else lanes
    return LoadRequests(
        requests=found[kernels.REQUESTS],
        lanes=lanes,
        index_bytes=entries * visit.indices.dtype.itemsize * visit.has_index_loads,
        value_bytes=lanes * visit.value_bytes,
        index_sectors=found[kernels.INDEX_SECTORS],
        index_lines=found[kernels.INDEX_LINES],
        value_sectors=found[kernels.VALUE_SECTORS],
        value_lines=found[kernels.VALUE_LINES],
        atomics=lanes if has_atomics else 0,
        conflicts=found[kernels.CONFLICTS] if has_atomics else 0,
    )
