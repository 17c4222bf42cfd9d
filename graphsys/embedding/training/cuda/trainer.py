"""Slices of buckets trained on the device: the other end of the CPU trainer's seam."""

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from graphsys.core.triton.device import require_device
from graphsys.embedding.data.schedule import Part
from graphsys.embedding.training.cuda.batches import BatchSource, Shape
from graphsys.embedding.training.cuda.device import DeviceCopies
from graphsys.embedding.training.cuda.operands import (
    DeviceOperators,
    DeviceTables,
    Workspace,
    device_operators,
)
from graphsys.embedding.training.cuda.partitions import DevicePartitions
from graphsys.embedding.training.cuda.shapes import BlockShapes, block_shapes
from graphsys.embedding.training.cuda.step import BatchStep
from graphsys.kernels.cpu.embedding.chunk import Edges
from graphsys.kernels.cpu.embedding.operators import Operators
from graphsys.kernels.cpu.embedding.step import Settings

if TYPE_CHECKING:
    from collections.abc import Collection

Floats = npt.NDArray[np.float32]
Table = tuple[Floats, Floats]


class DeviceTrainer:
    """Trains slices of buckets on a CUDA device; batches one after the other.

    Args:
        dim: Length of a row.
        is_bfloat16: Whether rows on the device are bfloat16.
        shapes: Block sizes; chosen by default.

    Attributes:
        partitions: Those on the device.
        held: Those that the host's buffer holds.

    Raises:
        MissingDependencyError: Triton is not installed.
        ConfigError: There is no device.
    """

    def __init__(
        self, dim: int, *, is_bfloat16: bool = False, shapes: BlockShapes | None = None
    ) -> None:
        require_device()
        import torch

        self.dim = dim
        self.shapes = shapes or block_shapes(dim, is_bfloat16=is_bfloat16)
        self.transfers = DeviceCopies()
        dtype = torch.bfloat16 if is_bfloat16 else torch.float32
        self.partitions = DevicePartitions(self.transfers, dtype)
        self.held: Collection[Part] = ()
        self._source = BatchSource(self.transfers.device)
        self._workspace = Workspace(self.transfers.device)
        real = self.transfers.is_real
        cuda: Any = torch.cuda
        self._batch_stream = cuda.Stream() if real else None
        self._operators: dict[str, tuple[DeviceOperators, Operators]] = {}

    def train_slice(
        self,
        edge_type: str,
        sides: tuple[Part, Part],
        tables: tuple[Table, Table],
        operators: Operators,
        edges: Edges,
        settings: Settings,
        losses: npt.NDArray[np.float64],
        first: int,
        last: int,
    ) -> None:
        """Train batches ``first`` to ``last`` of a bucket and wait for them.

        Args:
            edge_type: Name of the edge type, for its operators.
            sides: Partitions of sources and destinations.
            tables: Their rows and states on the host, which may be older.
            operators: Operators on the host; :meth:`store_operators` updates them.
            edges: The bucket and its cut into chunks and batches.
            settings: Objective and optimizer.
            losses: Receives the summed loss of every batch, NaN where a gradient is not
                finite, float64 ``[M]``.
            first: First batch.
            last: The batch to stop before.
        """
        import torch

        own = self._operators_of(edge_type, operators)
        src = self.partitions.use(sides[0], *tables[0])
        dst = self.partitions.use(sides[1], *tables[1])
        shape = Shape(
            num_src=len(src.state),
            num_dst=len(dst.state),
            num_relations=len(operators.codes),
            is_shared=sides[0] == sides[1],
            is_reciprocal=own.is_reciprocal,
            is_operated=own.is_operated,
            run=self.shapes.run,
        )
        self._source.begin(edges, settings, shape)
        step = BatchStep(
            DeviceTables(src.rows, src.state, dst.rows, dst.state),
            own,
            settings,
            self.shapes,
            self._workspace,
            (self._source.max_positions, self._source.max_runs),
            self.dim,
        )
        device = self.transfers.device
        batch_losses = torch.zeros(len(losses), dtype=torch.float64, device=device)
        # Losses and flags stay on the device until the end: reading one would wait for its
        # batch.
        flags = torch.zeros(len(losses), dtype=torch.int32, device=device)
        stream = self._batch_stream
        with ThreadPoolExecutor(1) as ahead:  # lays out a batch while another is enqueued
            coming = ahead.submit(self._source.lay_out, first)
            for b in range(first, last):
                place = coming.result()
                if b + 1 < last:
                    coming = ahead.submit(self._source.lay_out, b + 1)
                place.send(stream)
                step.train(b, place, batch_losses, flags)
                place.release()
        losses[first:last] = batch_losses[first:last].cpu().numpy()

    def store_operators(self) -> None:
        """Bring all operators on the host up to date."""
        for own, host in self._operators.values():
            for name in ("parameters", "state", "back_parameters", "back_state"):
                array = getattr(host, name)
                if array.size:
                    self.transfers.store(getattr(own, name), array)

    def _operators_of(self, edge_type: str, host: Operators) -> DeviceOperators:
        found = self._operators.get(edge_type)
        if found is None:
            found = device_operators(host, self.transfers.device), host
            self._operators[edge_type] = found
        return found[0]
