"""Partitions on the device: uploaded once, brought back when the host needs them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.embedding.data.schedule import Part
from graphsys.embedding.training.cuda.device import DeviceCopies

Floats = npt.NDArray[np.float32]


@dataclass
class Resident:
    """One partition on the device.

    Attributes:
        rows: Tensor ``[N, dim]``, float32 or bfloat16.
        state: Adagrad state, float32 tensor ``[N]``.
        ready: Event of its upload, None once compute waits for it.
        is_newer: Whether it was trained since it was last stored.
    """

    rows: Any
    state: Any
    ready: Any
    is_newer: bool = False


class DevicePartitions:
    """The device's copies of the partitions that the host's buffer holds.

    Between :meth:`use` and :meth:`store` the device's copy is the true one. Uploads and
    downloads may come from the buffer's own thread, so that they run beside training.

    Args:
        transfers: Copies.
        dtype: Torch dtype of rows on the device.
    """

    def __init__(self, transfers: DeviceCopies, dtype: Any) -> None:
        self._transfers, self._dtype = transfers, dtype
        self._residents: dict[Part, Resident] = {}

    def load(self, part: Part, rows: Floats, state: Floats) -> Resident:
        """Begin to upload a partition, unless it is on the device."""
        import torch

        found = self._residents.get(part)
        if found is not None:
            return found
        device = self._transfers.device
        made = Resident(
            rows=torch.empty(rows.shape, dtype=self._dtype, device=device),
            state=torch.empty(state.shape, dtype=torch.float32, device=device),
            ready=None,
        )
        self._transfers.load(rows, made.rows)
        made.ready = self._transfers.load(state, made.state)  # after the rows: one stream
        self._residents[part] = made
        return made

    def use(self, part: Part, rows: Floats, state: Floats) -> Resident:
        """Return a partition for training; compute waits for its upload."""
        import torch

        resident = self.load(part, rows, state)
        if resident.ready is not None:
            torch.cuda.current_stream().wait_event(resident.ready)
            resident.ready = None
        resident.is_newer = True
        return resident

    def store(self, part: Part, rows: Floats, state: Floats) -> None:
        """Bring the host's arrays up to date."""
        resident = self._residents.get(part)
        if resident is None or not resident.is_newer:
            return
        self._transfers.store(resident.rows, rows)
        self._transfers.store(resident.state, state)
        resident.is_newer = False

    def drop(self, part: Part) -> None:
        """Forget a partition, which was stored."""
        self._residents.pop(part, None)

    @property
    def parts(self) -> set[Part]:
        """The partitions on the device."""
        return set(self._residents)
