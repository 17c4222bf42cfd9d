"""What generators share: pieces that are drawn by number, whatever the chunks."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from graphsys.core.errors import ConfigError
from graphsys.core.threads import map_in_order
from graphsys.datasets.generators.draws import Draws, as_fractions
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

CHUNK_ROWS: Final = 1 << 20
MAX_NODES: Final = 2**31


class Piece(NamedTuple):
    """A run of nodes or of edges.

    Attributes:
        size: How many there are, before any are left out.
        draw: Makes those from one number to another.
        cost: Values in a row; chunks have fewer rows where it is large.
    """

    size: int
    draw: Callable[[int, int], Sequence[NodeChunk | EdgeChunk]]
    cost: int = 1


class DrawnSource(Source):
    """A generated graph: its pieces, one after the other.

    Args:
        name: What messages call it.
        pieces: Nodes first, then edges.
        is_directed: Whether edges have directions.
        chunk_rows: Rows made at once; does not change them.
        num_threads: Threads; do not change the rows either.
    """

    def __init__(
        self,
        name: str,
        pieces: Sequence[Piece],
        *,
        is_directed: bool,
        chunk_rows: int = CHUNK_ROWS,
        num_threads: int | None = None,
    ) -> None:
        self.name = name
        self.is_directed = is_directed
        self._pieces = list(pieces)
        self._chunk_rows = chunk_rows
        self._num_threads = num_threads

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield all pieces in order."""
        for piece in self._pieces:
            step = max(self._chunk_rows // piece.cost, 1)
            spans = [
                (first, min(first + step, piece.size))
                for first in range(0, piece.size, step)
            ]

            def draw(span: tuple[int, int], piece: Piece = piece) -> Any:
                return piece.draw(*span)

            for made in map_in_order(draw, spans, num_threads=self._num_threads):
                yield from made


def check_integers(name: str, *limits: tuple[str, Any, int, int]) -> None:
    """Check parameters: name, value, least and greatest value.

    Raises:
        ConfigError: one is no integer or out of range.
    """
    for key, value, low, high in limits:
        if (
            isinstance(value, bool)
            or not isinstance(value, int)
            or not low <= value <= high
        ):
            raise ConfigError(
                f"{name}.{key}: got {value!r}, expected an int of {low} to {high}"
            )


def check_shares(name: str, *limits: tuple[str, Any]) -> None:
    """Check parameters that are shares.

    Raises:
        ConfigError: one is no number from 0 to 1.
    """
    for key, value in limits:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ConfigError(f"{name}.{key}: got {value!r}, expected a number of 0 to 1")
        if not 0 <= value <= 1:
            raise ConfigError(f"{name}.{key}: got {value!r}, expected a number of 0 to 1")


def random_splits(draws: Draws, first: int, last: int) -> pa.StringArray:
    """Return the splits of nodes: 60 % train, 20 % valid, 20 % test."""
    draw = as_fractions(draws.words(last - first, first))
    codes = (draw >= 0.6).astype(np.int8) + (draw >= 0.8)
    return pa.array(["train", "valid", "test"]).take(pa.array(codes))


def plain_nodes(count: int, node_type: str = "node") -> Piece:
    """Return a piece that lists nodes without columns."""

    def draw(first: int, last: int) -> list[NodeChunk]:
        return [NodeChunk(ids=np.arange(first, last, dtype=np.int64), node_type=node_type)]

    return Piece(count, draw)
