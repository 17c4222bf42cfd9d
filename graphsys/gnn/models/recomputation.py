"""Layers whose activations are dropped and computed again: which ones, and how.

A layer that is recomputed keeps its input alone for the backward pass, and then runs a
second time, with the random numbers of the first. Which layers that pays for is chosen by
the memory that each holds and the time that each takes (in the spirit of Jain et al.,
"Checkmate: breaking the memory wall with optimal tensor rematerialization", MLSys 2020,
over whole layers; torch's own budget needs ``torch.compile``, which does not see into our
kernels).
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import combinations, count
from typing import Any

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from graphsys.gnn.models.model import Rows, Tensors

Layer = Callable[[int, Rows, Tensors], Tensors]
_MOST_LAYERS = 12
"""Of more layers not all sets are tried."""


def recomputed(
    layer: Layer, k: int, rows: Rows, h: Mapping[str, Any], norms: Iterable[nn.Module]
) -> Tensors:
    """Apply a layer, and again in the backward pass, for less is kept then.

    Args:
        layer: Applies layer ``k``.
        k: Which, from 0.
        rows: Where messages go.
        h: Rows of the sources by type.
        norms: Modules of the layer; those with running means see each batch once.
    """
    return _Recomputation(partial(layer, k, rows, dict(h)), norms)()


class _Recomputation:
    """A function whose saved tensors are computed again when the backward pass asks.

    torch's ``checkpoint`` does the same, and imports the compiler for it, which is larger
    than what a small network has to save.

    Args:
        apply: The function, of tensors that it holds itself.
        norms: Modules of it; those with running means see each batch once.
    """

    def __init__(self, apply: Callable[[], Tensors], norms: Iterable[nn.Module]) -> None:
        self._apply = apply
        self._norms = [it for it in norms if isinstance(it, nn.BatchNorm1d)]
        self._numbers = count()
        self._saved: dict[int, torch.Tensor] = {}

    def __call__(self) -> Tensors:
        """Apply the function; what it saves are numbers."""
        is_on_gpu = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        self._devices = [torch.cuda.current_device()] if is_on_gpu else []
        self._random = torch.get_rng_state(), *map(torch.cuda.get_rng_state, self._devices)
        self._autocasts = [
            (kind, torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind))
            for kind in ("cpu", "cuda")
        ]
        with saved_tensors_hooks(lambda _: next(self._numbers), self._value):
            return self._apply()

    def _value(self, number: int) -> torch.Tensor:
        if number not in self._saved:
            self._apply_again()
        return self._saved.pop(number)

    def _apply_again(self) -> None:
        numbers = count()

        def save(tensor: torch.Tensor) -> int:
            self._saved[number := next(numbers)] = tensor.detach()
            return number

        with ExitStack() as stack:
            stack.enter_context(torch.random.fork_rng(self._devices))
            torch.set_rng_state(self._random[0])
            for device, state in zip(self._devices, self._random[1:], strict=True):
                torch.cuda.set_rng_state(state, device)
            for kind, is_on, dtype in self._autocasts:
                stack.enter_context(torch.autocast(kind, dtype, enabled=is_on))
            stack.enter_context(_unmoved(self._norms))
            stack.enter_context(torch.enable_grad())
            stack.enter_context(saved_tensors_hooks(save, self._saved.__getitem__))
            self._apply()


@contextmanager
def _unmoved(norms: Collection[nn.BatchNorm1d]) -> Iterator[None]:
    """Normalize by the batch and leave the running means as they are."""
    before = [(norm.momentum, norm.num_batches_tracked) for norm in norms]
    for norm in norms:  # without momentum a batch counts for nothing
        norm.momentum = 0.0
        norm.num_batches_tracked = _copy(norm.num_batches_tracked)
    try:
        yield
    finally:
        for norm, (momentum, count) in zip(norms, before, strict=True):
            norm.momentum, norm.num_batches_tracked = momentum, count


def _copy(tensor: torch.Tensor | None) -> torch.Tensor | None:
    return None if tensor is None else tensor.clone()


class LayerCosts:
    """What each layer keeps for the backward pass, and how long its forward pass takes.

    Args:
        known: Addresses of what is in memory anyway: weights and the batch.
        gathered: Those of weights that are there while a layer runs; changes.
    """

    def __init__(self, known: Collection[int] = (), gathered: Collection[int] = ()) -> None:
        self.kept: list[int] = []  # bytes that a layer keeps, its input apart
        self.inputs: list[int] = []
        self.seconds: list[float] = []
        self._keeps_input: list[bool] = []
        self._is_input_kept: list[bool] = []  # by the layer before
        self._known, self._seen = frozenset(known), set[int]()
        self._gathered = gathered

    def run(self, layer: Layer, k: int, rows: Rows, h: Tensors) -> Tensors:
        """Apply a layer and measure it; what it keeps is dropped after it."""
        tensors = [x for x in h.values() if isinstance(x, torch.Tensor)]
        own = {_address(x): x.untyped_storage().nbytes() for x in tensors}
        self.inputs.append(sum(n for at, n in own.items() if at not in self._known))
        self._is_input_kept.append(own.keys() <= self._seen | self._known)
        self._seen = seen = set()
        kept: dict[int, int] = {}

        def save(tensor: torch.Tensor) -> torch.Tensor:
            seen.add(at := _address(tensor))
            if not (at in self._known or at in own or at in self._gathered):
                kept[at] = tensor.untyped_storage().nbytes()
            return tensor.detach()  # an output that had its graph would never be freed

        began = time.perf_counter()
        with saved_tensors_hooks(save, lambda tensor: tensor):
            found = layer(k, rows, h)
        self.seconds.append(time.perf_counter() - began)
        self.kept.append(sum(kept.values()))
        self._keeps_input.append(bool(own.keys() & seen))
        return {name: x.detach().requires_grad_() for name, x in found.items()}

    def peak(self, chosen: Collection[int]) -> int:
        """Return the most bytes of activations, where some layers are recomputed.

        That is at the end of the forward pass, or while such a layer has its activations
        again and those of the layers before it are still there.
        """
        held = most = 0
        for k, kept in enumerate(self.kept):
            is_there = self._is_input_kept[k] and k > 0 and k - 1 not in chosen
            if not is_there and (k in chosen or self._keeps_input[k]):
                held += self.inputs[k]
            most = max(most, held + kept)
            held += 0 if k in chosen else kept
        return most


def choose_layers(costs: LayerCosts, saved: int) -> frozenset[int]:
    """Return the layers whose recomputation saves enough in the least time.

    Args:
        costs: Of a batch.
        saved: Bytes that are to be saved.

    Returns:
        Layers from 0; where no choice saves so much, the one that saves the most.
    """
    number = len(costs.kept)
    sets: Iterable[tuple[int, ...]]
    if number <= _MOST_LAYERS:
        sets = (s for n in range(number + 1) for s in combinations(range(number), n))
    else:  # those that keep the most for their time first
        rate = [
            kept / max(s, 1e-9) for kept, s in zip(costs.kept, costs.seconds, strict=True)
        ]
        order = sorted(range(number), key=rate.__getitem__, reverse=True)
        sets = (tuple(order[:n]) for n in range(number + 1))
    target = costs.peak(()) - saved

    def rank(chosen: tuple[int, ...]) -> tuple[int, float]:
        return max(costs.peak(chosen) - target, 0), sum(costs.seconds[k] for k in chosen)

    best: tuple[int, ...] = min(sets, key=rank)
    return frozenset(best)


def _address(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage().data_ptr())
