"""Batches on their way to the device: pinned memory, one block for all that is small.

Whoever makes a batch sends it, in a thread beside the training: rows of features are
gathered into pinned memory and copied from there, offsets, indices and places are packed
into one pinned block. Copies run on a stream of their own; the training waits for the
batch's event, and pinned memory is used again when that has passed. In Triton's interpreter
all of it runs on the CPU, without streams and events.
"""

import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Final

import numpy as np
import torch

from graphsys.core.errors import ConfigError
from graphsys.core.events import count
from graphsys.core.triton.device import cuda_device, is_interpreted, require_device
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.features import FeatureBags
from graphsys.gnn.data.loader import Batch
from graphsys.gnn.data.message_graph import Layer
from graphsys.gnn.model_spec import spec_of
from graphsys.gnn.ops.adjacency import DeviceSparseRows
from graphsys.gnn.ops.cuda.feature_cache import PartialFeatures
from graphsys.gnn.ops.sparse_features import SparseFeatures
from graphsys.sampling.blocks import Buffers

_ALIGNMENT: Final = 16
Put = Callable[[Any], torch.Tensor]


class PinnedBuffers(Buffers):
    """Pinned arrays that grow and are used again, once what was copied from them is there.

    Args:
        is_pinned: Whether to pin them; not in the interpreter.

    Attributes:
        copied: The event of the last copy from them, or None.
    """

    def __init__(self, *, is_pinned: bool) -> None:
        super().__init__()
        self._is_pinned = is_pinned
        self.copied: Any = None

    def wait(self) -> None:
        """Wait until nothing is copied from the arrays any more."""
        if self.copied is not None:
            self.copied.synchronize()
            self.copied = None

    def _fresh(self, size: int, dtype: Any) -> Any:
        size_bytes = size * np.dtype(dtype).itemsize
        block = torch.empty(size_bytes, dtype=torch.uint8, pin_memory=self._is_pinned)
        return block.numpy().view(dtype)


class Parcel:
    """Small arrays of a batch, copied to the device as one block.

    Args:
        size_bytes: Room for all of them, see :func:`room_of`.
        buffers: Where the block is on the host.
        device: Where it goes.
    """

    def __init__(self, size_bytes: int, buffers: Buffers, device: torch.device) -> None:
        host = buffers.room("parcel", size_bytes, np.uint8)[:size_bytes]
        self._host = torch.from_numpy(host)
        self.block = torch.empty(size_bytes, dtype=torch.uint8, device=device)
        self._end = 0

    def put(self, array: Any) -> torch.Tensor:
        """Pack an array or a tensor of the host; return what it will be on the device."""
        source = torch.as_tensor(array)
        size = source.numel() * source.element_size()
        span = slice(self._end, self._end + size)
        self._end += room_of(source)
        self._host[span].view(source.dtype).copy_(source.reshape(-1))
        return self.block[span].view(source.dtype).reshape(source.shape)

    def ship(self) -> int:
        """Begin the copy; return its bytes."""
        self.block.copy_(self._host, non_blocking=True)
        return self.block.numel()


def room_of(array: Any) -> int:
    """Return the bytes that an array or a tensor takes in a parcel; None takes none."""
    size = 0 if array is None else int(array.nbytes)
    return -(-size // _ALIGNMENT) * _ALIGNMENT


class DeviceTransfer:
    """Takes batches, rows and inputs to a device.

    Attributes:
        device: Torch's device.
        is_real: Whether it is a GPU, not the interpreter.

    Raises:
        MissingDependencyError: Triton is not installed.
        ConfigError: There is no device.
    """

    def __init__(self) -> None:
        require_device()
        self.is_real = not is_interpreted()
        self.device = cuda_device()
        cuda: Any = torch.cuda
        self._stream = cuda.Stream() if self.is_real else None

    def buffers(self) -> PinnedBuffers:
        """Return buffers that batches are gathered into."""
        return PinnedBuffers(is_pinned=self.is_real)

    def put(self, array: Any) -> torch.Tensor:
        """Return an array or a tensor of the host on the device, at once."""
        return torch.as_tensor(array).to(self.device)

    def layer(self, layer: Layer) -> Layer:
        """Return the rows of a layer on the device."""
        return {
            name: DeviceSparseRows.moved(rows, self.put) for name, rows in layer.items()
        }

    def input(self, x: Mapping[str, Any], kept: Container[str] = ()) -> dict[str, Any]:
        """Return the input of a network on the device, but of types that stay.

        Args:
            x: Input by type.
            kept: Types whose rows are read on the host, by numbers that stay there.
        """
        return {n: v if n in kept else _moved(v, self.put) for n, v in x.items()}

    def memory(self) -> dict[str, int]:
        """Return the most of the device's memory that was taken so far."""
        if not self.is_real:
            return {}
        return {"planned_device_memory_bytes": torch.cuda.max_memory_allocated()}

    def send(self, batch: Batch, kept: Container[str] = ()) -> None:
        """Begin to copy a batch; afterwards its tensors are those of the device.

        Args:
            batch: Gathered into :meth:`buffers`; :meth:`receive` is to come before its use.
            kept: As of :meth:`input`.
        """
        buffers: Any = batch.buffers
        cuda: Any = torch.cuda
        with cuda.stream(self._stream) if self.is_real else nullcontext():
            parcel = Parcel(_parcel_bytes(batch, kept), buffers, self.device)
            direct: list[torch.Tensor] = []

            def put(array: Any) -> torch.Tensor:
                if isinstance(array, torch.Tensor) and array.is_floating_point():
                    direct.append(torch.empty_like(array, device=self.device))
                    return direct[-1].copy_(array, non_blocking=True)
                return parcel.put(array)

            batch.x = {n: v if n in kept else _moved(v, put) for n, v in batch.x.items()}
            batch.hops = [
                {
                    name: DeviceSparseRows.moved(rows, parcel.put)
                    for name, rows in hop.items()
                }
                for hop in batch.hops
            ]
            batch.places = {n: parcel.put(p) for n, p in batch.places.items()}
            total = parcel.ship() + sum(x.nbytes for x in direct)
            if self.is_real:
                buffers.copied = batch.sent = cuda.Event()
                batch.sent.record(self._stream)
        count("bytes_copied", total, direction="to_device")
        batch.on_device = [parcel.block, *direct]

    def receive(self, batch: Batch) -> None:
        """Let the current stream wait for a batch that was sent."""
        if batch.sent is not None:
            current = torch.cuda.current_stream()
            current.wait_event(batch.sent)
            for tensor in batch.on_device:
                tensor.record_stream(current)  # its memory is the other stream's
        batch.x = {
            name: values.whole() if isinstance(values, PartialFeatures) else values
            for name, values in batch.x.items()
        }


class HostClock:
    """Marks the stages of a step by the host's clock."""

    def __init__(self) -> None:
        self._times: list[float] = []

    def mark(self) -> None:
        """Note that a stage has ended, and the next one begins."""
        self._times.append(time.perf_counter())

    def times(self) -> list[float]:
        """Return when, in seconds."""
        return self._times


class DeviceClock(HostClock):
    """Marks the stages of a step by events of the device, which the host waits for."""

    def __init__(self) -> None:
        super().__init__()
        self._events: list[Any] = []

    def mark(self) -> None:
        """Note that a stage has ended, and the next one begins."""
        cuda: Any = torch.cuda
        self._events.append(cuda.Event(enable_timing=True))
        self._events[-1].record()

    def times(self) -> list[float]:
        """Return when, in seconds since the first mark; wait for the last."""
        self._events[-1].synchronize()
        return [self._events[0].elapsed_time(event) / 1000 for event in self._events]


def new_clock(transfer: DeviceTransfer | None) -> HostClock:
    """Return a clock for the stages of a step."""
    return DeviceClock() if transfer is not None and transfer.is_real else HostClock()


def open_transfer(device: str, config: GnnConfig) -> DeviceTransfer | None:
    """Return what takes batches to a device by name; None for the CPU.

    Raises:
        ConfigError: There is no such device, here or at all, or no kernel for a setting.
        MissingDependencyError: A package for it is not installed.
    """
    if device == "cpu":
        return None
    if device != "cuda":
        raise ConfigError(f"--device: got {device!r}, expected cpu or cuda")
    gap = spec_of(config.model).device_gap(config)
    if gap is not None:
        name, known = gap
        raise ConfigError(
            f"device='cuda': no kernels for {name} = {getattr(config, name)!r}, there are "
            f"for {known}; change it, or use device='cpu'"
        )
    return DeviceTransfer()


def _moved(values: Any, put: Put) -> Any:
    """Return the input of a node type by what ``put`` makes of its arrays."""
    if isinstance(values, torch.Tensor):
        return put(values)
    if isinstance(values, FeatureBags):
        return FeatureBags(put(values.values), put(values.begins))
    if isinstance(values, PartialFeatures):
        return PartialFeatures(put(values.where), put(values.missed), values.cache)
    if isinstance(values, SparseFeatures):
        return SparseFeatures(DeviceSparseRows.moved(values.rows, put), put(values.values))
    return values


def _parcel_bytes(batch: Batch, kept: Container[str]) -> int:
    return sum(map(room_of, _small_arrays(batch, kept)))


def _small_arrays(batch: Batch, kept: Container[str]) -> Iterator[Any]:
    """Yield all arrays of a batch but dense features."""
    for hop in batch.hops:
        for rows in hop.values():
            yield from (rows.indptr, rows.indices, rows.weight, rows.self_weight)
    yield from batch.places.values()
    for name, values in batch.x.items():
        if name in kept:
            continue
        given: Sequence[Any] = (values,)
        if isinstance(values, FeatureBags):
            given = values.values, values.begins
        elif isinstance(values, PartialFeatures):
            given = (values.where,)
        for array in given:
            if isinstance(array, torch.Tensor) and not array.is_floating_point():
                yield array
