"""Small connected patterns of labeled nodes and edges, and how they grow."""

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations, product
from typing import NamedTuple

Edge = tuple[int, int, int]
"""Two nodes, the smaller first, and the label."""


class LabeledPattern(NamedTuple):
    """A connected simple graph whose nodes and edges have labels, given by codes.

    Attributes:
        nodes: Label of every node.
        edges: Edges in order.
    """

    nodes: tuple[int, ...]
    edges: tuple[Edge, ...]

    def renamed(self, order: Sequence[int]) -> "LabeledPattern":
        """Return the pattern with node ``i`` as ``order[i]``."""
        nodes = [0] * len(self.nodes)
        for i, label in enumerate(self.nodes):
            nodes[order[i]] = label
        edges = [
            (min(order[a], order[b]), max(order[a], order[b]), label)
            for a, b, label in self.edges
        ]
        return LabeledPattern(tuple(nodes), tuple(sorted(edges)))

    def text(self, node_names: Sequence[str], edge_names: Sequence[str]) -> str:
        """Write the pattern as its edges; labels stand where a node occurs first.

        Args:
            node_names: Names of the labels of nodes; one alone is left out.
            edge_names: Names of the labels of edges; one alone is left out.

        Examples:
            >>> pattern = LabeledPattern((0, 1, 0), ((0, 1, 0), (1, 2, 0)))
            >>> pattern.text(["user", "item"], ["likes"])
            'a:user-b:item b-c:user'
        """
        told: set[int] = set()

        def name(node: int) -> str:
            letter = "abcdefgh"[node]
            if node in told or len(node_names) < 2:
                return letter
            told.add(node)
            return f"{letter}:{node_names[self.nodes[node]]}"

        words = []
        for a, b, label in self.edges:
            between = f"-[{edge_names[label]}]-" if len(edge_names) > 1 else "-"
            words.append(name(a) + between + name(b))
        return " ".join(words)


def canonical(pattern: LabeledPattern) -> LabeledPattern:
    """Return the smallest of some renamings: equal for isomorphic patterns, and only them.

    Nodes come in the order of what a renaming keeps: their label and what is around them.
    """
    kept = _around(pattern)
    groups = [[i for i, it in enumerate(kept) if it == key] for key in sorted(set(kept))]
    found = []
    for placed in product(*map(permutations, groups)):
        nodes = [node for group in placed for node in group]
        order = [0] * len(nodes)
        for place, node in enumerate(nodes):
            order[node] = place
        found.append(pattern.renamed(order))
    return min(found)


def orbits_of(pattern: LabeledPattern) -> list[int]:
    """Return, for every node, the smallest node that an automorphism moves it to."""
    size, kept = len(pattern.nodes), _around(pattern)
    smallest = list(range(size))
    for order in permutations(range(size)):
        if all(kept[i] == kept[k] for i, k in enumerate(order)) and (
            pattern.renamed(order) == pattern
        ):
            smallest = [min(pair) for pair in zip(smallest, order, strict=True)]
    return smallest


def _around(pattern: LabeledPattern) -> list[tuple[int, tuple[tuple[int, int], ...]]]:
    """Return, for every node, its label and the labels of its edges and neighbors."""
    around: list[list[tuple[int, int]]] = [[] for _ in pattern.nodes]
    for a, b, label in pattern.edges:
        around[a].append((label, pattern.nodes[b]))
        around[b].append((label, pattern.nodes[a]))
    return [
        (label, tuple(sorted(near)))
        for label, near in zip(pattern.nodes, around, strict=True)
    ]


def extensions(
    pattern: LabeledPattern, frequent_edges: set[tuple[int, int, int]]
) -> Iterator[LabeledPattern]:
    """Yield the pattern with one more edge; nodes keep their numbers, a new one is last.

    Args:
        pattern: A pattern.
        frequent_edges: Label of a node, of the edge, of the other node; both ways round.
    """
    nodes, size = pattern.nodes, len(pattern.nodes)
    for at, label in enumerate(nodes):
        for one, edge, other in sorted(frequent_edges):
            if one == label:
                grown = (*pattern.edges, (at, size, edge))
                yield LabeledPattern((*nodes, other), tuple(sorted(grown)))
    joined = {(a, b) for a, b, _ in pattern.edges}
    for a, b in combinations(range(size), 2):
        if (a, b) not in joined:
            for one, edge, other in sorted(frequent_edges):
                if (one, other) == (nodes[a], nodes[b]):
                    closed = tuple(sorted((*pattern.edges, (a, b, edge))))
                    yield LabeledPattern(nodes, closed)


def matching_steps(
    pattern: LabeledPattern, first: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Return the steps and checks of ``kernels.cpu.mining.images`` from a node on.

    The next node is the one with most edges to those before.
    """
    edges = {(a, b): label for a, b, label in pattern.edges}
    edges |= {(b, a): label for (a, b), label in edges.items()}
    order = [first]
    steps, checks = [[0, 0, first, 0]], list[list[int]]()
    while len(order) < len(pattern.nodes):
        left = [node for node in range(len(pattern.nodes)) if node not in order]
        node = max(left, key=lambda node: sum((node, it) in edges for it in order))
        behind = [step for step, it in enumerate(order) if (node, it) in edges]
        checks += [[step, edges[node, order[step]]] for step in behind[:-1]]
        anchor = behind[-1]
        steps.append([anchor, edges[node, order[anchor]], node, len(checks)])
        order.append(node)
    return steps, checks
