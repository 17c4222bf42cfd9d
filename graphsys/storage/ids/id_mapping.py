"""From ids to numbers: distinct ids, their partitions, their order inside a partition."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.errors import ConfigError, InputError
from graphsys.core.types import number_dtype
from graphsys.graph.sort import stable_argsort
from graphsys.kernels.cpu import hashing
from graphsys.kernels.cpu.rows import ordering
from graphsys.partitioners import get_partitioner
from graphsys.storage.ids.integer_ids import IntegerIds
from graphsys.storage.ids.string_ids import StringIds, string_buffers, take_strings
from graphsys.storage.scratch import Scratch
from graphsys.storage.views import array_of

ORDERS: Final = ("auto", "degree", "original", "rabbit", "rcm")
_SKEW = 20
_LOCAL_SPREAD = 0.05
_SAMPLE_SIZE = 1 << 20
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What was found about the nodes of a type before they are numbered.

    Attributes:
        ids: Ids of all nodes, int64 or large_string ``[N]``.
        parts: Partition of each, uint32 ``[N]``, or None to ask the partitioner.
        ranks: Place of each in the order, uint64 ``[N]``, or None.
    """

    ids: pa.Array
    parts: npt.NDArray[np.uint32] | None = None
    ranks: npt.NDArray[np.uint64] | None = None


class NodeNumbering:
    """Collects the ids of one node type in a stream, and returns the stream as numbers.

    Args:
        node_type: Name of the type, for messages.
        scratch: Where everything is kept that does not fit the budget.

    Attributes:
        offsets: First number of every partition and the number of nodes, int64
            ``[P + 1]``, after :meth:`finish`.
        order: "degree", "original", "rabbit" or "rcm", after :meth:`finish`.
        id_type: Arrow type of the ids: "int64" or "large_string".
    """

    def __init__(self, node_type: str, scratch: Scratch) -> None:
        self.node_type = node_type
        self.offsets = np.zeros(2, dtype=np.int64)
        self.order = "original"
        self.id_type = "int64"
        self._scratch = scratch
        self._stream: IntegerIds | StringIds | None = None
        self._degrees: npt.NDArray[np.uint32] | None = None
        self._probe = _LocalityProbe()

    @property
    def num_nodes(self) -> int:
        """Number of distinct ids."""
        return int(self.offsets[-1])

    def add(self, ids: Any, *, weight: int) -> None:
        """Append a batch of ids.

        Args:
            ids: Integers or Arrow strings ``[n]`` (see ``source.Ids``).
            weight: 1 for ends of edges, 0 for node tables.

        Raises:
            InputError: nulls, negative ids, or integers and strings mixed in one type.
        """
        clean = clean_ids(ids, self.node_type)
        kind = IntegerIds if isinstance(clean, np.ndarray) else StringIds
        if self._stream is None:
            self._stream = kind(self._scratch)
            self.id_type = kind.id_type
        elif not isinstance(self._stream, kind):
            raise InputError(
                f"node type {self.node_type!r} has both integer and string ids; "
                "make them one kind, or pass --ids string"
            )
        self._stream.add(clean, weight)

    def use(self, stream: IntegerIds | StringIds) -> None:
        """Take a stream whose distinct ids were found elsewhere."""
        self._stream, self.id_type = stream, stream.id_type

    @property
    def numbers(self) -> npt.NDArray[Any]:
        """Number of each id by its code in the stream, after :meth:`finish`."""
        return self._numbers

    def sample(self, src: Any, dst: Any) -> None:
        """Keep some edges inside this type for the probe of locality."""
        if isinstance(src, np.ndarray) and isinstance(dst, np.ndarray):
            self._probe.add(src, dst)

    def finish(
        self,
        *,
        partitioner: str,
        num_partitions: int,
        order: str,
        seed: int,
        assigned: Assignment | None = None,
    ) -> None:
        """Number all nodes: by partition, then by degree or original order.

        Original order is ascending for integers and by first appearance for strings;
        it also breaks ties of degree. Partitions and ranks that were found beforehand
        come as ``assigned`` and replace the partitioner and the original order.

        Raises:
            ConfigError: an unknown order.
        """
        if order not in ORDERS:
            raise ConfigError(f"order: got {order!r}, expected one of {', '.join(ORDERS)}")
        if self._stream is None:
            self.offsets = np.zeros(num_partitions + 1, dtype=np.int64)
            self._by_number = np.empty(0, dtype=np.uint32)
            return
        self._stream.build()
        num_nodes = len(self._stream.degrees)
        places = None if assigned is None else self._places(assigned.ids)
        if assigned is None or assigned.parts is None:
            parts = self._partition(partitioner, num_partitions, seed)
        else:
            parts = assigned.parts[places]
        ranks = None
        if assigned is not None and assigned.ranks is not None:
            ranks = assigned.ranks[places]
        counts = _count_parts(parts, num_partitions)
        self.offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        self.order = self._choose_order() if order == "auto" else order
        self._by_number = self._sort(parts, num_partitions, ranks)
        dtype = number_dtype(num_nodes)
        self._numbers = self._scratch.array(num_nodes, dtype)
        ordering.invert(self._by_number, self._numbers)

    def batches(self) -> Iterator[npt.NDArray[Any]]:
        """Yield the batches of :meth:`add`, in the same order, as numbers."""
        return iter(()) if self._stream is None else self._stream.numbers(self._numbers)

    def ids(self, part: int) -> pa.Array:
        """Return the ids of a partition in the order of their numbers."""
        codes = self._by_number[self.offsets[part] : self.offsets[part + 1]]
        if self._stream is None:
            return pa.array([], type=pa.int64())
        if isinstance(self._stream, IntegerIds):
            return array_of(self._taken(self._stream.known, codes))
        data, offsets = take_strings(
            codes, self._stream.offsets, self._stream.data, self._scratch
        )
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_string(), len(codes), buffers)

    def degrees(self) -> npt.NDArray[np.uint32]:
        """Return the degrees by number, in and out together, uint32 ``[N]``."""
        if self._stream is None:
            return np.empty(0, dtype=np.uint32)
        if self._degrees is None:
            self._degrees = self._taken(self._stream.degrees, self._by_number)
        return self._degrees

    def release(self) -> None:
        """Give up ids, degrees and numbers; offsets and counts stay."""
        self._stream = self._degrees = None
        self._by_number = self._numbers = np.empty(0, dtype=np.uint32)

    def _taken(
        self, values: npt.NDArray[Any], places: npt.NDArray[Any]
    ) -> npt.NDArray[Any]:
        """Return ``values[places]``, in scratch; places a piece at a time: they widen."""
        found = self._scratch.array(len(places), values.dtype)
        for begin in range(0, len(places), _PIECE):
            piece = slice(begin, begin + _PIECE)
            # every place is one: mode "clip" spares a copy of the result
            np.take(values, places[piece], out=found[piece], mode="clip")
        return found

    def _partition(
        self, name: str, num_partitions: int, seed: int
    ) -> npt.NDArray[np.uint32]:
        assign = get_partitioner(name)
        stream = self._stream
        assert stream is not None
        if num_partitions == 1:
            return self._scratch.zeros(len(stream.degrees), np.uint32)
        if isinstance(stream, IntegerIds):
            hashes = self._scratch.array(len(stream.known), np.uint64)
            hashing.hash_integers(stream.known, hashes)
            rank = stream.known.view(np.uint64)
        else:
            hashes = self._scratch.array(len(stream.degrees), np.uint64)
            hashing.hash_strings(stream.offsets, stream.data, hashes)
            rank = stream.first
        parts = self._scratch.array(len(hashes), np.uint32)
        parts[:] = assign(hashes, rank, num_partitions, seed)
        return parts

    def _places(self, ids: pa.Array) -> npt.NDArray[Any]:
        """Return where each code's id stands among ``ids``.

        Found by sorting, 24 bytes a node: Arrow's table of hashes takes 200.
        """
        stream = self._stream
        if isinstance(stream, IntegerIds):
            places = _places_among(stream.known, ids.to_numpy())
            assert places is not None  # ids are distinct
            return places
        assert stream is not None
        known = np.empty(len(stream.degrees), dtype=np.uint64)
        hashing.hash_strings(stream.offsets, stream.data, known)
        given = np.empty(len(ids), dtype=np.uint64)
        hashing.hash_strings(*string_buffers(ids), given)
        places = _places_among(known, given)
        if places is not None:
            return places
        buffers = [None, pa.py_buffer(stream.offsets), pa.py_buffer(stream.data)]
        strings = pa.Array.from_buffers(pa.large_string(), len(known), buffers)
        found: npt.NDArray[Any] = pc.index_in(strings, value_set=ids).to_numpy()
        return found

    def _choose_order(self) -> str:
        assert self._stream is not None
        degrees = self._stream.degrees
        if not len(degrees) or degrees.max() <= _SKEW * degrees.mean():
            return "original"
        is_integer = isinstance(self._stream, IntegerIds)
        known = self._stream.known if isinstance(self._stream, IntegerIds) else None
        is_local = is_integer and self._probe.is_local(known)
        return "original" if is_local else "degree"

    def _sort(
        self,
        parts: npt.NDArray[np.uint32],
        num_partitions: int,
        ranks: npt.NDArray[np.uint64] | None,
    ) -> npt.NDArray[Any]:
        """Return the codes in the order of their numbers."""
        stream, num_nodes = self._stream, len(parts)
        assert stream is not None
        if ranks is None and isinstance(stream, StringIds):
            ranks = stream.first
        elif ranks is None and isinstance(stream, IntegerIds) and not stream.is_sorted:
            ranks = stream.known.view(np.uint64)
        by_rank = None if ranks is None else stable_argsort(ranks, self._scratch.array)
        by_degree = self.order == "degree"
        if by_rank is not None and not by_degree and num_partitions == 1:
            return by_rank
        keys = self._scratch.array(num_nodes, np.uint64)
        largest = int(stream.degrees.max(initial=0))
        ordering.number_keys(
            parts,
            stream.degrees if by_degree else np.empty(0, dtype=np.uint32),
            largest,
            largest.bit_length(),
            np.empty(0, dtype=np.uint32) if by_rank is None else by_rank,
            keys,
        )
        order = stable_argsort(keys, self._scratch.array)
        if by_rank is None:
            return order
        return self._taken(by_rank, order)


class _LocalityProbe:
    """About a million edges, evenly from the whole stream, as pairs of ids.

    Ids are local when the ends of an edge mostly lie within a twentieth of all nodes of
    each other; for random labels the median distance is three tenths.
    """

    def __init__(self) -> None:
        self._step = 1
        self._pairs: list[npt.NDArray[np.int64]] = []
        self._size = 0

    def add(self, src: npt.NDArray[Any], dst: npt.NDArray[Any]) -> None:
        """Keep every ``step``-th edge; halve what is kept when it grows too large."""
        if self._size - (-len(src) // self._step) > _SAMPLE_SIZE:
            self._pairs = [pairs[:, ::2].copy() for pairs in self._pairs]
            self._step *= 2
        # a chunk of short lines has millions of edges: only what is kept is copied
        kept = np.empty((2, -(-len(src) // self._step)), dtype=np.int64)
        for row, ids in zip(kept, (src, dst), strict=True):
            row[:] = ids[:: self._step]
        self._pairs.append(kept)
        self._size = sum(pairs.shape[1] for pairs in self._pairs)

    def is_local(self, known: npt.NDArray[np.int64] | None) -> bool:
        """Return whether the median distance, in ranks of ids, is small."""
        if not self._size or known is None:
            return False
        step = max(len(known) // (1 << 16), 1)
        ladder = np.sort(known[::step])
        ranks = np.searchsorted(ladder, np.concatenate(self._pairs, axis=1))
        distances = np.abs(ranks[0] - ranks[1])
        return bool(np.median(distances) < _LOCAL_SPREAD * len(ladder))


def _places_among(
    keys: npt.NDArray[Any], given: npt.NDArray[Any]
) -> npt.NDArray[np.int64] | None:
    """Return where each key stands among given ones; None if two of those are equal."""
    order = np.argsort(given)
    ascending = given[order]
    if (ascending[1:] == ascending[:-1]).any():
        return None
    places = np.empty(len(keys), dtype=np.int64)
    for begin in range(0, len(keys), _PIECE):
        piece = slice(begin, begin + _PIECE)
        places[piece] = order[np.searchsorted(ascending, keys[piece])]
    return places


def _count_parts(
    parts: npt.NDArray[np.uint32], num_partitions: int
) -> npt.NDArray[np.int64]:
    """Return the nodes of each partition; a piece at a time, which NumPy makes wider."""
    counts = np.zeros(num_partitions, dtype=np.int64)
    for begin in range(0, len(parts), _PIECE):
        counts += np.bincount(parts[begin : begin + _PIECE], minlength=num_partitions)
    return counts


def clean_ids(ids: Any, node_type: str) -> npt.NDArray[Any] | pa.DictionaryArray:
    """Return integers as numpy, strings as a dictionary of ``large_string``."""
    if isinstance(ids, np.ndarray):
        if not np.issubdtype(ids.dtype, np.integer):
            raise InputError(
                f"ids of node type {node_type!r} are {ids.dtype}, expected integers or "
                "strings"
            )
        if len(ids) and np.issubdtype(ids.dtype, np.signedinteger) and ids.min() < 0:
            raise InputError(
                f"node type {node_type!r} has the negative id {ids.min()}; "
                "ids are 0 to 2^63-1, or strings (--ids string)"
            )
        if ids.dtype == np.uint64 and len(ids) and ids.max() > np.iinfo(np.int64).max:
            raise InputError(
                f"node type {node_type!r} has the id {ids.max()}, above 2^63-1"
            )
        return ids
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks()
    if ids.null_count:
        raise InputError(f"node type {node_type!r} has {ids.null_count} missing ids")
    if pa.types.is_integer(ids.type):
        return clean_ids(ids.to_numpy(), node_type)
    kind = ids.type.value_type if pa.types.is_dictionary(ids.type) else ids.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise InputError(
            f"ids of node type {node_type!r} are {kind}, expected integers or strings"
        )
    if not pa.types.is_dictionary(ids.type):
        ids = pc.dictionary_encode(ids.cast(pa.large_string()))
    if not pa.types.is_large_string(ids.type.value_type):
        values = ids.dictionary.cast(pa.large_string())
        ids = pa.DictionaryArray.from_arrays(ids.indices, values)
    if ids.dictionary.null_count:
        return clean_ids(ids.dictionary_decode(), node_type)
    return ids
