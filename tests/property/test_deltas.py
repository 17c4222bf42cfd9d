"""Any order of appends, deletions, compactions and views equals a rebuild."""

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsys.engine.programs.wcc import WeakComponents
from graphsys.engine.run import run
from graphsys.facade.graph import Graph
from graphsys.storage import EdgeChunk, GraphReader
from graphsys.storage.dynamic.compact import compact
from graphsys.storage.verify.verify import verify
from tests.deltas import append_chunks, assert_same_arrays, same_numbers
from tests.stores import make_store, read_edges

NODE = st.integers(0, 11)
EDGE = st.tuples(NODE, NODE, st.integers(0, 20), st.sampled_from("abc"), st.integers(1, 5))
EDGES = st.lists(EDGE, min_size=1, max_size=12)
PAIR = st.tuples(NODE, NODE)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), EDGES),
        st.tuples(st.just("delete"), st.lists(PAIR, min_size=1, max_size=6)),
        st.tuples(
            st.just("delete at"), st.lists(PAIR, min_size=1, max_size=4), st.integers(0, 20)
        ),
        st.tuples(
            st.just("delete of"),
            st.lists(PAIR, min_size=1, max_size=4),
            st.sampled_from("abc"),
        ),
        st.tuples(st.just("replace"), EDGES),
        st.tuples(st.just("compact")),
    ),
    min_size=1,
    max_size=7,
)


@dataclass
class Model:
    """The edges as a list: src, dst, time, relation, weight, and when each is deleted."""

    is_directed: bool
    is_string: bool
    edges: list[list[Any]] = field(default_factory=list)

    def add(self, edges: list[tuple[Any, ...]]) -> None:
        self.edges += [[*edge, None] for edge in edges]

    def delete(self, pairs: set[tuple[int, int]], time: int | None, relation: Any) -> None:
        for edge in [it for it in self.edges if it[5] is None]:
            is_meant = self._pair(edge[:2]) in {self._pair(it) for it in pairs}
            is_meant &= relation is None or edge[3] == relation
            is_meant &= time is None or edge[2] <= time
            if is_meant:
                edge[5] = -1 if time is None else time  # -1: at all times

    def _pair(self, pair: Any) -> tuple[int, int]:
        return tuple(pair) if self.is_directed else tuple(sorted(pair))

    def shown(self, first: int | None = None, end: int | None = None) -> Counter[Any]:
        found: Counter[Any] = Counter()
        for src, dst, time, relation, weight, gone in self.edges:
            if (first is not None and time < first) or (end is not None and time >= end):
                continue
            if gone is not None and (end is None or gone < end):
                continue
            pair = self._pair((src, dst))
            found[pair, time, relation, float(weight)] += 1
        return found

    def chunk(self, edges: list[tuple[Any, ...]]) -> EdgeChunk:
        src, dst, time, relation, weight = zip(*edges, strict=True)
        return EdgeChunk(
            src=self.ids(src),
            dst=self.ids(dst),
            columns={
                "time": np.array(time),
                "relation": pa.array(relation),
                "weight": np.array(weight, dtype=float),
            },
        )

    def ids(self, ids: Any) -> Any:
        if self.is_string:
            return pa.array([f"n{k}" for k in ids])
        return np.array(ids, dtype=np.int64)


def found_in(graph: GraphReader, model: Model) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for edge in read_edges(graph, "edge"):
        values = dict(edge.values)
        pair = [int(str(end).lstrip("n")) for end in edge[:2]]
        key = tuple(pair if model.is_directed else sorted(pair))
        found[key, values["time"], edge.relation, values["weight"]] += 1
    return found


def take(step: tuple[Any, ...], model: Model, store: Path) -> None:
    """Do a step to the store and to the model."""
    kind = {"is_directed": model.is_directed}
    what, *rest = step
    if what == "compact":
        compact(store).graph.close()
        # a deletion is for all times once it is folded in
        model.edges = [edge for edge in model.edges if edge[5] is None]
        return
    added: list[EdgeChunk] = []
    deletes: list[EdgeChunk] = []
    if what.startswith("delete"):
        pairs = set(rest[0])
        src, dst = zip(*sorted(pairs), strict=True)
        columns: dict[str, Any] = {}
        if what == "delete at":
            columns["time"] = np.full(len(src), rest[1])
        if what == "delete of":
            columns["relation"] = pa.array([rest[1]] * len(src))
        deletes = [EdgeChunk(src=model.ids(src), dst=model.ids(dst), columns=columns)]
        time = rest[1] if what == "delete at" else None
        model.delete(pairs, time, rest[1] if what == "delete of" else None)
    if what == "replace":
        pairs = {edge[:2] for edge in rest[0]}
        src, dst = zip(*sorted(pairs), strict=True)
        deletes = [EdgeChunk(src=model.ids(src), dst=model.ids(dst))]
        model.delete(pairs, None, None)
    if what in ("append", "replace"):
        added = [model.chunk(rest[0])]
        model.add(rest[0])
    append_chunks(store, *added, deletes=deletes, missing_deletes="count", **kind)


@settings(max_examples=20)
@given(EDGES, STEPS, st.booleans(), st.booleans(), st.sampled_from([1, 3]))
def test_any_order_of_changes_equals_a_rebuild(
    first: list[Any], steps: list[Any], is_directed: bool, is_string: bool, partitions: int
) -> None:
    model = Model(is_directed, is_string)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "g"
        made = make_store(
            store, model.chunk(first), partitions=partitions, is_directed=is_directed
        )
        made.graph.close()
        model.add(first)
        for number, step in enumerate(steps):
            take(step, model, store)
            with Graph(store) as graph:
                assert found_in(graph, model) == model.shown()
                assert graph.num_edges == model.shown().total()
                for at in (0, 7, 20):
                    assert found_in(graph.at(at), model) == model.shown(None, at + 1)
                assert found_in(graph.between(5, 15), model) == model.shown(5, 15)
                with same_numbers(graph, Path(folder) / f"same{number}") as same:
                    # other codes of relations stand in another order
                    if same.relations("edge") == graph.relations("edge"):
                        assert_same_arrays(graph, same)
        assert verify(store).problems == []
        with Graph(store) as graph:
            expected = run(WeakComponents, graph).table.sort_by("id").to_pydict()
        with compact(store).graph as graph:
            found = run(WeakComponents, graph).table.sort_by("id").to_pydict()
            assert found_in(graph, model) == model.shown()
        assert found == expected


def test_the_model_would_notice(tmp_path: Path) -> None:
    """A store that is not what the model says fails the comparison."""
    model = Model(is_directed=True, is_string=False)
    edges = [(1, 2, 3, "a", 1), (2, 3, 4, "b", 2)]
    make_store(tmp_path / "g", model.chunk(edges)).graph.close()
    model.add([*edges, (1, 2, 3, "a", 1)])
    with Graph(tmp_path / "g") as graph, pytest.raises(AssertionError):
        assert found_in(graph, model) == model.shown()
