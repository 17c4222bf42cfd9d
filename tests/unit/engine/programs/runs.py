"""Running a listed algorithm's program, and the stores that all programs run on."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from graphsys.engine import algorithms
from graphsys.engine import program as gs
from graphsys.engine.codegen.spec import spec_of
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.storage import NodeChunk
from tests.stores import as_ids, edge_chunk, make_store
from tests.unit.engine.algorithms.small_graphs import SmallGraph, values

LAYOUTS: dict[str, dict[str, Any]] = {
    "whole": {"partitions": 1, "order": "original"},
    "whole by degree": {"partitions": 1, "order": "degree"},
    "three parts": {"partitions": 3, "order": "original"},
    "three parts by degree": {"partitions": 3, "order": "degree"},
}


def run(name: str, graph: SmallGraph | Topology, **options: Any) -> Result:
    """Run the program of a listed algorithm, never the native kernel."""
    topology = graph.topology() if isinstance(graph, SmallGraph) else graph
    return algorithms.get(name)(topology, implementation="program", **options)


def native(name: str, graph: SmallGraph, **options: Any) -> Result:
    """Run the native kernel of a listed algorithm."""
    return algorithms.get(name)(graph.topology(), implementation="native", **options)


@dataclass(frozen=True)
class Stored:
    """A graph of some hundred edges in stores of every layout."""

    graph: SmallGraph
    stores: dict[str, Topology] = field(default_factory=dict)

    def runs(self, name: str, **options: Any) -> list[Result]:
        """Return the results in every layout, with one and with two threads."""
        return [
            run(name, topology, num_threads=threads, **options)
            for topology in self.stores.values()
            for threads in (1, 2)
        ]

    def same(self, name: str, column: str = "value", **options: Any) -> dict[Any, Any]:
        """Return a column by id, which must be equal in all runs."""
        first, *others = self.runs(name, **options)
        for other in others:
            assert values(other, column) == values(first, column)
            assert other.result == first.result
        return values(first, column)

    def alike(self, name: str, column: str = "value", **options: Any) -> dict[Any, Any]:
        """Return a column of floats by id, which may differ by rounding."""
        first, *others = (values(r, column) for r in self.runs(name, **options))
        ids = list(first)
        expected = [first[node] for node in ids]
        for other in others:
            np.testing.assert_allclose([other[n] for n in ids], expected, rtol=1e-9)
        return first


def store(folder: Path, graph: SmallGraph) -> Stored:
    """Store a graph in every layout."""
    pairs = [(a, b) for a, b, _ in graph.edges]
    weight = np.array([w for _, _, w in graph.edges], dtype=np.float64)
    found = Stored(graph)
    for name, layout in LAYOUTS.items():
        out = folder / name.replace(" ", "-")
        chunks = (NodeChunk(ids=as_ids(graph.ids)), edge_chunk(pairs, weight=weight))
        make_store(out, *chunks, is_directed=graph.is_directed, **layout)
        found.stores[name] = Topology.of(out)
    return found


def random_graph(*, is_directed: bool, is_text: bool, num: int = 70) -> SmallGraph:
    """Return a graph with a hub, loops, repetitions and isolated nodes."""
    rng = np.random.default_rng(11)
    ids: list[Any] = (rng.permutation(num) * 7 + 3).tolist()
    if is_text:
        ids = [f"node {n}" for n in ids]
    tails = rng.integers(0, num - 6, 3 * num)
    heads = np.where(rng.random(3 * num) < 0.15, 5, rng.integers(0, num - 6, 3 * num))
    weights = rng.integers(1, 17, 3 * num) / 4
    edges = [
        (ids[a], ids[b], w) for a, b, w in zip(tails, heads, weights.tolist(), strict=True)
    ]
    edges += [*edges[:9], (ids[0], ids[0], 1.0), (ids[5], ids[5], 2.0)]
    return SmallGraph(ids=ids, edges=edges, is_directed=is_directed)


def declared(**attributes: Any) -> Any:
    """Make a program with given attributes in place of good ones, and read it."""

    def message(self: Any, src: Any, edge: Any) -> Any:
        return src.value

    def update(self: Any, node: Any, message: Any) -> Any:
        return message

    good = {
        "value": gs.state("float64"),
        "message": message,
        "update": update,
        "combine": gs.minimum,
    }
    chosen = {k: v for k, v in (good | attributes).items() if v is not None}
    return spec_of(type("Given", (gs.VertexProgram,), chosen))
