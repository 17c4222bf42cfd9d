"""The device: whether there is one, its size, and memory with every copy counted."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.cuda.toolkit import require_compiler
from graphsys.core.errors import ConfigError, MissingDependencyError
from graphsys.core.events import count as emit_count

Array = npt.NDArray[Any]
DeviceArray = Any
"""numba's array on the device."""

_BLOCKS_PER_MULTIPROCESSOR = 8


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """How large launches are.

    Attributes:
        block: Threads per block, a multiple of 32.
        max_blocks: Blocks that fill the device; loops stride over more work.
    """

    block: int = 256
    max_blocks: int = 1056

    def __post_init__(self) -> None:
        if self.block % 32 or not 32 <= self.block <= 1024 or self.max_blocks < 1:
            raise ConfigError(
                f"a block must have 32, 64 ... 1024 threads and there must be blocks, got "
                f"{self.block} and {self.max_blocks}"
            )


def require_device() -> None:
    """Check that CUDA programs can run here; numba's simulator counts as a device.

    Raises:
        MissingDependencyError: numba-cuda or the toolkit's compiler is not installed.
        ConfigError: there is no GPU, or no driver.
    """
    try:
        from numba import cuda
    except ImportError as err:
        raise MissingDependencyError(
            "device='cuda' needs numba-cuda: pip install 'graphsys[gpu]'"
        ) from err
    except AttributeError as err:  # numba-cuda 0.30 names what numpy 2.5 took away
        raise MissingDependencyError(
            f"device='cuda': numba-cuda does not go with numpy {np.__version__} ({err}): "
            "pip install 'numpy<2.5'"
        ) from err
    if is_simulated():
        return
    try:
        found = bool(cuda.is_available())
    except Exception:  # the driver's own loader raises many things
        found = False
    if not found:
        raise ConfigError(
            "device='cuda': this machine has no CUDA device or driver; use device='cpu' "
            "(see 'graphsys doctor')"
        )
    require_compiler()


def is_simulated() -> bool:
    """Whether numba's simulator stands in for a device."""
    from numba import config

    return bool(config.ENABLE_CUDASIM)


def can_wait_for_grid() -> bool:
    """Whether kernels may wait for all blocks of their grid (cooperative launches)."""
    if is_simulated():
        return True
    from numba import cuda

    return bool(cuda.get_current_device().COOPERATIVE_LAUNCH)


def default_shape() -> LaunchShape:
    """Return the shape that fills this device; a tiny one in the simulator."""
    from numba import cuda

    if is_simulated():
        return LaunchShape(block=64, max_blocks=2)
    multiprocessors = int(cuda.get_current_device().MULTIPROCESSOR_COUNT)
    return LaunchShape(max_blocks=_BLOCKS_PER_MULTIPROCESSOR * multiprocessors)


def free_memory() -> int | None:
    """Return the device's free bytes; None in the simulator."""
    from numba import cuda

    if is_simulated():
        return None
    return int(cuda.current_context().get_memory_info().free)


class DeviceMemory:
    """Arrays on the device.

    Attributes:
        nbytes: Bytes allocated so far.
    """

    def __init__(self) -> None:
        from numba import config, cuda

        config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # small frontiers are no mistake
        self._cuda = cuda
        self.nbytes = 0
        self.stream = cuda.stream()

    def upload(self, host: Array) -> DeviceArray:
        """Copy an array to the device; an empty one becomes one element."""
        if not len(host):
            return self.empty(1, host.dtype)
        emit_count("bytes_copied", host.nbytes, direction="to_device")
        self.nbytes += host.nbytes
        return self._cuda.to_device(np.ascontiguousarray(host), stream=self.stream)

    def empty(self, length: int, dtype: Any, width: int = 0) -> DeviceArray:
        """Allocate an array, at least one element; of rows where they have a width."""
        shape = (max(length, 1), width) if width else max(length, 1)
        array = self._cuda.device_array(shape, dtype=np.dtype(dtype))
        self.nbytes += max(length, 1) * max(width, 1) * np.dtype(dtype).itemsize
        return array

    def full(self, length: int, value: Any, dtype: Any, width: int = 0) -> DeviceArray:
        """Allocate an array and fill it, on the device where its bytes are all the same."""
        first = np.full(1, value, dtype=dtype)
        every = set(first.tobytes())
        if is_simulated() or len(every) > 1:
            shape = (max(length, 1), width) if width else max(length, 1)
            return self.upload(np.full(shape, value, dtype=dtype))
        array = self.empty(length, dtype, width)
        self._cuda.cudadrv.driver.device_memset(
            array, every.pop(), array.nbytes, stream=self.stream
        )
        return array

    def write(self, host: Array, target: DeviceArray) -> None:
        """Copy an array over the beginning of one on the device."""
        if len(host):
            emit_count("bytes_copied", host.nbytes, direction="to_device")
            target[: len(host)].copy_to_device(host, stream=self.stream)

    def read(self, source: DeviceArray, target: Array) -> None:
        """Copy the beginning of an array to the host and wait for it."""
        if len(target):
            emit_count("bytes_copied", target.nbytes, direction="to_host")
            source[: len(target)].copy_to_host(target, stream=self.stream)
        self.stream.synchronize()

    def copy(self, source: DeviceArray, target: DeviceArray) -> None:
        """Copy between arrays of the device."""
        target.copy_to_device(source, stream=self.stream)
