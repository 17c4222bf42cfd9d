"""Types of ids and edges, and names of splits; ``graphsys/GLOSSARY.md`` has the words."""

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from graphsys.core.errors import ConfigError

LOCAL_ID: Final = np.dtype(np.uint32)
"""dtype of local numbers, and of numbers below 2**32."""

WIDE_ID: Final = np.dtype(np.int64)
"""dtype of numbers from 2**32 on."""

MAX_USER_ID: Final = 2**63 - 1
DEFAULT_SPLIT: Final = "train"
NEGATIVE: Final = "_negative"


class EdgeType(NamedTuple):
    """Where edges of a type start, what they are called, where they end."""

    src_type: str
    relation: str
    dst_type: str

    def __str__(self) -> str:
        return f"({self.src_type}, {self.relation}, {self.dst_type})"


def true_splits(splits: Iterable[str]) -> list[str]:
    """Return the splits whose edges are true, in their order.

    Examples:
        >>> true_splits(["train", "test", "test_negative"])
        ['train', 'test']
    """
    return [split for split in splits if not split.endswith(NEGATIVE)]


def known_splits(splits: Iterable[str], chosen: str | Iterable[str] = "all") -> list[str]:
    """Return the splits whose edges count as known answers, in their order.

    Args:
        splits: The splits of a graph.
        chosen: "all", or some of them ("train,valid").

    Raises:
        ConfigError: one of them does not exist, or holds pairs that are no edges.

    Examples:
        >>> known_splits(["train", "valid", "test", "test_negative"])
        ['train', 'valid', 'test']
        >>> known_splits(["train", "valid", "test"], "train")
        ['train']
    """
    there = true_splits(splits)
    names = chosen.split(",") if isinstance(chosen, str) else list(chosen)
    names = [name.strip() for name in names]
    if names == ["all"]:
        return there
    if unknown := [name for name in names if name not in there]:
        raise ConfigError(
            f"known_splits: got {unknown[0]!r}, expected all, or some of {', '.join(there)}"
        )
    return [name for name in there if name in names]


class Bucket(NamedTuple):
    """The place of a bucket in the grid of an edge type."""

    src_part: int
    dst_part: int


NODE: Final = "node"
EDGE: Final = EdgeType(NODE, "edge", NODE)
"""Node and edge type of a graph without types."""
SIGNS: Final = ("positive", "negative")
"""Relations that are the signs of edges' weights."""


def number_dtype(num_nodes: int) -> np.dtype[np.unsignedinteger] | np.dtype[np.int64]:
    """Return the dtype that holds the numbers of a type with ``num_nodes`` nodes."""
    return LOCAL_ID if num_nodes <= 2**32 else WIDE_ID
