"""Messages over time: who writes to whom and when, with days, habits and busy people.

Message k is sent on day ``k // per_day``; times rise from one to the next, within a day
between 8 and 24 o'clock. Few people write most. Four of five messages go to one of the
writer's eight usual partners, the others to anyone.
"""

import numpy as np

from graphsys.core.types import EdgeType
from graphsys.datasets.generators.drawn import (
    CHUNK_ROWS,
    MAX_NODES,
    DrawnSource,
    Piece,
    check_integers,
    plain_nodes,
)
from graphsys.datasets.generators.draws import Draws, as_fractions, as_integers
from graphsys.storage.source import EdgeChunk

WRITES = EdgeType("person", "writes", "person")
_DAY_S = 86_400
_MORNING_S = 8 * 3600
_USUAL = 8


def activity(
    num_people: int = 2000,
    num_messages: int = 60000,
    *,
    num_days: int = 180,
    start: int = 1577836800,
    seed: int = 0,
    chunk_rows: int = CHUNK_ROWS,
    num_threads: int | None = None,
) -> DrawnSource:
    """Make a directed graph of messages with times.

    Args:
        num_people: People.
        num_messages: Messages, in the order of their times.
        num_days: Days that they are spread over.
        start: Midnight of the first day, in seconds since 1970.
        seed: Another seed, another graph.
        chunk_rows: Rows made at once; does not change them.
        num_threads: Threads; do not change the graph either.

    Raises:
        ConfigError: a value is out of range.
    """
    check_integers(
        "activity",
        ("num_people", num_people, 2, MAX_NODES),
        ("num_messages", num_messages, 1, 2**48),
        ("num_days", num_days, 1, 1 << 20),
        ("start", start, 0, 2**40),
    )
    name = f"activity:{seed}"
    writer, partner, usual, clock = (
        Draws(f"{name}:{it}") for it in ("writer", "partner", "usual", "clock")
    )
    per_day = -(-num_messages // num_days)
    gap = max((_DAY_S - _MORNING_S) // per_day, 1)

    def edges(first: int, last: int) -> list[EdgeChunk]:
        k = np.arange(first, last, dtype=np.int64)
        src = (writer.fractions(len(k), first) ** 3 * num_people).astype(np.int64)
        words = partner.words(len(k), first)
        slot = as_integers(words, _USUAL)
        habit = as_integers(usual.words_of(src * _USUAL + slot), num_people - 1)
        anyone = as_integers(words, num_people - 1)
        is_habit = (words & np.uint64(0xFF)) < np.uint64(205)
        dst = (src + 1 + np.where(is_habit, habit, anyone)) % num_people
        place = k % per_day
        within = place * (_DAY_S - _MORNING_S) // per_day
        within += (as_fractions(clock.words(len(k), first)) * gap).astype(np.int64)
        time = start + k // per_day * _DAY_S + _MORNING_S + within
        return [EdgeChunk(src=src, dst=dst, edge_type=WRITES, columns={"time": time})]

    return DrawnSource(
        f"activity(num_people={num_people}, seed={seed})",
        [plain_nodes(num_people, "person"), Piece(num_messages, edges)],
        is_directed=True,
        chunk_rows=chunk_rows,
        num_threads=num_threads,
    )
