"""The optimizer that a config states, its rate over time, its state as plain tensors."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from graphsys.core.errors import CorruptStoreError
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.models.model import Model
from graphsys.gnn.process_group import ProcessGroup
from graphsys.gnn.training.lamb import Lamb
from graphsys.gnn.training.lars import Lars
from graphsys.gnn.training.sharded_optimizer import ShardedOptimizer
from graphsys.training.learning_rate import plateau_factor, schedule_factor

Optimizer = torch.optim.Optimizer | ShardedOptimizer
_KINDS: dict[str, Any] = {"adam": torch.optim.Adam, "lamb": Lamb, "lars": Lars}


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

    ``watched`` are the values of the metric that is watched, for a plateau.

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
            is_lower_better=config.monitor == "loss",
        )
    share = min((epoch + batch / num_batches) / config.epochs, 1.0)
    return config.lr * scale * warm * fall * schedule_factor(config.lr_schedule, share)


def dump_optimizer(optimizer: Optimizer) -> dict[str, torch.Tensor]:
    """Return an optimizer's state by name, ``parameter.moment``.

    Of one that processes share all have to call this, and the first one gets the state.
    """
    if isinstance(optimizer, ShardedOptimizer):
        return optimizer.dump()
    states = optimizer.state_dict()["state"]
    return {
        f"{number}.{name}": torch.as_tensor(value).to("cpu", copy=True)
        for number, moments in states.items()
        for name, value in moments.items()
    }


def load_optimizer(
    optimizer: Optimizer, tensors: dict[str, torch.Tensor], path: Path
) -> None:
    """Put a state back that :func:`dump_optimizer` returned.

    Raises:
        CorruptStoreError: It is that of other parameters.
    """
    if isinstance(optimizer, ShardedOptimizer):
        parameters = optimizer.parameters
    else:
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
    states: dict[int, dict[str, torch.Tensor]] = {}
    for key, value in tensors.items():
        number, _, name = key.partition(".")
        place = int(number) if number.isdecimal() and len(number) < 9 else len(parameters)
        shape = parameters[place].shape if place < len(parameters) else None
        if shape is None or (value.dim() and value.shape != shape):
            raise CorruptStoreError(
                f"the optimizer's state {key!r} of the run {path} does not fit its "
                "config.toml and the graph; restore its files, or train it again"
            )
        states.setdefault(place, {})[name] = value
    if isinstance(optimizer, ShardedOptimizer):
        optimizer.load(states)
    else:
        optimizer.load_state_dict({**optimizer.state_dict(), "state": states})
