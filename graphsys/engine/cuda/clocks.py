"""Records of instrumented kernels: where they are written, and read after each launch."""

from typing import Any

import numpy as np

from graphsys.core.clocks import KernelClocks
from graphsys.core.cuda.device import DeviceMemory, LaunchShape, is_simulated

ARGUMENTS = ("clock_records", "lane_steps")
"""Arguments of instrumented kernels."""
_SIMULATED_SMS = 2


class ClockRecords:
    """Arrays on the device that one launch after the other writes its clocks to.

    Copies to and from them are no part of the run, and are not counted.

    Args:
        memory: The device.
        shape: How large launches are.
    """

    def __init__(self, memory: DeviceMemory, shape: LaunchShape) -> None:
        self._memory, self._block = memory, shape.block
        self._zeros = np.zeros(33, dtype=np.int64)
        warps = shape.max_blocks * shape.block // 32
        self.arrays: dict[str, Any] = {
            "clock_records": memory.empty(3 * warps, np.int64),
            "lane_steps": memory.empty(33, np.int64),
        }

    def clear(self) -> None:
        """Forget the lanes of the launch before."""
        self.arrays["lane_steps"].copy_to_device(self._zeros, stream=self._memory.stream)

    def read(self, kernel: str, grid: int) -> KernelClocks:
        """Wait for a launch and return what it wrote."""
        stream = self._memory.stream
        length = 3 * (grid * self._block // 32)
        records = np.zeros(length, dtype=np.int64)
        lanes = np.zeros(33, dtype=np.int64)
        self.arrays["clock_records"][:length].copy_to_host(records, stream=stream)
        self.arrays["lane_steps"].copy_to_host(lanes, stream=stream)
        stream.synchronize()
        begins, ends, sms = records.reshape(-1, 3).T
        return KernelClocks(
            kernel=kernel,
            block=self._block,
            begins=begins,
            ends=ends,
            sms=sms,
            lane_steps=lanes,
            num_sms=_num_sms(),
        )


def _num_sms() -> int:
    from numba import cuda

    if is_simulated():
        return _SIMULATED_SMS
    return int(cuda.get_current_device().MULTIPROCESSOR_COUNT)
