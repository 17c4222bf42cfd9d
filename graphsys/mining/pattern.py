"""Patterns: small connected graphs, by name or by their edges."""

import re
from dataclasses import dataclass
from itertools import combinations, permutations
from math import factorial
from typing import Any, Final

from graphsys.core.errors import ConfigError, unknown_name
from graphsys.mining.census.shapes import SHAPES, edge_set, mask_of

MOST_NODES: Final = 8
_FAMILY: Final = re.compile(r"(\d+)-(clique|star|path|cycle)")
_EDGE: Final = re.compile(r"(\w+)-(\w+)")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A connected simple graph of 2 to 8 nodes.

    Attributes:
        num_nodes: Number of nodes, which are 0, 1, ...
        edges: Edges, the smaller node first.
    """

    num_nodes: int
    edges: frozenset[tuple[int, int]]

    @classmethod
    def of(cls, pattern: "Pattern | str | Any") -> "Pattern":
        """Return a pattern by name or text, or the one of a NetworkX graph.

        Args:
            pattern: ``triangle``, ``diamond`` and other names of ``census.shapes``;
                ``5-clique``, ``5-star`` (5 nodes), ``5-path``, ``5-cycle`` of any size;
                edges, ``"a-b b-c c-a"``; or an object with ``nodes`` and ``edges``.

        Raises:
            UnknownNameError: a word that is neither a name nor an edge.
            ConfigError: a loop, no edge, a pattern in several parts, or of too many nodes.
        """
        if isinstance(pattern, Pattern):
            return pattern
        if not isinstance(pattern, str):
            return _from_pairs([(a, b) for a, b in pattern.edges], list(pattern.nodes))
        name = "-".join(pattern.split())
        for size, shapes in SHAPES.items():
            if name in shapes:
                return cls(size, edge_set(shapes[name]))
        family = _FAMILY.fullmatch(name)
        if family:
            return _of_family(int(family[1]), family[2])
        return _from_pairs(_pairs_of(pattern), [])

    def neighbors(self, node: int) -> set[int]:
        """Return the nodes that have an edge with a node."""
        return {a + b - node for a, b in self.edges if node in (a, b)}

    def num_automorphisms(self) -> int:
        """Return in how many ways the nodes can be renamed so that all edges stay."""
        if len(self.edges) == self.num_nodes * (self.num_nodes - 1) // 2:
            return factorial(self.num_nodes)
        degrees = [len(self.neighbors(node)) for node in range(self.num_nodes)]
        return sum(
            all(degrees[i] == degrees[k] for i, k in enumerate(order))
            and all(
                (min(order[a], order[b]), max(order[a], order[b])) in self.edges
                for a, b in self.edges
            )
            for order in permutations(range(self.num_nodes))
        )

    def shape(self) -> str | None:
        """Return the name of an isomorphic graph in ``census.shapes``, or None."""
        own = {
            mask_of(self.edges, order)
            for order in permutations(range(self.num_nodes))
            if self.num_nodes in SHAPES
        }
        for name, text in SHAPES.get(self.num_nodes, {}).items():
            if mask_of(edge_set(text), tuple(range(self.num_nodes))) in own:
                return name
        return None


def _of_family(size: int, kind: str) -> Pattern:
    """Return a clique, star, path or cycle."""
    if not (3 if kind == "cycle" else 2) <= size <= MOST_NODES:
        raise ConfigError(
            f"pattern '{size}-{kind}': expected 2 to {MOST_NODES} nodes (3 for a cycle); "
            "larger ones have too many matches to count one by one"
        )
    steps = [(i, i + 1) for i in range(size - 1)]
    pairs = {
        "clique": list(combinations(range(size), 2)),
        "star": [(0, i) for i in range(1, size)],
        "path": steps,
        "cycle": [*steps, (0, size - 1)],
    }[kind]
    return Pattern(size, frozenset(pairs))


def _pairs_of(text: str) -> list[tuple[Any, Any]]:
    """Read edges as text."""
    pairs: list[tuple[Any, Any]] = []
    for word in text.replace(",", " ").split():
        found = _EDGE.fullmatch(word)
        if not found:
            known = [name for shapes in SHAPES.values() for name in shapes]
            raise unknown_name("pattern", text, [*known, "a-b b-c c-a"])
        pairs.append((found[1], found[2]))
    return pairs


def _from_pairs(pairs: list[tuple[Any, Any]], nodes: list[Any]) -> Pattern:
    """Number the nodes in the order in which they come, and check the graph."""
    numbers = {node: k for k, node in enumerate(nodes)}
    for a, b in pairs:
        if a == b:
            raise ConfigError(
                f"a pattern has no loops, but {a}-{b} is one; leave it out: loops of the "
                "graph are left aside too"
            )
        numbers.setdefault(a, len(numbers))
        numbers.setdefault(b, len(numbers))
    if not pairs:
        raise ConfigError(
            "a pattern has at least one edge, got none; write it as 'a-b b-c'"
        )
    if len(numbers) > MOST_NODES:
        raise ConfigError(
            f"a pattern of {len(numbers)} nodes has too many matches to count; expected at "
            f"most {MOST_NODES}"
        )
    ends = [(numbers[a], numbers[b]) for a, b in pairs]
    found = Pattern(len(numbers), frozenset((min(it), max(it)) for it in ends))
    reached, waiting = {0}, [0]
    while waiting:
        new = found.neighbors(waiting.pop()) - reached
        reached |= new
        waiting += new
    if len(reached) < found.num_nodes:
        missing = [str(node) for node, k in numbers.items() if k not in reached]
        raise ConfigError(
            f"the pattern is in several parts: no path of its edges leads to "
            f"{', '.join(missing)}; count its parts one by one"
        )
    return found
