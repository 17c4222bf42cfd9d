"""Learned rows on disk: a batch reads its own, trains them, and writes them back."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.disk_rows import RowFiles
from graphsys.gnn.data.features import FeatureBags
from graphsys.gnn.part_specs import SAMPLERS
from graphsys.sampling.blocks import Buffers

Ints = npt.NDArray[np.int64]
_EPSILON = 1e-10


@dataclass(frozen=True, kw_only=True)
class Read:
    """Rows that a batch reads and trains.

    Attributes:
        numbers: Their numbers, distinct, int64 ``[n]``.
        rows: The rows, a leaf that receives gradients ``[n, dim]``.
        states: Sums of their mean squared gradients so far ``[n]``.
    """

    numbers: Ints
    rows: torch.Tensor
    states: torch.Tensor


class StoredEmbedding:
    """The learned rows of all node types that have some, moved by row-wise Adagrad.

    A row moves by ``rate * gradient / sqrt(sum of the mean squares of its gradients)``, as
    in PyTorch-BigGraph (Lerer et al., SysML 2019): a number of state for a row, and no row
    moves but those of the batch. Rows are read when a batch is trained, never ahead of it,
    so none is older than the last step.

    Args:
        config: Numbers of a row, the seed of the first values, the sampler.
        num_rows: Learned rows by node type.
    """

    def __init__(self, config: GnnConfig, num_rows: Mapping[str, int]) -> None:
        self._dim = config.dim
        self._files = {
            name: RowFiles(name, count, config.dim, config.seed)
            for name, count in num_rows.items()
        }
        # a node once for each time
        self._is_repeating = SAMPLERS.get(config.sampler).has_times
        self._reads: dict[str, list[Read]] = {name: [] for name in num_rows}
        self._buffers = Buffers()

    def __contains__(self, name: object) -> bool:
        """Tell whether a node type's rows are here."""
        return name in self._files

    def __iter__(self) -> Iterator[RowFiles]:
        """Return the files of each type."""
        return iter(self._files.values())

    def read(self, name: str, values: torch.Tensor | FeatureBags) -> torch.Tensor:
        """Return rows; where gradients are on, :meth:`step` will move them.

        Args:
            name: The node type.
            values: Numbers of rows, int64 ``[n]``, or bags of them, of which the means are
                returned.

        Returns:
            float32 ``[n, dim]``.
        """
        if isinstance(values, FeatureBags):
            numbers, places = torch.unique(values.values, return_inverse=True)
            rows = self._read(name, numbers)
            return functional.embedding_bag(places, rows, values.begins, mode="mean")
        if self._is_repeating:
            numbers, places = torch.unique(values, return_inverse=True)
            return self._read(name, numbers).index_select(0, places)
        return self._read(name, values)

    def _read(self, name: str, numbers: torch.Tensor) -> torch.Tensor:
        chosen, is_training = numbers.numpy(), torch.is_grad_enabled()
        rows, states = self._room(name, len(chosen), is_reused=is_training)
        self._files[name].read(chosen, rows, states)
        found = torch.from_numpy(rows)
        if is_training:
            found.requires_grad_()
            read = Read(numbers=chosen, rows=found, states=torch.from_numpy(states))
            self._reads[name].append(read)
        return found

    def touch(self, x: Mapping[str, Any]) -> None:
        """Have the pages of a batch's rows in memory, for they are read soon.

        Args:
            x: Input by type: numbers of rows where they are stored here, or bags of them.
        """
        for name, each in self._files.items():
            if name in x:
                values = x[name]
                each.touch(
                    (values.values if isinstance(values, FeatureBags) else values).numpy()
                )

    def step(self, rate: float) -> None:
        """Move the rows read since the last step by their gradients, and write them.

        Raises:
            StorageFullError: The disk is full; the checkpoint stays.
        """
        for name, reads in self._reads.items():
            found = [read for read in reads if read.rows.grad is not None]
            if found:
                self._move(name, found, rate)
            reads.clear()

    def _move(self, name: str, reads: list[Read], rate: float) -> None:
        numbers, rows, states = reads[0].numbers, reads[0].rows.detach(), reads[0].states
        grad: Any = reads[0].rows.grad
        if len(reads) > 1:  # a row of several batches has one step, by the sum
            every = np.concatenate([read.numbers for read in reads])
            numbers, first, places = np.unique(
                every, return_index=True, return_inverse=True
            )
            rows = torch.cat([read.rows.detach() for read in reads])[first]
            states = torch.cat([read.states for read in reads])[first]
            grads = torch.cat([read.rows.grad for read in reads])  # type: ignore[misc]
            grad = torch.zeros_like(rows).index_add_(0, torch.from_numpy(places), grads)
        states += grad.square().mean(dim=1)
        rows -= rate * grad / (states.sqrt() + _EPSILON)[:, None]
        self._files[name].write(numbers, rows.numpy(), states.numpy())

    def _room(self, name: str, count: int, *, is_reused: bool) -> tuple[Any, Any]:
        """Return uninitialized rows and states, of a training batch in reused memory."""
        if not is_reused:
            return np.empty((count, self._dim), np.float32), np.empty(count, np.float32)
        key, size = (name, len(self._reads[name])), count * self._dim
        rows = self._buffers.room(("rows", *key), size, np.float32)[:size]
        states = self._buffers.room(("states", *key), count, np.float32)[:count]
        return rows.reshape(count, self._dim), states

    def open(self, path: Path, files: Mapping[str, int], *, is_writing: bool) -> None:
        """Go on from a checkpoint's files; see :meth:`RowFiles.open`."""
        for each in self:
            each.open(path, files, is_writing=is_writing)

    def hold_best(self, epoch: int) -> None:
        """Keep all rows as they are now as the best epoch's."""
        for each in self:
            each.hold_best(epoch)

    def flush(self, serial: int, best: int) -> dict[str, int]:
        """Make all rows durable; see :meth:`RowFiles.flush`."""
        files: dict[str, int] = {}
        for each in self:
            files |= each.flush(serial, best)
        return files

    def committed(self) -> None:
        """Let go of what only the checkpoint before held."""
        for each in self:
            each.committed()
