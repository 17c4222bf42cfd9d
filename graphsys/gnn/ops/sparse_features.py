"""Features that are mostly zero, such as bags of words: only the others are multiplied."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from graphsys.gnn.ops.adjacency import SparseRows
from graphsys.gnn.ops.functional import spmm

DENSE_SHARE = 0.1
"""Above this share of numbers that are not zero a dense product is faster."""


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
