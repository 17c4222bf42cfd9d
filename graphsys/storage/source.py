"""What readers produce and ingest consumes: a single pass over chunks of a graph."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from graphsys.core.types import DEFAULT_SPLIT, EDGE, NODE, EdgeType

Ids: TypeAlias = Any
"""Ids of nodes: an integer array ``[n]`` (>= 0, < 2**63), or an Arrow array of strings
(``string``, ``large_string`` or a dictionary of either; a dictionary per chunk is best)."""

Column: TypeAlias = Any
"""A column: a numpy array ``[n]`` or an Arrow array of length n."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeChunk:
    """Some edges of one type and split.

    Attributes:
        src: Ids of the sources, ``[n]``.
        dst: Ids of the destinations, ``[n]``.
        edge_type: Their type.
        split: "train", "valid", "test" or any other name.
        columns: Further columns by name: "weight" (numeric, finite), "time" (int64),
            "relation" (strings), or any other that Arrow can hold.
        bytes_read: Bytes of the source that this chunk consumed, for the progress bar.
    """

    src: Ids
    dst: Ids
    edge_type: EdgeType = EDGE
    split: str = DEFAULT_SPLIT
    columns: Mapping[str, Column] = field(default_factory=dict)
    bytes_read: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChunk:
    """Some nodes of one type; each id of a type is listed at most once by a source.

    Attributes:
        ids: Ids, ``[n]``.
        node_type: Their type.
        columns: Columns by name: "label", "split" (strings), "time", or any other.
        features: Features by name: float32, float16 or int8 ``[n, d]``, or an Arrow
            ``LargeListArray`` of uint32 (bags).
        bytes_read: Bytes of the source that this chunk consumed, for the progress bar.
        is_partial: Others of the type are known by edges alone, and none is missing.
    """

    ids: Ids
    node_type: str = NODE
    columns: Mapping[str, Column] = field(default_factory=dict)
    features: Mapping[str, npt.NDArray[np.generic] | Any] = field(default_factory=dict)
    bytes_read: int = 0
    is_partial: bool = False


class Source(ABC):
    """A graph that can be read once, chunk by chunk.

    Attributes:
        name: What is read, for messages.
        total_bytes: Sum of all ``bytes_read``, where known.
        is_directed: False where every edge stands for both directions.
        allows_nan: Whether weights may be NaN or infinite, as in a matrix; else errors.
        has_millionths: Whether times of edges had fractions, and are millionths now.
    """

    name: str
    total_bytes: int | None = None
    is_directed: bool = True
    allows_nan: bool = False
    has_millionths: bool = False

    @property
    def num_parts(self) -> int:
        """How many parts can be read side by side, each by a source of its own."""
        return 1

    def keep_part(self, number: int) -> None:  # noqa: B027  # the one part is all there is
        """Forget all parts but one; parts in turn are the whole."""

    @abstractmethod
    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield the graph in chunks of about a million rows.

        The arrays of a chunk must not change after it was yielded: they are kept.

        Raises:
            InputError: the source is malformed; may come at any moment.
        """


class WrappedSource(Source):
    """A source that changes the chunks of another, and is as that one in all else."""

    def __init__(self, source: Source) -> None:
        self.name, self.total_bytes = source.name, source.total_bytes
        self.is_directed, self.allows_nan = source.is_directed, source.allows_nan
        self.has_millionths = source.has_millionths
        self._source = source

    @property
    def num_parts(self) -> int:
        """How many parts can be read side by side, each by a source of its own."""
        return self._source.num_parts

    def keep_part(self, number: int) -> None:
        """Forget all parts but one; parts in turn are the whole."""
        self._source.keep_part(number)
