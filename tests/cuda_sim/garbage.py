"""Memory of a simulated device that holds what others left there, as a card's does."""

from typing import Any

import numpy as np

from graphsys.core.cuda.device import DeviceMemory


def leave_garbage() -> None:
    """Have arrays that are not filled hold sevens."""
    empty = DeviceMemory.empty

    def used(self: DeviceMemory, length: int, dtype: Any, width: int = 0) -> Any:
        found = empty(self, length, dtype, width)
        found.copy_to_device(np.full(found.shape, 77, dtype=dtype))
        return found

    DeviceMemory.empty = used  # type: ignore[method-assign]
