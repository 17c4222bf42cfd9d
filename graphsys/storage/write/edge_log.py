"""The columns of the edges of one type, as they come from the source."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import InputError
from graphsys.core.types import EdgeType
from graphsys.storage.scratch import Scratch, Spool
from graphsys.storage.source import EdgeChunk
from graphsys.storage.write import times
from graphsys.storage.write.row_store import RowStore, as_arrow

_FLOAT32_EXACT = 2**24
_FLOAT64_EXACT = 2**53
_INT64_MAX = 2**63 - 1
_UINT64_MAX = 2**64 - 1


@dataclass(frozen=True, slots=True)
class EdgeRecord:
    """Where one chunk's columns went."""

    edge_type: EdgeType
    split: str
    length: int
    places: dict[str, int] = field(default_factory=dict)
    first_row: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """What a log knows of its chunks besides their columns; see :class:`EdgeLog`."""

    edge_type: EdgeType
    splits: dict[str, int]
    schema: frozenset[str] | None
    relation_names: list[str] | None
    time_unit: str
    has_unit: bool
    weights: "_WeightRange"


class EdgeLog:
    """Spills weight, time, relation and further columns, chunk by chunk.

    Args:
        edge_type: The edge type.
        scratch: Where the columns go.
        allows_nan: Whether weights may be NaN or infinite.
        time_unit: Unit of the times that are stored already; then integers are in it, too.

    Attributes:
        splits: Rows per split.
        relation_names: Relations in order of first appearance, or None.
        time_unit: That of the first times, which others are brought to; "" for none.
    """

    def __init__(
        self,
        edge_type: EdgeType,
        scratch: Scratch,
        *,
        allows_nan: bool = False,
        time_unit: str | None = None,
    ) -> None:
        self.edge_type = edge_type
        self.time_unit = time_unit or ""
        self._has_unit = self._is_appended = time_unit is not None
        self.splits: dict[str, int] = {}
        self.relation_names: list[str] | None = None
        self._scratch = scratch
        self._files: dict[str, Spool] = {}
        self._relation_codes: dict[str, int] = {}
        self._schema: frozenset[str] | None = None
        self._weights = _WeightRange(allows_nan)
        self.rows: RowStore | None = None

    def add(self, chunk: EdgeChunk) -> EdgeRecord:
        """Append the columns of a chunk.

        Raises:
            InputError: columns of different lengths, that come and go between chunks, or
                whose values are of the wrong kind.
        """
        self._check(chunk)
        length = len(chunk.src)
        self.splits[chunk.split] = self.splits.get(chunk.split, 0) + length
        places, further, first_row = {}, {}, 0
        for name, column in chunk.columns.items():
            if name in ("weight", "time", "relation"):
                places[name] = self._file(name).append(self._encode(name, column))
            else:
                further[name] = as_arrow(column)
        if further:
            if self.rows is None:
                self.rows = RowStore(self._scratch, "columns")
            first_row = self.rows.append(further)
        return EdgeRecord(self.edge_type, chunk.split, length, places, first_row)

    def dtypes(self, *, coalesce: bool) -> dict[str, np.dtype[Any]]:
        """Return the dtypes of the columns that travel with the edges."""
        dtypes: dict[str, np.dtype[Any]] = {}
        known = self._schema or frozenset()
        if "weight" in known:
            dtypes["weight"] = self._weights.dtype(sums=coalesce)
        if "time" in known:
            dtypes["time"] = np.dtype(np.int64)
        if self.relation_names is not None:
            wide = len(self.relation_names) > 2**16
            dtypes["relation"] = np.dtype(np.uint32 if wide else np.uint16)
        if self.rows is not None:
            dtypes["record"] = np.dtype(np.int64)
        return dtypes

    def raw(self, record: EdgeRecord) -> dict[str, npt.NDArray[Any]]:
        """Return the columns of a chunk as they wait here, once; see :meth:`final`."""
        found = {name: self._files[name].read(at) for name, at in record.places.items()}
        for name, place in record.places.items():
            self._files[name].drop(place)
        return found

    def state(self) -> "LogState":
        """Return what is known of all chunks so far."""
        return LogState(
            edge_type=self.edge_type,
            splits=dict(self.splits),
            schema=self._schema,
            relation_names=self.relation_names,
            time_unit=self.time_unit,
            has_unit=self._has_unit,
            weights=self._weights,
        )

    def absorb(self, state: "LogState") -> None:
        """Take chunks for added that another process has.

        Raises:
            InputError: they do not go with those before.
        """
        where = f"edge type {self.edge_type}"
        if self._schema is None:
            self._schema, self.time_unit = state.schema, state.time_unit
            self._has_unit = state.has_unit
        self._require_schema(state.schema or frozenset())
        if state.has_unit and self._has_unit and state.time_unit != self.time_unit:
            remedy = "which --cluster does not take; leave it out"
            if not (state.time_unit and self.time_unit):  # nobody brings these to one
                remedy = "give all as timestamps or all as integers"
            raise InputError(
                f"column 'time' of {where} is in {state.time_unit or 'no unit'} in some "
                f"files, and in {self.time_unit or 'no unit'} in others; {remedy}"
            )
        for split, length in state.splits.items():
            self.splits[split] = self.splits.get(split, 0) + length
        for name in state.relation_names or ():
            self.relation_names = self.relation_names or []
            if name not in self._relation_codes:
                self._relation_codes[name] = len(self.relation_names)
                self.relation_names.append(name)
        self._weights.absorb(state.weights, f"column 'weight' of {where}")

    def finish(self) -> None:
        """Sort the relations by name, so that codes do not depend on the edges' order."""
        if self.rows is not None:
            self.rows.finish()
        if self.relation_names is None:
            return
        order = sorted(range(len(self.relation_names)), key=self.relation_names.__getitem__)
        self._recode = np.empty(len(order), dtype=np.uint32)
        self._recode[order] = np.arange(len(order), dtype=np.uint32)
        self.relation_names = [self.relation_names[code] for code in order]

    def read(
        self, record: EdgeRecord, dtypes: dict[str, np.dtype[Any]]
    ) -> dict[str, npt.NDArray[Any]]:
        """Return the travelling columns of a chunk in their final dtypes, once."""
        out: dict[str, npt.NDArray[Any]] = {}
        for name, dtype in dtypes.items():
            if name == "record":
                out[name] = np.arange(record.first_row, record.first_row + record.length)
                continue
            values = self._files[name].read(record.places[name])
            self._files[name].drop(record.places[name])
            if name == "relation":
                values = self._recode[values]
            out[name] = values.astype(dtype, copy=False)
        return out

    def _file(self, name: str) -> Spool:
        if name not in self._files:
            self._files[name] = Spool(self._scratch, name)
        return self._files[name]

    def _check(self, chunk: EdgeChunk) -> None:
        where = f"edge type {self.edge_type}"
        if self._schema is None:
            self._schema = frozenset(chunk.columns)
        self._require_schema(frozenset(chunk.columns))
        for name, column in {"dst": chunk.dst, **chunk.columns}.items():
            if len(column) != len(chunk.src):
                raise InputError(
                    f"{where}: column {name!r} has {len(column)} rows, "
                    f"src has {len(chunk.src)}"
                )
        reserved = {"src", "dst", "edge", "record", "row", "neighbor"} & set(chunk.columns)
        if reserved:
            raise InputError(
                f"{where}: a column cannot be called {reserved.pop()!r}; rename it"
            )

    def _require_schema(self, found: frozenset[str]) -> None:
        odd = sorted((self._schema or frozenset()) ^ found)
        if odd:
            raise InputError(
                f"edge type {self.edge_type}: column {odd[0]!r} is in some of the input "
                "and not in the rest; give every file the same columns"
            )

    def _encode(self, name: str, column: Any) -> npt.NDArray[Any]:
        where = f"column {name!r} of edge type {self.edge_type}"
        if name == "relation":
            return self._encode_relation(as_arrow(column), where)
        arrow = as_arrow(column)
        if name == "time":
            return self._encode_times(arrow, where)
        if arrow.null_count:
            raise InputError(f"{where} has {arrow.null_count} missing values")
        values = np.asarray(arrow.to_numpy(zero_copy_only=False))
        if values.dtype.kind not in "iufb":
            raise InputError(f"{where} is {values.dtype}, expected numbers")
        return self._weights.add(values, where)

    def _encode_times(self, column: pa.Array, where: str) -> npt.NDArray[np.int64]:
        values, unit = times.whole(column, where)
        if not len(values):  # tells what there may be, and binds nobody
            self.time_unit = self.time_unit or unit
            return values
        if not self._has_unit:
            self.time_unit, self._has_unit = unit, True
        if unit or not self._is_appended:
            values = times.in_unit(values, unit, self.time_unit, where)
        return times.require_dates(values, self.time_unit, where)

    def _encode_relation(self, column: pa.Array, where: str) -> npt.NDArray[np.uint32]:
        if column.null_count:
            raise InputError(f"{where} has {column.null_count} missing values")
        if not pa.types.is_dictionary(column.type):
            column = column.cast(pa.string()).dictionary_encode()
        if self.relation_names is None:
            self.relation_names = []
        codes = np.empty(len(column.dictionary), dtype=np.uint32)
        indices = column.indices.to_numpy(zero_copy_only=False)
        used = np.bincount(indices, minlength=len(codes)) > 0
        for k, name in enumerate(column.dictionary.to_pylist()):
            if not used[k]:
                continue
            name = str(name)
            if name not in self._relation_codes:
                self._relation_codes[name] = len(self.relation_names)
                self.relation_names.append(name)
            codes[k] = self._relation_codes[name]
        recoded: npt.NDArray[np.uint32] = codes[indices]
        return recoded


class _WeightRange:
    """Finds the smallest dtype that holds all weights exactly.

    Chunks are kept as float64, or as 64-bit integers where they go beyond 2^53; then the
    whole column must be integers.
    """

    def __init__(self, allows_nan: bool) -> None:
        self._allows_nan = allows_nan
        self._has_wide = False
        self._fits_float32 = True
        self._is_whole = True
        self._low: float = 0
        self._high: float = 0
        self._sum = 0.0

    def add(self, values: npt.NDArray[Any], where: str) -> npt.NDArray[Any]:
        if values.dtype.kind in "iu" and len(values):
            low, high = int(values.min()), int(values.max())
            # Beyond 2**53 float64 skips integers: these wait as they are.
            if max(-low, high) > _FLOAT64_EXACT:
                self._has_wide = True
                self._span(low, high, where)
                return values.astype(np.uint64 if high > _INT64_MAX else np.int64)
        values = values.astype(np.float64)
        bad = np.flatnonzero(np.isnan(values))
        if not self._allows_nan and len(odd := np.flatnonzero(~np.isfinite(values))):
            raise InputError(
                f"{where} has {len(odd)} values that are not finite, the first "
                f"({values[odd[0]]}) in row {odd[0]}; expected finite numbers"
            )
        with np.errstate(over="ignore"):
            narrow = values.astype(np.float32)
            self._sum += float(np.abs(values).sum())
        wide = narrow.astype(np.float64)
        self._fits_float32 &= bool(np.array_equal(wide, values, equal_nan=True))
        self._is_whole &= bool(np.array_equal(np.rint(values), values))
        if len(bad) < len(values):
            self._span(float(np.nanmin(values)), float(np.nanmax(values)), where)
        return values

    def absorb(self, other: "_WeightRange", where: str) -> None:
        self._has_wide |= other._has_wide
        self._fits_float32 &= other._fits_float32
        self._is_whole &= other._is_whole
        self._sum += other._sum
        self._span(other._low, other._high, where)

    def _span(self, low: float, high: float, where: str) -> None:
        self._low, self._high = min(self._low, low), max(self._high, high)
        top = _INT64_MAX if self._low < 0 else _UINT64_MAX
        fits = self._low >= -_INT64_MAX - 1 and self._high <= top
        if self._has_wide and not (self._is_whole and fits):
            raise InputError(
                f"{where} mixes integers above 2^53 with other numbers, which no one type "
                "holds exactly; give all weights as floating point"
            )

    def dtype(self, *, sums: bool) -> np.dtype[Any]:
        if self._has_wide:
            return np.dtype(np.uint64 if self._high > _INT64_MAX else np.int64)
        if sums:
            exact = self._is_whole and self._sum <= _FLOAT32_EXACT
            return np.dtype(np.float32 if exact else np.float64)
        return np.dtype(np.float32 if self._fits_float32 else np.float64)
