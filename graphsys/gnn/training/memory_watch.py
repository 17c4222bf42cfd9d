"""What the steps of a training hold in memory, and what to do where that is too small."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from torch.autograd.graph import saved_tensors_hooks

from graphsys.core.errors import (
    BudgetError,
    TrainingFailedError,
    told_with_place,
    user_place,
)
from graphsys.core.memory import resident_bytes
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.context import GnnContext
from graphsys.gnn.data.loader import Batch
from graphsys.gnn.model_spec import is_file, spec_of
from graphsys.gnn.training.optimizer import Optimizer, optimizer_bytes
from graphsys.training.memory_split import MemoryWatch, is_watched

_GROWTH = 1.1
"""A step is counted where its batch has so many times the entries of those before."""
_DEPTH = 4


class StepMemory(MemoryWatch):
    """Counts the parts of a training's memory; see :mod:`graphsys.training.memory_split`.

    Activations are what autograd saves for the backward pass, seen by hooks that get each
    tensor once and return it as it is. Steps without them cost an ``if``: counted are the
    first step and those of larger batches, and every step while a profile asks. torch's
    own ``MemTracker`` calls Python for every operator, and its module is private.

    On a device nothing is counted: the process has neither weights nor activations.
    """

    def __init__(self, context: GnnContext, optimizer: Optimizer) -> None:
        self._is_here = context.transfer is None
        self._network, self._optimizer = context.network, optimizer
        self._parameters = _bytes_of(_tensors_of(context.network))
        self._caches = context.features.cache_bytes
        super().__init__(max(resident_bytes() - self._parameters - self._caches, 0))
        self._largest = -1.0
        self._is_counting = False
        self._saved: dict[int, int] = {}
        self._batch: Batch | None = None

    def forward(self, batch: Batch) -> AbstractContextManager[Any]:
        """Return the block of a forward pass, in which activations are counted if due."""
        is_larger = batch.num_edges > _GROWTH * self._largest
        self._is_counting = self._is_here and (is_larger or is_watched())
        if not self._is_counting:
            return nullcontext()
        self._largest, self._batch = max(self._largest, float(batch.num_edges)), batch
        others, shards = addresses_of(self._network, batch), self._network.shards
        gathered = () if shards is None else shards.addresses  # as long as a layer runs
        # By address: a tensor that is saved twice, or as views, is memory once.
        self._saved = saved = {}

        def save(tensor: torch.Tensor) -> torch.Tensor:
            if tensor.layout is torch.strided:
                at = _address(tensor)
                if not (at in others or at in gathered):
                    saved[at] = tensor.untyped_storage().nbytes()
            return tensor.detach()  # an output that had its graph would have itself

        return saved_tensors_hooks(save, lambda tensor: tensor)

    def end(self, phase: str) -> None:
        """Count what there is after a phase of a step: forward, backward or step."""
        if not self._is_counting:
            return
        is_forward = phase == "forward"
        self.saw(phase, self._known(sum(self._saved.values()) if is_forward else 0))
        if is_forward:
            self._saved = {}
        if phase == "step":
            self._batch = None

    def held(self) -> dict[str, int]:
        """Return the bytes of weights, gradients and moments that this process has."""
        known = self._known(0)
        parts = {"parameter": "parameters", "gradient": "gradients"}
        return {
            **{f"{name}_bytes": known[part] for name, part in parts.items()},
            "optimizer_bytes": known["optimizer"],
        }

    def _known(self, activations: int) -> dict[str, int]:
        grads = [p.grad for p in self._network.parameters() if p.grad is not None]
        return {
            "parameters": self._parameters,
            "gradients": sum(grad.nbytes for grad in grads),
            "optimizer": optimizer_bytes(self._optimizer),
            "activations": activations,
            **({} if self._batch is None else batch_bytes(self._batch)),
            "caches": self._caches,
        }


def addresses_of(network: torch.nn.Module, batch: Batch) -> set[int]:
    """Return where weights and a batch begin in memory: what is no activation."""
    known = [*_tensors_of(network), *_arrays(batch.x), *_arrays(batch.hops)]
    return {_address(array) for array in known}


def batch_bytes(batch: Batch) -> dict[str, int]:
    """Return the bytes of a batch, by part."""
    return {
        "features": _bytes_of(_arrays(batch.x)),
        "topology": _bytes_of(_arrays(batch.hops)),
    }


def _tensors_of(network: torch.nn.Module) -> Iterator[torch.Tensor]:
    yield from network.parameters()
    yield from network.buffers()


def _address(array: Any) -> int:
    """Return where an array's memory begins; of tensors, whatever part of it they are."""
    if isinstance(array, torch.Tensor):
        return int(array.untyped_storage().data_ptr())
    return int(array.ctypes.data)


def _bytes_of(arrays: Iterable[Any]) -> int:
    """Return the bytes of arrays, of each place in memory once."""
    sizes: dict[int, int] = {}
    for array in arrays:
        is_tensor = isinstance(array, torch.Tensor)
        begin = int(array.data_ptr() if is_tensor else array.ctypes.data)
        sizes[begin] = max(sizes.get(begin, 0), int(array.nbytes))
    return sum(sizes.values())


def _arrays(value: Any, depth: int = _DEPTH) -> Iterator[Any]:
    """Yield the arrays and tensors that something has, and what it has, and so on."""
    if isinstance(value, np.ndarray | torch.Tensor):
        yield value
        return
    if depth == 0 or value is None:
        return
    inner: Iterable[Any] = ()
    if isinstance(value, Mapping):
        inner = value.values()
    elif isinstance(value, list | tuple):
        inner = value
    elif hasattr(value, "__dict__"):
        inner = vars(value).values()
    for each in inner:
        yield from _arrays(each, depth - 1)


@contextmanager
def explained(config: GnnConfig, batch: Batch) -> Iterator[None]:
    """Say what would make a batch fit where memory is too small for it.

    Raises:
        BudgetError: It is too small.
        TrainingFailedError: The gradients of a user's own model cannot be computed.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as err:
        is_of_memory = isinstance(err, MemoryError | torch.OutOfMemoryError)
        if not is_of_memory and "can't allocate memory" not in str(err):
            if is_file(config.model) and user_place(err) is None:  # no line of theirs ran
                text = f"its gradients cannot be computed: {err}"
                raise TrainingFailedError(
                    told_with_place(TrainingFailedError(text), config.model)
                ) from err
            raise
        raise BudgetError(_smaller(config, batch)) from err


@contextmanager
def explained_whole() -> Iterator[None]:
    """Say what to do where a device's memory is too small for all nodes of a graph.

    Raises:
        BudgetError: It is too small.
    """
    try:
        yield
    except torch.OutOfMemoryError as err:
        raise BudgetError(
            "rows of all nodes, or of all neighbors of some, do not fit in the device's "
            "memory; use device='cpu', a smaller dim, or a batch_size that is not 0"
        ) from err


def _smaller(config: GnnConfig, batch: Batch) -> str:
    """Say what would make a batch fit."""
    nodes = sum(len(x) for x in batch.x.values())
    smaller = f"batch_size={max(1, config.batch_size // 2)}"
    if config.is_full_batch:
        smaller = "batch_size=1024"
    if spec_of(config.model).is_whole_graph:
        smaller = f"dim={max(1, config.dim // 2)}"
    return (
        f"a batch of {nodes} nodes and {batch.num_edges} edges does not fit into memory; "
        f"try --set {smaller}, or smaller fanouts than {list(config.hop_fanouts)}"
    )
