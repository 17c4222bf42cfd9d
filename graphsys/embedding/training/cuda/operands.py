"""What the kernels of a step work on: tables, operators, and room between kernels."""

from typing import Any, NamedTuple

import numpy as np

from graphsys.kernels.cpu.embedding import operators
from graphsys.kernels.cpu.embedding.operators import Operators


class DeviceTables(NamedTuple):
    """Rows and Adagrad states of the two partitions on the device."""

    src_rows: Any
    src_state: Any
    dst_rows: Any
    dst_state: Any


class DeviceOperators(NamedTuple):
    """Operators of an edge type on the device, and what the host must know of them."""

    codes: Any
    offsets: Any
    parameters: Any
    state: Any
    back_parameters: Any
    back_state: Any
    is_reciprocal: bool
    has_complex: bool
    has_linear: bool
    has_vectors: bool

    @property
    def num_sides(self) -> int:
        """Operators per relation."""
        return 2 if self.is_reciprocal else 1

    @property
    def is_operated(self) -> bool:
        """Whether operators have to be applied; always where there are two."""
        return self.is_reciprocal or self.has_linear or self.has_vectors


def device_operators(host: Operators, device: Any) -> DeviceOperators:
    """Copy the operators of an edge type to the device."""
    import torch

    def copy(array: Any) -> Any:
        padded = array if array.size else np.zeros(1, dtype=array.dtype)
        return torch.from_numpy(np.array(padded)).to(device)

    vectors = (operators.TRANSLATION, operators.DIAGONAL, operators.COMPLEX)
    return DeviceOperators(
        codes=copy(host.codes.astype(np.int32)),
        offsets=copy(host.offsets),
        parameters=copy(host.parameters),
        state=copy(host.state),
        back_parameters=copy(host.back_parameters),
        back_state=copy(host.back_state),
        is_reciprocal=bool(host.is_reciprocal),
        has_complex=bool(host.has_complex),
        has_linear=bool(np.any(host.codes == operators.LINEAR)),
        has_vectors=bool(np.isin(host.codes, vectors).any()),
    )


class Workspace:
    """Tensors that a batch needs between its kernels; grown, never shrunk."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._tensors: dict[str, Any] = {}

    def take(self, name: str, length: int, dtype: Any) -> Any:
        """Return a flat tensor of at least a length."""
        import torch

        found = self._tensors.get(name)
        if found is None or found.numel() < length or found.dtype != dtype:
            found = torch.empty(max(length, 1), dtype=dtype, device=self._device)
            self._tensors[name] = found
        return found
