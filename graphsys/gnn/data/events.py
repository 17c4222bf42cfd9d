"""Edges as events in order of time, and which of them are to train, valid and test."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.core.types import true_splits
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.features import InputFeatures
from graphsys.gnn.data.positive_pairs import learned_edge_type
from graphsys.sampling import RecentRows, recent_rows
from graphsys.storage.dynamic.timed_view import TimedGraph
from graphsys.storage.reader import GraphReader

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
PARTS = ("train", "valid", "test")


@dataclass(frozen=True, kw_only=True)
class EventStream:
    """The edges of a type in order of time; of equal times as their splits, then as stored.

    Nodes of both ends are counted through: those of the second type come after those of
    the first, unless both are one type.

    Attributes:
        edge_type: Name of the edge type.
        src_type: Node type of the first ends.
        dst_type: Node type of the second ends.
        is_directed: Whether an edge has a direction.
        src: First ends, int64 ``[E]``.
        dst: Second ends, int64 ``[E]``, from ``first_dst`` on.
        time: Times, int64 ``[E]``, not falling.
        features: What is known of each event, float32 ``[E, F]``: the edge's weight.
        spans: First event and the one behind the last, by split.
        num_nodes: Nodes of both ends.
        first_dst: Number of the first node that may be a second end.
        num_dst: Nodes that may be second ends.
        inputs: Features of the nodes of both types, or None.
    """

    edge_type: str
    src_type: str
    dst_type: str
    is_directed: bool
    src: Ints
    dst: Ints
    time: Ints
    features: Floats
    spans: Mapping[str, tuple[int, int]]
    num_nodes: int
    first_dst: int
    num_dst: int
    inputs: InputFeatures | None = None

    def __deepcopy__(self, memo: Any) -> "EventStream":
        """Return this one: nothing of it changes."""
        return self

    @cached_property
    def rows(self) -> RecentRows:
        """What happened to each node, at either end."""
        return recent_rows(self.src, self.dst, self.time, self.num_nodes)

    @property
    def known_splits(self) -> list[str]:
        """Names of the splits that have events."""
        return [name for name, (begin, end) in self.spans.items() if begin < end]

    @property
    def train_span(self) -> int:
        """Time between the first and the last training event, at least 1."""
        begin, end = self.spans["train"]
        return max(int(self.time[end - 1] - self.time[begin]), 1)

    def before(self, time: int) -> int:
        """Return how many events are strictly before a time."""
        return int(np.searchsorted(self.time, time, side="left"))

    def batches(self, begin: int, end: int, size: int) -> Iterator[tuple[int, int]]:
        """Yield first and last but one event of batches; those of one time stay together.

        Args:
            begin: The first event.
            end: Behind the last.
            size: Events of a batch; more where the last ones have the same time.
        """
        while begin < end:
            stop = min(begin + size, end)
            if stop < end:
                last = int(self.time[stop - 1])
                stop = min(int(np.searchsorted(self.time, last, side="right")), end)
            yield begin, stop
            begin = stop

    def numbers(self, node_type: str, nodes: Ints) -> Ints:
        """Return the numbers here of nodes of a type."""
        return nodes if node_type == self.src_type else nodes + self.first_dst


def read_events(graph: GraphReader, config: GnnConfig) -> EventStream:
    """Read the edges that a config names, and part them by time.

    A store that has edges of valid or test keeps its split, if those are not older than
    what comes before. Another is parted here: the last ``test_share`` of the edges are
    test, those before them valid, edges of one time together.

    Raises:
        ConfigError: Edges without times, no training edges, or a split that is not by time.
        UnknownNameError: An edge type that is not in the graph.
    """
    name = learned_edge_type(graph, config)
    kind, splits = graph.edge_type(name), true_splits(graph.splits(name))
    default = graph.default_split(name)
    parts = {
        "train" if split == default else split: _read(graph, name, split, config.task)
        for split in splits
        if graph.num_edges_of(name, split)
    }
    if "train" not in parts:
        raise ConfigError(f"edge type {name!r} has no training edges to learn from")
    known = [n for n in PARTS if n in parts] + [n for n in parts if n not in PARTS]
    label = np.repeat(np.arange(len(known)), [len(parts[n][0]) for n in known])
    src, dst, time, features = (
        np.concatenate([parts[n][k] for n in known]) for k in range(4)
    )
    order = np.lexsort((label, time))
    label, time = label[order], time[order]
    if len(known) > 1 and np.any(label[1:] < label[:-1]):
        raise _not_by_time(graph, name, known, label, time)
    ends = np.searchsorted(label, np.arange(len(known)), side="right")
    spans = dict(zip(known, zip([0, *ends[:-1]], ends, strict=True), strict=True))
    if len(known) == 1:
        spans = _parted(time, config)
    is_one = kind.src_type == kind.dst_type
    num_src, num_dst = (graph.num_nodes_of(n) for n in (kind.src_type, kind.dst_type))
    first_dst = 0 if is_one else num_src
    return EventStream(
        edge_type=name,
        src_type=kind.src_type,
        dst_type=kind.dst_type,
        is_directed=graph.is_directed_type(name),
        src=src[order],
        dst=dst[order] + first_dst,
        time=time,
        features=features[order],
        spans={n: (int(low), int(high)) for n, (low, high) in spans.items()},
        num_nodes=first_dst + num_dst,
        first_dst=first_dst,
        num_dst=num_dst,
        inputs=_inputs(graph, kind.src_type, kind.dst_type, config),
    )


def _inputs(
    graph: GraphReader, src: str, dst: str, config: GnnConfig
) -> InputFeatures | None:
    """Return the features of nodes that models which follow events read."""
    kinds = list(dict.fromkeys((src, dst)))
    if not config.is_of_events or not any(graph.feature_names(name) for name in kinds):
        return None
    return InputFeatures(graph, kinds, replace(config, cache="none"))


def training_view(graph: GraphReader, config: GnnConfig) -> GraphReader:
    """Return what a model without memory may see: the training edges alone.

    Raises:
        ConfigError: As :func:`read_events`.
    """
    name = learned_edge_type(graph, config)
    if len(true_splits(graph.splits(name))) > 1:
        return graph  # rows of neighbors list training edges
    events = read_events(graph, config)
    _, end = events.spans["train"]
    if end == len(events.time):
        return graph
    return TimedGraph(graph, None, int(events.time[end]))


def _read(
    graph: GraphReader, name: str, split: str, task: str
) -> tuple[Ints, Ints, Ints, Floats]:
    kind = graph.edge_type(name)
    src_offsets, dst_offsets = graph.offsets(kind.src_type), graph.offsets(kind.dst_type)
    found: list[tuple[Any, ...]] = []
    for i, j in graph.buckets(name, split):
        bucket = graph.bucket(name, i, j, split)
        if bucket.time is None:
            raise ConfigError(
                f"edges {name!r} of {graph.path} have no column 'time', in whose order "
                f"task {task} learns them; ingest them with one, or take "
                "task link_prediction"
            )
        weights = bucket.weight if bucket.weight is not None else np.empty((0,), "f4")
        features = np.asarray(weights, np.float32).reshape(bucket.num_edges, -1)
        found.append(
            (
                bucket.src.astype(np.int64) + src_offsets[i],
                bucket.dst.astype(np.int64) + dst_offsets[j],
                bucket.time.astype(np.int64),
                features,
            )
        )
    src, dst, time, features = (np.concatenate(part) for part in zip(*found, strict=True))
    return src, dst, time, features


def _parted(time: Ints, config: GnnConfig) -> dict[str, tuple[int, int]]:
    """Return the spans of events that have no split."""
    total = len(time)
    if config.valid_share + config.test_share >= 1:
        raise ConfigError(
            f"valid_share, test_share: got {config.valid_share} and {config.test_share}, "
            "expected a sum below 1, for something is to be trained"
        )
    first_test = total - int(config.test_share * total + 1e-9)
    first_valid = first_test - int(config.valid_share * total + 1e-9)
    cuts = [
        int(np.searchsorted(time, time[cut], side="left")) if cut < total else total
        for cut in (first_valid, first_test)
    ]
    if not cuts[0]:
        raise ConfigError(
            f"valid_share, test_share: got {config.valid_share} and {config.test_share}, "
            f"which leave none of {total} edges to train: those of one time stay together; "
            "give smaller shares, or finer times"
        )
    bounds = [0, *cuts, total]
    found = {name: (bounds[k], bounds[k + 1]) for k, name in enumerate(PARTS)}
    return {name: span for name, span in found.items() if span[1] > span[0]}


def _not_by_time(
    graph: GraphReader, name: str, known: list[str], label: Ints, time: Ints
) -> ConfigError:
    place = int(np.argmax(label[1:] < label[:-1]))
    early, late = known[label[place]], known[label[place + 1]]
    return ConfigError(
        f"the split of edges {name!r} of {graph.path} is not by time: an edge of {early} "
        f"at {time[place]}, one of {late} at {time[place + 1]}; split the store with "
        "`graphsys split --by time`, or ingest it without a split"
    )
