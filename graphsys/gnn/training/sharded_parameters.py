"""Weights that processes share out, each whole while its layer runs: stage 3 of ZeRO.

torch's ``fully_shard`` exchanges where a module is called and for weights that got a
gradient. Both depend on which relations a process's share of a batch has, so that with
several relations processes wait for each other forever. Here a part of the network is
exchanged in every step of every process, whatever ran of it.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from graphsys.core.errors import ConfigError
from graphsys.core.memory import return_large_blocks
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.models.network import Network
from graphsys.gnn.process_group import ProcessGroup

_LEAST_CUT = 4096
"""Numbers of a weight that is cut; smaller ones cost more to send than to have whole."""
REST = "rest"
"""The part of a network that is not of its layers: what makes scores, side tasks."""


class CutWeight:
    """A weight of which a process has one run of numbers; the last one is filled up.

    Args:
        whole: The weight, equal in all processes.
        holders: Modules that have it, and by which name.
        group: The processes.

    Attributes:
        share: What the optimizer moves, float32 ``[ceil(n / processes)]``.
        shape: Of the whole weight.
    """

    def __init__(
        self,
        whole: nn.Parameter,
        holders: Sequence[tuple[nn.Module, str]],
        group: ProcessGroup,
    ) -> None:
        self.shape, self._holders, self._group = whole.shape, holders, group
        self.share = nn.Parameter(self.cut(whole.detach()))
        self.hold(self.share)

    def cut(self, whole: torch.Tensor) -> torch.Tensor:
        """Return this process's run of a tensor of the weight's shape."""
        group = self._group
        return self.padded(whole).view(group.world_size, -1)[group.rank].clone()

    def padded(self, whole: torch.Tensor) -> torch.Tensor:
        """Return the numbers of all runs in a row."""
        size = math.ceil(self.shape.numel() / self._group.world_size)
        more = size * self._group.world_size - self.shape.numel()
        flat = whole.reshape(-1)
        return nn.functional.pad(flat, (0, more)) if more else flat

    def trimmed(self, flat: torch.Tensor) -> torch.Tensor:
        """Return the tensor that all runs in a row are, a view."""
        return flat[: self.shape.numel()].view(self.shape)

    def hold(self, value: torch.Tensor) -> None:
        """Have the modules compute with a tensor."""
        for module, name in self._holders:
            module._parameters[name] = value  # type: ignore[assignment]
            names = getattr(module, "_flat_weights_names", ())
            if name in names:  # of torch's LSTM, which reads a list of its own
                flat: Any = module._flat_weights
                flat[names.index(name)] = value


class ShardedParameters:
    """Has each process keep a share of the large weights, their gradients and moments.

    A part of the network, such as a layer, has its weights whole while it runs, and again
    in the backward pass, which ends with its gradients' sums, a share for each process.
    autograd runs what was made last first, so that processes exchange in one order.

    Args:
        network: Equal in all processes; its large parameters become shares.
        group: The processes, two or more.

    Attributes:
        addresses: Where whole weights begin in memory now.
        peak_bytes: The most bytes of whole weights and their gradients at a time.

    Raises:
        ConfigError: Two parts of the network have a weight in common.

    References:
        Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter
        models", SC 2020; Zhao et al., "PyTorch FSDP: experiences on scaling fully sharded
        data parallel", VLDB 2023.
    """

    def __init__(self, network: Network, group: ProcessGroup) -> None:
        self.group, self._network = group, network
        return_large_blocks()  # what is dropped is not to stay in the heap
        self._parts: dict[object, list[CutWeight]] = {
            part: [] for part in (*network.parts(), REST)
        }
        places = _places(network)
        holders: dict[int, list[tuple[nn.Module, str]]] = {}
        for module in network.modules():
            for name, weight in module._parameters.items():
                holders.setdefault(id(weight), []).append((module, name))
        for weight in list(network.parameters()):
            if weight.requires_grad and weight.numel() >= _LEAST_CUT:
                cut = CutWeight(weight, holders[id(weight)], group)
                self._parts[places.get(id(weight), REST)].append(cut)
        self._by_share = {id(cut.share): cut for cut in self}
        self._marks: list[torch.Tensor] = []
        self._is_whole = False
        self.addresses: set[int] = set()
        self.peak_bytes = self._bytes = 0

    def __iter__(self) -> Iterator[CutWeight]:
        for cuts in self._parts.values():
            yield from cuts

    def of(self, parameter: torch.Tensor) -> CutWeight | None:
        """Return the weight that a parameter is a share of; None: it is whole."""
        return self._by_share.get(id(parameter))

    def run(self, part: object, layer: Callable[..., Any], *values: Any) -> Any:
        """Return the rows by type that a part of the network makes, its weights whole."""
        with self.gathered(part):
            found: dict[str, Any] = layer(*values)
            return {  # a weight itself is gone after this
                name: rows.clone() if _address(rows) in self.addresses else rows
                for name, rows in found.items()
            }

    @contextmanager
    def gathered(self, part: object) -> Iterator[None]:
        """Have a part's weights whole for the block, and again in the backward pass."""
        cuts = [] if self._is_whole else self._parts[part]
        flats = [self._empty(cut) for cut in cuts]
        wholes: list[torch.Tensor] = []
        for cut, flat in zip(cuts, flats, strict=True):
            made: Any = _Gather.apply(cut.share, cut, flat, self)  # type: ignore[no-untyped-call]
            wholes.append(made)
            cut.hold(made)
        yield
        if wholes and torch.is_grad_enabled():
            mark: Any = _Mark.apply(self, cuts, flats, *wholes)  # type: ignore[no-untyped-call]
            self._marks.append(mark)
        for cut, flat in zip(cuts, flats, strict=True):
            self.drop(cut, flat)

    def tie(self, loss: torch.Tensor) -> torch.Tensor:
        """Return the loss of a step, from which the backward pass reaches every part."""
        marks, self._marks = self._marks, []
        tied: torch.Tensor = _Tie.apply(loss, *marks)  # type: ignore[no-untyped-call]
        return tied

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Have all weights whole for the block, which trains nothing."""
        flats = [self._empty(cut) for cut in self]
        for cut, flat in zip(self, flats, strict=True):
            self.fill(cut, flat)
            cut.hold(cut.trimmed(flat))
        self._is_whole = True
        try:
            yield
        finally:
            self._is_whole = False
            for cut, flat in zip(self, flats, strict=True):
                self.drop(cut, flat)

    def fill(self, cut: CutWeight, flat: torch.Tensor) -> None:
        """Have a weight's numbers in memory that was dropped, or is new."""
        storage = flat.untyped_storage()
        storage.resize_(flat.nbytes)
        self.addresses.add(storage.data_ptr())
        self._bytes += flat.nbytes
        self.peak_bytes = max(self.peak_bytes, self._bytes)
        self.group.gather_runs(flat.data, cut.share.detach())  # data: no change to autograd

    def drop(self, cut: CutWeight, flat: torch.Tensor) -> None:
        """Give the memory of a whole weight back; what is made of it stays as it is."""
        cut.hold(cut.share)
        storage = flat.untyped_storage()
        self.addresses.discard(storage.data_ptr())
        self._bytes -= storage.nbytes()
        storage.resize_(0)

    def saw_gradients(self, flats: Sequence[torch.Tensor]) -> None:
        """Count the gradients that are whole together with a part's weights."""
        size = sum(flat.nbytes for flat in flats)
        self.peak_bytes = max(self.peak_bytes, self._bytes + size)

    def clip(self, parameters: Sequence[nn.Parameter], longest: float) -> None:
        """Shorten gradients as ``torch.nn.utils.clip_grad_norm_`` does whole ones."""
        squares = {True: 0.0, False: 0.0}  # of shares, and of what all processes have
        grads = [(p, p.grad) for p in parameters if p.grad is not None]
        for parameter, grad in grads:
            squares[self.of(parameter) is not None] += float(grad.square().sum())
        length = math.sqrt(self.group.all_reduce(squares[True])[0] + squares[False])
        for _, grad in grads:
            grad.mul_(min(longest / (length + 1e-6), 1.0))

    def first_whole(self, cut: CutWeight, run: torch.Tensor) -> torch.Tensor | None:
        """Return the tensor that all processes' runs are, in the first one; else None."""
        flat = self.group.gather_first(run.detach())
        return None if flat is None else cut.trimmed(flat)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Return the network's whole state in the first process, an empty one elsewhere."""
        found: dict[str, torch.Tensor] = {}
        for name, value in self._network.state_dict(keep_vars=True).items():
            cut = self.of(value)
            made = value.detach().clone() if cut is None else self.first_whole(cut, value)
            if made is not None and not self.group.rank:
                found[name] = made
        return found

    def _empty(self, cut: CutWeight) -> torch.Tensor:
        """Return a row of numbers that has no memory yet."""
        flat = torch.empty(cut.share.numel() * self.group.world_size)
        flat.untyped_storage().resize_(0)
        return flat


class _Gather(torch.autograd.Function):
    """A share becomes the whole weight; its gradient becomes a share of the sum."""

    @staticmethod
    def forward(
        ctx: Any, _: Any, cut: CutWeight, flat: torch.Tensor, owner: ShardedParameters
    ) -> torch.Tensor:
        ctx.cut, ctx.flat, ctx.owner = cut, flat, owner
        ctx.set_materialize_grads(False)
        owner.fill(cut, flat)
        return cut.trimmed(flat)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor | None) -> Any:
        ctx.owner.drop(ctx.cut, ctx.flat)
        if grad is None:  # nothing of this process's batch read the weight
            grad = torch.zeros(ctx.cut.shape)
        return ctx.owner.group.scatter_sum(ctx.cut.padded(grad)), None, None, None


class _Mark(torch.autograd.Function):
    """Ends a part of the forward pass: where its backward pass needs the weights again."""

    @staticmethod
    def forward(
        ctx: Any,
        owner: ShardedParameters,
        cuts: Sequence[CutWeight],
        flats: Sequence[torch.Tensor],
        *wholes: torch.Tensor,
    ) -> torch.Tensor:
        ctx.owner, ctx.cuts, ctx.flats = owner, cuts, flats
        return torch.zeros(())

    @staticmethod
    def backward(ctx: Any, _: Any) -> Any:
        for cut, flat in zip(ctx.cuts, ctx.flats, strict=True):
            ctx.owner.fill(cut, flat)
            cut.hold(cut.trimmed(flat.detach()).requires_grad_())  # for who computes again
        ctx.owner.saw_gradients(ctx.flats)
        return None, None, None, *(None for _ in ctx.cuts)


class _Tie(torch.autograd.Function):
    """A loss as it is, which depends on all marks."""

    @staticmethod
    def forward(ctx: Any, loss: torch.Tensor, *marks: torch.Tensor) -> torch.Tensor:
        ctx.num_marks = len(marks)
        return loss.clone()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return grad, *(None for _ in range(ctx.num_marks))


def are_cut(config: GnnConfig, processes: int) -> bool:
    """Tell whether so many processes have shares of the weights."""
    return config.sharding == "parameters" and processes > 1


def largest_part_bytes(network: Network) -> int:
    """Return the bytes of the weights that are whole at once: a layer and the rest."""
    places = _places(network)
    sizes: dict[object, int] = {}
    for weight in network.parameters():
        if weight.requires_grad and weight.numel() >= _LEAST_CUT:
            part = places.get(id(weight), REST)
            sizes[part] = sizes.get(part, 0) + weight.nbytes
    return sizes.pop(REST, 0) + max(sizes.values(), default=0)


def _places(network: Network) -> dict[int, object]:
    """Return which part has each parameter, by ``id``.

    Raises:
        ConfigError: Two parts have it.
    """
    names = {id(weight): name for name, weight in network.named_parameters()}
    found: dict[int, object] = {}
    for part, modules in network.parts().items():
        for weight in (p for module in modules for p in module.parameters()):
            if found.setdefault(id(weight), part) != part:
                raise ConfigError(
                    f"sharding: got parameters, but the weight {names[id(weight)]!r} of "
                    f"model {network.config.model} is in several layers, which have "
                    "their weights one after the other; expected none or optimizer, or "
                    "a weight for each layer"
                )
    return found


def _address(value: Any) -> int:
    is_tensor = isinstance(value, torch.Tensor)
    return value.untyped_storage().data_ptr() if is_tensor else 0
