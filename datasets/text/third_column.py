"""A third column that nobody named: is it a weight, or does it hold ids?"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.arrays import distinct
from graphsys.core.errors import InputError

_MIN_DISTINCT: Final = 32
_MIN_SHARE: Final = 0.9
_MAX_KEPT: Final = 1 << 19
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio


class ThirdColumnCheck:
    """Watches the blocks of a file whose third column was taken for the weight.

    Distinct values are kept exactly up to half a million, beyond that those whose hash
    begins with enough zeros (Gibbons, "Distinct sampling", VLDB 2001): memory is bounded.

    Args:
        where: File and line, for the message.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._is_open = True
        self._ids = _Sample()
        self._thirds = _Sample()

    def add(self, columns: dict[str, Any]) -> None:
        """Take in a block, ``src``, ``dst`` and ``weight`` ``[n]`` each."""
        weights = columns["weight"]
        if not self._is_open or not len(weights):
            return
        is_whole = (weights >= 0) & (weights < 2.0**53) & (np.rint(weights) == weights)
        if not is_whole.all():  # fractions are weights
            self._is_open = False
            return
        self._thirds.add(weights.astype(np.int64))
        for end in ("src", "dst"):
            self._ids.add(_integers(columns[end]))

    def check(self) -> None:
        """Refuse what looks like ids.

        Raises:
            InputError: more than 32 distinct values are all integers, nine tenths of which
                are ids of the first two columns.
        """
        if not self._is_open:
            return
        bits = max(self._ids.bits, self._thirds.bits)
        thirds = self._thirds.at(bits)
        num_distinct = len(thirds) << bits
        if num_distinct <= _MIN_DISTINCT or not len(thirds):
            return
        num_ids = int(np.isin(thirds, self._ids.at(bits)).sum())
        if num_ids < _MIN_SHARE * len(thirds):
            return
        share = f"{num_ids} of its {len(thirds)} distinct values are"
        raise InputError(
            f"{self._where}: the third column may be a weight or an id: {share} ids of the "
            "first two, too; say which: --columns src,dst,weight (or src,dst,time), "
            "--columns relation,src,dst, or --format triples for src relation dst"
        )


class _Sample:
    """Distinct values whose hash ends in ``bits`` zeros."""

    def __init__(self) -> None:
        self.bits = 0
        self._values: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def add(self, values: npt.NDArray[np.int64]) -> None:
        found = distinct(np.concatenate([self._values, _hashed(values, self.bits)]))
        while len(found) > _MAX_KEPT:
            self.bits += 1
            found = _hashed(found, self.bits)
        self._values = found

    def at(self, bits: int) -> npt.NDArray[np.int64]:
        return _hashed(self._values, bits)


def _hashed(values: npt.NDArray[np.int64], bits: int) -> npt.NDArray[np.int64]:
    """Return the values whose hash begins with ``bits`` zeros."""
    if not bits:
        return values
    is_kept = (values.view(np.uint64) * _MIX) >> np.uint64(64 - bits) == 0
    kept: npt.NDArray[np.int64] = values[is_kept]
    return kept


def _integers(ids: Any) -> npt.NDArray[np.int64]:
    """Return ids as integers; of names, those that are digits."""
    if isinstance(ids, np.ndarray):
        return ids.astype(np.int64, copy=False)
    names = ids.dictionary.filter(
        pc.match_substring_regex(ids.dictionary, r"^[0-9]{1,18}$")
    )
    numbers: npt.NDArray[np.int64] = names.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return numbers
