"""Training one unit: its buckets are read and cut, and workers take turns on them."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError, InvalidGraphError, TrainingFailedError
from graphsys.core.events import is_recording, launched, span
from graphsys.core.progress import Progress
from graphsys.core.rng import generator
from graphsys.core.threads import num_cores
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.context import EmbeddingContext
from graphsys.embedding.control_config import LOWER_IS_BETTER
from graphsys.embedding.data.buckets import read_bucket
from graphsys.embedding.data.schedule import BucketTask, Part, cut_bucket
from graphsys.embedding.model import RelationSet
from graphsys.embedding.rows.nonfinite import describe_rows
from graphsys.embedding.rows.row_precision import stored_dtype, stored_width, to_floats
from graphsys.embedding.rows.table_files import Floats, Table, state_shape
from graphsys.embedding.training.flop_count import KERNEL, operator_work, tell
from graphsys.embedding.training.kernel_table import compiled_objective
from graphsys.embedding.training.negatives import Negatives
from graphsys.embedding.training.objective import REGULARIZER_CODES
from graphsys.embedding.training.profile_events import tell_rows, tell_unit
from graphsys.embedding.training.warm_start import read_origin
from graphsys.kernels.cpu.embedding.bags import PLAIN, Extras
from graphsys.kernels.cpu.embedding.calls import Objective
from graphsys.kernels.cpu.embedding.chunk import Edges
from graphsys.kernels.cpu.embedding.negatives import Candidates
from graphsys.kernels.cpu.embedding.operators import Operators
from graphsys.kernels.cpu.embedding.rows import NO_RATES, Tables
from graphsys.kernels.cpu.embedding.step import Settings, train_batches
from graphsys.training.learning_rate import plateau_factor, schedule_factor

_TURNS = 16  # buckets of a unit take turns: each is trained in up to so many slices
_BATCHES_PER_TURN = 8  # at least, per worker, in a bucket trained alone

Order = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class BucketWork:
    """A bucket ready to be trained.

    Attributes:
        step: Which one.
        edges: Its edges, cut into chunks and batches.
        settings: The objective.
        losses: Summed loss of every batch trained so far, float64 ``[M]``.
        num_edges: How many edges are trained; one may stand for a question of several.
    """

    step: BucketTask
    edges: Edges
    settings: Settings
    losses: npt.NDArray[np.float64]
    num_edges: int

    def edges_before(self, batch: int) -> int:
        """Return how many edges the batches before one are; of questions by their share."""
        done = self.edges.chunks[: self.edges.batches[batch]]
        num_questions = int((done[:, 1] - done[:, 0]).sum())
        return num_questions * self.num_edges // max(len(self.edges.order), 1)


class BucketTrainer:
    """Reads, cuts and trains buckets whose partitions are in memory.

    Args:
        context: The training.
        tables: The partitions in memory.
        operators: Parameters and state of every edge type's operators.
        extras: Given two node types, says what makes rows of nodes from their tables.
        choose_edges: Given the epoch, a bucket and the positions of its edges, says which
            of them are trained.

    Attributes:
        rates: Factors on the learning rates of rows of partitions, where not 1.
    """

    def __init__(
        self,
        context: EmbeddingContext,
        tables: Mapping[Part, Table],
        operators: Mapping[str, Floats],
        extras: Callable[[str, str], Extras],
        choose_edges: Callable[[int, BucketTask, Order], Order],
    ) -> None:
        self.path, self.graph = context.path, context.graph
        self.config, self.model = context.config, context.model
        self.tables, self.operators, self.extras = tables, operators, extras
        self._choose_edges = choose_edges
        self.negatives = Negatives(context.graph, context.config)
        is_serial = context.config.deterministic
        self.num_workers = 1 if is_serial else context.config.threads or num_cores()
        self._state = context.state
        self.rates: dict[Part, Floats] = {}
        self.slots: list[npt.NDArray[np.int32]] = []

    def compile(self) -> None:
        """Compile the kernels, or load them, on an empty bucket: not a part of the time."""
        for others in self.model[1:]:
            self._objective(others)
        none = np.empty(0, dtype=np.uint32)
        relations = self.model[0]
        node_type = relations.edge_type.src_type
        dim, row_dtype = self.config.dim_of(node_type), self.config.row_dtype
        rows = np.zeros((1, stored_width(row_dtype, dim)), stored_dtype(row_dtype))
        states = np.zeros(state_shape(self.config, node_type, 1), np.float32)
        weight = np.empty(0, np.float32)
        edges = cut_bucket(none, none, none, weight, relations, self.config, ("compile",))
        train_batches(
            Tables(rows, states, rows, states, True),
            PLAIN,
            relations.operators(relations.initial()),
            edges,
            self._settings(np.uint64(0), 0, relations, self.negatives.none()),
            0,
            0,
            1,
            np.full(1, -1, dtype=np.int32),
            np.zeros(0, dtype=np.float64),
        )

    def train(
        self, epoch: int, unit: list[BucketTask], progress: Progress
    ) -> list[BucketWork]:
        """Train every bucket of a unit once, in turns of slices.

        Returns:
            The buckets with their losses.

        Raises:
            CorruptStoreError: A bucket's file is damaged.
            InvalidGraphError: A weight is negative.
            TrainingFailedError: A loss is not a number.
        """
        parts = {part for step in unit for part in (step.src, step.dst)}
        self.negatives.hold(parts)
        self._hold_rates(parts)
        work = [self._prepare(epoch, step) for step in unit]
        longest = max(self._num_rows(step) for step in unit)
        if not self.slots or self.slots[0].size < longest:
            self.slots = [
                np.full(longest, -1, dtype=np.int32) for _ in range(self.num_workers)
            ]
        # A bucket alone has no others to take turns with: slices only where each is worth a
        # call.
        turns = _TURNS
        if len(work) == 1:
            enough = len(work[0].losses) // (_BATCHES_PER_TURN * self.num_workers)
            turns = max(1, min(_TURNS, enough))
        with span("compute", epoch=epoch), ThreadPoolExecutor(self.num_workers) as pool:
            if is_recording():
                tell_unit(self.tables, work)
            for turn in range(turns):
                for bucket in work:
                    # Buckets of a unit share rows; slices in turn keep the last one from
                    # having the last word.
                    bounds = len(bucket.losses) * np.array([turn, turn + 1]) // turns
                    first, last = int(bounds[0]), int(bounds[1])
                    if last > first:
                        self._train_slice(pool, bucket, first, last)
                        self._check_loss(epoch, bucket.step, bucket.losses[first:last])
                        _report(progress, bucket, first, last)
        return work

    def measure(self, step: BucketTask, rows: Order) -> float:
        """Return the summed loss of some edges of a bucket, and change nothing.

        The same edges meet the same negatives every time.

        Args:
            step: The bucket, whose partitions are in memory.
            rows: Positions of the edges in the bucket.
        """
        keys = ("measure", self.model[step.edge_type].name, *step.bucket, step.phase)
        work = self._cut(0, step, keys, lambda every: rows.copy())
        # Rates of 0 make the training kernel measure: one code for both, so that losses
        # compare.
        still = work.settings._replace(
            objective=compiled_objective(self.config, self.model[step.edge_type]),
            lr=np.float32(0.0),
            relation_lr=np.float32(0.0),
            regularizer=np.float32(0.0),
            dropout=np.float32(0.0),
            relation_prediction=np.float32(0.0),
        )
        self._refresh(step)
        tables, operators = self._arrays(step)
        slot = np.full(self._num_rows(step), -1, dtype=np.int32)
        train_batches(
            tables,
            self.extras(step.src[0], step.dst[0]),
            operators,
            work.edges,
            still,
            0,
            len(work.losses),
            1,
            slot,
            work.losses,
        )
        return float(work.losses.sum())

    def gradients(self, work: BucketWork) -> dict[str, Floats]:
        """Return gradients of a bucket's first batch, by table, and change nothing."""
        from graphsys.embedding.training.gradients import batch_gradients

        tables, _ = self._arrays(work.step)
        relations = self.model[work.step.edge_type]
        extras = self.extras(work.step.src[0], work.step.dst[0])
        own = self.operators[relations.name]
        return batch_gradients(tables, extras, relations, own, work)

    def _hold_rates(self, parts: set[Part]) -> None:
        """Have the factors on the rates of rows that came from another run, float32."""
        factor = self.config.init_factor
        if factor == 1.0 or not self._state.warm:  # a dry run has taken nothing over
            return
        before, self.rates = self.rates, {}
        for part in parts:
            rates = before.get(part)
            if rates is None:
                origin = read_origin(self.path, self._state, *part)
                rates = np.where(origin >= 0, factor, 1.0).astype(np.float32)
            self.rates[part] = rates

    def _refresh(self, step: BucketTask) -> None:
        """Bring rows and operators of a bucket up to date, where a device trains them."""

    def _arrays(self, step: BucketTask) -> tuple[Tables, Operators]:
        """Return the tables and operators that a bucket is trained on."""
        src_rows, src_state = self.tables[step.src]
        dst_rows, dst_state = self.tables[step.dst]
        relations = self.model[step.edge_type]
        return (
            Tables(
                src_rows,
                src_state,
                dst_rows,
                dst_state,
                step.src == step.dst,
                self.rates.get(step.src, NO_RATES),
                self.rates.get(step.dst, NO_RATES),
            ),
            relations.operators(self.operators[relations.name]),
        )

    def _num_rows(self, step: BucketTask) -> int:
        src, dst = self.tables[step.src][0], self.tables[step.dst][0]
        return len(src) if step.src == step.dst else len(src) + len(dst)

    def _prepare(self, epoch: int, step: BucketTask) -> BucketWork:
        relations = self.model[step.edge_type]
        phase = (step.phase,) if step.phase else ()
        keys = (epoch, relations.name, *step.bucket, *phase)
        return self._cut(epoch, step, keys, lambda e: self._choose_edges(epoch, step, e))

    def _cut(
        self,
        epoch: int,
        step: BucketTask,
        keys: Sequence[int | str],
        choose: Callable[[Order], Order],
    ) -> BucketWork:
        """Read a bucket and cut the edges chosen of it."""
        config, relations = self.config, self.model[step.edge_type]
        with span("read", edge_type=relations.name, bucket=tuple(step.bucket)):
            bucket = read_bucket(self.graph, relations.edge_type, *step.bucket, step.split)
            weight = np.empty(0, dtype=np.float32)
            if config.edge_weights and bucket.weight is not None:
                weight = bucket.weight.astype(np.float32, copy=False)
                _require_weights(weight, relations.name)
                _require_no_weights(config, relations.name)
            relation = np.empty(0, dtype=np.uint32)
            if bucket.relation is not None:
                relation = bucket.relation.astype(np.uint32, copy=False)
            chosen = choose(np.arange(len(bucket.src), dtype=np.uint32))
            edges = cut_bucket(
                bucket.src.astype(np.uint32, copy=False),
                bucket.dst.astype(np.uint32, copy=False),
                relation,
                weight,
                relations,
                config,
                keys,
                chosen,
            )
        draw = generator(config.seed, "negatives", *keys).integers(
            0, 2**64, dtype=np.uint64
        )
        losses = np.zeros(len(edges.batches) - 1, dtype=np.float64)
        candidates = self.negatives.candidates(relations, step, edges)
        settings = self._settings(draw, epoch, relations, candidates)
        return BucketWork(step, edges, settings, losses, len(chosen))

    def _objective(self, relations: RelationSet) -> Objective:
        return compiled_objective(self.config, relations)

    def _settings(
        self, key: np.uint64, epoch: int, relations: RelationSet, candidates: Candidates
    ) -> Settings:
        config = self.config
        factor = schedule_factor(config.lr_schedule, epoch / config.epochs)
        if config.lr_schedule == "plateau":
            factor = self._plateau_factor()
        return Settings(
            candidates=candidates,
            use_batch=any(pool.kind == "batch" for pool in config.pools),
            objective=self._objective(relations),
            lr=np.float32(factor * config.lr),
            relation_lr=np.float32(factor * (config.relation_lr or config.lr)),
            regularizer=np.float32(config.regularizer),
            regularizer_kind=REGULARIZER_CODES[config.regularizer_kind],
            key=key,
            max_norm=np.float32(config.max_norm or np.inf),
            is_half=config.row_dtype == "float16",
            dropout=np.float32(config.dropout),
            relation_prediction=np.float32(config.relation_prediction),
        )

    def _plateau_factor(self) -> float:
        config = self.config
        history = self._state.metrics.get(config.monitored, [])
        return plateau_factor(
            [value for _, value in history],
            patience=config.lr_patience,
            factor=config.lr_factor,
            min_improvement=config.min_improvement,
            is_lower_better=config.monitor in LOWER_IS_BETTER,
        )

    def _train_slice(
        self, pool: ThreadPoolExecutor, bucket: BucketWork, first: int, last: int
    ) -> None:
        tables, operators = self._arrays(bucket.step)
        extras = self.extras(bucket.step.src[0], bucket.step.dst[0])
        # Workers write to the same rows without locks (Hogwild); strides of batches keep
        # two of them from the same batch, and `losses` has a place for each batch.
        workers = min(self.num_workers, last - first)
        began_ns, busy_ns = time.perf_counter_ns(), [0] * workers
        futures = [
            pool.submit(
                _train_timed,
                busy_ns,
                worker,
                tables,
                extras,
                operators,
                bucket.edges,
                bucket.settings,
                first + worker,
                last,
                workers,
                self.slots[worker],
                bucket.losses,
            )
            for worker in range(workers)
        ]
        for future in futures:
            future.result()
        wall_ns = time.perf_counter_ns() - began_ns
        launched(KERNEL, began_ns, tuple(busy_ns), wall_ns=wall_ns)
        has_bags = extras.src_bags.begins.size > 0 or extras.dst_bags.begins.size > 0
        if is_recording() and not has_bags:
            edges, settings = bucket.edges, bucket.settings
            tell(operator_work(edges, first, last, tables, operators, settings))
            tell_rows(edges, first, last, tables, settings)

    def _check_loss(
        self, epoch: int, step: BucketTask, losses: npt.NDArray[np.float64]
    ) -> None:
        if np.isfinite(losses).all():
            return
        self._refresh(step)
        rows = {
            part: to_floats(self.tables[part][0], self.config.row_dtype)
            for part in (step.src, step.dst)
        }
        found = describe_rows(self.graph, rows)
        raise TrainingFailedError(
            f"the loss is not a number in epoch {epoch + 1}, bucket {tuple(step.bucket)} "
            f"of edge type {self.model[step.edge_type].name!r} ({found}); lower lr or "
            f"raise regularizer (the checkpoint before it is kept in {self.path})"
        )


def _train_timed(busy_ns: list[int], worker: int, *arguments: Any) -> None:
    """Train a worker's batches; note how long it was busy."""
    began_ns = time.perf_counter_ns()
    train_batches(*arguments)
    busy_ns[worker] = time.perf_counter_ns() - began_ns


def compile_kernels(context: EmbeddingContext) -> None:
    """Compile the kernels, or load them: not a part of the training's time."""
    BucketTrainer(
        context, {}, {}, lambda src, dst: PLAIN, lambda epoch, step, order: order
    ).compile()


def _report(progress: Progress, bucket: BucketWork, first: int, last: int) -> None:
    num_edges = bucket.edges_before(last) - bucket.edges_before(first)
    loss = float(bucket.losses[first:last].sum()) / max(num_edges, 1)
    progress.advance(num_edges, loss=loss)


def _require_no_weights(config: EmbeddingConfig, name: str) -> None:
    """Refuse weights of edges where a question stands for several of them."""
    if config.mode == "kvsall":
        raise ConfigError(
            f"mode: got kvsall for edge type {name!r}, whose edges have weights, and a "
            "question has several edges; train without them: --set edge_weights=false, or "
            "edge by edge: --set mode=1vsall"
        )


def _require_weights(weight: npt.NDArray[np.float32], name: str) -> None:
    if len(weight) and not weight.min() >= 0:
        raise InvalidGraphError(
            f"edge type {name!r} has the weight {weight.min()}, expected weights >= 0; "
            "train without them: --set edge_weights=false, or have their sign as relation: "
            "graphsys ingest --signed"
        )
