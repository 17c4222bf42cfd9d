"""Processes that train together: each has a share of every batch, all have the network."""

import contextlib
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import distributed, nn

from graphsys.core.errors import ClusterError, ConfigError
from graphsys.core.events import span
from graphsys.gnn.data.owners import Owners

Ints = npt.NDArray[np.int64]
TIMEOUT_S = 120
"""How long a process waits for a silent one in a step; gloo itself waits 30 minutes."""
_PATIENCE = timedelta(days=30)  # while others evaluate; who dies is noticed at once
_GIVEN_BYTES = 256 << 20  # by one call of gloo
_patient: Any = None
_meeting: Any = None


@dataclass
class Traffic:
    """What a process exchanged with the others.

    Attributes:
        allreduce_bytes: Bytes of gradients that left it, and of weights where each has
            its share of the optimizer, by the algorithms on a ring.
        evaluation_bytes: Bytes of rows that it computed for evaluations, for each other
            process that got them.
        communication_s: Time in exchanges, which is mostly waiting for the others.
    """

    allreduce_bytes: int = 0
    evaluation_bytes: int = 0
    communication_s: float = 0.0


@dataclass(frozen=True)
class ProcessGroup:
    """This process's place among those that train together.

    Attributes:
        rank: Its number; the first writes the run.
        world_size: How many there are.
        traffic: What this process exchanged.
        owners: Who has which nodes; None: all have all.
    """

    rank: int = 0
    world_size: int = 1
    traffic: Traffic = field(default_factory=Traffic, compare=False)
    owners: Owners | None = field(default=None, compare=False)

    def share(self, items: Any) -> Any:
        """Return this process's part of an array; the first item where it has none."""
        return (
            items
            if self.world_size == 1
            else items[self.rank % max(len(items), 1) :: self.world_size]
        )

    def share_at(self, items: Any, node_type: str, nodes: Ints) -> Any:
        """Return as much as :meth:`share`, of items at the own nodes as far as there are.

        Args:
            items: An array, of n items.
            node_type: Of the nodes.
            nodes: The node that each item is at ``[n]``.
        """
        if self.owners is None or len(items) < self.world_size:
            return self.share(items)
        dealt = deal(self.owners.owner_of(node_type, nodes), self.world_size)
        return items[dealt == self.rank]

    def num_own(self, count: int) -> int:
        """Return how many of so many items are this process's."""
        return len(range(self.rank, count, self.world_size))

    def all_reduce_gradients(
        self,
        parameters: Sequence[nn.Parameter],
        add: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> None:
        """Give all processes the sum of their gradients.

        Args:
            parameters: Whose gradients.
            add: Sums a vector over the processes; :meth:`add` by default.
        """
        if self.world_size == 1 or not parameters:
            return
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        flat = torch.cat([grad.reshape(-1) for grad in grads])
        flat = (add or self.add)(flat)
        parts = torch.split(flat, [p.numel() for p in parameters])
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.grad = part.view_as(parameter)

    def add(self, flat: torch.Tensor) -> torch.Tensor:
        """Return the sum of a vector over all processes, in its own place."""
        others = self.world_size - 1
        self.traffic.allreduce_bytes += 2 * flat.nbytes * others // self.world_size
        with self.exchanging():
            distributed.all_reduce(flat)
        return flat

    def all_gather(self, data: torch.Tensor) -> list[torch.Tensor]:
        """Return the tensors of all processes, which have one shape, in their order."""
        found = [torch.empty_like(data) for _ in range(self.world_size)]
        self.traffic.allreduce_bytes += data.nbytes * (self.world_size - 1)
        with self.exchanging():
            distributed.all_gather(found, data)
        return found

    def gather_runs(self, whole: torch.Tensor, run: torch.Tensor) -> None:
        """Put the runs of all processes, equally long, into a vector, in their order."""
        runs = whole.view(self.world_size, -1)
        runs[self.rank] = run
        for to, source in self._partners():
            self._swap(run, to, runs[source], source)

    def scatter_sum(self, whole: torch.Tensor) -> torch.Tensor:
        """Return this process's run of the sum of a vector over all processes.

        gloo's own has two more vectors of that length in memory.
        """
        runs = whole.view(self.world_size, -1)
        total = runs[self.rank].clone()
        came = torch.empty_like(total)
        for to, source in self._partners():
            self._swap(runs[to], to, came, source)
            total += came
        return total

    def _partners(self) -> Iterator[tuple[int, int]]:
        """Yield whom to give something and from whom to take, until all had their turn."""
        for step in range(1, self.world_size):
            yield (self.rank + step) % self.world_size, (self.rank - step) % self.world_size

    def _swap(self, given: torch.Tensor, to: int, came: torch.Tensor, source: int) -> None:
        """Send a vector to one process while another's, equally long, comes in."""
        self.traffic.allreduce_bytes += given.nbytes
        pairs = zip(_flat_pieces(given), _flat_pieces(came), strict=True)
        with self.exchanging():
            for own, other in pairs:
                going = distributed.isend(own, to), distributed.irecv(other, source)
                for work in going:
                    if work is not None:
                        work.wait()

    def gather_first(self, run: torch.Tensor) -> torch.Tensor | None:
        """Return the runs of all processes as a vector, in the first one; else None.

        The others wait for as long as it takes.
        """
        whole = None if self.rank else run.new_empty(self.world_size, *run.shape)
        runs = None if whole is None else list(whole.unbind())
        with self.exchanging():
            distributed.gather(run, runs, 0, group=_patient)
        return None if whole is None else whole.view(-1)

    def all_reduce(self, *values: float) -> list[float]:
        """Return the sum of each value over all processes."""
        if self.world_size == 1:
            return list(values)
        summed = torch.tensor(values, dtype=torch.float64)
        with self.exchanging():
            distributed.all_reduce(summed)
        found: list[float] = summed.tolist()
        return found

    def gather(self, value: Any) -> list[Any]:
        """Return what every process gave, in their order."""
        if self.world_size == 1:
            return [value]
        found: list[Any] = [None] * self.world_size
        with self.exchanging():
            distributed.all_gather_object(found, value, group=_patient)
        return found

    def broadcast(self, value: Any) -> Any:
        """Return the first process's value, which JSON can write, on every process.

        The others wait for as long as it takes.
        """
        if self.world_size == 1:
            return value
        text = np.frombuffer(json.dumps(value).encode(), np.uint8).copy()
        length = torch.tensor([len(text)])
        with self.exchanging():
            distributed.broadcast(length, 0, group=_patient)
            data = torch.zeros(int(length), dtype=torch.uint8)
            if not self.rank:
                data = torch.from_numpy(text)
            distributed.broadcast(data, 0, group=_patient)
        return json.loads(data.numpy().tobytes())

    def give(self, array: npt.NDArray[Any], rank: int = 0) -> None:
        """Have the other processes hold in an array of theirs what it holds in one's.

        The others wait for as long as it takes.

        Args:
            array: Of one shape and dtype everywhere; a view of whole rows of another.
            rank: Whose it is.
        """
        with self.exchanging():
            for piece in _pieces(array):
                distributed.broadcast(piece, rank, group=_patient)

    def share_rows(self, rows: npt.NDArray[Any], bounds: Sequence[int]) -> None:
        """Have every process fill in the rows between its bounds for all others.

        Args:
            rows: ``[n, F]``; the own ones are there.
            bounds: Where each process's begin, and ``n``.
        """
        parts = [rows[low:high] for low, high in itertools.pairwise(bounds)]
        self.traffic.evaluation_bytes += parts[self.rank].nbytes * (self.world_size - 1)
        others = [rank for rank in range(self.world_size) if rank != self.rank]
        with self.exchanging():  # both ways at once
            going = [
                distributed.isend(piece, rank, group=_patient)
                for rank in others
                for piece in _pieces(parts[self.rank])
            ] + [
                distributed.irecv(piece, rank, group=_patient)
                for rank in others
                for piece in _pieces(parts[rank])
            ]
            for work in going:
                if work is not None:
                    work.wait()

    def collect(self, own: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the tensors of all processes, by name, in the first one; else none.

        Args:
            own: Those of this process, whose names no other has.
        """
        shapes = self.gather({name: (t.shape, t.dtype) for name, t in own.items()})
        found = {} if self.rank else {name: t.clone() for name, t in own.items()}
        with self.exchanging():
            if self.rank:
                for tensor in own.values():
                    for piece in _flat_pieces(tensor.contiguous()):
                        distributed.send(piece, 0, group=_patient)
            else:
                for rank in range(1, self.world_size):
                    for name, (shape, dtype) in shapes[rank].items():
                        found[name] = torch.empty(shape, dtype=dtype)
                        for piece in _flat_pieces(found[name]):
                            distributed.recv(piece, rank, group=_patient)
        return found

    @contextlib.contextmanager
    def exchanging(self) -> Iterator[None]:
        """Time an exchange, and say in a line that it failed.

        Raises:
            ClusterError: A process ended, or was silent for too long.
        """
        began = time.perf_counter()
        try:
            with span("communication"):
                yield
        except RuntimeError as err:
            raise ClusterError(
                f"process {self.rank} of {self.world_size} lost the others "
                f"({str(err).splitlines()[0][:200]}); one of them ended, or said nothing "
                f"for {TIMEOUT_S} s: look at what it said, then go on with --resume"
            ) from err
        finally:
            self.traffic.communication_s += time.perf_counter() - began


def _pieces(array: npt.NDArray[Any]) -> list[torch.Tensor]:
    """Return views of an array's rows that one call of gloo can send."""
    step = max(_GIVEN_BYTES // max(array[:1].nbytes, 1), 1)
    begins = range(0, len(array), step)
    return [torch.from_numpy(array[begin : begin + step]) for begin in begins]


def _flat_pieces(tensor: torch.Tensor) -> Sequence[torch.Tensor]:
    """Return views of a whole tensor that one call of gloo can send."""
    return torch.split(tensor.view(-1), _GIVEN_BYTES // tensor.element_size())


def deal(owners: Ints, world_size: int) -> Ints:
    """Deal items out evenly, to their owners as far as those have room.

    Args:
        owners: Of every item ``[n]``.
        world_size: Number of processes.

    Returns:
        The process of each item; each has as many as it would have in turn ``[n]``.
    """
    dealt = np.full(len(owners), -1, dtype=np.int64)
    missing = np.empty(world_size, dtype=np.int64)
    for rank in range(world_size):
        quota = len(range(rank, len(owners), world_size))
        own = np.flatnonzero(owners == rank)[:quota]
        dealt[own] = rank
        missing[rank] = quota - len(own)
    dealt[dealt < 0] = np.repeat(np.arange(world_size), missing)
    return dealt


def is_first_process() -> bool:
    """Tell whether this is the first of the processes that ``torchrun`` started, if any."""
    return _num_told() == 1 or os.environ.get("RANK", "0") == "0"


def current_process_group() -> ProcessGroup:
    """Return the team of ``torch.distributed``'s processes; of one without any."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return ProcessGroup()
    return ProcessGroup(distributed.get_rank(), distributed.get_world_size())


def meet(store: Any) -> None:
    """Have processes find each other by a store; else where ``torchrun`` says."""
    global _meeting
    _meeting = store


@contextlib.contextmanager
def joined_process_group() -> Iterator[ProcessGroup]:
    """Join the processes that ``torchrun`` started, for the block, unless one has already.

    Raises:
        ConfigError: They cannot be joined.
    """
    if _num_told() == 1 or not distributed.is_available() or distributed.is_initialized():
        yield current_process_group()
        return
    global _patient
    try:
        told: dict[str, Any] = {}
        if _meeting is not None:
            rank, size = int(os.environ["RANK"]), _num_told()
            told = {"store": _meeting, "rank": rank, "world_size": size}
        timeout = timedelta(seconds=TIMEOUT_S)
        distributed.init_process_group("gloo", timeout=timeout, **told)
        _patient = distributed.new_group(timeout=_PATIENCE)
    except (RuntimeError, ValueError) as err:
        raise ConfigError(
            f"WORLD_SIZE is {os.environ['WORLD_SIZE']}, but processes cannot be joined: "
            f"{str(err).splitlines()[0]}; start with torchrun, or unset WORLD_SIZE"
        ) from err
    try:
        yield current_process_group()
    finally:
        _patient = None
        distributed.destroy_process_group()


def _num_told() -> int:
    """Return how many processes ``torchrun`` says there are."""
    told = os.environ.get("WORLD_SIZE", "1")
    return int(told) if told.isdigit() else 1
