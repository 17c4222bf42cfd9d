"""PageRank by power iteration: the share of time a random surfer spends at each node."""

import time
from collections.abc import Hashable, Mapping
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.core.events import count, is_recording, observe, span
from graphsys.core.row_trace import RowVisit
from graphsys.core.threads import ThreadTeam
from graphsys.engine.algorithms.algorithm import (
    Example,
    GraphLike,
    ProgramOptions,
    RunOptions,
    listed,
)
from graphsys.engine.algorithms.arguments import (
    refuse_weight,
    require,
    require_count,
    weight_of,
)
from graphsys.engine.memory_plan import Facts, Need
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.graph.csr import Csr
from graphsys.kernels.cpu.algorithms.pagerank import (
    pagerank_superstep,
    start_evenly,
    sum_rows,
)

_NONE = np.empty(0, dtype=np.float64)
_UNKNOWN = np.empty(0, dtype=np.int64)
_SAFE = 0.75
"""Exponents of a type's range within which sums of weights stay as they are."""


def _pagerank(facts: Facts) -> Need:
    weighted = bool(facts.options.get("weighted")) and facts.topology.has_weight
    width = 4 if facts.options.get("dtype") == "float32" else 8
    restart = 8 if facts.options.get("personalization") else 0
    per_node = max(4 * width + (0 if weighted else 8) + restart, 26)
    rows = facts.both if weighted else ("in",)
    variant, columns = ("weighted", ("weight",)) if weighted else ("", ())
    return Need(
        rows=rows,
        in_place=True,
        columns=columns,
        bytes=per_node * facts.nodes,
        variant=variant,
    )


class _Options(RunOptions, total=False):
    """With what a follower gives: the scores to begin with, ``[N]``, whose sum is 1."""

    start: npt.NDArray[np.float64]


@listed(
    needs=_pagerank,
    program="pagerank:PageRank",
    shown="largest",
    tags=("PR",),
    follower="pagerank:pagerank",
)
def pagerank(
    graph: GraphLike,
    *,
    damping: float = 0.85,
    tolerance: float = 1e-6,
    iterations: int | None = None,
    max_supersteps: int = 1000,
    personalization: Mapping[Any, float] | None = None,
    weighted: bool = False,
    dtype: str = "float64",
    **options: Unpack[_Options],
) -> Result:
    """PageRank: the share of time that a random surfer spends at each node.

    Scores start at 1/N and sum to 1: nodes without out-edges (or with weights of 0 only)
    give theirs to all nodes alike, or as ``personalization`` says. Repeated edges count as
    often as they are stored. The native result is the same, bit by bit, for any number of
    threads.

    Args:
        graph: An open graph, its path, or edges in memory; an undirected edge counts in
            both directions.
        damping: Share of the surfers who follow an edge, 0 to 1.
        tolerance: Stop when the scores of a superstep differ from the last ones by less
            than this in all (L1 norm).
        iterations: Run exactly that many supersteps instead.
        max_supersteps: Give up after so many; ``converged`` is then false.
        personalization: Weight of each node (by id) to be jumped to; nodes left out get 0.
            All alike by default. Native only, as the next two.
        weighted: Split a node's score by the edges' ``weight`` (1 if there is none).
        dtype: Of the scores: ``float64``, or ``float32`` for speed.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        ``value``: the scores.

    Raises:
        ConfigError: a parameter out of range, or a personalization that sums to 0.
        UnknownNameError: a node of the personalization is not in the graph.
        InvalidGraphError: a negative or infinite weight.

    Complexity:
        O(N + E) per superstep; two arrays of N scores and one of N degrees besides the
        graph.

    References:
        Page, Brin, Motwani, Winograd, "The PageRank citation ranking", Stanford, 1999.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 2], [2, 2, 0], num_nodes=3)
        >>> scores = gs.algorithms.pagerank(graph).table["value"].to_numpy()
        >>> scores.round(3).tolist()
        [0.464, 0.05, 0.486]
    """
    began = time.perf_counter()
    require(0.0 <= damping <= 1.0, "damping", damping, "a number from 0 to 1")
    require(tolerance > 0.0, "tolerance", tolerance, "a number > 0")
    require(dtype in ("float64", "float32"), "dtype", dtype, "'float64' or 'float32'")
    require_count("max_supersteps", max_supersteps)
    if iterations is not None:
        require_count("iterations", iterations, least=0)
    topology = Topology.of(graph)
    restart = _restart(topology, personalization)
    rows, weight, scale, degree = _shares(topology, weighted, np.dtype(dtype))
    with ThreadTeam(options.get("num_threads")) as team:
        start = options.get("start")
        iteration = _Iteration(rows, weight, team, scale, degree, restart, damping, start)
        limit = max_supersteps if iterations is None else iterations
        bar = tolerance if iterations is None else -1.0
        supersteps, converged = 0, topology.num_nodes == 0
        # a number of iterations is kept to, however little the scores still change
        while supersteps < limit and not converged:
            converged = iteration.step(supersteps) < bar
            supersteps += 1
    scores = iteration.scores
    return Result(
        source=lambda: topology.table({"value": scores}),
        algorithm="pagerank",
        supersteps=supersteps,
        seconds=time.perf_counter() - began,
        converged=converged or iterations is not None,
    )


class _Iteration:
    """Scores, contributions and dangling mass between supersteps."""

    def __init__(
        self,
        rows: Csr,
        weight: npt.NDArray[Any],
        team: ThreadTeam,
        scale: npt.NDArray[Any],
        degree: npt.NDArray[np.int64],
        restart: npt.NDArray[np.float64],
        damping: float,
        start: npt.NDArray[np.float64] | None,
    ) -> None:
        self.rows, self.weight = rows, weight
        self.team, self.scale, self.restart, self.damping = team, scale, restart, damping
        num_nodes = max(rows.num_nodes, 1)
        self.scores = np.empty(rows.num_nodes, dtype=scale.dtype)
        self.contributions = np.empty_like(self.scores)
        self.bounds = self.rows.chunks()
        alone = np.zeros(len(self.bounds) - 1, dtype=np.int64)
        team.prepare(
            start_evenly,
            degree,
            self.bounds,
            np.zeros(1, dtype=np.int64),
            1.0 / num_nodes,
            scale,
            self.scores,
            self.contributions,
            alone,
        )
        self.dangling = float(alone.sum()) / num_nodes
        if start is not None:
            self.scores[:] = start
            self.dangling = float(start[scale == 0].sum())
            self.contributions = self.scores * scale
        self.next_contributions = np.empty_like(self.contributions)
        self.partial = np.zeros((len(self.bounds) - 1, 2))

    def step(self, number: int) -> float:
        """Run the superstep of a number and return the L1 norm of the change."""
        # what nobody passes on is shared by all: surfers who jump, and those at dead ends
        jumped = (1.0 - self.damping) + self.damping * self.dangling
        base = jumped if len(self.restart) else jumped / len(self.scores)
        _tell_all_rows(number, self.rows, self.scores.dtype.itemsize, "pagerank")
        facts = {"senders": len(self.scores), "messages": self.rows.num_edges}
        with span("superstep", number=number, phase="", mode="pull", **facts):
            self.team.run(
                pagerank_superstep,
                self.rows.begins,
                self.rows.ends,
                self.rows.indices,
                self.rows.begins_of("weight"),
                self.weight,
                self.bounds,
                np.zeros(1, dtype=np.int64),
                self.contributions,
                self.next_contributions,
                self.scores,
                self.scale,
                self.restart,
                base,
                self.damping,
                self.partial,
            )
        # the kernel has written next contributions while it read these: no thread may see
        # a sum that another one has just changed, or results would depend on threads
        self.contributions, self.next_contributions = (
            self.next_contributions,
            self.contributions,
        )
        change, self.dangling = self.partial.sum(axis=0).tolist()
        return float(change)


def _shares(
    topology: Topology, weighted: bool, dtype: np.dtype[Any]
) -> tuple[Csr, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return the in-rows, their weights, or none, and one over each node's sum of them.

    Without weights there is room for the last, and the out-degrees.

    Raises:
        InvalidGraphError: a negative or infinite weight.
    """
    columns = ("weight",) if weighted else ()
    out = topology.rows("out", columns) if weighted and topology.has_weight else None
    if out is None or "weight" not in out.columns:  # every edge counts once
        degree = topology.out_degree
        return topology.rows("in"), _NONE, np.empty(len(degree), dtype), degree
    total = np.empty(topology.num_nodes, dtype=np.float64)
    weight, begins = out.columns["weight"], out.begins_of("weight")
    found = sum_rows(out.begins, out.ends, begins, weight, total)
    refuse_weight(begins, weight, found)
    # one over a tiny sum is infinite, a huge sum is too: such weights are scaled first
    limits = np.finfo(dtype)
    low, high = float(limits.tiny) ** _SAFE, float(limits.max) ** _SAFE
    if ((total > 0) & ((total < low) | (total > high))).any():
        return *_scaled_shares(topology, total, dtype), _UNKNOWN
    into = topology.rows("in", columns)
    return into, into.columns["weight"], _one_over(total).astype(dtype), _UNKNOWN


def _scaled_shares(
    topology: Topology, total: npt.NDArray[np.float64], dtype: np.dtype[Any]
) -> tuple[Csr, npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the same where one over a sum of weights would be no number of the type.

    The weights of each node are scaled by a power of two, which changes no share.
    """
    out, into = topology.csr("out"), topology.csr("in")
    weight = weight_of(out)
    filled = np.flatnonzero(out.indptr[1:] > out.indptr[:-1])
    largest = np.zeros(topology.num_nodes, dtype=np.float64)
    begins = out.indptr[filled].astype(np.int64)
    largest[filled] = np.maximum.reduceat(weight, begins) if len(filled) else 0
    power = -np.frexp(largest)[1]
    total[filled] = np.add.reduceat(
        np.ldexp(weight.astype(np.float64), np.repeat(power, np.diff(out.indptr))), begins
    )
    scaled = np.ldexp(weight_of(into).astype(np.float64), power[into.indices])
    return into, scaled, _one_over(total).astype(dtype)


def _one_over(total: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    share = np.zeros_like(total)
    np.divide(1.0, total, out=share, where=total > 0)
    return share


def _restart(
    topology: Topology, personalization: Mapping[Any, float] | None
) -> npt.NDArray[np.float64]:
    if personalization is None:
        return _NONE
    chances = np.zeros(topology.num_nodes, dtype=np.float64)
    for node, share in personalization.items():
        is_fine = bool(np.isfinite(share)) and share >= 0
        require(is_fine, f"personalization of node {node!r}", share, "a number >= 0")
        chances[topology.number(node)] = share
    total = chances.sum()
    if total <= 0:
        raise ConfigError(
            "personalization gives every node the weight 0; give at least one more than 0"
        )
    chances /= total
    return chances


@listed(
    program="pagerank:PersonalizedPageRank",
    shown="largest",
    example=Example(parameters={"source": 0}),
)
def personalized_pagerank(
    graph: GraphLike,
    *,
    source: Any,
    damping: float = 0.85,
    tolerance: float = 1e-6,
    iterations: int | None = None,
    **options: Unpack[ProgramOptions],
) -> None:
    """PageRank of a surfer who jumps back to a source.

    Args:
        graph: An open graph, its path, or edges in memory; an undirected edge counts in
            both directions.
        source: Id of the node to jump to.
        damping: Share of the surfers who follow an edge, 0 to 1.
        tolerance: Stop when the scores of a superstep differ from the last ones by less
            than this in all (L1 norm).
        iterations: Run exactly that many supersteps instead.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        ``value``: the scores, float64, which sum to 1.

    Raises:
        ConfigError: a parameter out of range.
        UnknownNameError: the graph has no such node.

    Complexity:
        O(N + E) per superstep.

    References:
        Page, Brin, Motwani, Winograd, "The PageRank citation ranking", Stanford, 1999.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 2], [1, 0, 0], num_nodes=3)
        >>> done = gs.algorithms.personalized_pagerank(graph, source=0)
        >>> done.table["value"].to_numpy().round(3).tolist()
        [0.541, 0.459, 0.0]
    """


def _tell_all_rows(superstep: int, rows: Csr, value_bytes: int, key: Hashable) -> None:
    """Tell that every row gathers from all its neighbors."""
    if is_recording():
        count("edges", rows.num_edges, at_most=False)
        observe(
            "rows",
            lambda: [
                RowVisit(
                    superstep=superstep,
                    kind="pull",
                    lengths=rows.degrees(),
                    starts=rows.begins,
                    indices=rows.indices,
                    value_bytes=value_bytes,
                    key=(key, id(rows.begins)),
                )
            ],
        )
