"""A training step: forward, backward, and the optimizer once every few batches."""

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

import torch

from graphsys.core.errors import TrainingFailedError
from graphsys.core.events import span
from graphsys.core.operators import watch_operators
from graphsys.core.rng import draw_key
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.context import GnnContext
from graphsys.gnn.data.device_transfer import new_clock
from graphsys.gnn.data.loader import Batch
from graphsys.gnn.tasks.side_losses import TASK, side_losses
from graphsys.gnn.training.gradients import make_compression
from graphsys.gnn.training.memory_watch import StepMemory
from graphsys.gnn.training.optimizer import make_optimizer, rate_at
from graphsys.gnn.training.sharded_parameters import REST, ShardedParameters
from graphsys.gnn.training.sparse_weights import SparseWeights


class Stepper:
    """Takes the steps of a training.

    With ``accumulate`` the gradients of so many batches in a row are averaged before the
    optimizer moves. In a team each process has its share of a batch; gradients are added,
    each by its share, so that all processes take the step that one would take.
    """

    def __init__(self, context: GnnContext) -> None:
        self.config, self.network = context.config, context.network
        self.task, self.transfer = context.task, context.transfer
        self.process_group = context.task.process_group
        self.shards: ShardedParameters | None = self.network.shards
        self.optimizer = make_optimizer(self.config, self.network, self.process_group)
        self.num_edges = 0  # of the last batch, the shares of all processes together
        self.losses: dict[str, float] = {}  # of it, by task, where there are several
        self.state = context.state
        self.compression = make_compression(self.config, self.process_group)
        self.sparse: SparseWeights | None = None
        if self.config.sparsity:
            self.sparse = SparseWeights(self.config, self.network, self.optimizer)
        self.memory = StepMemory(context, self.optimizer)

    def train(
        self, epoch: int, batch: Batch, num_batches: int
    ) -> tuple[float, list[float]]:
        """Learn from a batch.

        Args:
            epoch: From 0.
            batch: The batch, or this process's share of it.
            num_batches: Of the epoch.

        Returns:
            The mean loss of the batch, and when forward, backward and step began, and the
            end, in seconds.

        Raises:
            TrainingFailedError: The loss is not a number.
        """
        self.network.train()
        # By batch: a run that goes on from a checkpoint drops what it would have dropped.
        key = draw_key(self.config.seed, "dropout", epoch, batch.number)
        if self.transfer is None:  # the global call formats the stack for every device
            torch.default_generator.manual_seed(int(key) >> 1)
        else:
            torch.manual_seed(int(key) >> 1)
        rate = rate_at(self.config, epoch, batch.number, num_batches, self._watched())
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        if self.transfer is not None:
            self.transfer.receive(batch)
        clock = new_clock(self.transfer)
        clock.mark()
        held = self.memory.forward(batch)
        with span("forward", batch=batch.number), watch_operators(), held:
            loss, value = self._loss(batch)
        self.memory.end("forward")
        clock.mark()
        # Before the backward pass: the weights stay those of the last good step.
        if not math.isfinite(value):
            raise TrainingFailedError(
                f"the loss of batch {batch.number} of epoch {epoch + 1} is {value}; lower "
                f"lr (now {rate:g}), or look for odd features; the last checkpoint stays"
            )
        place = batch.number % self.config.accumulate
        # The last group of an epoch may be shorter; its mean is over what there is.
        size = min(self.config.accumulate, num_batches - (batch.number - place))
        with span("backward", batch=batch.number), watch_operators():
            if place == 0:
                self.optimizer.zero_grad(set_to_none=True)
            (loss if size == 1 else loss / size).backward()  # type: ignore[no-untyped-call]
        self.memory.end("backward")
        clock.mark()
        with span("step", batch=batch.number), watch_operators():
            if place == size - 1:
                self._add_gradients()
                if self.sparse is not None:
                    done = -(-num_batches // self.config.accumulate)
                    step = epoch * done + batch.number // self.config.accumulate
                    self.sparse.before_step(step, done)
                self.optimizer.step()
                self.network.stored.step(self.config.rows_lr * rate / self.config.lr)
        self.memory.end("step")
        clock.mark()
        return value, clock.times()

    def _add_gradients(self) -> None:
        """Have the sums of all processes' gradients, no longer than the config says."""
        parameters = [p for p in self.network.parameters() if p.requires_grad]
        shards, longest = self.shards, self.config.clip_norm
        self.process_group.all_reduce_gradients(
            [p for p in parameters if shards is None or shards.of(p) is None],
            self.compression,
        )
        if longest is not None and shards is not None:
            shards.clip(parameters, longest)
        elif longest is not None:
            torch.nn.utils.clip_grad_norm_(parameters, longest)

    def is_at_step(self, num_done: int, num_batches: int) -> bool:
        """Tell whether the optimizer has moved after so many batches of an epoch."""
        return num_done % self.config.accumulate == 0 or num_done == num_batches

    def _watched(self) -> list[float]:
        """Return what evaluations found of what is watched, higher is better."""
        return [watched_value(self.config, *line[1:3]) for line in self.state.history]

    def _loss(self, batch: Batch) -> tuple[torch.Tensor, float]:
        """Return this process's part of the loss, and the loss of the whole batch."""
        with self._precision(), self._all_of_rest():
            rows = self.network(batch.hops, batch.x)
            loss = self.task.loss(rows, batch)
            besides = self._side_losses(rows, batch)
            several = {TASK: loss, **besides} if besides else {}
            for name, each in besides.items():
                loss = loss + self.config.side_tasks[name] * each
            if self.network.side_loss is not None:
                loss = loss + self.network.side_loss
            if self.config.row_decay:
                penalty = self.network.row_penalty(batch.places)
                loss = loss + self.config.row_decay * penalty
        values = {name: each.item() for name, each in several.items()}
        if self.process_group.world_size == 1:
            self.num_edges, self.losses = batch.num_edges, values
            return loss, loss.item()
        # Shares of a batch may be unlike in size: weighed by their terms they add up to its
        # mean.
        total = self.task.num_terms(batch)
        share = self.process_group.num_own(total) / total
        if self.shards is not None:
            loss = self.shards.tie(loss)
        part, parts = loss * share, [each * share for each in values.values()]
        value, num_edges, *summed = self.process_group.all_reduce(
            part.item(), batch.num_edges, *parts
        )
        self.num_edges = int(num_edges)
        self.losses = dict(zip(values, summed, strict=True))
        return part, value

    def _side_losses(
        self, rows: Mapping[str, torch.Tensor], batch: Batch
    ) -> dict[str, torch.Tensor]:
        """Return the loss of each side task, by name, of this process's share."""
        if not self.config.side_tasks:
            return {}
        count = self.process_group.num_own(self.task.num_terms(batch))
        return side_losses(self.network, rows, batch, max(count, 1))

    def _all_of_rest(self) -> AbstractContextManager[object]:
        """Return the block that has whole weights of what is of no layer."""
        return nullcontext() if self.shards is None else self.shards.gathered(REST)

    def _precision(self) -> AbstractContextManager[object]:
        if self.config.precision == "float32":
            return nullcontext()
        device = next(self.network.parameters()).device.type
        return torch.autocast(device, dtype=torch.bfloat16)


def watched_value(config: GnnConfig, loss: float, metric: float) -> float:
    """Return of an evaluation what is watched, higher is better.

    Args:
        config: The settings.
        loss: Its loss.
        metric: Its metric; NaN where the split says nothing of it: the loss is watched.
    """
    return -loss if config.monitor == "loss" or math.isnan(metric) else metric
