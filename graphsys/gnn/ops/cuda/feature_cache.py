"""Features of hot nodes in a device's memory: only those of others are copied there."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch

from graphsys.core.errors import BudgetError, ConfigError
from graphsys.core.memory import format_bytes
from graphsys.gnn.ops.cuda.launch import blocks, launch, tile

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
_AT_A_TIME: Final = 1 << 14


class DeviceCache:
    """Rows of the nodes of one type that are asked for most, on a device.

    Which they are is decided once, and looked up on the host, so that the device is not
    asked what it lacks.

    Args:
        node_type: Of the nodes, for messages.
        scores: The larger, the sooner kept ``[N]``
            (:func:`graphsys.sampling.degree_scores` ...).
        dim: Numbers of a row.
        memory: Bytes for the rows.
        gather: Returns the rows of nodes, float32 ``[n, dim]``.
        device: Torch's device.

    Attributes:
        num_asked: Rows that batches asked for so far.
        num_found: Rows that were here.

    Raises:
        ConfigError: Too little memory for a row.
        BudgetError: The device has less memory than that.
    """

    def __init__(
        self,
        node_type: str,
        scores: npt.NDArray[np.float64],
        dim: int,
        memory: int,
        gather: Callable[[Ints], Floats],
        device: torch.device,
    ) -> None:
        capacity = min(memory // (4 * dim), len(scores))
        if capacity < 1:
            raise ConfigError(
                f"cache_device_memory: got {format_bytes(memory)} for rows of type "
                f"{node_type!r}, expected {format_bytes(4 * dim)} or more, for a row"
            )
        best = np.sort(np.argsort(-scores, kind="stable")[:capacity])
        try:
            self.table = torch.empty((capacity, dim), device=device)
        except torch.OutOfMemoryError as err:
            raise BudgetError(
                f"cache_device_memory: {format_bytes(4 * dim * capacity)} of rows of type "
                f"{node_type!r} do not fit in the device's memory; lower it"
            ) from err
        for begin in range(0, capacity, _AT_A_TIME):
            found = gather(best[begin : begin + _AT_A_TIME])
            self.table[begin : begin + len(found)] = torch.from_numpy(found)
        self._slots = np.full(len(scores), -1, dtype=np.int32)
        self._slots[best] = np.arange(capacity, dtype=np.int32)
        self.num_asked = self.num_found = 0
        self._lock = threading.Lock()

    def split(self, nodes: Ints) -> tuple[npt.NDArray[np.int32], Ints]:
        """Tell where the rows of nodes are.

        Returns:
            Places here, or ``-1 - place`` among the nodes that are not, int32 ``[n]``; and
            those nodes ``[m]``.
        """
        where = self._slots[nodes]
        is_missing = where < 0
        missing = nodes[is_missing]
        where[is_missing] = -1 - np.arange(len(missing), dtype=np.int32)
        with self._lock:
            self.num_asked += len(nodes)
            self.num_found += len(nodes) - len(missing)
        return where, missing


@dataclass(frozen=True)
class PartialFeatures:
    """Rows of a batch, of which some are in a cache on the device.

    Attributes:
        where: From :meth:`DeviceCache.split`, int32 ``[n]``.
        missed: The rows that it lacks, float32 ``[m, F]``.
        cache: The others.
    """

    where: torch.Tensor
    missed: torch.Tensor
    cache: DeviceCache

    def __len__(self) -> int:
        return len(self.where)

    def whole(self) -> torch.Tensor:
        """Return all rows, once both tensors are on the device, float32 ``[n, F]``."""
        from graphsys.kernels.cuda.gnn import features

        table: Any = self.cache.table
        width = table.shape[1]
        out = torch.empty((len(self), width), device=table.device)
        rows, columns = tile(width, out)
        launch(
            features.combine_rows,
            (blocks(len(self), rows), blocks(width, columns)),
            self.where,
            table,
            self.missed,
            out,
            len(self),
            WIDTH=width,
            BLOCK_R=rows,
            BLOCK_F=columns,
            num_warps=1,
        )
        return out
