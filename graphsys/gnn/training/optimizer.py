"""The optimizer that a config states, its rate over time, its state as plain tensors."""

import inspect
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from graphsys.core.errors import CorruptStoreError
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.models.model import Model
from graphsys.gnn.process_group import ProcessGroup
from graphsys.gnn.training.sharded_optimizer import ShardedOptimizer
from graphsys.gnn.training.sharded_parameters import CutWeight, ShardedParameters
from graphsys.training.learning_rate import plateau_factor, schedule_factor


class _Eager(torch.optim.Optimizer):
    """An optimizer that ``torch.compile`` never sees.

    torch imports its compiler to keep it out of these methods, which a process that
    compiles nothing need not wait for. They are called within those wrappers here.
    """

    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Optimizer.zero_grad)
    state_dict = inspect.unwrap(torch.optim.Optimizer.state_dict)
    load_state_dict = inspect.unwrap(torch.optim.Optimizer.load_state_dict)


class Adam(_Eager, torch.optim.Adam):
    """Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015.

    One kernel moves all tensors and reads each number once; by default torch has twelve
    operators pass over each tensor.
    """

    def __init__(self, params: Iterable[Any], lr: float = 1e-3, **options: Any) -> None:
        super().__init__(params, lr, **{"fused": True, **options})

    step = torch.no_grad()(inspect.unwrap(torch.optim.Adam.step))


class _ByTensor(_Eager):
    """An optimizer that moves one tensor after the other."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Move every tensor that has a gradient; ``closure`` is not used."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self._move(weight, group)

    def _move(self, weight: torch.Tensor, group: dict[str, Any]) -> None:
        """Move a tensor along its gradient."""
        raise NotImplementedError


class Lars(_ByTensor):
    """Gradient descent with momentum, each tensor at a rate by its own length.

    For every tensor ``r = trust * |w| / (|g| + weight_decay * |w|)``, then ``v = momentum *
    v + lr * r * (g + weight_decay * w)`` and ``w -= v``; r is 1 where a norm is 0, and for
    vectors (biases, norms), which have no weight decay either.

    Args:
        parameters: Tensors, or groups of them.
        lr: Learning rate.
        momentum: Share of the last move that goes on.
        trust: The paper's eta: how far a layer may move, of its length.
        weight_decay: Decay, within the scaled gradient.

    References:
        You, Gitman and Ginsburg, "Large batch training of convolutional networks",
        arXiv:1708.03888, 2017, algorithm 1.
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float = 1.0,
        momentum: float = 0.9,
        trust: float = 0.01,
        weight_decay: float = 0.0,
    ) -> None:
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "trust": trust,
            "weight_decay": weight_decay,
        }
        super().__init__(parameters, defaults)

    def _move(self, weight: torch.Tensor, group: dict[str, Any]) -> None:
        assert weight.grad is not None  # the caller looked
        state: Any = self.state[weight]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(weight)
        rate, move = 1.0, weight.grad
        if weight.dim() > 1:
            decay = group["weight_decay"]
            length, slope = float(weight.norm()), float(weight.grad.norm())
            if length and slope:
                rate = group["trust"] * length / (slope + decay * length)
            move = move.add(weight, alpha=decay)
        velocity = state["momentum_buffer"].mul_(group["momentum"])
        weight.sub_(velocity.add_(move, alpha=group["lr"] * rate))


class Lamb(_ByTensor):
    """Adam's direction, as long as the weights it moves times the rate.

    For every tensor ``r = m / (sqrt(v) + eps) + weight_decay * w`` with Adam's corrected
    moments, then ``w -= lr * |w| / |r| * r``; the factor is 1 where a norm is 0.

    Args:
        parameters: Tensors, or groups of them.
        lr: Learning rate.
        betas: Decay of the moments.
        eps: Added to the root.
        weight_decay: Decoupled decay.

    References:
        You et al., "Large batch optimization for deep learning: training BERT in 76
        minutes", ICLR 2020, algorithm 2 (phi the identity).
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(parameters, defaults)

    def _move(self, weight: torch.Tensor, group: dict[str, Any]) -> None:
        state: Any = self.state[weight]
        if not state:
            state["step"] = torch.zeros(())
            state["exp_avg"] = torch.zeros_like(weight)
            state["exp_avg_sq"] = torch.zeros_like(weight)
        assert weight.grad is not None  # the caller looked
        first, second = group["betas"]
        state["step"] += 1
        count = float(state["step"])
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(weight.grad, 1 - first)
        square.mul_(second).addcmul_(weight.grad, weight.grad, value=1 - second)
        root = (square / (1 - second**count)).sqrt_().add_(group["eps"])
        move = (mean / (1 - first**count)).div_(root)
        move.add_(weight, alpha=group["weight_decay"])
        length, wanted = float(move.norm()), float(weight.norm())
        factor = wanted / length if length and wanted else 1.0
        weight.add_(move, alpha=-group["lr"] * factor)


Optimizer = torch.optim.Optimizer | ShardedOptimizer
_KINDS: dict[str, Any] = {"adam": Adam, "lamb": Lamb, "lars": Lars}


def make_optimizer(
    config: GnnConfig, network: Model, process_group: ProcessGroup
) -> Optimizer:
    """Return it over all parameters, with the penalty on those that the config says."""
    parameters = [p for p in network.parameters() if p.requires_grad]
    groups: list[dict[str, Any]]
    if config.decay_layers == "all":
        groups = [{"params": parameters, "weight_decay": config.weight_decay}]
        return _made(config, groups, process_group)
    first = {id(p) for p in network.first_weights()}
    groups = [
        {
            "params": [p for p in parameters if id(p) in first],
            "weight_decay": config.weight_decay,
        },
        {"params": [p for p in parameters if id(p) not in first]},
    ]
    return _made(config, groups, process_group)


def _made(
    config: GnnConfig, groups: Sequence[dict[str, Any]], process_group: ProcessGroup
) -> Optimizer:
    kind = _KINDS[config.optimizer]
    is_shared = config.sharding == "optimizer" and process_group.world_size > 1
    if is_shared and any(group["params"] for group in groups):
        # lamb and lars scale a step by the length of whole tensors
        can_split = config.optimizer == "adam"
        return ShardedOptimizer(groups, kind, config.lr, process_group, can_split=can_split)
    return kind(groups, config.lr)  # type: ignore[no-any-return]


def optimizer_bytes(optimizer: Optimizer) -> int:
    """Return the bytes of the moments that this process has."""
    return sum(
        int(value.nbytes)
        for moments in optimizer.state.values()
        for value in moments.values()
        if isinstance(value, torch.Tensor)
    )


def moments_of(
    optimizer: Optimizer, weight: torch.Tensor
) -> Iterator[tuple[slice, torch.Tensor]]:
    """Yield moments of a weight that this process has, each with the rows it is of."""
    if isinstance(optimizer, ShardedOptimizer):
        yield from optimizer.moments(weight)
        return
    for moment in optimizer.state.get(weight, {}).values():
        if isinstance(moment, torch.Tensor) and moment.shape == weight.shape:
            yield slice(None), moment


def rate_at(
    config: GnnConfig,
    epoch: int,
    batch: int,
    num_batches: int,
    watched: Sequence[float] = (),
) -> float:
    """Return the learning rate of a step: a linear rise at first, then what config says.

    ``watched`` are the values of what is watched, higher is better, for a plateau.

    With ``lr_base_batch`` it is in proportion to the size of a step (Goyal et al.,
    "Accurate, large minibatch SGD", 2017).

    Examples:
        >>> config = GnnConfig(lr=1.0, lr_warmup_epochs=1, lr_decay=0.5)
        >>> [rate_at(config, epoch, batch, 4) for epoch, batch in [(0, 0), (0, 3), (2, 0)]]
        [0.25, 1.0, 0.25]
        >>> rate_at(GnnConfig(lr=1.0, batch_size=4096, lr_base_batch=1024), 0, 0, 4)
        4.0
    """
    done = epoch + (batch + 1) / num_batches
    warm = min(1.0, done / config.lr_warmup_epochs) if config.lr_warmup_epochs else 1.0
    scale = 1.0
    if config.lr_base_batch:
        scale = config.batch_size * config.accumulate / config.lr_base_batch
    fall = config.lr_decay**epoch
    if config.lr_schedule == "plateau":
        fall *= plateau_factor(
            watched,
            patience=config.lr_patience,
            factor=config.lr_factor,
        )
    share = min((epoch + batch / num_batches) / config.epochs, 1.0)
    return config.lr * scale * warm * fall * schedule_factor(config.lr_schedule, share)


def dump_optimizer(
    optimizer: Optimizer, shards: ShardedParameters | None = None
) -> dict[str, torch.Tensor]:
    """Return an optimizer's state by name, ``parameter.moment``.

    Of one that processes share, or of their shares of parameters, all have to call this,
    and the first one gets the state.
    """
    if isinstance(optimizer, ShardedOptimizer):
        return optimizer.dump()
    states = optimizer.state_dict()["state"]
    cuts = dict(enumerate(_cuts(optimizer, shards)))
    found: dict[str, torch.Tensor] = {}
    for number, moments in states.items():
        for name, value in moments.items():
            cut, own = cuts[number], torch.as_tensor(value)
            if cut is None or shards is None or not own.dim():
                found[f"{number}.{name}"] = own.to("cpu", copy=True)
            elif (whole := shards.first_whole(cut, own)) is not None:
                found[f"{number}.{name}"] = whole
    return {} if shards is not None and shards.group.rank else found


def _cuts(optimizer: Optimizer, shards: ShardedParameters | None) -> list[CutWeight | None]:
    """Return for each parameter the weight that it is a share of, if it is one."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    return [None if shards is None else shards.of(p) for p in parameters]


def load_optimizer(
    optimizer: Optimizer,
    tensors: dict[str, torch.Tensor],
    path: Path,
    shards: ShardedParameters | None = None,
) -> None:
    """Put a state back that :func:`dump_optimizer` returned.

    Raises:
        CorruptStoreError: It is that of other parameters.
    """
    if isinstance(optimizer, ShardedOptimizer):
        shapes = [weight.shape for weight in optimizer.parameters]
    else:
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        shapes = [p.shape for p in parameters]
    cuts = _cuts(optimizer, shards)
    states: dict[int, dict[str, torch.Tensor]] = {}
    for key, value in tensors.items():
        number, _, name = key.partition(".")
        place = int(number) if number.isdecimal() and len(number) < 9 else len(shapes)
        cut = cuts[place] if place < len(cuts) else None
        shape = shapes[place] if place < len(shapes) else None
        shape = shape if cut is None else cut.shape
        if shape is None or (value.dim() and value.shape != shape):
            raise CorruptStoreError(
                f"the optimizer's state {key!r} of the run {path} does not fit its "
                "config.toml and the graph; restore its files, or train it again"
            )
        own = cut.cut(value) if cut is not None and value.dim() else value
        states.setdefault(place, {})[name] = own
    if isinstance(optimizer, ShardedOptimizer):
        optimizer.load(states)
    else:
        optimizer.load_state_dict({**optimizer.state_dict(), "state": states})
