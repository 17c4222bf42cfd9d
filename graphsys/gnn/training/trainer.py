"""The training of a network: batches, evaluation, the best epoch, checkpoints."""

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from graphsys.core.events import is_recording, span
from graphsys.core.memory import MemoryMeter, release_free_memory
from graphsys.core.progress import Progress
from graphsys.core.row_trace import tell_arrays
from graphsys.gnn import run as runs
from graphsys.gnn.config import GnnConfig
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
from graphsys.gnn.models.network import Network
from graphsys.gnn.tasks.task import Seeds, epoch_seeds
from graphsys.gnn.training.memory_watch import explained, explained_whole
from graphsys.gnn.training.number_watch import NumberWatch
from graphsys.gnn.training.optimizer import dump_optimizer, load_optimizer
from graphsys.gnn.training.sharded_optimizer import ShardedOptimizer
from graphsys.gnn.training.sharded_parameters import ShardedParameters, are_cut
from graphsys.gnn.training.shared_output import SharedOutput, SharingPolicy, entries_shared
from graphsys.gnn.training.stats import GnnStats
from graphsys.gnn.training.step import Stepper, watched_value
from graphsys.sampling.blocks import Buffers
from graphsys.training.callbacks import Callback, Step
from graphsys.training.loop import TrainingLoop
from graphsys.training.tensorboard import TensorBoard

Ints = npt.NDArray[np.int64]


class GnnTrainer(TrainingLoop):
    """Trains batches; :class:`~graphsys.training.loop.TrainingLoop` is the loop.

    Args:
        context: The training, with the checkpoint to go on from.
        callbacks: Called after those that the settings ask for, in the first process.
    """

    config: GnnConfig
    state: runs.GnnRunState

    def __init__(self, context: GnnContext, callbacks: Sequence[Callback] = ()) -> None:
        self.context, self.process_group = context, context.task.process_group
        config, state, path = context.config, context.state, context.path
        is_writer = not self.process_group.rank
        own: list[Callback] = []
        if config.numbers and path is not None:
            own.append(NumberWatch(context.network))
        if config.tensorboard and path is not None and is_writer:
            own.append(TensorBoard(path, state.epoch))
        super().__init__(
            path if is_writer else None,
            context.graph,
            config,
            state,
            [*own, *(callbacks if is_writer else ())],
        )
        self.network, self.transfer = context.network, context.transfer
        self._share_out()
        self.meter: MemoryMeter | None = None  # of who runs it
        self.stepper = Stepper(context)
        self.stats = GnnStats(state.metrics)
        self.loader = self._make_loader()
        self._whole: tuple[Layer, dict[str, torch.Tensor]] | None = None
        self._best: runs.Weights | None = None
        self._is_best_saved = True
        self._shared: SharedOutput | None = None  # while all evaluate
        self._sharing = SharingPolicy()
        self._curves: dict[str, float] = {}
        self._is_staged = False
        if path is not None:
            self.network.stored.open(path, state.files, is_writing=True)
            if state.files:
                self._load(path)

    @property
    def position(self) -> tuple[int, int]:
        """Epochs completed, and batches of the next one."""
        return self.state.epoch, self.state.batch

    @property
    def monitored(self) -> tuple[str, bool]:
        """Name of the evaluations' metric that is watched, and whether lower is better."""
        is_loss = self.config.monitor == "loss"
        name = "loss" if is_loss else self.context.task.metric
        return f"{self.config.eval_split}_{name}", is_loss

    @property
    def is_over(self) -> bool:
        """Whether all epochs are done, or evaluations get no better."""
        state, patience = self.state, self.config.patience
        since_best = state.epoch - state.best_epoch
        is_waiting_over = patience and state.best_epoch and since_best >= patience
        return state.epoch >= self.config.epochs or bool(is_waiting_over)

    @property
    def curves(self) -> dict[str, float]:
        """Numbers of the last epoch, for TensorBoard."""
        return self._curves

    def is_stopping(self, *, within_epoch: bool = False) -> bool:
        """Return what the first process says, which calls callbacks; after epochs alone."""
        if self.process_group.world_size == 1:
            return self._is_stopping
        return not within_epoch and bool(self.process_group.broadcast(self._is_stopping))

    def _is_due(self) -> bool:
        """Return what the first process says where all give what a checkpoint needs."""
        is_due = super()._is_due()
        return bool(self.process_group.broadcast(is_due)) if self._is_sharded else is_due

    @property
    def _is_sharded(self) -> bool:
        has_shares = self.network.shards is not None
        return has_shares or isinstance(self.stepper.optimizer, ShardedOptimizer)

    def _share_out(self) -> None:
        """Leave this process its shares of the first weights, or those of the checkpoint.

        Raises:
            ConfigError: The network's layers have weights in common.
        """
        if not are_cut(self.config, self.process_group.world_size):
            return
        weights = None
        if self.context.path is not None and self.state.files:
            weights = runs.load(self.context.path, self.state, "weights")
            if weights is not None:
                self.network.restore(weights, self.context.path)
        assert isinstance(self.network, Network)  # as the config's checks say
        self.network.shards = ShardedParameters(self.network, self.process_group)

    def train_steps(self, progress: Progress) -> Generator[Step]:
        """Train the batches of the current epoch that are left."""
        state, epoch = self.state, self.state.epoch
        seeds = epoch_seeds(self.context.task, self.config, epoch)
        if not self.config.is_full_batch:
            progress.stage(f"epoch {epoch + 1}", len(seeds), "batches")
        elif not self._is_staged:
            progress.stage("train", self.config.epochs - epoch, "epochs")
        self._is_staged = True
        began, began_cpu = time.monotonic(), time.process_time()
        for batch in self.batches(epoch, seeds):
            with explained(self.config, batch):
                loss = self.train_batch(epoch, batch, len(seeds))
            size = self.context.task.num_terms(batch)
            state.loss_sum += loss * size
            for name, each in self.stepper.losses.items():
                state.task_sums[name] = state.task_sums.get(name, 0.0) + each * size
            state.num_seeds += size
            state.num_edges += self.stepper.num_edges
            progress.advance(1, loss=loss)
            state.batch = batch.number + 1
            now = time.monotonic()
            state.seconds += now - began
            self.stats.wall_s += now - began
            state.cpu_seconds += time.process_time() - began_cpu
            yield Step(
                number=batch.number,
                num_edges=self.stepper.num_edges,
                loss=loss,
                is_last=state.batch == len(seeds),
                can_pause=self.stepper.is_at_step(state.batch, len(seeds)),
                work=batch,
            )
            began, began_cpu = time.monotonic(), time.process_time()

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

    def end_step(self, step: Step) -> None:
        """Let others be made in the memory of a batch."""
        self.loader.release(step.work)

    def end_epoch(self) -> None:
        """Count an epoch as completed."""
        state = self.state
        state.losses.append(state.loss_sum / max(state.num_seeds, 1))
        state.metrics["loss"] = state.losses[-1]
        means = {n: each / max(state.num_seeds, 1) for n, each in state.task_sums.items()}
        for name, mean in means.items():
            state.task_losses.setdefault(name, []).append(mean)
            state.metrics[f"{name}_loss"] = mean
        state.loss_sum, state.num_seeds, state.batch = 0.0, 0, 0
        state.task_sums = {}
        state.epoch += 1
        rate = self.stepper.optimizer.param_groups[0]["lr"]
        self._curves = {"loss": state.losses[-1], "lr": rate, "seconds": state.seconds}
        self._curves |= {f"{name}_loss": mean for name, mean in means.items()}
        self._curves |= self.stats.end_epoch(state.epoch, state.metrics)

    def evaluate(self) -> Mapping[str, Any] | None:
        """Evaluate where that is due, and keep the weights if they are the best so far."""
        state, config = self.state, self.config
        if not config.eval_every or state.epoch % config.eval_every:
            return None
        shards = self.network.shards
        with nullcontext() if shards is None else shards.whole():
            return self._evaluate()

    def _evaluate(self) -> Mapping[str, Any] | None:
        state, config, metric = self.state, self.config, self.context.task.metric
        began = time.monotonic()
        with span("evaluate"):
            found = self._evaluated()
        if found is None:
            return None
        self.stats.evaluate_s += time.monotonic() - began
        times = [state.seconds, state.cpu_seconds]
        state.history.append([float(state.epoch), *found, *times])
        value = watched_value(config, *found)
        if not state.best_epoch or value > state.best_value:
            state.best_epoch, state.best_value = state.epoch, value
            state.metrics["best_epoch"] = state.epoch
            state.metrics["valid_loss"], state.metrics[f"valid_{metric}"] = found
            if config.keep == "best":
                # where memory is short, who does not write has none of them
                is_needed = self.network.shards is None or self.path is not None
                self._best = _copy(self.network) if is_needed else None
                self._is_best_saved = False
                if self.path is not None:
                    self.network.stored.hold_best(state.epoch)
        split = config.eval_split
        return {f"{split}_loss": found[0], f"{split}_{metric}": found[1]}

    def save(self) -> None:
        """Write a checkpoint, in the first process; others give it what it lacks."""
        if self.path is None and not self._is_sharded:
            return
        shards = self.network.shards
        states = dump_optimizer(self.stepper.optimizer, shards)
        weights = _copy(self.network) if shards is None else shards.state_dict()
        if self.path is None:
            return
        self.stats.update(self.state.metrics)
        self.state.metrics.update(self.context.features.figures())
        tensors: dict[str, runs.Weights | None] = {
            "weights": weights,
            "optimizer": states,
        }
        if self.stepper.sparse is not None:
            tensors["masks"] = self.stepper.sparse.dump()
        if self._best is not None:
            tensors["best"] = None if self._is_best_saved else self._best
        with span("checkpoint"):
            runs.commit(self.path, self.state, tensors, self.network.stored)
            if self.context.on_commit is not None:
                self.context.on_commit(self.state)
        self._is_best_saved = True

    def finish(self) -> None:
        """Commit the run as complete, with what all processes did."""
        self.state.is_complete = True
        told = {
            **self.context.features.figures(),
            **self.stepper.memory.held(),
            "gathered_bytes": getattr(self.network.shards, "peak_bytes", 0),
            "peak_memory_bytes": 0 if self.meter is None else self.meter.peak_bytes,
        }
        self.state.metrics.update(self.stats.of_group(self.process_group, told))
        self.checkpoint()

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

    def _evaluated(self) -> tuple[float, float] | None:
        """Return what the first process found by looking at a split."""
        group, began = self.process_group, time.monotonic()
        own: tuple[float, float] | None = None
        is_shared = SharedOutput.is_for(self.context) and group.broadcast(
            self._sharing.next()
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
        self._sharing.tell(time.monotonic() - began, is_shared=is_shared)
        found: tuple[float, float] | None = group.broadcast(own)
        return found

    def _load(self, path: Path) -> None:
        weights = runs.load(path, self.state, "weights")
        states = runs.load(path, self.state, "optimizer")
        shards = self.network.shards
        if weights is not None and shards is None:  # else that has shares of them
            self.network.restore(weights, path)
        if states is not None:
            load_optimizer(self.stepper.optimizer, states, path, shards)
        masks = runs.load(path, self.state, "masks")
        if masks is not None and self.stepper.sparse is not None:
            self.stepper.sparse.load(masks, path)
        if shards is None or self.path is not None:
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


def tell_batch(batch: Batch, *, is_first: bool) -> None:
    """Say how many bytes of offsets, indices, weights, features and places a batch has.

    Small arrays share a copy, as ``data/device_transfer`` sends them. A whole graph is sent
    before its first step, and stays.

    Args:
        batch: The batch.
        is_first: Whether none has been trained before.
    """
    places = [_size(it) for it in batch.places.values()]
    if batch.sample is None and not is_first:
        tell_arrays(places, packed=[sum(places)])
        return
    small = [
        size
        for hop in _distinct(batch.hops)
        for rows in hop.values()
        for size in _rows(rows)
    ]
    small += places
    large = [size for x in batch.x.values() for size in _tensors(x)]
    tell_arrays([*large, *small], packed=[*large, sum(small)])


def _distinct(hops: Any) -> list[Any]:
    """Return the layers, each once: those of a whole graph are the same."""
    return list({id(hop): hop for hop in hops}.values())


def _rows(rows: Any) -> Iterator[int]:
    for array in (rows.indptr, rows.indices, rows.weight, rows.self_weight):
        if array is not None:
            yield _size(array)


def _tensors(x: Any) -> Iterator[int]:
    """Yield the bytes of features: a tensor, or several that make up bags or parts."""
    for it in (x,) if isinstance(x, torch.Tensor) else vars(x).values():
        if isinstance(it, torch.Tensor):
            yield _size(it)


def _size(array: Any) -> int:
    if isinstance(array, torch.Tensor):
        return array.numel() * array.element_size()
    return int(array.nbytes)
