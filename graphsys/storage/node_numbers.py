"""The nodes of all types numbered one after the other, and the way back to their ids."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.errors import ConfigError, InvalidGraphError, UnknownNameError
from graphsys.core.types import number_dtype
from graphsys.graph.csr import read_only
from graphsys.storage.ids.mapped_gather import taken
from graphsys.storage.lookup import lookup_ids
from graphsys.storage.reader import GraphReader
from graphsys.storage.views import view_of


class NodeNumbers:
    """Which number each node has among those of all types, and its id.

    Types follow one another in the order of the manifest; inside a type the numbers are
    the store's.

    Args:
        ids: The ids of every type in the order of their numbers, by type.
        where: The graph, for messages.
        graph: The store that has their columns, or None.
        named: The same whose nodes go by names, which are asked and answered then.
    """

    def __init__(
        self,
        ids: Mapping[str, pa.ChunkedArray],
        where: str,
        graph: GraphReader | None = None,
        named: GraphReader | None = None,
    ) -> None:
        self.ids_by_type = dict(ids)
        self._named = named
        self.where = where
        self._graph = graph
        lengths = [len(known) for known in self.ids_by_type.values()]
        self._last: tuple[Any, str | None, int] | None = None  # programs ask twice
        self.bases = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    @classmethod
    def of(cls, graph: GraphReader) -> "NodeNumbers":
        """Number the nodes of a store."""
        plain = graph.by_ids()
        return cls(
            {kind: plain.node_ids(kind) for kind in graph.node_types},
            str(graph.path),
            plain,
            None if graph is plain else graph,
        )

    @classmethod
    def from_ids(cls, ids: Any, num_nodes: int) -> "NodeNumbers":
        """Number ``num_nodes`` nodes of one type; their ids are 0, 1, ... by default."""
        given = pa.array(np.arange(num_nodes, dtype=np.int64) if ids is None else ids)
        if len(given) != num_nodes:
            raise InvalidGraphError(f"{num_nodes} nodes need as many ids, got {len(given)}")
        if not pa.types.is_integer(given.type):
            given = given.cast(pa.large_string())
        if len(pc.unique(given)) != num_nodes:
            raise InvalidGraphError("every node needs an id of its own, but some repeat")
        return cls({"node": pa.chunked_array([given])}, "in memory")

    def column_types(self) -> dict[str, dict[str, str]]:
        """Return the Arrow types of the columns of each node type, as texts, by name."""
        if self._graph is None:
            return {}
        entries = self._graph.manifest.node_types
        return {kind: dict(entries[kind].columns) for kind in self.types}

    def columns(self, name: str) -> list[pa.ChunkedArray | None]:
        """Return a column of each node type, in order; None where a type has none."""
        graph, known = self._graph, self.column_types()
        return [
            graph.node_column(kind, name) if graph and name in known[kind] else None
            for kind in self.types
        ]

    @property
    def num_nodes(self) -> int:
        """Nodes of all types."""
        return int(self.bases[-1])

    @property
    def types(self) -> list[str]:
        """Names of the node types, in the order of their numbers."""
        return list(self.ids_by_type)

    def base(self, node_type: str) -> int:
        """Return the number of the first node of a type."""
        return int(self.bases[self.types.index(node_type)])

    def number(self, node: Any, node_type: str | None = None) -> int:
        """Return the number of a node.

        Args:
            node: Its id, as the user wrote it.
            node_type: Its type; may be left out where only one type has such an id.

        Raises:
            UnknownNameError: no such node.
            ConfigError: several types have that id, and none was named.
        """
        if self._last is not None and self._last[:2] == (node, node_type):
            return self._last[2]
        kinds = [node_type] if node_type else self.types
        found: list[tuple[str, int]] = []
        missing: UnknownNameError | None = None
        for kind in kinds:
            if kind not in self.ids_by_type:
                raise UnknownNameError(f"{self.where} has no node type {kind!r}")
            try:
                place = self._places(kind, node)
                found.append((kind, int(place[0]) + self.base(kind)))
            except UnknownNameError as err:
                missing = err
        if len(found) > 1:
            raise ConfigError(
                f"node {node!r} is in several types ({', '.join(k for k, _ in found)}); "
                "name one of them"
            )
        if not found:
            raise missing or UnknownNameError(f"node {node!r} is not in {self.where}")
        self._last = (node, node_type, found[0][1])
        return found[0][1]

    def _places(self, kind: str, node: Any) -> npt.NDArray[np.int64]:
        if self._named is not None:
            return self._named.lookup(kind, [node]).astype(np.int64)
        return lookup_ids(self.ids_by_type[kind], [node], f"{kind!r} of {self.where}")

    @cached_property
    def are_ordered(self) -> bool:
        """Whether :attr:`rank` is None, told without sorting; of strings always false."""
        return all(map(_ascends, self.ids_by_type.values()))

    @property
    def id_bytes(self) -> float:
        """Bytes of an id, the mean of all."""
        size = sum(ids.nbytes for ids in self.ids_by_type.values())
        return float(size / max(self.num_nodes, 1))

    @cached_property
    def rank(self) -> npt.NDArray[Any] | None:
        """Place of every node among all nodes sorted by type and id ``[N]``.

        Integer ids sort as numbers, strings by their bytes. None where the place is the
        number itself. The places depend on the user's ids alone, never on partitions or
        order: ties and priorities use them.
        """
        places = [_rank_of(ids) for ids in self.ids_by_type.values()]
        if all(place is None for place in places):
            return None
        rank = np.empty(self.num_nodes, dtype=number_dtype(self.num_nodes))
        spans = zip(self.bases[:-1].tolist(), self.bases[1:].tolist(), strict=True)
        for place, (low, high) in zip(places, spans, strict=True):
            rank[low:high] = np.arange(low, high) if place is None else place + low
        return read_only(rank)

    @cached_property
    def by_rank(self) -> npt.NDArray[Any] | None:
        """Number of the node at every place: the inverse of :attr:`rank`, or None."""
        if self.rank is None:
            return None
        numbers = np.empty_like(self.rank)
        numbers[self.rank] = np.arange(self.num_nodes, dtype=self.rank.dtype)
        return read_only(numbers)

    @cached_property
    def _all_ids(self) -> pa.ChunkedArray:
        """Ids in the order of the numbers: int64, or text where types differ in kind."""
        columns = list(self.ids_by_type.values())
        if self._named is not None:
            columns = [self._named.node_ids(kind) for kind in self.types]
        kinds = {column.type for column in columns}
        if len(kinds) > 1:
            columns = [column.cast(pa.large_string()) for column in columns]
        if not columns:
            return pa.chunked_array([pa.array([], type=pa.int64())])
        return pa.chunked_array(
            [chunk for column in columns for chunk in column.chunks], type=columns[0].type
        )

    def ids(self, numbers: npt.NDArray[Any] | None = None) -> pa.ChunkedArray:
        """Return the ids of nodes given by number, or of all nodes in order."""
        if numbers is None:
            return self._all_ids
        return pa.chunked_array([taken(self._all_ids, numbers)])

    def ids_at_ranks(self, ranks: npt.NDArray[Any]) -> pa.ChunkedArray:
        """Return the ids of nodes given by :attr:`rank`."""
        by_rank = self.by_rank
        return self.ids(ranks if by_rank is None else by_rank[ranks])

    def table(self, columns: Mapping[str, Any]) -> pa.Table:
        """Return results of all nodes keyed by their ids.

        Args:
            columns: Arrays ``[N]`` in the order of the numbers: numpy, numpy masked (a
                masked value becomes null) or Arrow.

        Returns:
            Columns ``id``, ``type`` where there are several node types, and the given ones.
        """
        named: dict[str, Any] = {"id": self.ids()}
        if len(self.types) > 1:
            lengths = np.diff(self.bases)
            codes = np.repeat(np.arange(len(self.types), dtype=np.int32), lengths)
            named["type"] = pa.DictionaryArray.from_arrays(codes, pa.array(self.types))
        named.update({name: _as_arrow(values) for name, values in columns.items()})
        return pa.table(named)


def _as_arrow(values: Any) -> Any:
    if isinstance(values, np.ma.MaskedArray):
        return pa.array(values.data, mask=np.ma.getmaskarray(values))
    return values


def _rank_of(ids: pa.ChunkedArray) -> npt.NDArray[np.int64] | None:
    if pa.types.is_integer(ids.type):
        values = view_of(ids.combine_chunks())
        if len(values) < 2 or bool(np.all(values[1:] > values[:-1])):
            return None
        order = np.argsort(values, kind="stable")
    else:
        order = view_of(pc.sort_indices(ids))
        if bool(np.all(order[1:] > order[:-1])):
            return None
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place


def _ascends(ids: pa.ChunkedArray) -> bool:
    """Whether integer ids are in order; strings are looked at as if they were not."""
    if not pa.types.is_integer(ids.type):
        return False
    last = None
    for chunk in ids.chunks:
        values = view_of(chunk)
        if not len(values):
            continue
        if last is not None and values[0] <= last:
            return False
        if not bool(np.all(values[1:] > values[:-1])):
            return False
        last = values[-1]
    return True
