"""Communities by Leiden: modularity, with the guarantee that communities are connected."""

import time
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from graphsys.core.rng import generator
from graphsys.engine.algorithms.algorithm import (
    Example,
    GraphLike,
    NativeOptions,
    listed,
)
from graphsys.engine.algorithms.arguments import (
    refuse_weight,
    require,
    require_count,
    rows_by_rank,
    weight_of,
)
from graphsys.engine.needs import BY_ID, Facts, Need
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.graph.csr import Csr, csr_from_edges
from graphsys.kernels.cpu.algorithms.communities import (
    fold_graph,
    modularity,
    number_communities,
)
from graphsys.kernels.cpu.algorithms.leiden import move_nodes, refine_communities
from graphsys.kernels.cpu.algorithms.pagerank import sum_rows

_ROUNDING = 1e-13
Rows = tuple[
    npt.NDArray[np.int64],
    npt.NDArray[Any],
    npt.NDArray[np.float64],
    npt.NDArray[np.float64],
]


def _leiden(facts: Facts) -> Need:
    entries = facts.edges * (2 if facts.topology.is_directed else 1)
    total = 80 * facts.nodes + 40 * entries
    return Need(rows=("out",), bytes=total, copies=BY_ID)


@listed(needs=_leiden, answers=True, example=Example(largest=16))
def leiden(
    graph: GraphLike,
    *,
    resolution: float = 1.0,
    weighted: bool = False,
    seed: int = 0,
    tolerance: float = 1e-5,
    max_supersteps: int = 100,
    **options: Unpack[NativeOptions],
) -> Result:
    """Communities of high modularity, each of them connected.

    Direction does not count; repeated edges count as often as they are stored, a loop adds
    twice to its node's degree. The result depends on ids, edges and ``seed`` alone.

    Args:
        graph: An open graph, its path, or edges in memory.
        resolution: Higher values give more and smaller communities.
        weighted: Count edges by ``weight`` (1 if there is none).
        seed: Chooses the order of visits and the choices of the refinement.
        tolerance: Stop after a pass that raises the modularity by no more than this.
        max_supersteps: Give up after so many passes, each of which starts from the
            communities of the last; ``converged`` is then false.
        options: How it is run: ``memory`` and ``num_threads`` (it is serial).

    Returns:
        ``value``: the smallest id of the node's community. ``result``: the modularity.

    Raises:
        ConfigError: a parameter out of range.
        InvalidGraphError: a negative or infinite weight.

    Complexity:
        O(E) per level in practice; 16 bytes per entry of the symmetric graph. Serial.

    References:
        Traag, Waltman, van Eck, "From Louvain to Leiden", Scientific Reports 9, 2019.

    Example:
        >>> import graphsys as gs
        >>> src, dst = [0, 1, 2, 3, 4, 5, 2], [1, 2, 0, 4, 5, 3, 3]
        >>> graph = gs.Topology.from_edges(src, dst, num_nodes=6, directed=False)
        >>> gs.algorithms.leiden(graph).table["value"].to_pylist()
        [0, 0, 0, 3, 3, 3]
    """
    topology = Topology.of(graph)
    began = time.perf_counter()
    require(0 <= resolution < np.inf, "resolution", resolution, "a number >= 0")
    require_count("seed", seed, least=0)
    require(0 <= tolerance < np.inf, "tolerance", tolerance, "a number >= 0")
    require_count("max_supersteps", max_supersteps)
    graph = _prepare(topology, weighted)
    community = np.arange(topology.num_nodes, dtype=np.int64)
    quality = graph.modularity(resolution, community)
    supersteps, converged = 0, graph.total == 0.0
    while supersteps < max_supersteps and not converged:
        better = community.copy()
        _improve(graph, resolution, seed, supersteps, better)
        reached = graph.modularity(resolution, better)
        # a pass may end lower, since refinement draws: then the partition before stays
        converged = reached <= quality + max(tolerance, _ROUNDING)
        if reached > quality + _ROUNDING:
            community, quality = better, reached
        supersteps += 1
    return Result(
        source=lambda: topology.table({"value": _labels(topology, community)}),
        algorithm="leiden",
        supersteps=supersteps,
        seconds=time.perf_counter() - began,
        converged=converged,
        result=quality,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Folded:
    """A symmetric graph without loops, and what its nodes weigh.

    Attributes:
        rows: Row offsets int64 ``[n + 1]``, neighbors ``[e]``, weights float64 ``[e]``,
            strengths float64 ``[n]``: the order in which kernels take them.
        loops: Weight of the loops that were left out.
        total: Sum of the strengths.
    """

    rows: Rows
    loops: float
    total: float

    def modularity(self, resolution: float, community: npt.NDArray[np.int64]) -> float:
        return modularity(*self.rows, self.loops, resolution, community)


def _prepare(topology: Topology, weighted: bool) -> _Folded:
    csr = _symmetric(rows_by_rank(topology, topology.csr("out")), topology.is_directed)
    weight = weight_of(csr) if weighted else np.ones(csr.num_edges)
    weight = weight.astype(np.float64, copy=False)
    strength = np.empty(csr.num_nodes, dtype=np.float64)
    begins, ends = csr.indptr[:-1], csr.indptr[1:]
    refuse_weight(begins, weight, sum_rows(begins, ends, begins, weight, strength))
    row = np.repeat(np.arange(csr.num_nodes, dtype=csr.indices.dtype), csr.degrees())
    is_loop = row == csr.indices
    loops = float(weight[is_loop].sum())
    np.add.at(strength, row[is_loop], weight[is_loop])
    kept = ~is_loop & (weight > 0)
    counts = np.bincount(row[kept], minlength=csr.num_nodes)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    rows = (indptr, csr.indices[kept], weight[kept], strength)
    return _Folded(rows=rows, loops=loops, total=float(strength.sum()))


def _symmetric(csr: Csr, is_directed: bool) -> Csr:
    """Add the other direction of directed edges; loops stay single."""
    if not is_directed:
        return csr
    row = np.repeat(np.arange(csr.num_nodes, dtype=csr.indices.dtype), csr.degrees())
    mirrored = row != csr.indices
    src = np.concatenate([row, csr.indices[mirrored]])
    dst = np.concatenate([csr.indices, row[mirrored]])
    weight = csr.weight
    if weight is not None:
        weight = np.concatenate([weight, weight[mirrored]])
    return csr_from_edges(src, dst, csr.num_nodes, weight=weight)


def _improve(
    graph: _Folded,
    resolution: float,
    seed: int,
    superstep: int,
    community: npt.NDArray[np.int64],
) -> None:
    """Run one pass: move, refine, fold, until a level has nothing left to fold."""
    scale = resolution / graph.total
    least = _ROUNDING * graph.total
    rows = graph.rows
    draws = generator(seed, "leiden", superstep)
    node_of = np.arange(len(community))  # the folded node that holds each node
    current = community.copy()
    while True:
        num_moves = move_nodes(*rows, scale, least, _draw(draws), current)
        num_communities = number_communities(current)
        community[:] = current[node_of]
        num_nodes = len(current)
        if num_communities == num_nodes:
            return
        # communities are split into connected parts before they are folded: that is what
        # Louvain lacks, whose communities may fall apart
        refined = np.empty_like(current)
        refine_communities(*rows, scale, _draw(draws), current, refined)
        num_parts = number_communities(refined)
        if num_parts == num_nodes:
            if num_moves == 0:
                return
            refined, num_parts = current, num_communities
        # parts begin the next level in the community that they came from
        folded = np.empty(num_parts, dtype=np.int64)
        folded[refined] = current
        rows = fold_graph(*rows, refined, num_parts)
        node_of = refined[node_of]
        current = folded


def _draw(draws: np.random.Generator) -> np.uint64:
    return np.uint64(draws.integers(2**64, dtype=np.uint64))


def _labels(topology: Topology, community: npt.NDArray[np.int64]) -> Any:
    """Return the id of the first member by rank, in the order of the numbers."""
    num_nodes = len(community)
    first = np.full(num_nodes, num_nodes, dtype=np.int64)
    np.minimum.at(first, community, np.arange(num_nodes))
    label = first[community]
    rank = topology.rank
    return topology.numbers.ids_at_ranks(label if rank is None else label[rank])
