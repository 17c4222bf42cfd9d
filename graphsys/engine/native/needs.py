"""How many bytes each native algorithm takes on a graph, told from sizes.

Counted are arrays beside the rows, in the order in which the code makes and frees them; a
change there is a change here, and ``scripts/memory_rule`` shows whether both agree.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from graphsys.engine.execute.row_bytes import num_simple_entries
from graphsys.engine.native.all_pairs import MAX_NODES, block_sources, row_bytes
from graphsys.engine.native.betweenness import SMALL_EDGES
from graphsys.engine.native.similarity import (
    PairSearch,
    adamic_adar_search,
    jaccard_search,
)
from graphsys.engine.topology import Topology
from graphsys.engine.united_rows import Direction
from graphsys.storage.scratch_arrays import ScratchArrays

_PAIR_BYTES = 44
_BY_ID = "they are put in the order of ids, so that partitions change nothing"
_BY_DEGREE = "the edges of the simple graph are put in the order of degrees"
_FEW_PAIRS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What an algorithm takes.

    Attributes:
        rows: Directions of the rows that it reads.
        in_place: Whether it reads them where they lie (``Topology.rows``).
        columns: Columns that it asks those for.
        simple: Whether it reads the simple undirected graph.
        bytes: Bytes in memory at the peak, beside rows.
        entries: Bytes of arrays of all entries, which a scratch file may hold.
        copies: Why it copies the rows that it reads, for people; empty where it reads them
            in place.
        kernels: Module of ``engine/native`` whose kernels it calls, where not its own.
        variant: What tells the kernels that it calls from those of other runs.
    """

    rows: tuple[Direction, ...] = ()
    in_place: bool = False
    columns: tuple[str, ...] = ()
    simple: bool = False
    bytes: float = 0
    entries: float = 0
    copies: str = ""
    kernels: str = ""
    variant: str = ""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What needs are told from.

    Attributes:
        topology: The graph.
        options: Parameters of the algorithm that were given.
        threads: How many threads will run.
        is_stated: Whether the user stated a budget; what is too long to count otherwise
            is counted then.
    """

    topology: Topology
    options: Mapping[str, Any]
    threads: int
    is_stated: bool

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.topology.num_nodes

    @property
    def edges(self) -> int:
        """Entries of the out rows."""
        return self.topology.num_edges

    @cached_property
    def simple_entries(self) -> int:
        """Entries of the simple graph, at most."""
        return num_simple_entries(self.topology)

    @property
    def both(self) -> tuple[Direction, ...]:
        """Both directions."""
        return ("out", "in") if self.topology.is_directed else ("out",)

    @property
    def id_bytes(self) -> float:
        """Bytes of an id."""
        return self.topology.numbers.id_bytes

    @property
    def ranked(self) -> int:
        """Bytes a node that finding ranks takes; 0 where numbers are ranks."""
        return 0 if self.topology.numbers.are_ordered else 36


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


def _wcc(facts: Facts) -> Need:
    finding = 4 + facts.ranked
    taking = (20 if facts.ranked else 4) + 2 * facts.id_bytes
    per_node = max(8, finding, taking)
    return Need(rows=facts.both, in_place=True, bytes=per_node * facts.nodes)


def _scc(facts: Facts) -> Need:
    own = _wcc(facts)
    if not facts.topology.is_directed:
        return replace(own, kernels="components")
    searching = 4 + 4 + 8 + 1
    return replace(own, rows=("out",), bytes=max(own.bytes, searching * facts.nodes))


def _bfs(facts: Facts) -> Need:
    per_node, variant = 20.0, ""
    if facts.options.get("parents"):
        variant = "parents"
        per_node = 22 + max(facts.ranked, (8 if facts.ranked else 0) + 2 * facts.id_bytes)
    total = per_node * facts.nodes
    return Need(rows=facts.both, in_place=True, bytes=total, variant=variant)


def _sssp(facts: Facts) -> Need:
    if facts.topology.has_weight:
        pool = facts.threads * 4097 * 64 * 4
        return Need(
            rows=facts.both,
            in_place=True,
            columns=("weight",),
            bytes=34 * facts.nodes + pool,
        )
    per_node = 22 * facts.nodes
    return Need(rows=facts.both, in_place=True, bytes=per_node, kernels="traversal")


def _k_core(facts: Facts) -> Need:
    per_node = 12 + 4 * facts.threads + 8
    return Need(simple=True, bytes=per_node * facts.nodes)


def _triangles(facts: Facts) -> Need:
    per_node = max(20 + 8 * facts.threads, 40)
    return Need(
        rows=facts.both,
        in_place=True,
        bytes=per_node * facts.nodes,
        entries=4 * facts.simple_entries,
        copies=_BY_DEGREE,
    )


def _lcc(facts: Facts) -> Need:
    found = _triangles(facts)
    extra = 8 * facts.nodes
    if not facts.topology.is_directed:
        return replace(found, rows=(), simple=True, bytes=found.bytes + extra)
    extra += facts.threads * facts.nodes
    return Need(
        rows=facts.both,
        in_place=True,
        simple=True,
        bytes=found.bytes + extra,
        entries=found.entries + 2 * facts.simple_entries,
        copies=_BY_DEGREE,
    )


def _diameter(facts: Facts) -> Need:
    return Need(simple=True, bytes=52 * facts.nodes, kernels="traversal")


def _all_distances(facts: Facts) -> Need:
    per_node = 12 * facts.threads + 64
    return Need(rows=("in",), in_place=True, bytes=per_node * facts.nodes)


def _betweenness(facts: Facts) -> Need:
    if facts.edges <= SMALL_EDGES:
        per_node, variant = 32 * facts.threads + 32, "sources"
    else:
        per_node, variant = 8 + 14 + 4 + 32 + 24, "levels"
    total = per_node * facts.nodes
    return Need(rows=facts.both, in_place=True, bytes=total, variant=variant)


def _degree_statistics(facts: Facts) -> Need:
    return Need(bytes=(28 if facts.topology.is_directed else 20) * facts.nodes)


def _degree_assortativity(facts: Facts) -> Need:
    per_node = 56 if facts.topology.is_directed else 48
    return Need(rows=("out",), in_place=True, bytes=per_node * facts.nodes + (24 << 20))


def _apsp(facts: Facts) -> Need:
    own, block = _sssp(facts), block_sources(facts.nodes, 8)
    making = row_bytes(facts.id_bytes) * facts.nodes * min(block, facts.nodes)
    if facts.nodes > facts.options.get("max_nodes", MAX_NODES):  # two blocks at a time
        return replace(own, bytes=own.bytes + 2 * making)
    kept = (8.2 + 2 * facts.id_bytes) * facts.nodes**2  # all of the table, and a block
    return replace(own, bytes=own.bytes + kept + making)


def _survey_propagation(facts: Facts) -> Need:
    # the formula and its rows by literal; the graph of what is open, states of its edges
    total = 120 * facts.nodes + 150 * facts.edges
    return Need(rows=("out",), bytes=total, copies=_BY_ID)


def _leiden(facts: Facts) -> Need:
    entries = facts.edges * (2 if facts.topology.is_directed else 1)
    total = 80 * facts.nodes + 40 * entries
    return Need(rows=("out",), bytes=total, copies=_BY_ID)


def _random_walks(facts: Facts) -> Need:
    starts = facts.options.get("starts")
    first = facts.nodes if starts is None else len(list(starts))
    walks = first * int(facts.options.get("walks_per_node") or 1)
    length = facts.options.get("length")
    steps = walks * ((80 if length is None else int(length)) + 1)
    renumbering, renumbered = 0, 0
    if not facts.topology.numbers.are_ordered:
        renumbering = 20 * facts.edges + 64 * facts.nodes
        renumbered = 4 * facts.edges + 8 * facts.nodes
    running = 8 * facts.edges if facts.options.get("weighted") else 0
    most = (9 + 2 * facts.id_bytes) * steps + running + renumbered
    total = max(renumbering, most) + 48 * facts.nodes
    return Need(rows=("out",), bytes=total, copies=_BY_ID)


def _pairs(search: Callable[..., PairSearch]) -> Callable[[Facts], Need]:
    def need(facts: Facts) -> Need:
        threads = (24 + 12 * facts.threads) * facts.nodes + 16 * facts.nodes
        each = _PAIR_BYTES + 3 * facts.id_bytes
        return Need(simple=True, bytes=threads + each * _num_pairs(facts, search))

    return need


def _num_pairs(facts: Facts, search: Callable[..., PairSearch]) -> int:
    """Return how many pairs are listed: counted, where no budget is stated in a sample."""
    options, nodes = facts.options, facts.nodes
    if options.get("pairs") is not None:
        return len(list(options["pairs"]))
    top_k = options.get("top_k")
    degree = facts.topology.out_degree + facts.topology.in_degree
    paths = int((degree.astype(float) ** 2).sum() / 2)
    most = min(paths, nodes * (nodes - 1) // 2, nodes * (top_k or nodes))
    if most <= _FEW_PAIRS or facts.topology.graph is None:
        return most
    topology = facts.topology.placed(ScratchArrays().zeros)
    found = search(topology, facts.threads)
    threshold = options.get("threshold") or 0.0
    return min(found.count(threshold, top_k, in_sample=not facts.is_stated), most)


NEEDS: Mapping[str, Callable[[Facts], Need]] = {
    "bfs": _bfs,
    "sssp": _sssp,
    "apsp": _apsp,
    "diameter": _diameter,
    "survey_propagation": _survey_propagation,
    "wcc": _wcc,
    "scc": _scc,
    "k_core": _k_core,
    "pagerank": _pagerank,
    "betweenness": _betweenness,
    "closeness": _all_distances,
    "harmonic": _all_distances,
    "degree_statistics": _degree_statistics,
    "degree_assortativity": _degree_assortativity,
    "leiden": _leiden,
    "jaccard": _pairs(jaccard_search),
    "adamic_adar": _pairs(adamic_adar_search),
    "random_walks": _random_walks,
    "triangle_count": _triangles,
    "lcc": _lcc,
}
"""What each native algorithm of the list takes."""
