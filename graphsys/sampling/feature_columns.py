"""A dense feature in mapped files: its rows, and which of them each node has."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.storage.reader import GraphReader

_AT_A_TIME = 1 << 16


@dataclass(frozen=True, kw_only=True)
class FeatureColumn:
    """One dense feature as it lies in the files of all partitions, and where in memory.

    Attributes:
        rows: Stored rows of each partition ``[k, d]``.
        places: Which of them each node has, uint32 ``[n]``; None where each has its own.
        addresses: Of ``rows`` and of ``places`` (0 for None), uint64 ``[P]`` each.
    """

    rows: list[npt.NDArray[Any]]
    places: list[npt.NDArray[np.uint32] | None]
    addresses: tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]

    @classmethod
    def of(cls, graph: GraphReader, node_type: str, name: str) -> "FeatureColumn":
        """Return a feature of a node type.

        Raises:
            ConfigError: It is a bag.
        """
        parts = range(graph.num_partitions(node_type))
        found: Any = [graph.feature_rows(node_type, part, name) for part in parts]
        if not all(isinstance(rows, np.ndarray) for rows, _ in found):
            raise ConfigError(
                f"feature {name!r} of node type {node_type!r} is a bag of numbers, "
                "expected an array"
            )
        rows, places = [rows for rows, _ in found], [places for _, places in found]
        return cls(
            rows=rows, places=places, addresses=(_addresses_of(rows), _addresses_of(places))
        )

    @property
    def dim(self) -> int:
        """Numbers of a row."""
        return int(self.rows[0].shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of a number."""
        return self.rows[0].dtype

    def are_odd(self, part: int, factor: float = 1.0) -> npt.NDArray[np.bool_]:
        """Return which nodes of a partition have a number that is not finite, times one.

        Stored rows are looked at once, however many nodes have them.
        """
        rows, places = self.rows[part], self.places[part]
        is_odd = np.zeros(len(rows), dtype=np.bool_)
        if self.dtype.kind == "f":
            for begin in range(0, len(rows), _AT_A_TIME):
                piece = slice(begin, begin + _AT_A_TIME)
                with np.errstate(over="ignore"):
                    is_odd[piece] = ~np.isfinite(rows[piece] * factor).all(axis=1)
        return is_odd if places is None else is_odd[places]


def _addresses_of(parts: Sequence[npt.NDArray[Any] | None]) -> npt.NDArray[np.uint64]:
    return np.array(
        [0 if part is None else part.ctypes.data for part in parts], dtype=np.uint64
    )
