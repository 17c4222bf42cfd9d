"""Result columns with nulls, without copies."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.kernels.cpu.bits import Words


def column_of(values: npt.NDArray[Any], is_known: Words) -> pa.Array:
    """Return ``values`` as an Arrow array that is null outside of a set of nodes.

    Args:
        values: One value per node, integers or floats ``[N]``; kept, not copied.
        is_known: The nodes whose value counts, a bitmap (kernels.cpu.bits); kept.
    """
    buffers = [pa.py_buffer(is_known), pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)
