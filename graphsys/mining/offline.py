"""The CUDA kernels of mining compiled to machine code without a GPU or a driver."""

import inspect
from typing import Any

import numpy as np

from graphsys.core.cuda.offline import KernelReport, array_type, compile_kernels

_ARRAYS = {
    "indptr": "int64",
    "starts": "int64",
    "cursor": "int64",
    "totals": "int64",
    "counts": "int32",
}


def compile_mining(id_dtype: np.dtype[Any]) -> list[KernelReport]:
    """Compile all kernels for Hopper, for numbers of nodes of a dtype.

    Raises:
        MissingDependencyError: numba-cuda's compiler or ``ptxas`` is missing.
    """
    from numba import types

    from graphsys.kernels.cuda.mining import KERNELS

    dtypes = {name: np.dtype(kind) for name, kind in _ARRAYS.items()}
    dtypes |= {"indices": id_dtype, "scratch": id_dtype}
    return compile_kernels(
        [
            (
                name,
                function.py_func,
                tuple(
                    array_type(dtypes[argument]) if argument in dtypes else types.int64
                    for argument in inspect.signature(function.py_func).parameters
                ),
            )
            for name, function in KERNELS.items()
        ]
    )
