"""Communities by Leiden: modularity, with the guarantee that communities are connected."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt

from graphsys.core.progress import tell_figures
from graphsys.core.rng import generator
from graphsys.core.threads import ThreadTeam
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
)
from graphsys.engine.algorithms.components import even_chunks
from graphsys.engine.memory_plan import Facts, Need
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.graph.csr import Allocate, Csr, read_only
from graphsys.kernels.cpu.algorithms.components import compress
from graphsys.kernels.cpu.algorithms.leiden import folding, moves, refinement
from graphsys.kernels.cpu.algorithms.leiden import rows as sums
from graphsys.kernels.cpu.algorithms.leiden.rows import Sides
from graphsys.kernels.cpu.barrier import MEETING_SIZE
from graphsys.kernels.cpu.rows.csr import WeightedCsr

if TYPE_CHECKING:
    from graphsys.engine.united_rows import Direction

_ROUNDING = 1e-13
_FEW = 4096
"""So many nodes, or fewer, move one by one."""
_FEW_ENTRIES = 1 << 19
"""Fewer entries one thread looks at sooner than several that wait for each other."""
_MOST_WAITING = 4 * _FEW
_MOST_ROUNDS = 40
"""Rounds in which many nodes move at once; the nodes that are left move one by one."""
_CHUNK = 4096
_SUM_BITS = 51
_AT_A_TIME = 1 << 20
_REFINEMENTS = 2
"""Tries of a node to join a part; in the first its best one may be of its own sub-round."""
Array = npt.NDArray[Any]


def _leiden(facts: Facts) -> Need:
    weighted = bool(facts.options.get("weighted"))
    # two folded levels are there at once, neither with more entries than the graph
    per_entry = 2 * (4 + 4)
    own, level, node = 20, 28, 51  # of the graph; of a level; while its nodes are refined
    per_node = own + level + node + 12 * facts.threads + facts.ranked / 4
    taking = own + facts.ranked + 2 * facts.id_bytes
    return Need(
        rows=facts.both,
        in_place=True,
        columns=("weight",) if weighted else (),
        bytes=max(per_node, taking) * facts.nodes + (1 << 20),
        entries=per_entry * facts.edges * len(facts.both),
        beside="levels folded from them",
    )


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
    twice to its node's degree. The result depends on ids, edges and ``seed`` alone: neither
    threads nor partitions change it.

    Args:
        graph: An open graph, its path, or edges in memory.
        resolution: Higher values give more and smaller communities.
        weighted: Count edges by ``weight`` (1 if there is none).
        seed: Chooses the order of visits and the choices of the refinement.
        tolerance: Stop after a pass that raises the modularity by no more than this.
        max_supersteps: Give up after so many passes, each of which starts from the
            communities of the last; ``converged`` is then false.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        ``value``: the smallest id of the node's community. ``result``: the modularity.

    Raises:
        ConfigError: a parameter out of range.
        InvalidGraphError: a negative or infinite weight.

    Complexity:
        O(E) per level in practice. Memory besides the rows: 8 bytes per entry of a folded
        level, of which two are there at once; some 100 bytes a node, and 12 per thread.

    References:
        Traag, Waltman, van Eck, "From Louvain to Leiden", Scientific Reports 9, 2019. Nodes
        move in sub-rounds that a hash chooses: Gottesbueren, Heuer, Sanders, Seemaier,
        "Deterministic parallel hypergraph partitioning", Euro-Par 2022. Sahu, "GVE-Leiden:
        fast Leiden algorithm for community detection in shared memory setting", arXiv
        2312.13936.

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
    with ThreadTeam(options.get("num_threads")) as team:
        level = _whole_graph(topology, weighted, team)
        search = _Passes(
            team=team, level=level, resolution=resolution, allocate=topology.allocate
        )
        community, quality = search.first, search.quality_of(level, search.first)
        supersteps, converged = 0, search.total == 0.0
        while supersteps < max_supersteps and not converged:
            tell_figures(superstep=supersteps + 1, modularity=quality)
            draws = generator(seed, "leiden", supersteps)
            better, reached = search.improve(community, draws)
            # a pass may end lower, since refinement draws: then the partition before stays
            converged = reached <= quality + max(tolerance, _ROUNDING)
            if reached > quality + _ROUNDING:
                community, quality = better, reached
            supersteps += 1
        community = search.connected(community)
        quality = search.quality_of(level, community)
    return Result(
        source=lambda: topology.table({"value": topology.numbers.ids_at_ranks(community)}),
        algorithm="leiden",
        supersteps=supersteps,
        seconds=time.perf_counter() - began,
        converged=converged,
        result=quality,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    """A graph whose nodes are those of the graph itself, or parts of it.

    Attributes:
        rows: The neighbors of every node.
        unit: What turns their weights into whole numbers.
        strength: Sum of the weights of every node, loops twice, float64 ``[n]``.
        rank: Place of every node in the order of ids ``[n]``; empty where it is the number.
        inside: Weight, from both ends, that lies within nodes.
        num_entries: Entries of all rows.
    """

    rows: Sides
    unit: float
    strength: npt.NDArray[np.float64]
    rank: Array
    inside: float
    num_entries: int

    @property
    def num_nodes(self) -> int:
        return len(self.strength)


def _whole_graph(topology: Topology, weighted: bool, team: ThreadTeam) -> _Level:
    """Return the level of the graph itself, its rows where they lie."""
    ways: tuple[Direction, ...] = ("out", "in") if topology.is_directed else ("out",)
    columns = ("weight",) if weighted and topology.has_weight else ()
    found = [topology.rows(way, columns) for way in ways]
    unit = _unit_of(found) if columns else 1.0
    # weights of folded rows are numbers of edges, where edges have none
    is_exact = not columns and sum(rows.num_edges for rows in found) < 2**32
    nothing = read_only(np.empty(0, dtype=np.uint32 if is_exact else np.float32))
    sides: list[WeightedCsr] = []
    for rows in found:
        weight = rows.columns["weight"] if columns else nothing
        begins = rows.begins_of("weight") if columns else rows.begins
        sides.append(WeightedCsr(rows.begins, rows.ends, rows.indices, begins, weight))
    level_rows = (sides[0], sides[1] if len(sides) == 2 else _without_rows(sides[0]))
    strength = np.empty(topology.num_nodes, dtype=np.float64)
    loops = sum(team.run(sums.sum_strengths, level_rows, unit, _counter(), strength))
    rank = topology.rank
    return _Level(
        rows=level_rows,
        unit=unit,
        strength=strength,
        rank=sides[0].indices[:0] if rank is None else read_only(rank),
        inside=2.0 * loops,
        num_entries=sum(it.num_edges for it in found),
    )


def _without_rows(rows: WeightedCsr) -> WeightedCsr:
    return WeightedCsr(*(array[:0] for array in rows))


def _unit_of(sides: list[Csr]) -> float:
    """Return the power of two by which weights are multiplied, then rounded.

    The sum of all is then below 2**53, so that no sum of theirs is ever rounded.

    Raises:
        InvalidGraphError: a negative or infinite weight.
    """
    largest, num_entries = 0.0, max(sum(rows.num_edges for rows in sides), 1)
    for rows in sides:
        for first, piece in _pieces(rows):
            if not (piece.min() >= 0 and piece.max() < np.inf):
                place = first + int(np.argmin((piece >= 0) & (piece < np.inf)))
                refuse_weight(rows.begins_of("weight"), rows.columns["weight"], place)
            largest = max(largest, float(piece.max()))
    if largest == 0.0:
        return 1.0
    # A first unit from bounds alone; the sum that it gives, which is rounded up, shows how
    # many bits are left to use.
    bits = math.ceil(math.log2(largest) + math.log2(num_entries)) + 1
    rough = _power(_SUM_BITS - bits)
    total = 0.0
    for rows in sides:
        for _, piece in _pieces(rows):
            total += float(np.ceil(piece.astype(np.float64) * rough).sum())
    return _power(_SUM_BITS - bits + _SUM_BITS - math.frexp(total)[1])


def _pieces(rows: Csr) -> Iterator[tuple[int, Array]]:
    for first, piece in rows.pieces("weight"):
        for low in range(0, len(piece), _AT_A_TIME):
            yield first + low, piece[low : low + _AT_A_TIME]


def _power(exponent: int) -> float:
    return 2.0 ** min(max(exponent, -1000), 1000)


class _Passes:
    """What all passes share: threads, and what gains are measured by."""

    def __init__(
        self, *, team: ThreadTeam, level: _Level, resolution: float, allocate: Allocate
    ) -> None:
        self.team, self.level = team, level
        self.resolution, self.allocate = resolution, allocate
        self.total = float(level.strength.sum())
        self.scale = resolution / self.total if self.total else 0.0
        self.least = _ROUNDING * self.total
        self.dtype = level.rows[0].indices.dtype
        self.first = level.rank.copy()
        if not len(self.first):
            self.first = np.arange(level.num_nodes, dtype=self.dtype)

    def improve(self, community: Array, draws: np.random.Generator) -> tuple[Array, float]:
        """Run one pass: move, refine, fold, until a level has nothing left to fold."""
        level, current, node_of, depth = self.level, community.copy(), None, 1
        while True:
            tell_figures(level=depth, nodes=level.num_nodes)
            num_moves = self.move(level, current, _draw(draws))
            current, num_communities = _numbered(current)
            part, num_parts = current, num_communities
            is_over = num_communities == level.num_nodes
            if not is_over:
                # communities are split into connected parts before they are folded: that is
                # what Louvain lacks, whose communities may fall apart
                part, num_parts = _numbered(self.refine(level, current, _draw(draws)))
                if num_parts == level.num_nodes:
                    is_over = num_moves == 0
                    part, num_parts = current, num_communities
            if is_over:
                found = current if node_of is None else current[node_of]
                if level.rows[0].weight.dtype == np.float32:  # rounded: whole ones are told
                    return found, self.quality_of(self.level, found)
                return found, self.quality_of(level, current)
            # parts begin the next level in the community that they came from
            folded = np.empty(num_parts, dtype=self.dtype)
            folded[part] = current
            level = self.fold(level, part, num_parts)
            node_of = part if node_of is None else part[node_of]
            current, depth = folded, depth + 1

    def move(self, level: _Level, community: Array, seed: np.uint64) -> int:
        """Move nodes until none gains; return how many moves were made."""
        num = level.num_nodes
        totals = np.zeros(num, dtype=np.float64)
        sums.sum_by_group(community, level.strength, totals)
        state = (level.strength > 0).astype(np.uint8)
        nodes = moves.CommunityNodes(community, level.strength, totals, state, level.rank)
        links, touched = self._scratch(level, num)
        order, target = np.empty(num, dtype=self.dtype), np.empty(num, dtype=self.dtype)
        verdict = np.empty(num, dtype=np.uint8)
        step = (level.rows, level.unit, nodes, self.scale, self.least)
        num_moves = num_rounds = 0
        while True:
            seed = np.uint64((int(seed) + 0x9E3779B97F4A7C15) % 2**64)
            num_ready = int(np.count_nonzero(state == moves.READY))
            if num_ready > _FEW and num_rounds < _MOST_ROUNDS:
                num_rounds += 1
                bounds = self._subrounds(level, state, seed, order)
                listed = (order, bounds, target, verdict, links, touched)
                # the same whatever the number of threads, which wait longer than they work
                # where few nodes look
                work = num_ready * level.num_entries // num
                num_moves += sum(self._together(work, moves.move_together, *step, *listed))
                continue
            num_left = int(np.count_nonzero(state))
            if not num_left:
                return num_moves
            most = max(_MOST_WAITING, num_left) if num_rounds < _MOST_ROUNDS else num
            num_moves += moves.move_singly(*step, seed, most, links[0], touched[0], order)

    def refine(self, level: _Level, community: Array, seed: np.uint64) -> Array:
        """Return the part of every node, well connected within its community."""
        num = level.num_nodes
        whole = np.zeros(num, dtype=np.float64)
        sums.sum_by_group(community, level.strength, whole)
        parts = refinement.Parts(
            community,
            whole,
            level.strength,
            np.empty(num, dtype=self.dtype),
            np.empty(num, dtype=np.float64),
            np.empty(num, dtype=np.float64),
            np.empty(num, dtype=np.uint8),
            level.rank,
        )
        self._run(
            level.num_entries,
            refinement.begin_parts,
            level.rows,
            level.unit,
            parts,
            _counter(),
        )
        links, touched = self._scratch(level, num)
        order, target = np.empty(num, dtype=self.dtype), np.empty(num, dtype=self.dtype)
        change = np.empty(num, dtype=np.float64)
        state = np.full(num, moves.READY, dtype=np.uint8)
        for k in range(_REFINEMENTS):
            # Another seed, other sub-rounds: two nodes that could not join each other now
            # may.
            own = np.uint64((int(seed) + k) % 2**64)
            bounds = self._subrounds(level, state, own, order)
            self._together(
                level.num_entries,
                refinement.join_parts,
                level.rows,
                level.unit,
                parts,
                self.scale,
                own,
                order,
                bounds,
                target,
                change,
                links,
                touched,
            )
        return parts.part

    def fold(self, level: _Level, part: Array, num_parts: int) -> _Level:
        """Return the level whose nodes are parts of this one."""
        rows, offsets = level.rows, level.rows[0].begins.dtype
        starts = np.zeros(num_parts + 1, dtype=offsets)
        members = np.empty(level.num_nodes, dtype=self.dtype)
        folding.list_members(part, starts, members)
        links, touched = self._scratch(level, num_parts)
        begins, ends = np.empty((2, num_parts), dtype=offsets)
        is_exact = rows[0].weight.dtype == np.uint32
        indices = self.allocate(level.num_entries, self.dtype)
        weight = self.allocate(level.num_entries, np.uint32 if is_exact else np.float32)
        counters = np.zeros(2, dtype=np.int64)
        found = (rows, level.unit, part, starts, members, links, touched, counters)
        made = (begins, ends, indices, weight)
        inside = sum(self._run(level.num_entries, folding.fold_rows, *found, *made))
        num_entries = int(counters[1])
        strength = np.zeros(num_parts, dtype=np.float64)
        sums.sum_by_group(part, level.strength, strength)
        begins, ends = read_only(begins), read_only(ends)
        weight = read_only(_cut(weight, num_entries))
        out = WeightedCsr(
            begins, ends, read_only(_cut(indices, num_entries)), begins, weight
        )
        return _Level(
            rows=(out, _without_rows(out)),
            unit=1.0,
            strength=strength,
            rank=level.rank[:0],
            inside=level.inside + inside,
            num_entries=num_entries,
        )

    def quality_of(self, level: _Level, community: Array) -> float:
        """Return the modularity of communities of a level's nodes."""
        if not self.total:
            return 0.0
        totals = np.zeros(level.num_nodes, dtype=np.float64)
        sums.sum_by_group(community, level.strength, totals)
        given = (level.rows, level.unit, community, _counter())
        shares = self._run(level.num_entries, sums.weigh_inside, *given)
        inside = level.inside + float(sum(shares))
        squares = float(((totals / self.total) ** 2).sum())
        return inside / self.total - self.resolution * squares

    def connected(self, community: Array) -> Array:
        """Split communities that are not connected; name each by its smallest rank."""
        level = self.level
        num = level.num_nodes
        parent = np.arange(num, dtype=self.dtype)
        joined = (level.rows, community, _counter(), parent)
        self.team.run(folding.join_neighbors, *joined)
        self.team.run(compress, even_chunks(num), _counter(), parent)
        smallest = np.full(num, max(num - 1, 0), dtype=self.dtype)
        np.minimum.at(smallest, parent, self.first)
        named: Array = smallest[parent]
        return named

    def _subrounds(
        self, level: _Level, state: Array, seed: np.uint64, order: Array
    ) -> npt.NDArray[np.int64]:
        """List the nodes that are ready by sub-rounds; return where each begins."""
        num_chunks = -(-len(state) // _CHUNK)
        counts = np.zeros((num_chunks, moves.NUM_SUBROUNDS), dtype=np.int64)
        chosen = (state, level.rank, seed, _CHUNK)
        self._run(level.num_entries, moves.count_ready, *chosen, _counter(), counts)
        ends = np.cumsum(counts.T.ravel()).reshape(moves.NUM_SUBROUNDS, num_chunks)
        places = np.ascontiguousarray(ends.T - counts)
        self._run(level.num_entries, moves.list_ready, *chosen, _counter(), places, order)
        return np.concatenate([[0], ends[:, -1]])

    def _threads(self, num_entries: int) -> int:
        return self.team.num_threads if num_entries >= _FEW_ENTRIES else 1

    def _scratch(self, level: _Level, length: int) -> tuple[Array, Array]:
        shape = self._threads(level.num_entries), length
        return np.zeros(shape, dtype=np.float64), np.empty(shape, dtype=self.dtype)

    def _run(self, num_entries: int, kernel: Any, *args: Any) -> list[Any]:
        """Call a kernel in all threads, or in this one where entries are few."""
        if self._threads(num_entries) > 1:
            return self.team.run(kernel, *args)
        return [kernel(0, *args)]

    def _together(self, num_entries: int, kernel: Any, *args: Any) -> list[Any]:
        """Call a kernel whose threads meet after every sub-round."""
        counters = np.zeros((3 * moves.NUM_SUBROUNDS, moves.COUNTER_SIZE), dtype=np.int64)
        meeting = np.zeros(MEETING_SIZE, dtype=np.int64)
        threads = self._threads(num_entries)
        return self._run(num_entries, kernel, threads, *args, counters, meeting)


def _counter() -> npt.NDArray[np.int64]:
    return np.zeros(1, dtype=np.int64)


def _numbered(group: Array) -> tuple[Array, int]:
    """Number groups 0, 1, 2 ... in their order; return how many there are."""
    is_used = np.zeros(len(group), dtype=np.bool_)
    is_used[group] = True
    numbers = np.cumsum(is_used, dtype=group.dtype)
    numbers -= 1
    return numbers[group], int(np.count_nonzero(is_used))


def _cut(array: Array, length: int) -> Array:
    """Give back what lies behind the first entries of an array."""
    if array.flags.owndata:
        array.resize(length, refcheck=False)
    return array[:length]


def _draw(draws: np.random.Generator) -> np.uint64:
    return np.uint64(draws.integers(2**64, dtype=np.uint64))
