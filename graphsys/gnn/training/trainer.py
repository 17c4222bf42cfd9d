"""The training loop: epochs of batches, evaluation, the best epoch, checkpoints."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from graphsys.core.events import count, is_recording, span
from graphsys.core.memory import release_free_memory
from graphsys.core.progress import Progress
from graphsys.gnn import run as runs
from graphsys.gnn.context import GnnContext
from graphsys.gnn.data.adaptive_prefetch import ADAPTS
from graphsys.gnn.data.event_batches import EventLoader
from graphsys.gnn.data.loader import Batch, Loader
from graphsys.gnn.data.message_graph import Layer
from graphsys.gnn.layerwise_inference import (
    entries_within,
    infer,
    scratch_of,
    whole_input,
    whole_output,
)
from graphsys.gnn.models.model import Model
from graphsys.gnn.tasks.task import Seeds, epoch_seeds
from graphsys.gnn.training.number_watch import NumberWatch
from graphsys.gnn.training.optimizer import dump_optimizer, load_optimizer
from graphsys.gnn.training.out_of_memory import explained, explained_whole
from graphsys.gnn.training.profile_events import tell_batch
from graphsys.gnn.training.shared_output import SharedOutput, SharingPolicy, entries_shared
from graphsys.gnn.training.stats import GnnStats
from graphsys.gnn.training.step import Stepper
from graphsys.sampling.blocks import Buffers
from graphsys.training.number_tally import NUMBERS
from graphsys.training.tensorboard import Board

Ints = npt.NDArray[np.int64]


class GnnTrainer:
    """Carries a checkpoint to the end.

    Args:
        context: The training, with the checkpoint to go on from.
    """

    def __init__(self, context: GnnContext) -> None:
        self.context, self.config, self.state = context, context.config, context.state
        self.network, self.process_group = context.network, context.task.process_group
        self.transfer = context.transfer
        self.stepper = Stepper(context)
        self.stats = GnnStats(self.state.metrics)
        self.loader = self._make_loader()
        self._whole: tuple[Layer, dict[str, torch.Tensor]] | None = None
        self._best: runs.Weights | None = None
        self._is_best_saved = True
        self._saved_s = time.monotonic()
        self._shared: SharedOutput | None = None  # while all evaluate
        self._turns = SharingPolicy()
        self.path = path = context.path
        if path is not None:
            self.network.stored.open(path, self.state.files, is_writing=True)
            if self.state.files:
                self._load(path)
        if self.process_group.rank:
            self.path = None  # the first process writes
        folder = self.path if self.config.tensorboard else None
        self.board = Board(folder, self.state.epoch)
        self._numbers = NumberWatch(self.network) if self.config.numbers else None

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
            seeds = epoch_seeds(self.context.task, config, epoch)
            if not config.is_full_batch:
                progress.stage(f"epoch {epoch + 1}", len(seeds), "batches")
            elif epoch == first:
                progress.stage("train", config.epochs - first, "epochs")
            with span("epoch", epoch=epoch):
                self._train_epoch(epoch, seeds, progress)
            if config.eval_every and state.epoch % config.eval_every == 0:
                self._evaluate()
            state.is_complete = state.epoch >= config.epochs or self._is_out_of_patience()
            if state.is_complete:
                read = self.context.features.figures()
                state.metrics.update(self.stats.of_group(self.process_group, read))
            if state.is_complete or self._is_due():
                self.checkpoint()
        if self._numbers is not None:
            self._numbers.close()
        self.board.close()
        progress.close()

    def checkpoint(self) -> None:
        """Make everything trained so far durable.

        Raises:
            StorageFullError: The disk is full; the checkpoint before stays.
        """
        if self.path is None:
            return
        self.stats.update(self.state.metrics)
        self.state.metrics.update(self.context.features.figures())
        tensors: dict[str, runs.Weights | None] = {
            "weights": _copy(self.network),
            "optimizer": dump_optimizer(self.stepper.optimizer),
        }
        if self._best is not None:
            tensors["best"] = None if self._is_best_saved else self._best
        with span("checkpoint"):
            runs.commit(self.path, self.state, tensors, self.network.stored)
            if self.context.on_commit is not None:
                self.context.on_commit(self.state)
        self._is_best_saved = True
        self._saved_s = time.monotonic()

    @explained_whole()
    def output(self, node_type: str, nodes: Ints) -> torch.Tensor:
        """Return the output for nodes, from all of their neighbors."""
        context = self.context
        if self.config.is_whole_graph:
            layer, x = self._whole_graph()
            found = whole_output(self.network, layer, x, node_type).cpu()
            return found[torch.from_numpy(nodes)]
        release_free_memory()  # of batches, whose sizes are others
        if self._shared is not None:
            return torch.from_numpy(self._shared.ask(node_type, nodes))
        is_one = self.process_group.world_size == 1
        rows = infer(
            context,
            node_type,
            nodes=nodes,
            scratch=scratch_of(context, self.path),
            entries=entries_within(context) if is_one else entries_shared(context),
        )
        return torch.from_numpy(rows)

    def train_batch(self, epoch: int, batch: Batch, num_batches: int) -> float:
        """Learn from a batch; return its mean loss.

        Raises:
            TrainingFailedError: The loss is not a number.
        """
        if is_recording():
            tell_batch(batch, is_first=not self.stats.num_batches)
        with self.stats.overlap.working():
            value, times = self.stepper.train(epoch, batch, num_batches)
        self.stats.add(batch, times)
        return value

    def _train_epoch(self, epoch: int, seeds: Seeds, progress: Progress) -> None:
        state = self.state
        began, began_cpu = time.monotonic(), time.process_time()
        for batch in self.batches(epoch, seeds):
            with explained(self.config, batch):
                loss = self.train_batch(epoch, batch, len(seeds))
            size = self.context.task.num_terms(batch)
            state.loss_sum += loss * size
            state.num_seeds += size
            state.num_edges += self.stepper.num_edges
            self.loader.release(batch)
            progress.advance(1, loss=loss)
            now = time.monotonic()
            state.seconds += now - began
            self.stats.wall_s += now - began
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
        rate = self.stepper.optimizer.param_groups[0]["lr"]
        scalars = {"loss": state.losses[-1], "lr": rate, "seconds": state.seconds}
        scalars |= self.stats.end_epoch(state.epoch, state.metrics)
        self.board.write(state.epoch, scalars)
        if self._numbers is not None:
            rows = self._numbers.end_epoch()
            state.metrics[NUMBERS] = rows
            count(NUMBERS, len(rows), epoch=epoch, rows=rows)
            self.board.write_numbers(state.epoch, rows)

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
            put = torch.from_numpy if self.transfer is None else self.transfer.put
            places = {name: put(nodes) for name, nodes in chosen.items()}
            yield Batch(
                number=number, seeds=chosen, places=places, hops=hops, x=x, num_edges=edges
            )

    @explained_whole()
    def _whole_graph(self) -> tuple[Layer, dict[str, torch.Tensor]]:
        if self._whole is None:
            sizes = self.context.message_graph.sampler.sizes
            nodes = {name: np.arange(size, dtype=np.int64) for name, size in sizes.items()}
            x = whole_input(self.config, self.context.features.gather(nodes))
            layer = self.context.message_graph.whole()
            if self.transfer is not None:
                layer, x = self.transfer.layer(layer), self.transfer.input(x)
            self._whole = layer, x
        return self._whole

    def _make_loader(self) -> Loader | EventLoader:
        context, transfer = self.context, self.transfer
        if self.config.is_of_events:
            return EventLoader()
        return Loader(
            context.message_graph,
            context.features,
            _prefetch(context),
            context.task.trim,
            context.network.stored,
            None if transfer is None else self._send,
            Buffers if transfer is None else transfer.buffers,
            self.stats.overlap,
        )

    def _send(self, batch: Batch) -> None:
        assert self.transfer is not None  # else nothing is sent
        with explained(self.config, batch):
            self.transfer.send(batch, self.network.stored)

    def _evaluate(self) -> None:
        began = time.monotonic()
        with span("evaluate"):
            found = self._watched()
        if found is None:
            return
        state, metric = self.state, self.context.task.metric
        self.stats.evaluate_s += time.monotonic() - began
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

    def _watched(self) -> tuple[float, float] | None:
        """Return what the first process found by looking at a split."""
        group, began = self.process_group, time.monotonic()
        own: tuple[float, float] | None = None
        is_shared = SharedOutput.is_for(self.context) and group.broadcast(
            self._turns.next()
        )
        if is_shared:
            self._shared = SharedOutput(self.context)
            self._shared.begin()
        try:
            if not group.rank:
                own = self.context.task.watch(self.output)
            if self._shared is not None and group.rank:
                release_free_memory()
                self._shared.answer()
            elif self._shared is not None:
                self._shared.end()
        finally:
            self._shared = None
        self._turns.tell(time.monotonic() - began, is_shared=is_shared)
        found: tuple[float, float] | None = group.broadcast(own)
        return found

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
            load_optimizer(self.stepper.optimizer, states, path)
        self._best = runs.load(path, self.state, "best")


def _copy(network: Model) -> runs.Weights:
    return {
        name: value.detach().to("cpu", copy=True)
        for name, value in network.state_dict().items()
    }


def _prefetch(context: GnnContext) -> int:
    """Return the batches made ahead; a GPU takes no core from who makes them."""
    chosen = context.config.prefetch
    return 2 if chosen == ADAPTS and context.transfer is not None else chosen
