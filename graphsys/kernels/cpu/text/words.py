"""Words of a block of text, copied into the buffers of an Arrow string array."""

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import jit


@jit
def gather_words(
    data: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int32],
    out: npt.NDArray[np.uint8],
) -> None:
    """Copy words side by side: the buffers of an Arrow string array.

    Args:
        data: The block, uint8.
        starts: Where words begin, ``[N]``.
        lengths: How long they are, ``[N]``.
        offsets: Receives their starts in ``out`` and the end of the last, ``[N + 1]``.
        out: Receives the bytes, uint8, as long as all words.
    """
    position = 0
    for k in range(len(starts)):
        offsets[k] = position
        begin = starts[k]
        for b in range(lengths[k]):
            out[position + b] = data[begin + b]
        position += lengths[k]
    offsets[len(starts)] = position
