"""What each system does in the case ``engine``, in a child process.

A class per system: building its graph is load time; a method per work that it has returns
a function from a source to an answer small enough to compare.
"""

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.cases.engine_graphs import Arrays, load
from bench.harness import Outcome

ITERATIONS = 10
ITERATED = ("pagerank", "pagerank_float32")
SOURCELESS = ("wcc", "triangle_count", *ITERATED)
LONG = ("triangle_count",)  # once a run is enough
DAMPING = 0.85
Answer = dict[str, float]
Run = Callable[[int], Any]


def run(system: str, work: str, folder: str) -> Outcome:
    """Load, warm up, and time a work from every source; the time is their mean.

    Turning what a system returns into an answer is not timed.
    """
    arrays = load(folder)
    began = time.perf_counter()
    instance = SYSTEMS[system](arrays)
    execute, answer = getattr(instance, work)()
    load_s = time.perf_counter() - began
    began = time.perf_counter()
    if work not in LONG or system == "graphsys":
        execute(arrays.sources[0])
    warm_s = time.perf_counter() - began
    seconds, answers = [], []
    for source in arrays.sources[: 1 if work in LONG else None]:
        began = time.perf_counter()
        found = execute(source)
        seconds.append(time.perf_counter() - began)
        answers.append(answer(found))
    share = ITERATIONS if work in ITERATED else 1
    taken = statistics.mean(seconds)
    return Outcome(
        seconds=taken / share,
        result=answers,
        load_s=load_s,
        compile_s=max(0.0, warm_s - taken),
    )


def reached(distances: Any) -> Answer:
    """Summarize distances: how many are finite, and their sum."""
    finite = distances[np.isfinite(distances)]
    return {"reached": len(finite), "sum": float(finite.sum(dtype=np.float64))}


def ranked(scores: Any) -> Answer:
    """Summarize scores that sum to 1."""
    scores = np.asarray(scores, dtype=np.float64)
    return {"largest": float(scores.max()), "squares": float((scores**2).sum())}


class Graphsys:
    """Ours, through the functions that users call; tables are made in the time."""

    def __init__(self, arrays: Arrays) -> None:
        from graphsys.engine.topology import Topology
        from graphsys.graph.csr import Csr
        from graphsys.storage.node_numbers import NodeNumbers

        rows = Csr(indptr=arrays.indptr, indices=arrays.indices, weight=arrays.weight)
        self.topology = Topology(
            NodeNumbers.from_ids(None, arrays.num_nodes),
            is_directed=False,
            rows={"out": rows, "in": rows},
        )
        self.topology.simple()
        assert self.topology.rank is None  # computed once, as by any first algorithm

    def _run(self, name: str, answer: Callable[[Any], Answer], **options: Any) -> Any:
        import graphsys as gs

        def execute(source: int) -> Any:
            own = {k: source if v is None else v for k, v in options.items()}
            if "sources" in own:
                own["sources"] = [source]
            return getattr(gs.algorithms, name)(self.topology, **own)

        return execute, answer

    def bfs(self) -> Any:
        return self._run("bfs", lambda r: reached(r.to_numpy()["value"]), source=None)

    def sssp(self) -> Any:
        return self._run("sssp", lambda r: reached(r.to_numpy()["value"]), source=None)

    def wcc(self) -> Any:
        return self._run("wcc", lambda r: {"components": r.result})

    def triangle_count(self) -> Any:
        return self._run("triangle_count", lambda r: {"triangles": r.result})

    def pagerank(self) -> Any:
        return self._pagerank()

    def pagerank_float32(self) -> Any:
        return self._pagerank(dtype="float32")

    def _pagerank(self, **options: Any) -> Any:
        def answer(result: Any) -> Answer:
            return ranked(result.to_numpy()["value"])

        return self._run("pagerank", answer, iterations=ITERATIONS, **options)

    def betweenness(self) -> Any:
        def answer(result: Any) -> Answer:
            scores = np.nan_to_num(result.to_numpy()["value"])
            return {"sum": float(scores.sum()), "largest": float(scores.max())}

        return self._run("betweenness", answer, sources=None, normalized=False)


class SciPy:
    """scipy.sparse.csgraph; PageRank by its sparse product."""

    def __init__(self, arrays: Arrays) -> None:
        import scipy.sparse

        self.matrix = scipy.sparse.csr_matrix(
            (
                arrays.weight.astype(np.float64),
                arrays.indices.view(np.int32),
                arrays.indptr.view(np.int32),
            ),
            shape=(arrays.num_nodes, arrays.num_nodes),
        )

    def bfs(self) -> Any:
        from scipy.sparse.csgraph import breadth_first_order

        def answer(found: Any) -> Answer:
            order, before = found
            hops = np.zeros(len(before))
            for level in _levels(order, before):
                hops[level] = hops[before[level]] + 1
            return reached(hops[order])

        return (lambda source: breadth_first_order(self.matrix, source)), answer

    def wcc(self) -> Any:
        from scipy.sparse.csgraph import connected_components

        def execute(source: int) -> Any:
            return connected_components(self.matrix, directed=False)

        return execute, lambda found: {"components": found[0]}

    def sssp(self) -> Any:
        from scipy.sparse.csgraph import dijkstra

        return (lambda source: dijkstra(self.matrix, indices=source)), reached

    def pagerank(self) -> Any:
        matrix = self.matrix.copy()
        matrix.data[:] = 1.0
        degrees = np.diff(matrix.indptr)
        scale = np.divide(1.0, degrees, out=np.zeros(len(degrees)), where=degrees > 0)
        size = len(degrees)

        def execute(source: int) -> Any:
            scores = np.full(size, 1 / size)
            for _ in range(ITERATIONS):
                lost = scores[degrees == 0].sum()
                base = (1 - DAMPING + DAMPING * lost) / size
                scores = base + DAMPING * (matrix @ (scores * scale))
            return scores

        return execute, ranked


def _levels(order: Any, before: Any) -> Any:
    """Cut a breadth-first order into levels, the first left out."""
    place = np.empty(len(before), dtype=np.int64)
    place[order] = np.arange(len(order))
    begin, end = 0, 1
    parents = place[before[order[1:]]]  # not decreasing
    while end < len(order):
        begin, end = end, 1 + int(np.searchsorted(parents, end))
        yield order[begin:end]


class NetworKit:
    """NetworKit with as many threads as there are processors."""

    def __init__(self, arrays: Arrays) -> None:
        import networkit as nk

        nk.setNumberOfThreads(len(os.sched_getaffinity(0)))
        self.nk, self.arrays = nk, arrays

    def _graph(self, *, weighted: bool = False, compact: bool = False) -> Any:
        arrays = self.arrays
        src, dst = arrays.row_numbers(), arrays.indices
        kept = src < dst
        ends = src[kept].astype(np.uint64), dst[kept].astype(np.uint64)
        data = (arrays.weight[kept].astype(np.float64), ends) if weighted else ends
        graph = self.nk.GraphFromCoo(
            data, n=arrays.num_nodes, weighted=weighted, directed=False
        )
        if compact:
            for node in np.flatnonzero(np.diff(arrays.indptr.astype(np.int64)) == 0):
                graph.removeNode(int(node))
        return graph

    def bfs(self) -> Any:
        graph = self._graph()
        return self._distances(lambda s: self.nk.distance.BFS(graph, s, storePaths=False))

    def sssp(self) -> Any:
        graph = self._graph(weighted=True)
        return self._distances(
            lambda s: self.nk.distance.Dijkstra(graph, s, storePaths=False)
        )

    def _distances(self, make: Callable[[int], Any]) -> Any:
        def answer(found: Any) -> Answer:
            distances = np.asarray(found.getDistances())
            distances[distances > 1e300] = np.inf
            return reached(distances)

        return (lambda source: make(source).run()), answer

    def wcc(self) -> Any:
        graph = self._graph()

        def execute(source: int) -> Any:
            return self.nk.components.ParallelConnectedComponents(graph, False).run()

        return execute, lambda found: {"components": found.numberOfComponents()}

    def betweenness(self) -> Any:
        graph = self._graph(compact=True)  # it draws its source; none is isolated

        def execute(source: int) -> Any:
            self.nk.setSeed(source, False)
            return self.nk.centrality.EstimateBetweenness(graph, 1, False, True).run()

        return execute, lambda found: {}

    def triangle_count(self) -> Any:
        graph = self._graph()
        degrees = np.diff(self.arrays.indptr.astype(np.int64)).astype(np.float64)

        def execute(source: int) -> Any:
            return self.nk.centrality.LocalClusteringCoefficient(graph, True).run()

        def answer(found: Any) -> Answer:
            pairs = degrees * (degrees - 1) / 2
            scores = np.nan_to_num(np.asarray(found.scores()))
            return {"triangles": round(float((scores * pairs).sum()) / 3)}

        return execute, answer

    def pagerank(self) -> Any:
        graph = self._graph()

        def execute(source: int) -> Any:
            found = self.nk.centrality.PageRank(graph, DAMPING, 1e-300)
            found.maxIterations = ITERATIONS
            return found.run()

        return execute, lambda found: {"iterations": found.numberOfIterations()}


class Igraph:
    """igraph, one thread."""

    def __init__(self, arrays: Arrays) -> None:
        import igraph

        src, dst = arrays.row_numbers(), arrays.indices
        kept = src < dst
        pairs = np.column_stack([src[kept], dst[kept]])
        self.graph = igraph.Graph(n=arrays.num_nodes, edges=pairs)
        self.weight = arrays.weight[kept].tolist()

    def bfs(self) -> Any:
        def execute(source: int) -> Any:
            return self.graph.distances(source)[0]

        return execute, lambda found: reached(np.array(found, dtype=np.float64))

    def sssp(self) -> Any:
        def execute(source: int) -> Any:
            return self.graph.distances(source, weights=self.weight)[0]

        return execute, lambda found: reached(np.array(found))

    def wcc(self) -> Any:
        def execute(source: int) -> Any:
            return self.graph.connected_components()

        return execute, lambda found: {"components": len(found)}

    def betweenness(self) -> Any:
        num_nodes = self.graph.vcount()

        def execute(source: int) -> Any:
            return self.graph.betweenness(sources=[source])

        def answer(found: Any) -> Answer:  # each pair once, as networkx scales samples
            scores = np.array(found) * (num_nodes - 1)
            return {"sum": float(scores.sum()), "largest": float(scores.max())}

        return execute, answer


class ScikitNetwork:
    """scikit-network."""

    def __init__(self, arrays: Arrays) -> None:
        matrix = SciPy(arrays).matrix
        self.matrix = matrix.astype(bool)

    def bfs(self) -> Any:
        from sknetwork.path import get_distances

        def answer(found: Any) -> Answer:
            hops = found.astype(np.float64)
            hops[hops < 0] = np.inf
            return reached(hops)

        return (lambda source: get_distances(self.matrix, source)), answer

    def wcc(self) -> Any:
        from sknetwork.topology import get_connected_components

        def execute(source: int) -> Any:
            return get_connected_components(self.matrix)

        return execute, lambda found: {"components": int(found.max()) + 1}

    def triangle_count(self) -> Any:
        from sknetwork.topology import count_triangles

        def execute(source: int) -> Any:
            return count_triangles(self.matrix, parallelize=True)

        return execute, lambda found: {"triangles": int(found)}

    def pagerank(self) -> Any:
        from sknetwork.ranking import PageRank

        def execute(source: int) -> Any:
            ranking = PageRank(DAMPING, n_iter=ITERATIONS, tol=0)
            return ranking.fit_predict(self.matrix)

        return execute, lambda found: {}


class GraphBlas:
    """SuiteSparse through python-graphblas: the masked product for triangles."""

    def __init__(self, arrays: Arrays) -> None:
        import graphblas as gb

        gb.ss.config["nthreads"] = len(os.sched_getaffinity(0))
        self.gb, self.arrays = gb, arrays

    def triangle_count(self) -> Any:
        arrays, gb = self.arrays, self.gb
        src, dst = arrays.row_numbers(), arrays.indices
        below = dst < src
        matrix = gb.Matrix.from_coo(
            src[below].astype(np.uint64),
            dst[below].astype(np.uint64),
            True,
            nrows=arrays.num_nodes,
            ncols=arrays.num_nodes,
            dtype=bool,
        )

        def execute(source: int) -> Any:  # LAGraph's Sandia_LUT
            found = gb.Matrix(gb.dtypes.UINT64, *matrix.shape)
            found(matrix.S) << gb.semiring.plus_pair(matrix @ matrix.T)
            return found.reduce_scalar(gb.monoid.plus).new().value

        return execute, lambda found: {"triangles": int(found)}


SYSTEMS: dict[str, Callable[[Arrays], Any]] = {
    "graphsys": Graphsys,
    "scipy": SciPy,
    "networkit": NetworKit,
    "igraph": Igraph,
    "scikit-network": ScikitNetwork,
    "python-graphblas": GraphBlas,
}
