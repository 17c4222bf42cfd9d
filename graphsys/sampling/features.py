"""Features of nodes, gathered from mapped columns into buffers that are reused."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from graphsys.core.arrays import distinct
from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.core.threads import ThreadTeam
from graphsys.kernels.cpu.rows.gathered_rows import first_outside, gather_rows
from graphsys.storage.reader import GraphReader

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
_ROWS_SHOWN = 5
_AT_A_TIME = 1 << 16
_LARGEST_STEP = 127.0  # of int8 rows that have a scale


class DenseFeatures(Protocol):
    """Rows of float32 of one node type, wherever they are; see :class:`FeatureTable`."""

    node_type: str
    num_nodes: int

    @property
    def dim(self) -> int:
        """Columns of all features."""

    def gather(
        self, nodes: Ints, out: Floats | None = None, team: ThreadTeam | None = None
    ) -> Floats:
        """Return the rows of nodes, float32 ``[n, dim]``."""

    def check(self, nodes: Ints, out: Floats | None) -> None:
        """Check nodes and a buffer for :meth:`gather`."""


@dataclass(frozen=True, kw_only=True)
class FeatureColumn:
    """One dense feature as it lies in the files of all partitions, and where in memory.

    Attributes:
        rows: Stored rows of each partition ``[k, d]``.
        places: Which of them each node has, uint32 ``[n]``; None where each has its own.
        addresses: Of ``rows`` and of ``places`` (0 for None), uint64 ``[P]`` each.
    """

    rows: list[npt.NDArray[Any]]
    places: list[npt.NDArray[np.uint32] | None]
    addresses: tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]

    @classmethod
    def of(cls, graph: GraphReader, node_type: str, name: str) -> "FeatureColumn":
        """Return a feature of a node type.

        Raises:
            ConfigError: It is a bag.
        """
        parts = range(graph.num_partitions(node_type))
        found: Any = [graph.feature_rows(node_type, part, name) for part in parts]
        if not all(isinstance(rows, np.ndarray) for rows, _ in found):
            raise ConfigError(
                f"feature {name!r} of node type {node_type!r} is a bag of numbers, "
                "expected an array"
            )
        rows, places = [rows for rows, _ in found], [places for _, places in found]
        return cls(
            rows=rows, places=places, addresses=(_addresses_of(rows), _addresses_of(places))
        )

    @property
    def dim(self) -> int:
        """Numbers of a row."""
        return int(self.rows[0].shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of a number."""
        return self.rows[0].dtype

    def are_odd(self, part: int, factor: float = 1.0) -> npt.NDArray[np.bool_]:
        """Return which nodes of a partition have a number that is not finite, times one.

        Stored rows are looked at once, however many nodes have them.
        """
        rows, places = self.rows[part], self.places[part]
        is_odd = np.zeros(len(rows), dtype=np.bool_)
        if self.dtype.kind == "f":
            for begin in range(0, len(rows), _AT_A_TIME):
                piece = slice(begin, begin + _AT_A_TIME)
                with np.errstate(over="ignore"):
                    is_odd[piece] = ~np.isfinite(rows[piece] * factor).all(axis=1)
        return is_odd if places is None else is_odd[places]


def _addresses_of(parts: Sequence[npt.NDArray[Any] | None]) -> npt.NDArray[np.uint64]:
    return np.array(
        [0 if part is None else part.ctypes.data for part in parts], dtype=np.uint64
    )


class FeatureTable:
    """The dense features of one node type, side by side, as float32.

    Nothing is copied before :meth:`gather`; the pages of mapped files belong to the page
    cache. Where a store keeps each distinct row once, nodes are led to it. float16 and int8
    columns are widened while gathering; int8 rows are multiplied
    by their scale where the feature has a companion ``NAME_scale`` (float32 of one column;
    see ``quantize``), which is then no feature of its own.

    Args:
        graph: An open graph.
        node_type: The node type.
        names: Features, in the order of the columns; all dense ones by default.

    Raises:
        UnknownNameError: There is no such feature.
        ConfigError: A feature is a bag, or the type has no dense features.
    """

    def __init__(
        self, graph: GraphReader, node_type: str, names: Sequence[str] = ()
    ) -> None:
        self.node_type = node_type
        self.num_nodes = graph.num_nodes_of(node_type)
        self._offsets = graph.offsets(node_type)
        names = list(names) or [
            name
            for name in graph.feature_names(node_type)
            if _is_dense(graph, node_type, name)
        ]
        scales = _scales_of(graph, node_type)
        names = [name for name in names if name not in scales.values()]
        if not names:
            raise ConfigError(
                f"node type {node_type!r} of {graph.path} has no dense features; known: "
                f"{', '.join(graph.feature_names(node_type)) or 'none'}"
            )
        self.names = tuple(names)
        self._columns = [FeatureColumn.of(graph, node_type, name) for name in names]
        self._scales = [
            FeatureColumn.of(graph, node_type, scales[name]) if name in scales else None
            for name in names
        ]

    @property
    def dim(self) -> int:
        """Columns of all features."""
        return sum(self.dims.values())

    @property
    def dims(self) -> dict[str, int]:
        """Columns of every feature, in their order."""
        pairs = zip(self.names, self._columns, strict=True)
        return {name: column.dim for name, column in pairs}

    def find_odd(self, parts: Sequence[int] | None = None) -> tuple[int, list[int]]:
        """Return how many nodes have a number that is not finite, and the first of them.

        Args:
            parts: Partitions to look at; all by default.
        """
        count, first = 0, list[int]()
        for part in range(len(self._offsets) - 1) if parts is None else parts:
            offset = self._offsets[part]
            is_odd = np.zeros(int(self._offsets[part + 1] - offset), dtype=np.bool_)
            for column, scale in zip(self._columns, self._scales, strict=True):
                is_odd |= column.are_odd(part)
                if scale is not None:
                    is_odd |= scale.are_odd(part, _LARGEST_STEP)
            found = np.flatnonzero(is_odd)
            count += len(found)
            first += (found[: _ROWS_SHOWN - len(first)] + offset).tolist()
        return count, first

    def gather(
        self, nodes: Ints, out: Floats | None = None, team: ThreadTeam | None = None
    ) -> Floats:
        """Return the rows of nodes, float32 ``[n, dim]``.

        Args:
            nodes: Numbers of nodes ``[n]``.
            out: Where to write them, C-contiguous with at least n rows; a fresh array by
                default (which costs 1.4 to 4 times as much: its pages are new).
            team: Threads; the calling one alone by default.

        Raises:
            UnknownNameError: A node is not in the graph.
            ConfigError: ``out`` does not fit.
        """
        nodes = np.ascontiguousarray(nodes, dtype=np.int64)
        self.check(nodes, out)
        result = (
            np.empty((len(nodes), self.dim), np.float32)
            if out is None
            else out[: len(nodes)]
        )
        begin = 0
        for column, scale in zip(self._columns, self._scales, strict=True):
            target = result[:, begin : begin + column.dim]
            is_float = column.dtype == np.float32
            own = target if is_float else np.empty(target.shape, column.dtype)
            self._copy(column, nodes, own, team)
            if scale is not None:
                factors = np.empty((len(nodes), 1), dtype=np.float32)
                self._copy(scale, nodes, factors, team)
                np.multiply(own, factors, out=target)
            elif own is not target:
                target[:] = own
            begin += column.dim
        return result

    def _copy(
        self,
        column: FeatureColumn,
        nodes: Ints,
        target: npt.NDArray[Any],
        team: ThreadTeam | None,
    ) -> None:
        arguments = (
            self._offsets,
            *column.addresses,
            target.shape[1] * target.itemsize,
            nodes,
            np.uint64(target.ctypes.data),
            target.strides[0],
            np.zeros(1, np.int64),
        )
        if team is None:
            gather_rows(0, *arguments)
        else:
            team.run(gather_rows, *arguments)

    def check(self, nodes: Ints, out: Floats | None) -> None:
        """Check nodes and a buffer for :meth:`gather`.

        Raises:
            UnknownNameError: A node is not in the graph.
            ConfigError: ``out`` does not fit.
        """
        _require_inside(nodes, self.num_nodes, self.node_type)
        if out is None:
            return
        is_fit = out.ndim == 2 and out.dtype == np.float32 and out.flags.c_contiguous
        if not is_fit or len(out) < len(nodes) or out.shape[1] != self.dim:
            raise ConfigError(
                f"out is {out.dtype} {list(out.shape)}, expected contiguous float32 of at "
                f"least [{len(nodes)}, {self.dim}]"
            )


class BagTable:
    """A bag feature of one node type: lists of numbers, such as the words of a text.

    Args:
        graph: An open graph.
        node_type: The node type.
        name: The feature.

    Raises:
        UnknownNameError: There is no such feature.
        ConfigError: It is no bag.

    Attributes:
        size: The largest number and one more; 0 if all bags are empty.
    """

    def __init__(self, graph: GraphReader, node_type: str, name: str) -> None:
        self.node_type, self.name = node_type, name
        self.num_nodes = graph.num_nodes_of(node_type)
        self._offsets = graph.offsets(node_type)
        self._begins: list[npt.NDArray[Any]] = []
        self._values: list[npt.NDArray[Any]] = []
        for part in range(graph.num_partitions(node_type)):
            column: Any = graph.features(node_type, part, name)
            if isinstance(column, np.ndarray):
                raise ConfigError(
                    f"feature {name!r} of node type {node_type!r} is an array of numbers, "
                    "expected bags"
                )
            self._begins.append(column.offsets.to_numpy())
            self._values.append(column.values.to_numpy())
        self.size = 1 + max((int(v.max()) for v in self._values if len(v)), default=-1)

    def gather(self, nodes: Ints) -> tuple[Ints, Ints]:
        """Return the bags of nodes one after the other.

        Returns:
            Numbers, int64 ``[E]``, and where each bag begins, int64 ``[n]``.

        Raises:
            UnknownNameError: A node is not in the graph.
        """
        nodes = np.ascontiguousarray(nodes, dtype=np.int64)
        _require_inside(nodes, self.num_nodes, self.node_type)
        parts = np.searchsorted(self._offsets, nodes, side="right") - 1
        local = nodes - self._offsets[parts]
        lengths = np.zeros(len(nodes), dtype=np.int64)
        first = np.zeros(len(nodes), dtype=np.int64)
        for part in distinct(parts):
            chosen = parts == part
            begins = self._begins[part]
            first[chosen] = begins[local[chosen]]
            lengths[chosen] = begins[local[chosen] + 1] - first[chosen]
        ends = np.cumsum(lengths)
        place = np.arange(int(lengths.sum())) + np.repeat(first - (ends - lengths), lengths)
        values = np.empty(len(place), dtype=np.int64)
        part_of = np.repeat(parts, lengths)
        for part in distinct(parts):
            chosen = part_of == part
            values[chosen] = self._values[part][place[chosen]]
        return values, ends - lengths


def _require_inside(nodes: Ints, num_nodes: int, node_type: str) -> None:
    outside = first_outside(nodes, num_nodes)
    if outside >= 0:
        raise UnknownNameError(
            f"node {nodes[outside]} is not in the graph, which has {num_nodes} nodes of "
            f"type {node_type!r}"
        )


def _scales_of(graph: GraphReader, node_type: str) -> dict[str, str]:
    """Return the companions of int8 features that hold their rows' scales."""
    entries = graph.manifest.node_types[node_type].features
    wanted = {"dim": 1, "dtype": "float32"}
    return {
        name: f"{name}_scale"
        for name, entry in entries.items()
        if entry["dtype"] == "int8" and entries.get(f"{name}_scale") == wanted
    }


def _is_dense(graph: GraphReader, node_type: str, name: str) -> bool:
    return bool(graph.manifest.node_types[node_type].features[name]["dim"])
