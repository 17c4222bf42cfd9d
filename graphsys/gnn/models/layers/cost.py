"""Whether to transform first or to aggregate first: the same result at another price."""

from typing import TYPE_CHECKING, Final

from graphsys.gnn.ops.adjacency import SparseRows
from graphsys.gnn.ops.sparse_features import SparseFeatures

if TYPE_CHECKING:
    import torch

_FLOP_S: Final = 1 / 60e9  # a core's dense product, as the benchmarks' machines measure it
_BYTE_S: Final = 1 / 8e9  # rows gathered from all over an array
_DEVICE_FLOP_S: Final = 1 / 30e12  # assumed of an H100 in float32, not measured
_DEVICE_BYTE_S: Final = 1 / 1.5e12


def transform_first(
    rows: SparseRows, x: "torch.Tensor | SparseFeatures", num_in: int, num_out: int
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
