"""A set of nodes in each of its forms, against Python's sets."""

from collections.abc import Callable

import numpy as np
import pytest

from graphsys.engine.execute.frontier import Frontier
from graphsys.kernels.cpu.bits import empty_bits, set_bit


def bits_of(num_nodes: int, nodes: list[int]) -> np.ndarray:
    words = empty_bits(num_nodes)
    for node in nodes:
        set_bit(words, node)
    return words


def set_of(frontier: Frontier) -> list[int]:
    """Return the nodes whose bits are set."""
    words = frontier.words()
    return [v for v in range(frontier.num_nodes) if int(words[v // 64]) >> (v % 64) & 1]


MADE: dict[str, Callable[[int, list[int]], Frontier]] = {
    "bits": lambda n, v: Frontier.from_words(n, bits_of(n, v), len(v), 5),
    "list": lambda n, v: Frontier.from_list(n, np.array(v, dtype=np.int64), 5),
}


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("nodes", [[], [0], [199], [3, 63, 64, 128, 199]])
def test_bits_and_list_hold_the_same_nodes(made: str, nodes: list[int]) -> None:
    frontier = MADE[made](200, nodes)
    assert (frontier.num_nodes, frontier.count, frontier.edges) == (200, len(nodes), 5)
    assert not frontier.everyone
    assert not frontier.is_alike
    assert frontier.listed().tolist() == nodes
    assert frontier.listed().dtype == np.int64
    assert set_of(frontier) == nodes
    assert len(frontier.words()) == 4
    assert frontier.words() is frontier.words()  # made once
    assert frontier.listed() is frontier.listed()


def test_all_nodes_are_in_either_form() -> None:
    frontier = Frontier.all(130, 7)
    assert (frontier.num_nodes, frontier.count, frontier.edges) == (130, 130, 7)
    assert frontier.everyone
    assert frontier.listed().tolist() == list(range(130))
    assert set_of(frontier) == list(range(130))


def test_nobody_is_in_a_set_of_nothing() -> None:
    frontier = Frontier(70)
    assert (frontier.count, frontier.edges) == (0, 0)
    assert set_of(frontier) == frontier.listed().tolist() == []
