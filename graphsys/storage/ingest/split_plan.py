"""Which edges of a stored graph go to train, to valid and to test.

Each edge has a key: its time, or a hash of seed, relation and the ids of its ends. The
largest keys are held out, so the outcome depends neither on partitions nor on threads or
the order of edges. The hash does not know which end is the source: copies of an edge and
its reverse have one key and stay together.

Coverage: the edge with the least key of each node and of each relation stays in train, so
whatever is held out is of nodes and relations that train has. By time nothing is moved.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from graphsys.core.caller_warnings import note
from graphsys.core.errors import ConfigError, InputError, cut_list
from graphsys.core.rng import draw_key
from graphsys.core.types import EdgeType
from graphsys.kernels.cpu import hashing
from graphsys.kernels.cpu.rows import split_keys as kernels
from graphsys.storage.ids.string_ids import string_buffers
from graphsys.storage.ingest.split_inverse import PairSample, canonical_relations
from graphsys.storage.ingest.split_spec import SplitSpec
from graphsys.storage.reader import GraphReader
from graphsys.storage.views import EdgeBucket

Keys: TypeAlias = npt.NDArray[np.uint64]
Stream: TypeAlias = Callable[[], Iterator[tuple[Keys, npt.NDArray[np.int64]]]]
"""Yields keys ``[n]`` and the group of each, int64 ``[n]``; the same each time."""

_CELLS = 1 << 19
_KEY_BITS = 64


def thresholds(
    stream: Stream, totals: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64]
) -> tuple[Keys, npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Find the keys from which on each group has about the wanted number of keys.

    Radix selection: one pass over the stream for each digit, 4 MiB a wanted number.
    Equal keys stay together, on the side that comes nearer to the number.

    Args:
        stream: The keys.
        totals: Keys in each group ``[G]``.
        wanted: How many of the largest, ``[T, G]``, at most ``totals``.

    Returns:
        The lowest key of the largest ones, whether there are any, and how many there
        are, ``[T, G]`` each.
    """
    num_groups = len(totals)
    bits = max(1, min(16, (_CELLS // num_groups).bit_length() - 1))
    place: npt.NDArray[Any] = (
        totals[None, :] - wanted
    )  # ascending, from 0; equal to totals: none wanted
    prefix = np.zeros(wanted.shape, dtype=np.uint64)
    above = np.zeros(wanted.shape, dtype=np.int64)
    equal = np.zeros(wanted.shape, dtype=np.int64)
    left = _KEY_BITS
    while left:
        step = min(bits, left)
        left -= step
        counts = _histograms(stream, prefix, left, step, num_groups)
        ends = counts.cumsum(axis=2)
        digit = (ends <= place[:, :, None]).sum(axis=2)
        digit = np.minimum(digit, (1 << step) - 1)
        at = digit[:, :, None]
        equal = np.take_along_axis(counts, at, axis=2)[:, :, 0]
        end = np.take_along_axis(ends, at, axis=2)[:, :, 0]
        above += ends[:, :, -1] - end
        place = place - (end - equal)
        prefix = (prefix << np.uint64(step)) | digit.astype(np.uint64)
    takes_equal = (above + equal - wanted <= wanted - above) | (above == 0)
    lowest = np.where(takes_equal, prefix, prefix + np.uint64(1))
    is_any = wanted > 0
    return lowest, is_any, np.where(is_any, above + equal * takes_equal, 0)


def _histograms(
    stream: Stream, prefix: Keys, left: int, step: int, num_groups: int
) -> npt.NDArray[np.int64]:
    """Count the next digit of the keys that begin with a prefix, ``[T, G, 2**step]``."""
    counts = np.zeros((len(prefix), num_groups << step), dtype=np.int64)
    for keys, groups in stream():
        rest = keys >> np.uint64(left)
        cells = (groups << step) + (rest & np.uint64((1 << step) - 1)).astype(np.int64)
        heads = rest >> np.uint64(step) if left + step < _KEY_BITS else None
        for k in range(len(prefix)):
            held = cells if heads is None else cells[heads == prefix[k][groups]]
            counts[k] += np.bincount(held, minlength=counts.shape[1])
    return counts.reshape(len(prefix), num_groups, 1 << step)


_ROWS = 1 << 17  # at a time, so that little is under way
_HIGHEST = np.uint64(2**64 - 1)
_SIGN = np.uint64(1 << 63)


class SplitPlan:
    """The split of the edges of one type; the graph is read some times, in order.

    Args:
        graph: The graph, open.
        edge_type: The type.
        spec: What the user asked for.

    Attributes:
        asked: Edges asked for in valid, and in test.
        num_asked: Of both together.
        num_held: Edges that were free to be held out.

    Raises:
        ConfigError: there is no such column to split by.
        InputError: nothing would be left in train.
    """

    def __init__(self, graph: GraphReader, edge_type: EdgeType, spec: SplitSpec) -> None:
        self._graph, self._type, self._spec = graph, edge_type, spec
        self._entry = graph.manifest.edge_types[graph.edge_type_name(edge_type)]
        self._covers = spec.by != "time"
        self._require(spec.by)
        self._hashes = {
            name: _node_hashes(graph, name, spec.seed)
            for name in {edge_type.src_type, edge_type.dst_type}
        }
        names = graph.relations(edge_type) or [""]
        self._relations = np.array(
            [draw_key(spec.seed, "split", name) for name in names], dtype=np.uint64
        )
        self._canonical = np.arange(len(names))
        if spec.inverse == "together" and self._has_inverse():
            self._keep_together(names)
        self._least = {name: _highest(len(it)) for name, it in self._hashes.items()}
        self._least_of_relation = _highest(len(names))
        self._num_groups = len(names) if spec.by == "relation" else 1
        totals = self._cover()
        self._choose(totals)
        if not spec.inverse and self._has_inverse():
            self._warn_of_leaks(names)

    def codes(self, bucket: EdgeBucket, i: int, j: int, piece: slice) -> Any:
        """Return the split of some edges of a bucket: 0 train, 1 valid, 2 test, ``[n]``."""
        found = []
        for begin in range(piece.start, min(piece.stop, bucket.num_edges), _ROWS):
            part = slice(begin, min(begin + _ROWS, piece.stop))
            keys, groups, free = self._keys(bucket, i, j, part)
            codes = np.zeros(len(keys), dtype=np.int8)
            for k, code in ((0, 1), (1, 2)):  # held out at all; of these, test
                lowest, is_any = self._lowest[k], self._is_any[k]
                codes[free & is_any[groups] & (keys >= lowest[groups])] = code
            found.append(codes)
        return np.concatenate(found)

    def count_held(self) -> npt.NDArray[np.int64]:
        """Return how many edges of each relation are in valid and test, ``[R]``."""
        counts = np.zeros(len(self._relations), dtype=np.int64)
        for bucket, i, j, piece in self._pieces():
            is_held = self.codes(bucket, i, j, piece) > 0
            held = relation_codes(bucket, piece)[is_held]
            counts += np.bincount(held, minlength=len(counts))
        return counts

    def _require(self, column: str) -> None:
        if column != "random" and column not in self._entry.columns:
            has = column == "relation" and self._entry.relations is not None
            if not has:
                raise ConfigError(
                    f"split by {column}: edges of {self._entry.relation!r} have no column "
                    f"{column}; name it with --columns {column}=NAME when the graph is "
                    f"ingested (TYPE.{column}=NAME of tables by type), or split at random"
                )

    def _has_inverse(self) -> bool:
        """Tell whether relations of this type can be inverse to each other."""
        is_one_type = self._type.src_type == self._type.dst_type
        is_directed = self._graph.is_directed_type(self._type)
        return is_one_type and is_directed and len(self._relations) > 1

    def _sample(self, *, has_splits: bool) -> PairSample:
        """Sample pairs of nodes with all their edges, and these edges' splits."""
        sample = PairSample()
        one = np.zeros(1, dtype=np.uint64)
        for bucket, i, j, piece in self._pieces():
            src, dst = bucket.src[piece], bucket.dst[piece]
            of_src, of_dst = self._of_ends(self._hashes, i, j)
            keys = np.empty(len(src), dtype=np.uint64)
            kernels.edge_keys(src, dst, of_src, of_dst, src[:0], one, keys)
            codes = np.zeros(len(src), dtype=np.int64)
            if has_splits:
                codes = self.codes(bucket, i, j, piece).astype(np.int64)
            low, high = of_src[src], of_dst[dst]
            is_pair = low != high  # a loop is its own reverse
            relations = relation_codes(bucket, piece)
            sample.add(
                keys[is_pair], (low < high)[is_pair], relations[is_pair], codes[is_pair]
            )
        return sample

    def _keep_together(self, names: list[str]) -> None:
        """Give relations that are each other's inverse one key and one group."""
        pairs = self._sample(has_splits=False).inverse_pairs()
        self._canonical = canonical_relations(len(names), pairs)
        self._relations = self._relations[self._canonical]

    def _warn_of_leaks(self, names: list[str]) -> None:
        """Say how many edges of test, or of valid, have their inverse in train."""
        sample = self._sample(has_splits=True)
        if not (pairs := sample.inverse_pairs()):
            return
        for code, split in ((2, "test"), (1, "valid")):
            leaks, total = sample.leaks(pairs, code)
            if leaks:
                about = "about " if sample.bits else ""
                shown = cut_list([f"{names[a]} and {names[b]}" for a, b in pairs], 3)
                note(
                    f"split: {about}{leaks << sample.bits} of {total << sample.bits} "
                    f"edges of {split} have their inverse in train ({shown}): a model can "
                    "look them up; keep them together with --inverse together, or pass "
                    "--inverse apart"
                )
                return

    def _pieces(self) -> Iterator[tuple[EdgeBucket, int, int, slice]]:
        for i, j in self._graph.buckets(self._type):
            bucket = self._graph.bucket(self._type, i, j)
            for begin in range(0, bucket.num_edges, _ROWS):
                yield bucket, i, j, slice(begin, begin + _ROWS)

    def _of_ends(self, values: Mapping[str, Keys], i: int, j: int) -> tuple[Keys, Keys]:
        """Return values of the nodes that a bucket's sources and destinations are."""
        kinds = ((self._type.src_type, i), (self._type.dst_type, j))
        src, dst = (values[kind][self._graph.offsets(kind)[k] :] for kind, k in kinds)
        return src, dst

    def _keys(
        self, bucket: EdgeBucket, i: int, j: int, piece: slice
    ) -> tuple[Keys, npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Return keys, groups, and whether the edges are free to be held out."""
        src, dst, relations = bucket.src[piece], bucket.dst[piece], _codes(bucket, piece)
        groups = np.zeros(len(src), dtype=np.int64)
        if self._num_groups > 1:
            groups = self._canonical[relation_codes(bucket, piece)]
        if self._spec.by == "time":
            times = np.ascontiguousarray(bucket.time[piece])  # type: ignore[index] # required
            return times.view(np.uint64) ^ _SIGN, groups, np.ones(len(src), dtype=bool)
        keys, free = np.empty(len(src), dtype=np.uint64), np.empty(len(src), dtype=bool)
        hashes = self._of_ends(self._hashes, i, j)
        kernels.edge_keys(src, dst, *hashes, relations, self._relations, keys)
        least = self._of_ends(self._least, i, j)
        kernels.find_spare(src, dst, relations, keys, *least, self._least_of_relation, free)
        return keys, groups, free

    def _cover(self) -> npt.NDArray[np.int64]:
        """Find the least key of every node and relation; return the edges of each group."""
        totals = np.zeros(self._num_groups, dtype=np.int64)
        for bucket, i, j, piece in self._pieces():
            keys, groups, _ = self._keys(bucket, i, j, piece)
            totals += np.bincount(groups, minlength=self._num_groups)
            if not self._covers:
                continue
            least = self._of_ends(self._least, i, j)
            kernels.lower_least(bucket.src[piece], keys, least[0])
            kernels.lower_least(bucket.dst[piece], keys, least[1])
            kernels.lower_least(_codes(bucket, piece), keys, self._least_of_relation)
        return totals

    def _choose(self, totals: npt.NDArray[np.int64]) -> None:
        asked = np.array([self._spec.held_out(int(n)) for n in totals], dtype=np.int64).T
        free = np.zeros_like(totals)
        for _, groups in self._free():
            free += np.bincount(groups, minlength=self._num_groups)
        held = np.minimum(asked.sum(axis=0), free)
        share = asked[1] / np.maximum(asked.sum(axis=0), 1)
        test = np.where(held < asked.sum(axis=0), (held * share).astype(np.int64), asked[1])
        self.asked = [int(count) for count in asked.sum(axis=1)]
        self.num_asked, self.num_held = sum(self.asked), int(held.sum())
        wanted = np.stack([held, test])
        self._lowest, self._is_any, taken = thresholds(self._free, free, wanted)
        if 0 < totals.sum() <= taken[0].sum():
            raise InputError(
                f"split: {self.num_asked} of the {totals.sum()} edges of "
                f"{self._entry.relation!r} were asked for in valid and test, which leaves "
                "none in train; ask for fewer, or split at random if all have one time"
            )

    def _free(self) -> Iterator[tuple[Keys, npt.NDArray[np.int64]]]:
        for bucket, i, j, piece in self._pieces():
            keys, groups, free = self._keys(bucket, i, j, piece)
            yield keys[free], groups[free]


def _codes(bucket: EdgeBucket, piece: slice) -> npt.NDArray[Any]:
    """Return the codes of edges' relations, empty without any."""
    return bucket.src[:0] if bucket.relation is None else bucket.relation[piece]


def relation_codes(bucket: EdgeBucket, piece: slice) -> npt.NDArray[np.int64]:
    """Return the codes of edges' relations, 0 without any."""
    if bucket.relation is None:
        return np.zeros(len(bucket.src[piece]), dtype=np.int64)
    return bucket.relation[piece].astype(np.int64)


def _node_hashes(graph: GraphReader, node_type: str, seed: int) -> Keys:
    """Return a hash of seed, type and the user's id of every node, ``[N]``."""
    ids = graph.node_ids(node_type).combine_chunks()
    hashes = np.empty(len(ids), dtype=np.uint64)
    if graph.manifest.node_types[node_type].id_type == "int64":
        hashing.hash_integers(ids.to_numpy(), hashes)
    else:
        hashing.hash_strings(*string_buffers(ids), hashes)
    keyed = hashes ^ draw_key(seed, "split", "node", node_type)
    hashing.hash_integers(keyed, hashes)
    return hashes


def _highest(size: int) -> Keys:
    return np.full(size, _HIGHEST, dtype=np.uint64)
