"""Pins and boards: a bipartite graph whose pins have words, as recommenders see them.

Every pin has a topic, every board two. Three quarters of a board's pins are of its
topics, and low numbers of a topic are popular. Words (the bag ``text`` of a pin, 12 word
numbers) are mostly those of its topic, the rest any. Pins have ``label`` (the topic) and
``split``; boards have ``label`` (their first topic). One edge in twenty is held out in
``valid``, and one in ``test``.

Topics may belong to themes. Then six of eight pins of a board are of its first topic, one
of another of the same theme, one any; and half the words of a topic are its theme's. So a
pin is near many that are not of its kind, which is what hard negatives are for.

References:
    Ying et al., "Graph convolutional neural networks for web-scale recommender systems"
    (PinSage), KDD 2018, for what such a graph looks like.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import ConfigError
from graphsys.core.types import EdgeType
from graphsys.datasets.generators.drawn import (
    CHUNK_ROWS,
    MAX_NODES,
    DrawnSource,
    Piece,
    check_integers,
    check_shares,
    random_splits,
)
from graphsys.datasets.generators.draws import Draws, Integers, as_fractions, as_integers
from graphsys.storage.source import EdgeChunk, NodeChunk

HOLDS = EdgeType("board", "holds", "pin")
_SPLITS = ("train", "valid", "test")
_MOST_HELD_OUT = 0.4
_NUM_WORDS = 12
_WORDS_OF_TOPIC = 64
_WORDS_IN_THEME = 16  # of a topic, where the others are its theme's


def pins(
    num_pins: int = 20000,
    num_boards: int = 2000,
    *,
    pins_per_board: int = 50,
    num_topics: int = 20,
    topics_per_theme: int = 1,
    held_out: float = 0.05,
    seed: int = 0,
    chunk_rows: int = CHUNK_ROWS,
    num_threads: int | None = None,
) -> DrawnSource:
    """Make a graph of boards and the pins they hold, an undirected bipartite one.

    Args:
        num_pins: Pins; pin i is of topic ``i % num_topics``.
        num_boards: Boards.
        pins_per_board: Pins of a board, drawn with replacement.
        num_topics: Topics.
        topics_per_theme: Topics of a theme, topic k is of theme ``k // topics_per_theme``;
            1: there are no themes.
        held_out: Share of the edges in ``valid``, and as many in ``test``; an edge drawn
            twice is in one split.
        seed: Another seed, another graph.
        chunk_rows: Rows made at once; does not change them.
        num_threads: Threads; do not change the graph either.

    Raises:
        ConfigError: a value is out of range.
    """
    most = num_topics if isinstance(num_topics, int) else 1
    check_integers(
        "pins",
        ("num_topics", num_topics, 1, 1 << 20),
        ("num_pins", num_pins, most, MAX_NODES),
        ("num_boards", num_boards, 1, MAX_NODES),
        ("pins_per_board", pins_per_board, 1, 1 << 20),
        ("topics_per_theme", topics_per_theme, 1, most),
    )
    check_shares("pins", ("held_out", held_out))
    if held_out > _MOST_HELD_OUT:
        raise ConfigError(
            f"pins.held_out: got {held_out!r}, expected at most {_MOST_HELD_OUT}, so that "
            "there are edges left to train on"
        )
    name = f"pins:{seed}"
    drawn = _Pins(num_pins, pins_per_board, num_topics, topics_per_theme, held_out, name)
    return DrawnSource(
        f"pins(num_pins={num_pins}, seed={seed})",
        [
            Piece(num_pins, drawn.pins, _NUM_WORDS),
            Piece(num_boards, drawn.boards),
            Piece(num_boards * pins_per_board, drawn.edges),
        ],
        is_directed=False,
        chunk_rows=chunk_rows,
        num_threads=num_threads,
    )


@dataclass(frozen=True)
class _Pins:
    """Draws nodes and edges by their numbers."""

    num_pins: int
    pins_per_board: int
    num_topics: int
    topics_per_theme: int
    held_out: float
    name: str

    @property
    def has_themes(self) -> bool:
        return self.topics_per_theme > 1

    def pins(self, first: int, last: int) -> list[NodeChunk]:
        ids = np.arange(first, last, dtype=np.int64)
        offsets = np.arange(0, _NUM_WORDS * len(ids) + 1, _NUM_WORDS, dtype=np.int64)
        values = pa.array(self._words(first, last).astype(np.uint32))
        bags = pa.LargeListArray.from_arrays(pa.array(offsets), values)
        split = random_splits(Draws(f"{self.name}:split"), first, last)
        columns = {"label": ids % self.num_topics, "split": split}
        return [
            NodeChunk(ids=ids, node_type="pin", columns=columns, features={"text": bags})
        ]

    def boards(self, first: int, last: int) -> list[NodeChunk]:
        ids = np.arange(first, last, dtype=np.int64)
        columns = {"label": self._topics(ids)[0]}
        return [NodeChunk(ids=ids, node_type="board", columns=columns)]

    def edges(self, first: int, last: int) -> list[EdgeChunk]:
        board = np.arange(first, last, dtype=np.int64) // self.pins_per_board
        words = Draws(f"{self.name}:edge").words(2 * len(board), 2 * first)
        kind = words[1::2] & np.uint64(7)
        of_first, of_both = (6, 7) if self.has_themes else (4, 6)
        topic = np.where(kind < np.uint64(of_first), *self._topics(board))
        sizes = (self.num_pins - topic + self.num_topics - 1) // self.num_topics
        skewed = as_fractions(words[::2]) ** 2
        near = topic + self.num_topics * (skewed * sizes).astype(np.int64)
        far = as_integers(words[::2], self.num_pins)
        pin = np.where(kind < np.uint64(of_both), near, far)
        split = self._splits(board, pin)
        chunks = ((name, split == code) for code, name in enumerate(_SPLITS))
        return [
            EdgeChunk(src=board[rows], dst=pin[rows], edge_type=HOLDS, split=name)
            for name, rows in chunks
            if rows.any()
        ]

    def _splits(self, board: Integers, pin: Integers) -> Integers:
        """Return the code of every edge's split, drawn by its ends."""
        drawn = Draws(f"{self.name}:held out").words_of(board * self.num_pins + pin)
        draw = as_fractions(drawn)
        first = 1.0 - 2.0 * self.held_out
        return (draw >= first).astype(np.int64) + (draw >= 1.0 - self.held_out)

    def _words(self, first: int, last: int) -> npt.NDArray[np.int64]:
        """Return the words of pins, 12 each."""
        drawn = Draws(f"{self.name}:text").words(
            _NUM_WORDS * (last - first), _NUM_WORDS * first
        )
        place, kind = as_integers(drawn, _WORDS_OF_TOPIC), drawn & np.uint64(0xFF)
        topic = np.repeat(np.arange(first, last) % self.num_topics, _NUM_WORDS)
        own = _WORDS_OF_TOPIC * topic + place
        if self.has_themes:
            theme = self.num_topics + topic // self.topics_per_theme
            own += place % _WORDS_IN_THEME - place
            own = np.where(kind < np.uint64(90), _WORDS_OF_TOPIC * theme + place, own)
        other = as_integers(drawn, self.num_topics * _WORDS_OF_TOPIC)
        return np.where(kind < np.uint64(180), own, other)

    def _topics(self, board: Integers) -> tuple[Integers, Integers]:
        """Return the two topics of boards, which are of one theme."""
        draws = Draws(f"{self.name}:topic")
        first = as_integers(draws.words_of(2 * board), self.num_topics)
        second = draws.words_of(2 * board + 1)
        if not self.has_themes:
            return first, as_integers(second, self.num_topics)
        begin = first // self.topics_per_theme * self.topics_per_theme
        size = np.minimum(self.topics_per_theme, self.num_topics - begin)
        return first, begin + (as_fractions(second) * size).astype(np.int64)
