"""Processes that train together: each has a share of every batch, all have the network."""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import distributed, nn

from graphsys.core.errors import ConfigError


@dataclass(frozen=True)
class ProcessGroup:
    """This process's place among those that train together.

    Attributes:
        rank: Its number; the first writes the run.
        world_size: How many there are.
    """

    rank: int = 0
    world_size: int = 1

    def share(self, items: Any) -> Any:
        """Return this process's part of an array; the first item where it has none."""
        return (
            items
            if self.world_size == 1
            else items[self.rank % max(len(items), 1) :: self.world_size]
        )

    def num_own(self, count: int) -> int:
        """Return how many of so many items are this process's."""
        return len(range(self.rank, count, self.world_size))

    def all_reduce_gradients(self, network: nn.Module) -> None:
        """Give all processes the sum of their gradients."""
        if self.world_size == 1:
            return
        parameters = [p for p in network.parameters() if p.requires_grad]
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        flat = torch.cat([grad.reshape(-1) for grad in grads])
        distributed.all_reduce(flat)
        parts = torch.split(flat, [p.numel() for p in parameters])
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.grad = part.view_as(parameter)

    def all_reduce(self, value: float) -> float:
        """Return the sum over all processes."""
        if self.world_size == 1:
            return value
        summed = torch.tensor(value, dtype=torch.float64)
        distributed.all_reduce(summed)
        return float(summed)

    def broadcast(self, value: Any) -> Any:
        """Return the first process's value, which JSON can write, on every process."""
        if self.world_size == 1:
            return value
        text = np.frombuffer(json.dumps(value).encode(), np.uint8).copy()
        length = torch.tensor([len(text)])
        distributed.broadcast(length, 0)
        data = torch.zeros(int(length), dtype=torch.uint8)
        if not self.rank:
            data = torch.from_numpy(text)
        distributed.broadcast(data, 0)
        return json.loads(data.numpy().tobytes())


def is_first_process() -> bool:
    """Tell whether this is the first of the processes that ``torchrun`` started, if any."""
    return _num_told() == 1 or os.environ.get("RANK", "0") == "0"


def current_process_group() -> ProcessGroup:
    """Return the team of ``torch.distributed``'s processes; of one without any."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return ProcessGroup()
    return ProcessGroup(distributed.get_rank(), distributed.get_world_size())


@contextlib.contextmanager
def joined_process_group() -> Iterator[ProcessGroup]:
    """Join the processes that ``torchrun`` started, for the block, unless one has already.

    Raises:
        ConfigError: They cannot be joined.
    """
    if _num_told() == 1 or not distributed.is_available() or distributed.is_initialized():
        yield current_process_group()
        return
    try:
        distributed.init_process_group("gloo")
    except (RuntimeError, ValueError) as err:
        raise ConfigError(
            f"WORLD_SIZE is {os.environ['WORLD_SIZE']}, but processes cannot be joined: "
            f"{str(err).splitlines()[0]}; start with torchrun, or unset WORLD_SIZE"
        ) from err
    try:
        yield current_process_group()
    finally:
        distributed.destroy_process_group()


def _num_told() -> int:
    """Return how many processes ``torchrun`` says there are."""
    told = os.environ.get("WORLD_SIZE", "1")
    return int(told) if told.isdigit() else 1
