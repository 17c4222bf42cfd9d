"""An optimizer whose moments are shared out over the processes: stage 1 of ZeRO."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn

from graphsys.gnn.process_group import ProcessGroup

_LEAST_SPLIT = 4096
"""Numbers of a tensor that is cut; smaller ones cost more to send than to have whole."""


class ShardedOptimizer:
    """Moves a share of the weights in each process, and has the others' from them.

    torch's ``ZeroRedundancyOptimizer`` deals whole tensors to processes. Of most networks
    one tensor, the learned rows, is larger than all others, so that it is dealt in parts:
    runs of its rows that share their memory.

    Args:
        groups: Parameters and their settings, as any optimizer of torch takes them.
        kind: Class of the optimizer.
        lr: Learning rate.
        process_group: The processes, two or more.
        can_split: Whether the optimizer looks at each number by itself; else tensors stay
            whole.

    Attributes:
        parameters: All that are trained, in the order of their numbers in a checkpoint.

    References:
        Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter
        models", SC 2020.
    """

    def __init__(
        self,
        groups: Sequence[dict[str, Any]],
        kind: Any,
        lr: float,
        process_group: ProcessGroup,
        *,
        can_split: bool,
    ) -> None:
        from torch.distributed.optim import ZeroRedundancyOptimizer

        self._group = process_group
        self.parameters = [p for group in groups for p in group["params"]]
        least = process_group.world_size if can_split else 1
        self._parts = [_parts(weight, least) for weight in self.parameters]
        parts = iter(self._parts)
        dealt = [
            {**group, "params": [part for _ in group["params"] for part in next(parts)]}
            for group in groups
        ]
        self._zero: Any = ZeroRedundancyOptimizer(dealt, kind, lr=lr)
        self._own = {id(p) for it in self._zero.optim.param_groups for p in it["params"]}
        own = [p for parts in self._parts for p in parts if id(p) in self._own]
        self._sent_bytes = sum(part.nbytes for part in own) * (process_group.world_size - 1)

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """Settings of each group, such as ``lr``, which the next step takes."""
        found: list[dict[str, Any]] = self._zero.param_groups
        return found

    @property
    def state(self) -> dict[Any, dict[str, Any]]:
        """Moments of the parts that this process moves."""
        found: dict[Any, dict[str, Any]] = self._zero.optim.state
        return found

    def moments(self, weight: torch.Tensor) -> Iterator[tuple[slice, torch.Tensor]]:
        """Yield moments of a weight that are here, each with the rows it is of."""
        parts = next(
            parts
            for own, parts in zip(self.parameters, self._parts, strict=True)
            if own is weight
        )
        for part, rows in zip(parts, _rows(parts), strict=True):
            for moment in self.state.get(part, {}).values():
                if isinstance(moment, torch.Tensor) and moment.shape == part.shape:
                    yield rows, moment

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients."""
        for weight in self.parameters:
            if set_to_none:
                weight.grad = None
            elif weight.grad is not None:
                weight.grad.zero_()

    def step(self) -> None:
        """Move the own share by its gradients; have all processes' weights after that.

        Raises:
            ClusterError: A process ended, or was silent for too long.
        """
        cut = [(w, p) for w, p in zip(self.parameters, self._parts, strict=True) if p[1:]]
        for weight, parts in cut:
            for part, rows in zip(parts, _rows(parts), strict=True):
                is_own = id(part) in self._own and weight.grad is not None
                part.grad = weight.grad[rows] if is_own else None
        with self._group.exchanging():
            self._zero.step()
        for _, parts in cut:  # else they hold the weights' own gradients
            for part in parts:
                part.grad = None
        self._group.traffic.allreduce_bytes += self._sent_bytes

    def dump(self) -> dict[str, torch.Tensor]:
        """Return the whole state by name in the first process, an empty one elsewhere.

        It is that of an optimizer that one process has; all have to call this.
        """
        own: dict[str, torch.Tensor] = {}
        for number, parts in enumerate(self._parts):
            for place, part in enumerate(parts):
                for name, value in self.state.get(part, {}).items():
                    own[f"{number}.{place}.{name}"] = torch.as_tensor(value)
        found = self._group.collect(own)
        whole: dict[str, list[torch.Tensor]] = {}
        for number, parts in enumerate(self._parts):
            for place in range(len(parts)):
                prefix = f"{number}.{place}."
                for key in [key for key in found if key.startswith(prefix)]:
                    name = f"{number}.{key.removeprefix(prefix)}"
                    whole.setdefault(name, []).append(found.pop(key))
        return {
            name: torch.cat(values) if values[0].dim() and values[1:] else values[0]
            for name, values in whole.items()
        }

    def load(self, states: dict[int, dict[str, torch.Tensor]]) -> None:
        """Take the own share of a whole state: moments by name, by number of parameter."""
        for number, moments in states.items():
            parts = self._parts[number]
            for part, rows in zip(parts, _rows(parts), strict=True):
                if id(part) in self._own:
                    self.state[part] = {
                        name: (value[rows] if value.dim() else value).clone()
                        for name, value in moments.items()
                    }


def _parts(weight: torch.Tensor, num_parts: int) -> list[torch.Tensor]:
    """Return runs of a tensor's rows as parameters; the tensor itself if it stays whole."""
    if num_parts < 2 or weight.numel() < _LEAST_SPLIT or len(weight) < num_parts:
        return [weight]
    data = weight.detach()
    return [nn.Parameter(part) for part in data.tensor_split(num_parts)]


def _rows(parts: Sequence[torch.Tensor]) -> list[slice]:
    """Return which rows of the whole tensor each part has."""
    if not parts[1:]:
        return [slice(None)]
    ends = torch.tensor([len(part) for part in parts]).cumsum(0).tolist()
    return [slice(end - len(part), end) for part, end in zip(parts, ends, strict=True)]
