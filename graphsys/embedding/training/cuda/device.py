"""Copies to the device and back; see :mod:`graphsys.core.triton.device`."""

import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.events import count
from graphsys.core.triton.device import is_interpreted

Array = npt.NDArray[Any]
_BUFFER_BYTES = 32 << 20


class DeviceCopies:
    """Copies between the host's arrays and the device's tensors, on a stream of their own.

    An array is copied in blocks through two pinned buffers: while one is on its way, the
    other is filled. May be called from any thread; one copy at a time.

    Attributes:
        device: The torch device.
        is_real: Whether it is a GPU, not the interpreter.
    """

    def __init__(self, buffer_bytes: int = _BUFFER_BYTES) -> None:
        import torch

        self._torch: Any = torch
        self._lock = threading.Lock()
        self.is_real = not is_interpreted()
        self.device = torch.device("cuda" if self.is_real else "cpu")
        cuda: Any = torch.cuda
        if self.is_real:
            self.stream = cuda.Stream()
            self._pinned = [
                torch.empty(buffer_bytes, dtype=torch.uint8, pin_memory=True)
                for _ in range(2)
            ]
            self._through = [cuda.Event() for _ in range(2)]

    def load(self, host: Array, target: Any) -> Any:
        """Copy an array into a tensor of the same number of elements, in the background.

        A bfloat16 tensor takes float32 values, rounded to the nearest.

        Returns:
            An event that compute must wait for; None in the interpreter.
        """
        torch = self._torch
        count("bytes_copied", host.nbytes, direction="to_device")
        source = self._view(np.ascontiguousarray(host))
        flat = target.reshape(-1)
        if not self.is_real:
            flat.copy_(source)
            return None
        with self._lock, torch.cuda.stream(self.stream):
            # the tensor's memory may still be read by what was queued before it was made
            self.stream.wait_stream(torch.cuda.default_stream())
            for number, block in enumerate(self._blocks(source)):
                self._through[number % 2].synchronize()
                buffer = self._buffer(number, source.dtype, block)
                buffer.copy_(source[block])
                flat[block].copy_(buffer, non_blocking=True)
                self._through[number % 2].record(self.stream)
            done = torch.cuda.Event()
            done.record(self.stream)
        return done

    def store(self, source: Any, host: Array) -> None:
        """Copy a tensor into an array of the same number of elements, and wait for it.

        What was queued on the default stream before is waited for, too.
        """
        torch = self._torch
        count("bytes_copied", host.nbytes, direction="to_host")
        target = self._view(host)
        flat = source.reshape(-1)
        if not self.is_real:
            target.copy_(flat)
            return
        with self._lock, torch.cuda.stream(self.stream):
            self.stream.wait_stream(torch.cuda.default_stream())
            waiting: list[tuple[int, slice]] = []
            for number, block in enumerate(self._blocks(target)):
                if len(waiting) == 2:
                    self._fetch(*waiting.pop(0), target)
                self._through[number % 2].synchronize()
                buffer = self._buffer(number, target.dtype, block)
                buffer.copy_(flat[block].to(target.dtype), non_blocking=True)
                self._through[number % 2].record(self.stream)
                waiting.append((number, block))
            for number, block in waiting:
                self._fetch(number, block, target)

    def _view(self, host: Array) -> Any:
        """View an array as a flat tensor; uint16 holds the bits of bfloat16."""
        if host.dtype != np.uint16:
            return self._torch.from_numpy(host.reshape(-1))
        bits = self._torch.from_numpy(host.reshape(-1).view(np.int16))
        return bits.view(self._torch.bfloat16)

    def _fetch(self, number: int, block: slice, target: Any) -> None:
        self._through[number % 2].synchronize()
        target[block].copy_(self._buffer(number, target.dtype, block))

    def _buffer(self, number: int, dtype: Any, block: slice) -> Any:
        return self._pinned[number % 2].view(dtype)[: block.stop - block.start]

    def _blocks(self, tensor: Any) -> list[slice]:
        step = self._pinned[0].numel() // tensor.element_size()
        begins = range(0, tensor.numel(), step)
        return [slice(begin, min(begin + step, tensor.numel())) for begin in begins]
