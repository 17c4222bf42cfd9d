"""Pins and boards: a bipartite graph whose pins have words, as recommenders see them.

Every pin has a topic, every board two. Three quarters of a board's pins are of its
topics, and low numbers of a topic are popular. Words (the bag ``text`` of a pin, 12 word
numbers) are mostly those of its topic, the rest any. Pins have ``label`` (the topic) and
``split``; boards have ``label`` (their first topic).

References:
    Ying et al., "Graph convolutional neural networks for web-scale recommender systems"
    (PinSage), KDD 2018, for what such a graph looks like.
"""

import numpy as np
import pyarrow as pa

from graphsys.core.types import EdgeType
from graphsys.datasets.generators.drawn import (
    CHUNK_ROWS,
    MAX_NODES,
    DrawnSource,
    Piece,
    check_integers,
    random_splits,
)
from graphsys.datasets.generators.draws import Draws, Integers, as_fractions, as_integers
from graphsys.storage.source import EdgeChunk, NodeChunk

HOLDS = EdgeType("board", "holds", "pin")
_NUM_WORDS = 12
_WORDS_OF_TOPIC = 64


def pins(
    num_pins: int = 20000,
    num_boards: int = 2000,
    *,
    pins_per_board: int = 50,
    num_topics: int = 20,
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
        seed: Another seed, another graph.
        chunk_rows: Rows made at once; does not change them.
        num_threads: Threads; do not change the graph either.

    Raises:
        ConfigError: a value is out of range.
    """
    check_integers(
        "pins",
        ("num_topics", num_topics, 1, 1 << 20),
        ("num_pins", num_pins, num_topics if isinstance(num_topics, int) else 1, MAX_NODES),
        ("num_boards", num_boards, 1, MAX_NODES),
        ("pins_per_board", pins_per_board, 1, 1 << 20),
    )
    name = f"pins:{seed}"
    split, text = Draws(f"{name}:split"), Draws(f"{name}:text")
    topics, draws = Draws(f"{name}:topic"), Draws(f"{name}:edge")

    def topic_of(board: Integers, which: int) -> Integers:
        return as_integers(topics.words_of(2 * board + which), num_topics)

    def pin_nodes(first: int, last: int) -> list[NodeChunk]:
        ids = np.arange(first, last, dtype=np.int64)
        topic = np.repeat(ids % num_topics, _NUM_WORDS)
        words = text.words(_NUM_WORDS * len(ids), _NUM_WORDS * first)
        own = topic * _WORDS_OF_TOPIC + as_integers(words, _WORDS_OF_TOPIC)
        other = as_integers(words, num_topics * _WORDS_OF_TOPIC)
        is_own = (words & np.uint64(0xFF)) < np.uint64(180)
        offsets = np.arange(0, _NUM_WORDS * len(ids) + 1, _NUM_WORDS, dtype=np.int64)
        values = np.where(is_own, own, other).astype(np.uint32)
        bags = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(values))
        columns = {"label": ids % num_topics, "split": random_splits(split, first, last)}
        return [
            NodeChunk(ids=ids, node_type="pin", columns=columns, features={"text": bags})
        ]

    def boards(first: int, last: int) -> list[NodeChunk]:
        ids = np.arange(first, last, dtype=np.int64)
        return [NodeChunk(ids=ids, node_type="board", columns={"label": topic_of(ids, 0)})]

    def edges(first: int, last: int) -> list[EdgeChunk]:
        board = np.arange(first, last, dtype=np.int64) // pins_per_board
        words = draws.words(2 * len(board), 2 * first)
        kind = words[1::2] & np.uint64(7)
        topic = np.where(kind < np.uint64(4), topic_of(board, 0), topic_of(board, 1))
        sizes = (num_pins - topic + num_topics - 1) // num_topics
        skewed = as_fractions(words[::2]) ** 2
        near = topic + num_topics * (skewed * sizes).astype(np.int64)
        far = as_integers(words[::2], num_pins)
        return [
            EdgeChunk(
                src=board, dst=np.where(kind < np.uint64(6), near, far), edge_type=HOLDS
            )
        ]

    return DrawnSource(
        f"pins(num_pins={num_pins}, seed={seed})",
        [
            Piece(num_pins, pin_nodes, _NUM_WORDS),
            Piece(num_boards, boards),
            Piece(num_boards * pins_per_board, edges),
        ],
        is_directed=False,
        chunk_rows=chunk_rows,
        num_threads=num_threads,
    )
