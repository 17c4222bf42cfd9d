"""Features that are mostly zero, such as bags of words: only the others are multiplied.

Also whether a linear layer comes before a sum or after it: the same at another price.
"""

from typing import Final

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from graphsys.gnn.ops.adjacency import SparseRows
from graphsys.gnn.ops.functional import spmm

DENSE_SHARE = 0.1
"""Above this share of numbers that are not zero a dense product is faster."""

_FLOP_S: Final = 1 / 60e9  # a core's dense product, as the benchmarks' machines measure it
_BYTE_S: Final = 1 / 8e9  # rows gathered from all over an array
_DEVICE_FLOP_S: Final = 1 / 30e12  # assumed of an H100 in float32, not measured
_DEVICE_BYTE_S: Final = 1 / 1.5e12


class SparseFeatures:
    """A matrix by its entries; dropout and a linear layer give what the dense one would.

    Args:
        rows: Which columns each row has, columns as sources.
        values: Of the entries, float32 ``[E]``.
    """

    requires_grad = False

    def __init__(self, rows: SparseRows, values: torch.Tensor) -> None:
        self.rows, self.values = rows, values

    @classmethod
    def of(cls, x: torch.Tensor) -> "SparseFeatures | torch.Tensor":
        """Return a matrix ``[n, F]`` in this form, or itself where it is too dense."""
        dense = x.numpy()
        counts = np.count_nonzero(dense, axis=1)
        if counts.sum() > DENSE_SHARE * dense.size:
            return x
        row, column = np.nonzero(dense)
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        rows = SparseRows(indptr, column.astype(np.int32), dense.shape[1], is_prefix=False)
        return cls(rows, torch.from_numpy(dense[row, column]))

    def __len__(self) -> int:
        return self.rows.num_dst

    def dropout(self, chance: float, training: bool) -> "SparseFeatures":
        """Return the matrix with entries left out by chance, the rest scaled up."""
        values = functional.dropout(self.values, chance, training)
        return SparseFeatures(self.rows, values)

    def times(self, weight: torch.Tensor) -> torch.Tensor:
        """Return the product with a dense matrix ``[F, G]``."""
        return spmm(self.rows, weight, self.values)


class Linear(nn.Linear):
    """torch's, for sparse features too."""

    def forward(self, x: "torch.Tensor | SparseFeatures") -> torch.Tensor:
        """Return ``x W^T + b``."""
        if isinstance(x, torch.Tensor):
            return functional.linear(x, self.weight, self.bias)
        product = x.times(self.weight.T)
        return product if self.bias is None else product + self.bias


def transform_first(
    rows: SparseRows, x: torch.Tensor | SparseFeatures, num_in: int, num_out: int
) -> bool:
    """Say whether a linear layer costs less before the sum over neighbors than after it.

    Before, it is applied to every source and messages are as wide as the output; after,
    to every row, with messages as wide as the input. The backward pass doubles the
    products, and, where the input needs a gradient, repeats the sums.

    Args:
        rows: Where messages go.
        x: Of the sources; sparse features are always transformed first.
        num_in: Features of the input.
        num_out: Features of the output.
    """
    if isinstance(x, SparseFeatures):
        return True
    needs_gradient = x.requires_grad
    flop_s, byte_s = _FLOP_S, _BYTE_S
    if rows.is_on_device:
        flop_s, byte_s = _DEVICE_FLOP_S, _DEVICE_BYTE_S
    products = 6 if needs_gradient else 4
    before = products * rows.num_src * num_in * num_out * flop_s
    before += 2 * 4 * rows.num_edges * num_out * byte_s
    after = products * rows.num_dst * num_in * num_out * flop_s
    after += (2 if needs_gradient else 1) * 4 * rows.num_edges * num_in * byte_s
    return before < after
