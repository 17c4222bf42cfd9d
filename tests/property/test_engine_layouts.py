"""Results of vertex programs do not depend on partitions, order, threads or storage."""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsys.engine import program as gs
from graphsys.engine.execute import prepared as runs
from graphsys.engine.execute import program_memory
from graphsys.engine.memory_plan import MemoryPlan
from graphsys.engine.programs.bfs import BreadthFirst
from graphsys.engine.programs.pagerank import PageRank
from graphsys.engine.programs.sssp import ShortestPaths
from graphsys.engine.programs.wcc import WeakComponents
from graphsys.engine.run import run
from graphsys.storage import Graph
from tests.stores import edge_chunk, make_store

Edges = list[tuple[int, int, int]]
OPTIONS = st.fixed_dictionaries(
    {
        "partitions": st.sampled_from([1, 3]),
        "order": st.sampled_from(["original", "degree", "rcm"]),
        "partitioner": st.sampled_from(["hash", "range"]),
    }
)
MODES = st.sampled_from(["memory", "streamed", "paged"])


@st.composite
def weighted_edges(draw: st.DrawFn) -> Edges:
    """Draw edges (with loops and repetitions) between ids that need not be dense."""
    ids = draw(st.lists(st.integers(0, 2**40), min_size=1, max_size=40, unique=True))
    node = st.sampled_from(ids)
    return draw(
        st.lists(st.tuples(node, node, st.integers(1, 9)), min_size=1, max_size=120)
    )


def values(
    program: gs.VertexProgram, graph: Graph, mode: str, threads: int
) -> dict[int, Any]:
    def choose(plan: Any, topology: Any, _: int | None) -> MemoryPlan:
        choice = program_memory.choose(plan, topology, None)
        return replace(choice, mode=mode, budget=0)  # type: ignore[arg-type]

    with (
        patch.object(runs, "choose", choose),
        patch("graphsys.engine.execute.stream.PIECE_BYTES", 64),
    ):
        table = run(program, graph, num_threads=threads).table
    return dict(zip(*(column.to_pylist() for column in table.columns), strict=True))


def by_networkx(edges: Edges, is_directed: bool) -> dict[str, Mapping[int, Any]]:
    """Compute the four results by NetworkX, from the first edge's source."""
    plain: Any = nx.MultiDiGraph() if is_directed else nx.MultiGraph()
    plain.add_weighted_edges_from(edges)
    source = edges[0][0]
    components = nx.connected_components(plain.to_undirected())
    # multiplicity counts as a weight; a loop of an undirected graph counts once
    counts = nx.DiGraph()
    for src, dst, _ in edges:
        ways = {(src, dst)} if is_directed else {(src, dst), (dst, src)}
        for u, v in ways:
            known = counts.get_edge_data(u, v, {"weight": 0})["weight"]
            counts.add_edge(u, v, weight=known + 1)
    return {
        "bfs": nx.single_source_shortest_path_length(plain, source),
        "sssp": nx.single_source_dijkstra_path_length(plain, source),
        "wcc": {node: min(found) for found in components for node in found},
        "pagerank": nx.pagerank(counts, tol=1e-14, max_iter=10_000),
    }


PROGRAMS: dict[str, Callable[[int], gs.VertexProgram]] = {
    "bfs": lambda source: BreadthFirst(source=source),
    "sssp": lambda source: ShortestPaths(source=source),
    "wcc": lambda source: WeakComponents(),
    "pagerank": lambda source: PageRank(tolerance=1e-13),
}


@settings(max_examples=25)
@given(weighted_edges(), st.booleans(), OPTIONS, MODES, st.sampled_from([1, 2]))
def test_results_are_those_of_networkx_in_every_layout(
    edges: Edges, is_directed: bool, options: dict[str, Any], mode: str, threads: int
) -> None:
    expected = by_networkx(edges, is_directed)
    pairs = [(src, dst) for src, dst, _ in edges]
    chunk = edge_chunk(pairs, weight=np.asarray([w for _, _, w in edges], np.float64))
    with tempfile.TemporaryDirectory() as folder:
        report = make_store(
            Path(folder) / "graph", chunk, is_directed=is_directed, **options
        )
        with report.graph as graph:
            for name, made in PROGRAMS.items():
                found = values(made(edges[0][0]), graph, mode, threads)
                reached = {
                    node: value for node, value in found.items() if value is not None
                }
                assert found.keys() >= expected[name].keys()
                assert reached == pytest.approx(dict(expected[name]), rel=1e-6, abs=1e-12)
