"""Which numbers a training has: distributions by layer, and what 16 bits would not hold.

Hooks look at the output of every module, at every gradient of a parameter and, once an
epoch, at the parameters. They are there only if the config asks for them (``numbers``).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from graphsys.core.events import count
from graphsys.training.callbacks import Callback, Step, Training
from graphsys.training.number_tally import NUMBERS, Tally


class NumberWatch(Callback):
    """Counts a network's numbers by hooks, from its making until the training ends.

    Args:
        network: Its modules, with outputs that are tensors or hold some.
    """

    def __init__(self, network: nn.Module) -> None:
        self._network = network
        self._tallies: dict[tuple[str, str], Tally] = {}
        self._handles: list[Any] = []
        for name, module in network.named_modules():
            if name:  # the network itself gives what its last module gives
                self._handles.append(module.register_forward_hook(self._output_of(name)))
        for name, parameter in network.named_parameters():
            if parameter.requires_grad:
                hook: Any = parameter.register_hook
                self._handles.append(hook(self._gradient_of(name)))

    def on_step_end(self, training: Training, step: Step) -> None:
        """Take what was counted into the checkpoint that follows an epoch."""
        if step.is_last:
            rows = self.end_epoch()
            training.state.metrics[NUMBERS] = rows
            count(NUMBERS, len(rows), epoch=training.epoch, rows=rows)

    def on_train_end(self, training: Training) -> None:
        """Take the hooks off."""
        self.close()

    def end_epoch(self) -> list[dict[str, Any]]:
        """Return what was counted since the last call, and count anew.

        Returns:
            A row for each layer and kind: ``output``, ``gradient`` (of a parameter, one
            backward pass after the other), ``parameter`` (as it is now).
        """
        for name, parameter in self._network.named_parameters():
            self._tally("parameter", name).add(parameter)
        rows = [
            {"kind": kind, "layer": layer, **tally.facts()}
            for (kind, layer), tally in sorted(self._tallies.items())
        ]
        self._tallies = {}
        return rows

    def close(self) -> None:
        """Take the hooks off."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _tally(self, kind: str, name: str) -> Tally:
        return self._tallies.setdefault((kind, name), Tally())

    def _output_of(self, name: str) -> Any:
        def hook(module: nn.Module, _: Any, output: Any) -> None:
            if module.training:  # not what is evaluated
                for values in _tensors(output):
                    self._tally("output", name).add(values)

        return hook

    def _gradient_of(self, name: str) -> Any:
        def hook(gradient: torch.Tensor) -> None:
            if gradient.is_sparse:
                gradient = gradient.coalesce().values()
            self._tally("gradient", name).add(gradient)

        return hook


def _tensors(output: Any) -> list[torch.Tensor]:
    """Return the tensors of float types that an output is, or holds."""
    if isinstance(output, torch.Tensor):
        return [output] if output.is_floating_point() else []
    if isinstance(output, Mapping):
        return [it for value in output.values() for it in _tensors(value)]
    if isinstance(output, Sequence) and not isinstance(output, str):
        return [it for value in output for it in _tensors(value)]
    return []
