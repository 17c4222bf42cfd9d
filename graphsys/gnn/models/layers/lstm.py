"""An LSTM over the neighbors of every row, as one packed sequence."""

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence

from graphsys.gnn.ops.adjacency import SparseRows


class NeighborLSTM(nn.Module):
    """The last state of an LSTM that reads a row's neighbors, in random order if training.

    Rows of equal length are read side by side, so the steps are as many as the longest
    row is long; nothing is padded.

    Args:
        num_features: Of a neighbor, and of the state.
    """

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(num_features, num_features)

    def forward(self, rows: SparseRows, x: torch.Tensor) -> torch.Tensor:
        """Return the states ``[D, F]``; 0 for a row without neighbors."""
        lengths = np.diff(rows.indptr)
        longest_first = np.argsort(-lengths, kind="stable")
        num_filled = int(np.count_nonzero(lengths))
        out = torch.zeros(rows.num_dst, x.shape[1])
        if not num_filled:
            return out
        row = np.repeat(np.arange(rows.num_dst), lengths)
        indices = rows.indices
        if self.training:
            indices = indices[np.lexsort((torch.rand(rows.num_edges).numpy(), row))]
        place = np.empty(rows.num_dst, dtype=np.int64)
        place[longest_first] = np.arange(rows.num_dst)
        step = np.arange(rows.num_edges) - rows.indptr[row]
        read = indices[np.lexsort((place[row], step))]
        data = x.float().index_select(0, torch.from_numpy(read))
        sequence = PackedSequence(data, torch.from_numpy(np.bincount(step)))
        states: torch.Tensor = self.lstm(sequence)[1][0][0]
        return out.index_copy(0, torch.from_numpy(longest_first[:num_filled]), states)
