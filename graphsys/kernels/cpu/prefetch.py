"""Asking the memory for elements of arrays that will be needed soon."""

from typing import Any

import numpy as np

from graphsys.kernels.cpu import pointers
from graphsys.kernels.jit import lean_inline_jit


@lean_inline_jit
def prefetch(array: Any, index: Any) -> None:
    """Bring an element's cache line near, without waiting for it.

    It changes nothing else, and an index behind the end does no harm.
    """
    place = pointers.address(array) + np.int64(index) * array.itemsize
    pointers.prefetch(np.uint64(place))
