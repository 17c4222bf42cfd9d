"""A stored graph as a source whose edges are parted into splits."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from graphsys.core.caller_warnings import note
from graphsys.core.errors import InputError
from graphsys.core.memory import parse_bytes, too_small
from graphsys.core.types import EdgeType
from graphsys.storage.ingest.graph_source import GraphSource, as_ids
from graphsys.storage.ingest.options import MIN_MEMORY
from graphsys.storage.ingest.split_column import rows_of
from graphsys.storage.ingest.split_negatives import FEW_PAIRS, NegativePairs
from graphsys.storage.ingest.split_plan import SplitPlan, relation_codes
from graphsys.storage.ingest.split_spec import SplitSpec
from graphsys.storage.reader import GraphReader
from graphsys.storage.source import EdgeChunk
from graphsys.storage.views import EdgeBucket

Ints = npt.NDArray[np.int64]
_NAMES = ("train", "valid", "test")
_NODE_BYTES = 16
_PAIR_BYTES = 100  # drawn twice, sorted, permuted
_UNDER_WAY_BYTES = 40 << 20


class SplitSource(GraphSource):
    """Reads a whole store; edges of train go to train, valid and test, others stay.

    Args:
        graph: The store, open; without edges in the splits that are asked for.
        spec: What goes where.
        name: What to call it; the store's path by default.

    Raises:
        InputError: the store has a split that is asked for.
    """

    def __init__(
        self, graph: GraphReader, spec: SplitSpec, name: str | None = None
    ) -> None:
        super().__init__(graph, name)
        self._spec = spec
        self._plans: dict[EdgeType, SplitPlan] = {}
        self._negatives: dict[EdgeType, NegativePairs] = {}
        self._seen: set[EdgeType] = set()  # edges come more than once
        for kind in graph.edge_types:
            self._require_new(kind)
        self._undated = self._find_undated() if spec.by == "time" else set()

    def _find_undated(self) -> set[EdgeType]:
        """Return types without times where another has some: their edges stay in train."""
        graph = self._graph
        entries = {
            graph.edge_type(name): it for name, it in graph.manifest.edge_types.items()
        }
        undated = {kind for kind, entry in entries.items() if "time" not in entry.columns}
        if len(undated) == len(entries):
            return set()  # the plan says what is missing
        for kind in sorted(undated):
            note(f"split: edges of {kind.relation!r} have no times, so all stay in train")
        return undated

    def _require_new(self, edge_type: EdgeType) -> None:
        """Check that edges are held out for splits that the type does not have yet."""
        spec, has = self._spec, self._graph.splits(edge_type)
        shares = {"valid": spec.valid, "test": spec.test}
        asked = {name for name, share in shares.items() if share}
        if not asked & set(has) and "train" in has:
            return
        lacks = [name for name in _NAMES[1:] if name not in has]
        remedy = "split the graph before it had splits"
        if len(lacks) == 1 and "train" in has:
            ratio = "0.9,0.1,0" if lacks == ["valid"] else "0.9,0,0.1"
            remedy = f"--ratio {ratio} holds {lacks[0]} out of train, and the others stay"
        raise InputError(
            f"{self.name}: edges of {edge_type.relation!r} are in {', '.join(has)} "
            f"already, expected all in train; {remedy}"
        )

    def _parts(
        self, chunk: EdgeChunk, bucket: EdgeBucket, i: int, j: int, piece: slice
    ) -> Iterator[EdgeChunk]:
        if chunk.split != "train" or chunk.edge_type in self._undated:
            yield chunk
            return
        codes = self._plan(chunk.edge_type).codes(bucket, i, j, piece)
        for code, name in enumerate(_NAMES):
            rows = np.flatnonzero(codes == code)
            if len(rows):
                part = rows_of(replace(chunk, split=name), rows)
                yield part
                if code and self._spec.negatives:
                    relations = relation_codes(bucket, piece)[rows]
                    yield from self._negatives_of(part, relations)

    def _negatives_of(self, held: EdgeChunk, relations: Ints) -> Iterator[EdgeChunk]:
        """Yield pairs that are no edges for held-out edges, each with its columns."""
        kind, graph = held.edge_type, self._graph
        if kind not in self._negatives:
            self._negatives = {kind: self._draw(kind)}
        for _ in range(self._spec.negatives):
            numbers = self._negatives[kind].take(relations)
            src, dst = (
                as_ids(graph.ids_of(name, ends))
                for name, ends in zip((kind.src_type, kind.dst_type), numbers, strict=True)
            )
            yield replace(held, src=src, dst=dst, split=f"{held.split}_negative")

    def _draw(self, edge_type: EdgeType) -> NegativePairs:
        """Draw as many pairs of each relation as its held-out edges ask for."""
        counts = self._plan(edge_type).count_held() * self._spec.negatives
        return NegativePairs(self._graph, edge_type, counts, self._spec.seed)

    def _plan(self, edge_type: EdgeType) -> SplitPlan:
        if edge_type not in self._plans:
            plan = SplitPlan(self._graph, edge_type, self._spec)
            self._plans = {edge_type: plan}  # edges come type by type
            if edge_type not in self._seen:
                self._seen.add(edge_type)
                self._tell(edge_type, plan)
        return self._plans[edge_type]

    def _tell(self, edge_type: EdgeType, plan: SplitPlan) -> None:
        """Warn where valid and test have fewer edges than the user may expect."""
        spec, total = self._spec, self._graph.num_edges_of(edge_type)
        shares = {"valid": spec.valid, "test": spec.test}
        none = [
            name
            for (name, share), count in zip(shares.items(), plan.asked, strict=True)
            if share and not count
        ]
        told = ""
        if none and total:
            shown = " and ".join(f"{shares[name]:g}" for name in none)
            told = (
                f"none of the {total} edges of {edge_type.relation!r} "
                f"{'is' if total == 1 else 'are'} in {' and '.join(none)}: of so few "
                f"{shown} {'are' if len(none) > 1 else 'is'} less than one edge; ask for "
                "numbers of edges of valid and test, such as 1,1"
            )
        elif plan.num_held < plan.num_asked:
            told = (
                f"{plan.num_asked} edges of {edge_type.relation!r} were asked for in valid "
                f"and test, {plan.num_held} are: the others are needed so that train has "
                "every node and relation"
            )
        if told:
            note(f"split: {told}")


def split_bytes(graph: GraphReader, spec: SplitSpec) -> int:
    """Return what the plan of a split holds."""
    held = _NODE_BYTES * graph.num_nodes + _UNDER_WAY_BYTES
    for kind in graph.edge_types if spec.negatives else ():
        pairs = spec.negatives * sum(spec.held_out(graph.num_edges_of(kind)))
        every = graph.num_nodes_of(kind.src_type) * graph.num_nodes_of(kind.dst_type)
        every *= len(graph.relations(kind) or [""])
        held += _PAIR_BYTES * max(pairs, min(every, FEW_PAIRS))
    return held


def reserved_memory(graph: GraphReader, memory: int | str, spec: SplitSpec) -> int:
    """Return what a budget leaves beside what a plan of the split holds.

    Raises:
        BudgetError: less than what an ingest takes; the message names an amount that works.
    """
    budget, held = parse_bytes(memory), split_bytes(graph, spec)
    if budget - held >= MIN_MEMORY:
        return budget - held
    what = f"splitting the edges of {graph.num_nodes} nodes"
    raise too_small(what, held + MIN_MEMORY, budget)
