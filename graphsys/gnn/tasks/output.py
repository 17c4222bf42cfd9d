"""The one thing that evaluation asks of a network, and its rows as a column."""

from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch


class Output(Protocol):
    """Computes the network's output for nodes of a type, from all of their neighbors."""

    def __call__(self, node_type: str, nodes: npt.NDArray[np.int64]) -> torch.Tensor:
        """Return float32 ``[n, F]``."""


def rows_column(rows: npt.NDArray[np.float32]) -> pa.FixedSizeListArray:
    """Return rows ``[n, F]`` as a column of FixedSizeList<float32>."""
    return pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), rows.shape[1])
