"""What instrumented CUDA kernels write down of themselves, launch by launch."""

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]

CLOCKS = "clocks"
"""Observation of :class:`KernelClocks`: while somebody asks, kernels are instrumented."""
DEVICE_ROWS = "device_rows"
"""While somebody asks, a device runs superstep by superstep and tells the rows of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelClocks:
    """One launch of an instrumented kernel, seen from inside.

    Attributes:
        kernel: Its name.
        block: Threads of a CTA, a multiple of 32.
        begins: The SM's clock when each warp began, in order of CTAs, int64 ``[W]``.
        ends: The same when it ended; only differences on one SM mean anything.
        sms: The SM that each warp ran on, int64 ``[W]``.
        lane_steps: Steps of the loops over rows by active lanes, int64 ``[33]``.
        num_sms: SMs of the device.
    """

    kernel: str
    block: int
    begins: Array
    ends: Array
    sms: Array
    lane_steps: Array
    num_sms: int
