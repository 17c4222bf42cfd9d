"""Frequent subgraphs: patterns whose nodes can each be many nodes of the graph.

The support is MNI: of the nodes that a node of the pattern is in some match, counted for
each node of the pattern, the least. It never grows when a pattern does, so that patterns
grow edge by edge from frequent ones (Bringmann, Nijssen, "What is frequent in a single
graph?", PAKDD 2008; Elseidy et al., "GraMi: frequent subgraph and pattern mining in a
single large graph", VLDB 2014). No matches are kept, only which nodes were seen.
"""

from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.core.notebook.tables import fields_table
from graphsys.core.threads import ThreadTeam
from graphsys.datasets.temporary import GraphLike, graph_of
from graphsys.graph.csr import balanced_chunks
from graphsys.kernels.cpu.mining.images import find_images
from graphsys.mining.frequent.labeled_pattern import (
    LabeledPattern,
    canonical,
    extensions,
    matching_steps,
    orbits_of,
)
from graphsys.mining.frequent.labeled_rows import LabeledEdges, labeled_rows

MOST_EDGES = 4
Masks = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class FrequentPattern:
    """A pattern and how often it is there.

    Attributes:
        pattern: Its edges, with the labels' names.
        support: The least number of nodes that one of its nodes can be.
        num_edges: Edges of the pattern.
    """

    pattern: str
    support: int
    num_edges: int

    def _repr_html_(self) -> str:
        return fields_table("frequent pattern", asdict(self))


def frequent_patterns(
    graph: GraphLike,
    support: int,
    *,
    max_edges: int = MOST_EDGES,
    labels: str | None = None,
    edge_labels: bool = False,
    num_threads: int | None = None,
) -> list[FrequentPattern]:
    """Find all connected patterns of a support, edge-induced.

    The graph counts as undirected and simple, but for labels of edges: two nodes may have
    edges of several labels, a pattern has one between two of its nodes.

    Args:
        graph: A store, its path, or an object that holds a graph.
        support: The least support (MNI), 1 or more.
        max_edges: The most edges of a pattern, 1 to 4.
        labels: Labels of nodes: ``type``, or a column of nodes; by default the types where
            there are several, else the column ``label`` if there is one. A node without a
            label is in no pattern.
        edge_labels: Whether relations (or edge types) are labels of edges.
        num_threads: All cores by default.

    Returns:
        By number of edges, then by support, the largest first.

    Raises:
        ConfigError: a support below 1, or another number of edges.
        UnknownNameError: no node type has the column.

    Complexity:
        Memory: 5 bytes a node for each edge of the largest pattern, besides the graph.
    """
    if support < 1:
        raise ConfigError(f"support={support}: expected 1 or more nodes")
    if not 1 <= max_edges <= MOST_EDGES:
        raise ConfigError(
            f"max_edges={max_edges}: patterns of 1 to {MOST_EDGES} edges are searched"
        )
    rows = labeled_rows(graph_of(graph), labels, has_edge_labels=edge_labels)
    with ThreadTeam(num_threads) as team:
        found = _PatternGrowth(rows, support, max_edges, team).run()
    named = [
        FrequentPattern(
            pattern=pattern.text(rows.node_names, rows.edge_names),
            support=num,
            num_edges=len(pattern.edges),
        )
        for pattern, num in found.items()
    ]
    return sorted(named, key=lambda it: (it.num_edges, -it.support, it.pattern))


class _PatternGrowth:
    """Growth of patterns depth first, so that few of them hold masks at a time."""

    def __init__(
        self, rows: LabeledEdges, support: int, max_edges: int, team: ThreadTeam
    ) -> None:
        self._rows = rows
        self._support = support
        self._max_edges = max_edges
        self._team = team
        self._bounds = balanced_chunks(rows.rows.indptr, 1024, align=1)
        self._frequent_edges = _frequent_edges(rows, support)
        self._seen: set[LabeledPattern] = set()
        self._found: dict[LabeledPattern, int] = {}

    def run(self) -> dict[LabeledPattern, int]:
        """Return the frequent patterns and their support."""
        for one, edge, other in sorted(self._frequent_edges):
            if one <= other:
                self._grow(LabeledPattern((one, other), ((0, 1, edge),)), None)
        return self._found

    def _grow(self, pattern: LabeledPattern, parent: Masks | None) -> None:
        """Look at a pattern, and if it is frequent, at all that hold one edge more.

        Args:
            pattern: Its first nodes are those of the pattern that it grew from.
            parent: Which nodes they can be ``[K, N]``; any of their label if None.
        """
        name = canonical(pattern)
        if name in self._seen:
            return
        self._seen.add(name)
        images = self._images(pattern, parent)
        if images is None:
            return
        self._found[name] = int(np.count_nonzero(images, axis=1).min())
        if len(pattern.edges) < self._max_edges:
            for grown in extensions(pattern, self._frequent_edges):
                self._grow(grown, images)

    def _images(self, pattern: LabeledPattern, parent: Masks | None) -> Masks | None:
        """Return which nodes each node of the pattern can be; None if it is infrequent."""
        size, num_nodes = len(pattern.nodes), len(self._rows.node_labels)
        allowed = np.empty((size, num_nodes), dtype=np.uint8)
        for node, label in enumerate(pattern.nodes):
            if parent is not None and node < len(parent):
                allowed[node] = parent[node]
            else:
                allowed[node] = self._rows.node_labels == label
        found = np.zeros_like(allowed)
        orbits = orbits_of(pattern)
        for node in sorted(set(orbits), key=lambda it: int(allowed[it].sum())):
            self._mark(pattern, node, allowed, found)
            if np.count_nonzero(found[node]) < self._support:
                return None
            for other, orbit in enumerate(orbits):
                if orbit == node:  # nothing else is in a match
                    allowed[other] = found[node]
        return found[orbits]

    def _mark(
        self, pattern: LabeledPattern, node: int, allowed: Masks, found: Masks
    ) -> None:
        """Find what a node of the pattern can be."""
        steps, checks = matching_steps(pattern, node)
        rows, size = self._rows, len(pattern.nodes)
        self._team.run(
            find_images,
            rows.rows.indptr,
            rows.rows.indices,
            rows.rows.columns["relation"],
            np.array(steps, dtype=np.int64),
            np.array(checks, dtype=np.int64).reshape(-1, 2),
            allowed,
            self._bounds,
            np.zeros(1, dtype=np.int64),
            np.zeros((self._team.num_threads, 2, size), dtype=np.int64),
            found,
        )


def _frequent_edges(rows: LabeledEdges, support: int) -> set[tuple[int, int, int]]:
    """Return label, edge label, label of the frequent edges, both ways round."""
    num_nodes, labels = len(rows.node_labels), rows.rows.columns["relation"]
    num_edges = int(labels.max(initial=0)) + 1
    num_labels = int(rows.node_labels.max(initial=0)) + 1
    owners = np.repeat(np.arange(num_nodes), np.diff(rows.rows.indptr))
    begins, ends = rows.node_labels[owners], rows.node_labels[rows.rows.indices]
    codes = (begins * num_edges + labels) * num_labels + ends
    has_both = (begins >= 0) & (ends >= 0)
    known, kind = np.unique(codes[has_both], return_inverse=True)
    # numbers sort much faster than the columns of a matrix
    distinct = np.unique(kind * num_nodes + owners[has_both])
    nums = np.bincount(distinct // max(num_nodes, 1), minlength=len(known))
    firsts, lasts = np.divmod(known, num_labels)
    triples = np.stack([firsts // num_edges, firsts % num_edges, lasts], axis=1)
    counts = dict(zip(map(tuple, triples.tolist()), nums.tolist(), strict=True))
    return {
        (one, edge, other)
        for (one, edge, other), num in counts.items()
        if min(num, counts[other, edge, one]) >= support
    }
