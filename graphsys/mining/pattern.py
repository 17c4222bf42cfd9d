"""Patterns: small connected graphs, by name or by their edges."""

import re
from dataclasses import dataclass
from itertools import combinations, permutations
from math import factorial
from typing import Any, Final

from graphsys.core.errors import ConfigError, unknown_name
from graphsys.mining.census.shapes import SHAPES, edge_set, mask_of

_NODE: Final = r'(\w+)(?::("[^"]+"|[^\s"<>!\[\]-]+))?'
_LABEL: Final = r"\[([^\[\]]+)\]"
_WORD: Final = re.compile(
    rf"{_NODE}(?:(<)?-{_LABEL}-(>)?|(<->|->|<-|-|<|>|!)){_NODE}", re.ASCII
)
_ARROWS: Final = {"-": 0, "->": 1, ">": 1, "<-": -1, "<": -1, "<->": 2, "!": None}


@dataclass(frozen=True, slots=True)
class Word:
    """One edge of a pattern as it was written.

    Attributes:
        src: Name of the first node.
        dst: Name of the second.
        way: 1 from the first to the second, -1 back, 2 both, 0 either; None: no edge.
        label: What the edge must be called, or None.
        labels: What the two nodes must be called, or None each.
    """

    src: Any
    dst: Any
    way: int | None = 0
    label: str | None = None
    labels: tuple[str | None, str | None] = (None, None)


def words_of(text: str) -> list[Word] | None:
    """Read a pattern's text; None where a word is no edge.

    A word is two nodes and what is between them: ``-`` an edge, ``>`` or ``->`` one from
    the first to the second, ``<`` or ``<-`` one back, ``<->`` one each way, ``!`` none;
    ``-[label]-``, ``-[label]->`` and ``<-[label]-`` one of a label. A node is a name,
    ``a``, or a name and a label, ``a:user`` or ``a:"two words"``. Words end at blanks and
    commas.
    """
    words, place = [], 0
    text = text.strip(" \t\n,")
    while place < len(text):
        found = _WORD.match(text, place)
        if found is None or not _ends_word(text, found.end()):
            return None
        words.append(_word(found))
        place = found.end()
        while place < len(text) and text[place] in " \t\n,":
            place += 1
    return words


def _ends_word(text: str, place: int) -> bool:
    return place == len(text) or text[place] in " \t\n,"


def _word(found: "re.Match[str]") -> Word:
    src, src_label, back, label, forth, plain, dst, dst_label = found.groups()
    way = _ARROWS[plain] if plain else bool(forth) - bool(back)
    if back and forth:
        way = 2
    labels = tuple(it and it.strip('"') for it in (src_label, dst_label))
    return Word(src, dst, way, label, (labels[0], labels[1]))


MOST_NODES: Final = 8
_FAMILY: Final = re.compile(r"(\d+)-(clique|star|path|cycle)")


@dataclass(frozen=True, slots=True, order=True)
class EdgeCondition:
    """What is asked of an edge besides that there is one.

    Attributes:
        src: A node.
        dst: Another.
        is_arrow: Whether the edge must lead from ``src`` to ``dst``; else ``src`` is the
            smaller number.
        label: What it must be called: its relation, or its edge type; empty for anything.
    """

    src: int
    dst: int
    is_arrow: bool
    label: str = ""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A simple graph of 2 to 8 nodes, maybe with labels, arrows and anti-edges.

    It is connected, but for those that are asked for in several parts.

    Attributes:
        num_nodes: Number of nodes, which are 0, 1, ...
        edges: Edges, the smaller node first; those with arrows or labels too.
        links: Arrows and labels of edges.
        apart: Pairs that must have no edge, the smaller node first.
        labels: What every node must be called, empty for anything; or ``()``.
    """

    num_nodes: int
    edges: frozenset[tuple[int, int]]
    links: frozenset[EdgeCondition] = frozenset()
    apart: frozenset[tuple[int, int]] = frozenset()
    labels: tuple[str, ...] = ()

    @classmethod
    def of(cls, pattern: "Pattern | str | Any", *, disconnected: bool = False) -> "Pattern":
        """Return a pattern by name or text, or the one of a NetworkX graph.

        Args:
            pattern: ``triangle``, ``diamond`` and other names of ``census.shapes``;
                ``5-clique``, ``5-star`` (5 nodes), ``5-path``, ``5-cycle`` of any size;
                edges, ``"a-b b-c c-a"``; arrows, labels of nodes and edges, and pairs
                without an edge, ``"a:user>b:item b-[likes]-c a!c"``; or an object with
                ``nodes`` and ``edges``.
            disconnected: Whether it may be in several parts.

        Raises:
            UnknownNameError: a word that is neither a name nor an edge.
            ConfigError: a loop, no edge, a pattern in several parts, or of too many
                nodes; a pair with and without an edge; two labels of a node.
        """
        found = cls._read(pattern)
        if not disconnected:
            found._require_one_part(pattern)
        return found

    @classmethod
    def _read(cls, pattern: "Pattern | str | Any") -> "Pattern":
        """Return a pattern, in however many parts."""
        if isinstance(pattern, Pattern):
            return pattern
        if not isinstance(pattern, str):
            return _from_object(pattern)
        name = "-".join(pattern.split())
        for size, shapes in SHAPES.items():
            if name in shapes:
                return cls(size, edge_set(shapes[name]))
        family = _FAMILY.fullmatch(name)
        if family:
            return _of_family(int(family[1]), family[2])
        words = words_of(pattern)
        if words is None:
            known = [name for shapes in SHAPES.values() for name in shapes]
            raise unknown_name("pattern", pattern, [*known, "a-b b-c c-a"])
        return _from_words(words, [])

    def _require_one_part(self, given: Any) -> None:
        """Refuse a pattern in several parts, by the names that it was given with."""
        left = set(range(self.num_nodes)) - self.reachable(0)
        if left:
            names = list(_names_of(given)) or [str(k) for k in range(self.num_nodes)]
            raise ConfigError(
                f"the pattern is in several parts: no path of its edges leads to "
                f"{', '.join(str(names[k]) for k in sorted(left))}; count its parts one by "
                "one, or ask for it: --disconnected (disconnected=True)"
            )

    def reachable(self, node: int) -> set[int]:
        """Return a node and all to which a path of edges leads from it."""
        reached, waiting = {node}, [node]
        while waiting:
            new = self.neighbors(waiting.pop()) - reached
            reached |= new
            waiting += new
        return reached

    @property
    def is_plain(self) -> bool:
        """Whether it has no arrows, labels and anti-edges."""
        return not (self.links or self.apart or any(self.labels))

    @property
    def edge_labels(self) -> list[str]:
        """What edges must be called, each once."""
        return sorted({link.label for link in self.links} - {""})

    @property
    def node_labels(self) -> list[str]:
        """What nodes must be called, each once."""
        return sorted(set(self.labels) - {""})

    def label_of(self, node: int) -> str:
        """Return what a node must be called, or nothing."""
        return self.labels[node] if self.labels else ""

    def between(self, a: int, b: int) -> tuple[Any, ...]:
        """Return what is asked of a pair of nodes, as it looks from the first."""
        pair = (min(a, b), max(a, b))
        links = sorted(
            (link.label, link.is_arrow and (1 if link.src == a else -1))
            for link in self.links
            if {link.src, link.dst} == {a, b}
        )
        return (pair in self.edges, pair in self.apart, *links)

    def neighbors(self, node: int) -> set[int]:
        """Return the nodes that have an edge with a node."""
        return {a + b - node for a, b in self.edges if node in (a, b)}

    def num_automorphisms(self) -> int:
        """Return in how many ways the nodes can be renamed so that all edges stay."""
        if self.is_plain and len(self.edges) == self.num_nodes * (self.num_nodes - 1) // 2:
            return factorial(self.num_nodes)
        return len(self.automorphisms())

    def automorphisms(self) -> list[tuple[int, ...]]:
        """Return the ways to rename the nodes so that the pattern stays what it is."""
        degree = [len(self.neighbors(node)) for node in range(self.num_nodes)]
        found: list[tuple[int, ...]] = [()]
        for node in range(self.num_nodes):  # node by node: few begin as one does
            found = [
                (*it, image)
                for it in found
                for image in range(self.num_nodes)
                if image not in it
                and degree[image] == degree[node]
                and self.label_of(image) == self.label_of(node)
                and all(
                    self.between(it[k], image) == self.between(k, node) for k in range(node)
                )
            ]
        return found

    def shape(self) -> str | None:
        """Return the name of an isomorphic graph in ``census.shapes``, or None."""
        if not self.is_plain:
            return None
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


def _from_object(pattern: Any) -> Pattern:
    """Return the pattern of an object with ``nodes`` and ``edges``, as in NetworkX."""
    is_directed = getattr(pattern, "is_directed", None)
    way = 1 if callable(is_directed) and is_directed() else 0
    if not (hasattr(pattern, "edges") and hasattr(pattern, "nodes")):
        raise ConfigError(
            f"pattern: got {pattern!r:.60}, expected a name such as triangle, edges such "
            "as 'a-b b-c c-a', or a NetworkX graph"
        )
    words = [Word(edge[0], edge[1], way) for edge in pattern.edges]
    return _from_words(words, list(pattern.nodes))


def _from_words(words: list[Word], nodes: list[Any]) -> Pattern:
    """Number the nodes in the order in which they come, and check the graph."""
    numbers = {node: k for k, node in enumerate(nodes)}
    labels: dict[int, str] = {}
    pairs: dict[bool, set[tuple[int, int]]] = {True: set(), False: set()}
    links: set[EdgeCondition] = set()
    for word in words:
        if word.src == word.dst:
            raise ConfigError(
                f"a pattern has no loops, but {word.src}-{word.dst} is one; leave it out: "
                "loops of the graph are left aside too"
            )
        ends = [numbers.setdefault(node, len(numbers)) for node in (word.src, word.dst)]
        for node, name, label in zip(ends, (word.src, word.dst), word.labels, strict=True):
            if label and labels.setdefault(node, label) != label:
                raise ConfigError(
                    f"node {name} of the pattern is called {labels[node]!r} and {label!r}; "
                    "expected one label"
                )
        pairs[word.way is not None].add((min(ends), max(ends)))
        links |= _links(ends[0], ends[1], word)
    if not pairs[True]:
        raise ConfigError(
            "a pattern has at least one edge, got none; write it as 'a-b b-c'"
        )
    names = {k: node for node, k in numbers.items()}
    for a, b in sorted(pairs[True] & pairs[False]):
        raise ConfigError(
            f"the pattern says that {names[a]} and {names[b]} have an edge and that they "
            "have none; leave one out"
        )
    if len(numbers) > MOST_NODES:
        raise ConfigError(
            f"a pattern of {len(numbers)} nodes has too many matches to count; expected at "
            f"most {MOST_NODES}"
        )
    called = tuple(labels.get(k, "") for k in range(len(numbers))) if labels else ()
    return Pattern(
        len(numbers),
        frozenset(pairs[True]),
        frozenset(links),
        frozenset(pairs[False]),
        called,
    )


def _links(src: int, dst: int, word: Word) -> set[EdgeCondition]:
    """Return what a word asks of an edge besides that there is one."""
    label = word.label or ""
    low, high = min(src, dst), max(src, dst)
    return {
        0: {EdgeCondition(low, high, False, label)} if label else set[EdgeCondition](),
        1: {EdgeCondition(src, dst, True, label)},
        -1: {EdgeCondition(dst, src, True, label)},
        2: {EdgeCondition(src, dst, True, label), EdgeCondition(dst, src, True, label)},
        None: set[EdgeCondition](),
    }[word.way]


def _names_of(given: Any) -> dict[Any, int]:
    """Return the numbers of a pattern's nodes by what they are called."""
    if isinstance(given, Pattern):
        return {}
    nodes = [] if isinstance(given, str) else list(given.nodes)
    ends = (
        ((word.src, word.dst) for word in words_of(given) or [])
        if isinstance(given, str)
        else given.edges
    )
    named = [*nodes, *(node for edge in ends for node in edge[:2])]
    return {node: k for k, node in enumerate(dict.fromkeys(named))}
