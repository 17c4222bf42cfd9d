"""The one thing that evaluation asks of a network."""

from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch


class Output(Protocol):
    """Computes the network's output for nodes of a type, from all of their neighbors."""

    def __call__(self, node_type: str, nodes: npt.NDArray[np.int64]) -> torch.Tensor:
        """Return float32 ``[n, F]``."""
