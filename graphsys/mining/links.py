"""Arrows and labels of a pattern, as its steps are asked for them."""

import numpy as np
import numpy.typing as npt

from graphsys.mining.labeled_graph import BACK, FORTH
from graphsys.mining.pattern import EdgeCondition, Pattern

Order = tuple[int, ...]


def link_tests(
    pattern: Pattern, order: Order, *, is_induced: bool
) -> npt.NDArray[np.int64]:
    """Return the tests of edges of ``kernels.cpu.mining.matches``, int64 ``[L, 4]``.

    Args:
        pattern: The pattern.
        order: Its nodes in the order in which they are matched.
        is_induced: Whether no edge may lead back along an arrow.
    """
    place = {node: step for step, node in enumerate(order)}
    tests = []
    for link in sorted(pattern.links):
        ends = (place[link.src], place[link.dst])
        step, before = max(ends), min(ends)
        leads_to_step = place[link.src] == before
        way = FORTH if leads_to_step else BACK
        wanted = way if link.is_arrow else FORTH | BACK
        if link.label:
            wanted <<= 2 * pattern.edge_labels.index(link.label) + 2
        refused = 0
        if is_induced and link.is_arrow and not _has_arrow(pattern, link.dst, link.src):
            refused = BACK if leads_to_step else FORTH
        tests.append((step, before, wanted, refused))
    return np.array(sorted(tests), dtype=np.int64).reshape(-1, 4)


def _has_arrow(pattern: Pattern, src: int, dst: int) -> bool:
    """Return whether an arrow leads from one node to another."""
    return any(it.is_arrow and (it.src, it.dst) == (src, dst) for it in pattern.links)


def wanted_labels(pattern: Pattern, order: Order) -> npt.NDArray[np.int64]:
    """Return the place of each step's label among the pattern's, int64 ``[K]`` or empty."""
    known = pattern.node_labels
    if not known:
        return np.empty(0, dtype=np.int64)
    labels = [pattern.label_of(node) for node in order]
    return np.array([known.index(it) if it else -1 for it in labels], dtype=np.int64)


def link_words(pattern: Pattern, order: Order, step: int) -> str:
    """Say what the node of a step and its edges to those before must be besides."""
    node, before = order[step], order[:step]
    words = [f"called {pattern.label_of(node)}"] if pattern.label_of(node) else []
    for link in sorted(pattern.links):
        if node in (link.src, link.dst) and link.src + link.dst - node in before:
            words.append(_words_of(link, node))
    return "; ".join(words)


def _words_of(link: EdgeCondition, node: int) -> str:
    other = link.src + link.dst - node
    kind = f"edge {link.label}" if link.label else "edge"
    if not link.is_arrow:
        return f"{kind} with {other}"
    return f"{kind} from {other}" if link.dst == node else f"{kind} to {other}"
