"""The training loop: epochs of units of buckets, a checkpoint after each unit."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import (
    ConfigError,
    InvalidGraphError,
    StorageFullError,
    TrainingFailedError,
)
from graphsys.core.events import count, span
from graphsys.core.progress import Progress
from graphsys.core.rng import generator
from graphsys.core.threads import num_cores
from graphsys.embedding import run as runs
from graphsys.embedding.buckets import read_bucket
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.model import (
    COMPARATOR_CODES,
    LOSS_CODES,
    RelationSet,
)
from graphsys.embedding.schedule import Step, cut_bucket, inside_out, units
from graphsys.embedding.tables import TableFiles
from graphsys.kernels.cpu.embedding_chunk import Edges
from graphsys.kernels.cpu.embedding_rows import Tables
from graphsys.kernels.cpu.embedding_scores import Objective
from graphsys.kernels.cpu.embedding_step import Settings, train_batches
from graphsys.storage.reader import Graph

_TURNS = 16  # buckets of a unit take turns: each is trained in up to so many slices
_BATCHES_PER_TURN = 8  # at least, per worker, in a bucket trained alone


class Trainer:
    """Carries a checkpoint to the end."""

    def __init__(
        self,
        path: Path,
        graph: Graph,
        config: EmbeddingConfig,
        model: list[RelationSet],
        steps: list[Step],
        state: runs.RunState,
    ) -> None:
        self.path, self.graph, self.config, self.model = path, graph, config, model
        self.state = state
        self.tables = TableFiles(path, graph, model, config, state)
        partitions = {name: graph.num_partitions(name) for name in graph.node_types}
        self.units = units(steps, partitions)
        self.num_workers = 1 if config.deterministic else config.threads or num_cores()
        self.slots: list[npt.NDArray[np.int32]] = []

    def compile(self) -> None:
        """Compile the kernel, or load it, on an empty bucket: not a part of the time."""
        none = np.empty(0, dtype=np.uint32)
        rows, floats = np.zeros((1, self.config.dim), np.float32), np.zeros(1, np.float32)
        relations = self.model[0]
        edges = cut_bucket(
            none, none, none, floats[:0], relations.weights, self.config, ("compile",)
        )
        train_batches(
            Tables(rows, floats, rows, floats, True),
            relations.operators(relations.initial()),
            edges, self._settings(np.uint64(0), 0, relations), 0, 0, 1,
            np.full(1, -1, dtype=np.int32), np.zeros(0, dtype=np.float64),
        )  # fmt: skip

    def run(self, progress: Progress) -> None:
        """Train until all epochs are done."""
        edges_per_epoch = sum(step.num_edges for unit in self.units for step in unit)
        state, begin, saved = self.state, time.monotonic(), time.monotonic()
        for epoch in range(state.epoch, self.config.epochs):
            progress.stage(f"epoch {epoch + 1}", edges_per_epoch, "edges")
            for number in range(state.unit, len(self.units)):
                self._train_unit(epoch, self.units[number], progress)
                now = time.monotonic()
                state.seconds += now - begin
                begin = now
                state.unit = number + 1
                if state.unit == len(self.units):
                    self._end_epoch(edges_per_epoch)
                due = now - saved >= self.config.checkpoint_seconds
                if due or state.epoch == self.config.epochs:
                    self._checkpoint()
                    saved = time.monotonic()
            if self.config.eval_every and state.epoch % self.config.eval_every == 0:
                self._evaluate()
                begin = time.monotonic()
        progress.close()

    def _end_epoch(self, num_edges: int) -> None:
        state = self.state
        state.losses.append(state.loss_sum / max(num_edges, 1))
        state.loss_sum, state.unit = 0.0, 0
        state.epoch += 1
        state.metrics["loss"] = state.losses[-1]
        state.is_complete = state.epoch == self.config.epochs

    def _checkpoint(self) -> None:
        try:
            self.tables.flush(self.state)
            runs.commit(self.path, self.state)
        except StorageFullError as err:
            raise StorageFullError(
                f"{err}; the last checkpoint of {self.path} is whole: go on with --resume"
            ) from err
        self.tables.committed()

    def _evaluate(self) -> None:
        from graphsys.embedding.evaluation import evaluate

        self._checkpoint()
        split = self.config.eval_split
        result = evaluate(self.path, split=split, graph=self.graph, breakdown=False)
        history = self.state.metrics.setdefault(f"{split}_mrr", [])
        history.append([self.state.epoch, result["metrics"]["mrr"]])
        runs.commit(self.path, self.state)

    def _train_unit(self, epoch: int, unit: list[Step], progress: Progress) -> None:
        self.tables.hold([part for step in unit for part in (step.src, step.dst)])
        work = [(step, *self._prepare(epoch, step)) for step in unit]
        longest = max(self._num_rows(step) for step in unit)
        if not self.slots or self.slots[0].size < longest:
            self.slots = [
                np.full(longest, -1, dtype=np.int32) for _ in range(self.num_workers)
            ]
        turns = _TURNS
        if len(work) == 1:
            enough = len(work[0][3]) // (_BATCHES_PER_TURN * self.num_workers)
            turns = max(1, min(_TURNS, enough))
        with span("compute", epoch=epoch), ThreadPoolExecutor(self.num_workers) as pool:
            for turn in range(turns):
                for step, edges, settings, losses in work:
                    bounds = len(losses) * np.array([turn, turn + 1]) // turns
                    first, last = int(bounds[0]), int(bounds[1])
                    if last > first:
                        self._train_slice(pool, step, edges, settings, losses, first, last)
                        self._check_loss(epoch, step, losses[first:last])
                        done = edges.chunks[edges.batches[first] : edges.batches[last]]
                        num_edges = int((done[:, 1] - done[:, 0]).sum())
                        loss = float(losses[first:last].sum()) / num_edges
                        progress.advance(num_edges, loss=loss)
        for step, _, _, losses in work:
            self.state.loss_sum += float(losses.sum())
            self.state.num_edges += step.num_edges
            count("edges", step.num_edges)

    def _num_rows(self, step: Step) -> int:
        src, dst = self.tables.resident[step.src][0], self.tables.resident[step.dst][0]
        return len(src) if step.src == step.dst else len(src) + len(dst)

    def _prepare(
        self, epoch: int, step: Step
    ) -> tuple[Edges, Settings, npt.NDArray[np.float64]]:
        config, relations = self.config, self.model[step.edge_type]
        keys = (epoch, relations.name, *step.bucket)
        with span("read", edge_type=relations.name, bucket=tuple(step.bucket)):
            bucket = read_bucket(self.graph, relations.edge_type, *step.bucket)
            weight = np.empty(0, dtype=np.float32)
            if config.edge_weights and bucket.weight is not None:
                weight = bucket.weight.astype(np.float32, copy=False)
                _require_weights(weight, relations.name)
            relation = np.empty(0, dtype=np.uint32)
            if bucket.relation is not None:
                relation = bucket.relation.astype(np.uint32, copy=False)
            edges = cut_bucket(
                bucket.src.astype(np.uint32, copy=False),
                bucket.dst.astype(np.uint32, copy=False),
                relation, weight, relations.weights, config, keys,
            )  # fmt: skip
        draw = generator(config.seed, "negatives", *keys).integers(
            0, 2**64, dtype=np.uint64
        )
        losses = np.zeros(len(edges.batches) - 1, dtype=np.float64)
        return edges, self._settings(draw, epoch, relations), losses

    def _settings(self, key: np.uint64, epoch: int, relations: RelationSet) -> Settings:
        config = self.config
        is_linear = config.lr_schedule == "linear"
        factor = 1.0 - epoch / config.epochs if is_linear else 1.0
        return Settings(
            num_uniform=config.num_uniform_negatives,
            use_batch=config.num_batch_negatives > 0,
            objective=Objective(
                comparator=COMPARATOR_CODES[config.comparator],
                loss=LOSS_CODES[config.loss],
                margin=np.float32(config.margin),
            ),
            src_bias=self._bias(relations.edge_type.src_type),
            dst_bias=self._bias(relations.edge_type.dst_type),
            lr=np.float32(factor * config.lr),
            relation_lr=np.float32(factor * (config.relation_lr or config.lr)),
            n3=np.float32(config.regulariser),
            key=key,
        )

    def _bias(self, node_type: str) -> np.float32:
        """Return the logarithm of how many nodes a uniform negative stands for."""
        if not self.config.importance_weights or not self.config.num_uniform_negatives:
            return np.float32(0.0)
        others = max(self.graph.num_nodes_of(node_type) - 1, 1)
        return np.float32(np.log(others / self.config.num_uniform_negatives))

    def _train_slice(
        self,
        pool: ThreadPoolExecutor,
        step: Step,
        edges: Edges,
        settings: Settings,
        losses: npt.NDArray[np.float64],
        first: int,
        last: int,
    ) -> None:
        src_rows, src_state = self.tables.resident[step.src]
        dst_rows, dst_state = self.tables.resident[step.dst]
        tables = Tables(src_rows, src_state, dst_rows, dst_state, step.src == step.dst)
        relations = self.model[step.edge_type]
        operators = relations.operators(self.tables.operators[relations.name])
        workers = min(self.num_workers, last - first)
        futures = [
            pool.submit(
                train_batches, tables, operators, edges, settings,
                first + worker, last, workers, self.slots[worker], losses,
            )
            for worker in range(workers)
        ]  # fmt: skip
        for future in futures:
            future.result()

    def _check_loss(self, epoch: int, step: Step, losses: npt.NDArray[np.float64]) -> None:
        if np.isfinite(losses).all():
            return
        raise TrainingFailedError(
            f"the loss is not a number in epoch {epoch + 1}, bucket {tuple(step.bucket)} "
            f"of edge type {self.model[step.edge_type].name!r}; lower lr or raise "
            f"regulariser (the checkpoint before it is kept in {self.path})"
        )


def list_steps(graph: Graph, model: list[RelationSet]) -> list[Step]:
    """List the buckets of one epoch, edge type by edge type, inside out."""
    steps = []
    for k, relations in enumerate(model):
        kind = relations.edge_type
        counts = graph.bucket_counts(kind)
        for bucket in inside_out(*counts.shape):
            if counts[bucket]:
                src, dst = (kind.src_type, bucket[0]), (kind.dst_type, bucket[1])
                steps.append(Step(k, bucket, src, dst, int(counts[bucket])))
    if not steps:
        raise ConfigError("the graph has no training edges; there is nothing to train on")
    return steps


def _require_weights(weight: npt.NDArray[np.float32], name: str) -> None:
    if len(weight) and not weight.min() >= 0:
        raise InvalidGraphError(
            f"edge type {name!r} has the weight {weight.min()}, expected weights >= 0; "
            "train without them: --set edge_weights=false"
        )
