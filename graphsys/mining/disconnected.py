"""Patterns in several parts: the product of what the parts are, less how they overlap.

Let ``f(P)`` be in how many ways the nodes of ``P`` can be other nodes of a graph so that
its edges are edges. For two parts ``f(A + B) = f(A) f(B) - sum f(A + B, some nodes made
one)``, over all ways to make nodes of A and of B one, so that in the end only connected
patterns are counted, of fewer nodes. ``f`` divided by the automorphisms are copies; sets
of nodes without further edges follow by inclusion and exclusion over the edges that may
be added.
"""

from collections.abc import Iterator, Mapping
from itertools import combinations, permutations, product
from typing import Final

from graphsys.core.errors import ConfigError
from graphsys.mining.pattern import Pattern

MOST_INDUCED: Final = 5
"""Nodes of a pattern in several parts whose sets of nodes are counted: by the census."""

Edges = frozenset[tuple[int, int]]


def required_patterns(pattern: Pattern, *, is_induced: bool) -> set[Pattern]:
    """Return the connected patterns that a pattern in several parts follows from.

    Args:
        pattern: In several parts.
        is_induced: Whether sets of nodes are counted, and not of edges.

    Raises:
        ConfigError: it has labels, arrows or anti-edges, or too many nodes.
    """
    if not pattern.is_plain:
        raise ConfigError(
            "a pattern in several parts is counted without labels, arrows and anti-edges; "
            "leave them out, or connect its parts"
        )
    if is_induced and pattern.num_nodes > MOST_INDUCED:
        raise ConfigError(
            f"a pattern in several parts of {pattern.num_nodes} nodes is counted "
            f"edge-induced; vertex-induced it may have {MOST_INDUCED}"
        )
    found: set[Pattern] = set()
    seen: set[Pattern] = set()
    waiting = [_canonical(it) for _, it in _terms(pattern, is_induced=is_induced)]
    while waiting:
        some = waiting.pop()
        if some in seen:
            continue
        seen.add(some)
        parts = parts_of(some)
        if len(parts) == 1:
            found.add(some)
            continue
        one, rest = parts[0], _together(parts[1:])
        waiting += map(_canonical, (one, rest, *_overlaps(one, rest)))
    return {it for it in found if it.num_nodes > 1}


def lines_of(pattern: Pattern, *, is_induced: bool) -> list[str]:
    """Say how a pattern in several parts is counted.

    Raises:
        ConfigError: as :func:`required_patterns`.
    """
    needed = required_patterns(pattern, is_induced=is_induced)
    said = sorted(it.shape() or _text_of(it) for it in needed)
    head = "the product of its parts, less the ways in which they share nodes; from the"
    return [f"{head} counts of {len(said)} connected patterns:", *said]


def _text_of(pattern: Pattern) -> str:
    """Return the edges of a pattern, as users write them."""
    return " ".join(f"{'abcdefgh'[a]}-{'abcdefgh'[b]}" for a, b in sorted(pattern.edges))


def is_in_parts(pattern: Pattern) -> bool:
    """Whether a pattern is in several parts."""
    return len(pattern.reachable(0)) < pattern.num_nodes


def count_parts(
    pattern: Pattern, counts: Mapping[Pattern, int], num_nodes: int, *, is_induced: bool
) -> int:
    """Count a pattern in several parts.

    Args:
        pattern: In several parts.
        counts: Copies (edge-induced) of all :func:`required_patterns`.
        num_nodes: Of the graph.
        is_induced: Whether sets of nodes are counted, and not of edges.
    """
    known: dict[Pattern, int] = {}

    def maps(some: Pattern) -> int:
        some = _canonical(some)
        if some not in known:
            parts = parts_of(some)
            if some.num_nodes == 1:
                known[some] = num_nodes
            elif len(parts) == 1:
                known[some] = counts[some] * some.num_automorphisms()
            else:
                one, rest = parts[0], _together(parts[1:])
                shared = sum(maps(it) for it in _overlaps(one, rest))
                known[some] = maps(one) * maps(rest) - shared
        return known[some]

    total = sum(sign * maps(it) for sign, it in _terms(pattern, is_induced=is_induced))
    return total // pattern.num_automorphisms()


def parts_of(pattern: Pattern) -> list[Pattern]:
    """Return the connected parts of a pattern, the largest first, nodes numbered anew."""
    left, found = set(range(pattern.num_nodes)), []
    while left:
        reached = pattern.reachable(min(left))
        left -= reached
        place = {node: k for k, node in enumerate(sorted(reached))}
        edges = ((place[a], place[b]) for a, b in pattern.edges if a in reached)
        found.append(Pattern(len(reached), frozenset(edges)))
    return sorted(found, key=lambda it: (-it.num_nodes, sorted(it.edges)))


def _together(parts: list[Pattern]) -> Pattern:
    """Return one pattern of several parts."""
    edges, first = set[tuple[int, int]](), 0
    for part in parts:
        edges |= {(a + first, b + first) for a, b in part.edges}
        first += part.num_nodes
    return Pattern(first, frozenset(edges))


def _terms(pattern: Pattern, *, is_induced: bool) -> Iterator[tuple[int, Pattern]]:
    """Yield signs and patterns whose maps sum up to those that are wanted."""
    if not is_induced:
        yield 1, pattern
        return
    pairs = set(combinations(range(pattern.num_nodes), 2)) - pattern.edges
    for num in range(len(pairs) + 1):
        for more in combinations(sorted(pairs), num):
            yield (-1) ** num, Pattern(pattern.num_nodes, pattern.edges | set(more))


def _overlaps(one: Pattern, other: Pattern) -> Iterator[Pattern]:
    """Yield what two patterns become when some nodes of both are made one."""
    for num in range(1, min(one.num_nodes, other.num_nodes) + 1):
        for own in combinations(range(one.num_nodes), num):
            for theirs in permutations(range(other.num_nodes), num):
                place = dict(zip(theirs, own, strict=True))
                for node in range(other.num_nodes):
                    place.setdefault(node, one.num_nodes + len(place) - num)
                edges = {_pair(place[a], place[b]) for a, b in other.edges}
                size = one.num_nodes + other.num_nodes - num
                yield Pattern(size, frozenset(edges | one.edges))


def _pair(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a < b else (b, a)


def _canonical(pattern: Pattern) -> Pattern:
    """Return the same of all patterns that are alike: the least of its renamings.

    Nodes are told apart by their degrees and those of their neighbors first, so that few
    renamings are left.
    """
    near = [pattern.neighbors(node) for node in range(pattern.num_nodes)]
    kinds = [(len(it), sorted(len(near[w]) for w in it)) for it in near]
    for _ in range(2):  # and by what their neighbors are
        ranked = sorted({repr(it) for it in kinds})
        ranks = [ranked.index(repr(it)) for it in kinds]
        kinds = [(ranks[v], sorted(ranks[w] for w in near[v])) for v in range(len(near))]
    groups: dict[str, list[int]] = {}
    for node, kind in enumerate(kinds):
        groups.setdefault(repr(kind), []).append(node)
    ordered = [groups[kind] for kind in sorted(groups)]
    best: list[tuple[int, int]] | None = None
    for order in product(*(permutations(group) for group in ordered)):
        place = {
            node: k for k, node in enumerate(node for group in order for node in group)
        }
        edges = sorted(_pair(place[a], place[b]) for a, b in pattern.edges)
        best = edges if best is None else min(best, edges)
    return Pattern(pattern.num_nodes, frozenset(best or ()))
