"""The training loop: epochs of batches, evaluation, the best epoch, checkpoints."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from graphsys.core.events import count, span
from graphsys.core.progress import Progress
from graphsys.gnn import run as runs
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.device_transfer import Mover
from graphsys.gnn.data.features import Inputs
from graphsys.gnn.data.loader import Batch, Loader
from graphsys.gnn.data.message_graph import Layer, Surroundings
from graphsys.gnn.inference import (
    entries_within,
    infer,
    scratch_of,
    whole_input,
    whole_output,
)
from graphsys.gnn.models.model import Model
from graphsys.gnn.tasks.task import Objective, Seeds
from graphsys.gnn.training.optimizer import dump_optimiser, load_optimiser
from graphsys.gnn.training.out_of_memory import explained, explained_whole
from graphsys.gnn.training.stats import Figures
from graphsys.gnn.training.step import Stepper
from graphsys.gnn.training.tensorboard import Board
from graphsys.sampling.blocks import Buffers

Ints = npt.NDArray[np.int64]


@dataclass(kw_only=True)
class Parts:
    """What a training is made of.

    Attributes:
        objective: The task.
        surroundings: Where messages come from.
        inputs: What the network reads.
        network: The network.
        mover: Takes batches to the device that the network is on; None: the CPU.
        budget: Most memory of the process, in bytes; None: what is free.
    """

    objective: Objective
    surroundings: Surroundings
    inputs: Inputs
    network: Model
    mover: Mover | None = None
    budget: int | None = None


class Trainer:
    """Carries a checkpoint to the end.

    Args:
        path: The run's folder; None: nothing is written.
        config: The settings.
        state: The checkpoint to go on from.
        parts: The task, the graph and the network.
    """

    def __init__(
        self, path: Path | None, config: GnnConfig, state: runs.RunState, parts: Parts
    ) -> None:
        self.path, self.config, self.state, self.parts = path, config, state, parts
        self.network, self.team = parts.network, parts.objective.team
        self.mover = mover = parts.mover
        self.stepper = Stepper(config, parts.network, parts.objective, self.team, mover)
        self.figures = Figures(state.metrics)
        self.loader = Loader(
            parts.surroundings, parts.inputs, config.prefetch, parts.objective.trim,
            parts.network.stored, None if mover is None else self._send,
            Buffers if mover is None else mover.buffers, self.figures.overlap,
        )  # fmt: skip
        self._whole: tuple[Layer, dict[str, torch.Tensor]] | None = None
        self._best: runs.Weights | None = None
        self._is_best_saved = True
        self._saved_s = time.monotonic()
        if path is not None:
            self.network.stored.open(path, state.files, is_writing=True)
            if state.files:
                self._load(path)
        if self.team.rank:
            self.path = None  # the first process writes
        self.board = Board(self.path, config, state.epoch)

    def run(self, progress: Progress) -> None:
        """Train until all epochs are done or valid gets no better.

        Raises:
            TrainingFailedError: The loss is not a number.
            BudgetError: A batch does not fit into memory.
            StorageFullError: A checkpoint cannot be written; the one before stays.
        """
        state, config = self.state, self.config
        self._saved_s = time.monotonic()
        first = state.epoch
        while not state.is_complete:
            epoch = state.epoch
            seeds = self.parts.objective.seeds(epoch)
            if not config.is_full_batch:
                progress.stage(f"epoch {epoch + 1}", len(seeds), "batches")
            elif epoch == first:
                progress.stage("train", config.epochs - first, "epochs")
            self._train_epoch(epoch, seeds, progress)
            if config.eval_every and state.epoch % config.eval_every == 0:
                self._evaluate()
            state.is_complete = state.epoch >= config.epochs or self._is_out_of_patience()
            if state.is_complete or self._is_due():
                self.checkpoint()
        self.board.close()
        progress.close()

    def checkpoint(self) -> None:
        """Make everything trained so far durable.

        Raises:
            StorageFullError: The disk is full; the checkpoint before stays.
        """
        if self.path is None:
            return
        self.figures.update(self.state.metrics)
        self.state.metrics.update(self.parts.inputs.figures())
        tensors: dict[str, runs.Weights | None] = {
            "weights": _copy(self.network),
            "optimizer": dump_optimiser(self.stepper.optimiser),
        }
        if self._best is not None:
            tensors["best"] = None if self._is_best_saved else self._best
        with span("checkpoint"):
            runs.commit(self.path, self.state, tensors, self.network.stored)
        self._is_best_saved = True
        self._saved_s = time.monotonic()

    @explained_whole()
    def output(self, node_type: str, nodes: Ints) -> torch.Tensor:
        """Return the output for nodes, from all of their neighbors."""
        parts = self.parts
        if self.config.is_whole_graph:
            layer, x = self._whole_graph()
            found = whole_output(self.network, layer, x, node_type).cpu()
            return found[torch.from_numpy(nodes)]
        rows = infer(
            self.network, parts.surroundings, parts.inputs, node_type, nodes=nodes,
            scratch=scratch_of(
                self.path, self.config, parts.surroundings, parts.budget
            ),
            entries=entries_within(parts.budget, self._widest()), mover=self.mover,
        )  # fmt: skip
        return torch.from_numpy(rows)

    def _widest(self) -> int:
        """Return how long a row is that a layer reads, at most."""
        shapes = self.parts.inputs.shapes.values()
        return max(self.config.dim, *(shape.dim for shape in shapes))

    def train_batch(self, epoch: int, batch: Batch, num_batches: int) -> float:
        """Learn from a batch; return its mean loss.

        Raises:
            TrainingFailedError: The loss is not a number.
        """
        with self.figures.overlap.working():
            value, times = self.stepper.train(epoch, batch, num_batches)
        self.figures.add(batch, times)
        return value

    def _train_epoch(self, epoch: int, seeds: Seeds, progress: Progress) -> None:
        state = self.state
        began, began_cpu = time.monotonic(), time.process_time()
        for batch in self.batches(epoch, seeds):
            with explained(self.config, batch):
                loss = self.train_batch(epoch, batch, len(seeds))
            size = self.parts.objective.num_terms(batch)
            state.loss_sum += loss * size
            state.num_seeds += size
            state.num_edges += batch.num_edges
            count("edges", batch.num_edges)
            self.loader.release(batch)
            progress.advance(1, loss=loss)
            now = time.monotonic()
            state.seconds += now - began
            self.figures.wall_s += now - began
            began, state.batch = now, batch.number + 1
            state.cpu_seconds += time.process_time() - began_cpu
            is_between = self.stepper.is_at_step(state.batch, len(seeds))
            if state.batch < len(seeds) and is_between and self._is_due():
                self.checkpoint()
                began = time.monotonic()
            began_cpu = time.process_time()
        state.losses.append(state.loss_sum / max(state.num_seeds, 1))
        state.metrics["loss"] = state.losses[-1]
        state.loss_sum, state.num_seeds, state.batch = 0.0, 0, 0
        state.epoch += 1
        rate = self.stepper.optimiser.param_groups[0]["lr"]
        scalars = {"loss": state.losses[-1], "lr": rate, "seconds": state.seconds}
        self.board.write(state.epoch, scalars)

    def batches(self, epoch: int, seeds: Seeds) -> Iterator[Batch]:
        """Yield the batches of an epoch that are still to be trained."""
        first = self.state.batch
        if not self.config.is_whole_graph:
            yield from self.loader.batches(seeds, epoch=epoch, first=first)
            return
        layer, x = self._whole_graph()
        hops = [layer] * self.config.layers
        edges = sum(rows.num_edges for rows in layer.values()) * self.config.layers
        for number in range(first, len(seeds)):
            chosen = seeds[number]
            put = torch.from_numpy if self.mover is None else self.mover.put
            places = {name: put(nodes) for name, nodes in chosen.items()}
            yield Batch(
                number=number, seeds=chosen, places=places, hops=hops, x=x, num_edges=edges
            )

    @explained_whole()
    def _whole_graph(self) -> tuple[Layer, dict[str, torch.Tensor]]:
        if self._whole is None:
            sizes = self.parts.surroundings.sampler.sizes
            nodes = {name: np.arange(size, dtype=np.int64) for name, size in sizes.items()}
            x = whole_input(self.config, self.parts.inputs.gather(nodes))
            layer = self.parts.surroundings.whole()
            if self.mover is not None:
                layer, x = self.mover.layer(layer), self.mover.input(x)
            self._whole = layer, x
        return self._whole

    def _send(self, batch: Batch) -> None:
        assert self.mover is not None  # else nothing is sent
        with explained(self.config, batch):
            self.mover.send(batch, self.network.stored)

    def _evaluate(self) -> None:
        began = time.monotonic()
        with span("evaluate"):
            own = None if self.team.rank else self.parts.objective.watch(self.output)
            found = self.team.first_s(own)
        if found is None:
            return
        state, metric = self.state, self.parts.objective.metric
        self.figures.evaluate_s += time.monotonic() - began
        times = [state.seconds, state.cpu_seconds]
        state.history.append([float(state.epoch), *found, *times])
        split = self.config.eval_split
        watched = {f"{split}_loss": found[0], f"{split}_{metric}": found[1]}
        self.board.write(state.epoch, watched)
        is_loss = self.config.monitor == "loss"
        value = -found[0] if is_loss else found[1]
        if not state.best_epoch or value > state.best_value:
            state.best_epoch, state.best_value = state.epoch, value
            state.metrics["best_epoch"] = state.epoch
            state.metrics["valid_loss"], state.metrics[f"valid_{metric}"] = found
            if self.config.keep == "best":
                self._best, self._is_best_saved = _copy(self.network), False
                if self.path is not None:
                    self.network.stored.hold_best(state.epoch)

    def _is_out_of_patience(self) -> bool:
        state, patience = self.state, self.config.patience
        return bool(
            patience and state.best_epoch and state.epoch - state.best_epoch >= patience
        )

    def _is_due(self) -> bool:
        return time.monotonic() - self._saved_s >= self.config.checkpoint_seconds

    def _load(self, path: Path) -> None:
        weights = runs.load(path, self.state, "weights")
        states = runs.load(path, self.state, "optimizer")
        if weights is not None:
            self.network.restore(weights, path)
        if states is not None:
            load_optimiser(self.stepper.optimiser, states, path)
        self._best = runs.load(path, self.state, "best")


def _copy(network: Model) -> runs.Weights:
    return {
        name: value.detach().to("cpu", copy=True)
        for name, value in network.state_dict().items()
    }
