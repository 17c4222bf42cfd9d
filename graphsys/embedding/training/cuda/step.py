"""One optimizer step on the device: which kernels, in which order, over which grids."""

from collections.abc import Callable
from typing import Any

from graphsys.core.triton.device import is_interpreted, start
from graphsys.embedding.training.cuda.batches import Place
from graphsys.embedding.training.cuda.operands import (
    DeviceOperators,
    DeviceTables,
    Workspace,
)
from graphsys.embedding.training.cuda.shapes import BlockShapes
from graphsys.kernels.cpu.embedding import scores
from graphsys.kernels.cpu.embedding.batches import (
    LARGEST_POOL,
    LONGEST_CHUNK,
    NUM_CHUNKS,
    NUM_POSITIONS,
    NUM_RUNS,
    NUM_TOUCHED,
    NUM_USED,
)
from graphsys.kernels.cpu.embedding.step import Settings


def _blocks(count: int, size: int) -> int:
    return -(-count // size)


class BatchStep:
    """Trains laid out batches of one bucket.

    Args:
        tables: The two partitions.
        operators: Operators of the edge type.
        settings: Objective and optimizer.
        shapes: Block sizes.
        workspace: Tensors to use.
        capacity: Positions and runs of the largest batch.
        dim: Length of a row.
        launch: Starts a kernel; compiling without a GPU takes its place.
    """

    def __init__(
        self,
        tables: DeviceTables,
        operators: DeviceOperators,
        settings: Settings,
        shapes: BlockShapes,
        workspace: Workspace,
        capacity: tuple[int, int],
        dim: int,
        launch: Callable[..., None] = start,
    ) -> None:
        import torch

        self._launch = launch
        self.tables, self.operators, self.settings = tables, operators, settings
        self.shapes, self.dim = shapes, dim
        positions, runs = capacity
        self.num_tensors = 4 if operators.is_reciprocal else 2
        f32, take = torch.float32, workspace.take
        self.dtype = tables.src_rows.dtype
        cells = positions * dim
        self.rows = take("rows", self.num_tensors * cells, self.dtype)
        self.gradients = take("gradients", self.num_tensors * cells, f32)
        self.row_gradients = take("row_gradients", 2 * cells, f32)
        self.lengths = take("lengths", self.num_tensors * positions, f32)
        self.normalizer = take("normalizer", 2 * positions, f32)
        self.own_gradient = take("own_gradient", 2 * positions, f32)
        self.losses = take("losses", 2 * positions, f32)
        self.partial = take("partial", operators.num_sides * runs * dim, f32)

    def train(self, b: int, place: Place, batch_losses: Any, flags: Any) -> None:
        """Enqueue the kernels of batch ``b``, whose arrays are on the device.

        Args:
            b: The batch; its loss and flag go to this place.
            place: Where it is laid out.
            batch_losses: float64 tensor, one per batch.
            flags: int32 tensor of zeros, one per batch.
        """
        from graphsys.kernels.cuda.embedding import updates

        arrays, counts = place.on_device, place.counts
        num_positions = int(counts[NUM_POSITIONS])
        self._stage(arrays, counts)
        self._score(arrays, counts)
        self._bring_back(arrays, counts)
        # After the rows' gradients, which need the operators as they were in the forward
        # pass.
        if self.operators.is_operated:
            self._update_operators(b, arrays, counts, flags)
        tables, shapes = self.tables, self.shapes
        self._launch(
            updates.update_rows,
            (int(counts[NUM_USED]),),
            tables.src_rows,
            tables.dst_rows,
            tables.src_state,
            tables.dst_state,
            arrays["used"],
            arrays["used_begin"],
            arrays["members"],
            self.row_gradients,
            flags,
            len(tables.src_state),
            float(self.settings.lr),
            self._seed(b),
            b,
            DIM=self.dim,
            ROUND=self.is_rounded,
            BLOCK_M=shapes.members,
            BLOCK_D=shapes.whole,
            num_warps=4,
        )
        self._launch(
            updates.finish_batch,
            (1,),
            self.losses,
            flags,
            batch_losses,
            num_positions,
            b,
            BLOCK=1024,
            num_warps=4,
        )

    @property
    def is_rounded(self) -> bool:
        """Whether rows are kept in fewer bits than the arithmetic."""
        return "bfloat16" in str(self.dtype)

    def _seed(self, b: int) -> int:
        # Always of 63 bits: Triton compiles anew for an integer that fits in 32.
        return (int(self.settings.key) + 0x9E3779B97F4A7C15 * (b + 1)) & (
            2**62 - 1
        ) | 1 << 62

    @property
    def _row_warps(self) -> int:
        """Warps of a block over rows: products with matrices need the registers of more."""
        return 8 if self.operators.has_linear else 4

    def _stage(self, arrays: dict[str, Any], counts: Any) -> None:
        from graphsys.kernels.cuda.embedding import rows

        tables, own, shapes = self.tables, self.operators, self.shapes
        num_positions = int(counts[NUM_POSITIONS])
        self._launch(
            rows.stage_rows,
            (int(counts[NUM_RUNS]), 2, _blocks(self.dim, shapes.columns)),
            tables.src_rows,
            tables.dst_rows,
            arrays["nodes"],
            arrays["run_begin"],
            arrays["run_length"],
            arrays["run_relation"],
            own.codes,
            own.offsets,
            own.parameters,
            own.back_parameters,
            self.rows,
            self.losses,
            num_positions,
            DIM=self.dim,
            RECIPROCAL=own.is_reciprocal,
            HAS_LINEAR=own.has_linear,
            PRECISION=shapes.precision,
            RUN=shapes.run,
            BLOCK_D=shapes.columns,
            BLOCK_K=shapes.depth,
            num_warps=self._row_warps,
        )
        # Inner products need no lengths of rows.
        if self.settings.objective.comparator == scores.DOT:
            return
        grid = (_blocks(num_positions, shapes.run), self.num_tensors)
        self._launch(
            rows.measure_rows,
            grid,
            self.rows,
            self.lengths,
            num_positions,
            DIM=self.dim,
            UNIT=self.settings.objective.comparator == scores.COS,
            RUN=shapes.run,
            BLOCK_D=shapes.columns,
            num_warps=4,
        )

    def _score(self, arrays: dict[str, Any], counts: Any) -> None:
        from graphsys.kernels.cuda.embedding.candidates import score_candidates
        from graphsys.kernels.cuda.embedding.scores import score_queries

        shapes, settings, objective = self.shapes, self.settings, self.settings.objective
        columns = _blocks(self.dim, shapes.columns)
        common = (
            self.rows,
            self.lengths,
            arrays["bias"],
            arrays["nodes"],
            arrays["weights"],
            arrays["chunk_begin"],
            arrays["chunk_size"],
            arrays["chunk_pool"],
            self.normalizer,
            self.own_gradient,
        )
        numbers = (int(counts[NUM_POSITIONS]), 2 if self.operators.is_reciprocal else 0)
        options = {
            "DIM": self.dim,
            "COMPARATOR": int(objective.comparator),
            "LOSS": int(objective.loss),
            "USE_BATCH": bool(settings.use_batch),
            "PRECISION": shapes.precision,
            # the interpreter has no bfloat16 products
            "NARROW": self.is_rounded and not is_interpreted(),
            "BLOCK_Q": shapes.queries,
            "BLOCK_C": shapes.candidates,
            "BLOCK_K": shapes.depth,
            "BLOCK_D": shapes.columns,
            "num_warps": shapes.warps,
            "num_stages": shapes.stages,
        }
        num_chunks, margin = int(counts[NUM_CHUNKS]), float(objective.margin)
        # Two kernels, one by queries and one by candidates: each owns the rows that it
        # writes gradients to, which needs no atomics, and so sums in one order at every
        # run.
        blocks = _blocks(int(counts[LONGEST_CHUNK]), shapes.queries)
        self._launch(
            score_queries,
            (num_chunks * blocks, 2, columns),
            *common,
            self.losses,
            self.gradients,
            *numbers,
            blocks,
            margin,
            **options,
        )
        blocks = _blocks(int(counts[LARGEST_POOL]), shapes.candidates)
        self._launch(
            score_candidates,
            (num_chunks * blocks, 2, columns),
            *common,
            self.gradients,
            *numbers,
            blocks,
            margin,
            **options,
        )

    def _bring_back(self, arrays: dict[str, Any], counts: Any) -> None:
        from graphsys.kernels.cuda.embedding import backward

        tables, own, shapes = self.tables, self.operators, self.shapes
        num_positions, n3 = int(counts[NUM_POSITIONS]), float(self.settings.regularizer)
        # Rows were divided by their lengths when they were staged: that comes back first.
        if self.settings.objective.comparator == scores.COS:
            grid = (_blocks(num_positions, shapes.run), self.num_tensors)
            self._launch(
                backward.unit_backward,
                grid,
                self.rows,
                self.lengths,
                self.gradients,
                num_positions,
                DIM=self.dim,
                RUN=shapes.run,
                BLOCK_D=shapes.columns,
                num_warps=4,
            )
        # By runs, as a program has one operator for all of its positions.
        per_run = (int(counts[NUM_RUNS]), 2, _blocks(self.dim, shapes.columns))
        self._launch(
            backward.operate_backward,
            per_run,
            tables.src_rows,
            tables.dst_rows,
            arrays["nodes"],
            arrays["weights"],
            arrays["run_begin"],
            arrays["run_length"],
            arrays["run_relation"],
            own.codes,
            own.offsets,
            own.parameters,
            own.back_parameters,
            self.gradients,
            self.row_gradients,
            num_positions,
            n3,
            DIM=self.dim,
            RECIPROCAL=own.is_reciprocal,
            HAS_LINEAR=own.has_linear,
            HAS_N3=n3 > 0,
            IS_COMPLEX=own.has_complex,
            PRECISION=shapes.precision,
            RUN=shapes.run,
            BLOCK_D=shapes.columns,
            BLOCK_K=shapes.depth,
            num_warps=self._row_warps,
        )

    # long: one kernel after the other, as they are started
    def _update_operators(
        self, b: int, arrays: dict[str, Any], counts: Any, flags: Any
    ) -> None:
        from graphsys.kernels.cuda.embedding import operators as kernels

        tables, own, shapes = self.tables, self.operators, self.shapes
        num_positions, num_runs = int(counts[NUM_POSITIONS]), int(counts[NUM_RUNS])
        num_touched = int(counts[NUM_TOUCHED])
        n3, lr = float(self.settings.regularizer), float(self.settings.relation_lr)
        # One operator serves both directions, and is asked for the penalty of each.
        share = n3 if own.is_reciprocal else 2 * n3
        columns = _blocks(self.dim, shapes.columns)
        runs = (arrays["run_begin"], arrays["run_length"])
        relations = (arrays["touched"], arrays["touched_begin"], arrays["touched_runs"])
        tied = (own.codes, own.offsets, own.parameters)
        if own.has_vectors:
            self._launch(
                kernels.sum_runs,
                (num_runs, own.num_sides, columns),
                tables.src_rows,
                tables.dst_rows,
                arrays["nodes"],
                arrays["weights"],
                *runs,
                arrays["run_relation"],
                *tied,
                own.back_parameters,
                self.gradients,
                self.partial,
                num_positions,
                num_runs,
                share,
                DIM=self.dim,
                RECIPROCAL=own.is_reciprocal,
                HAS_N3=n3 > 0,
                RUN=shapes.run,
                BLOCK_D=shapes.columns,
                num_warps=4,
            )
            self._launch(
                kernels.update_operators,
                (num_touched, own.num_sides, columns),
                *relations,
                *tied,
                own.state,
                own.back_parameters,
                own.back_state,
                self.partial,
                flags,
                num_runs,
                lr,
                b,
                DIM=self.dim,
                BLOCK_R=16,
                BLOCK_D=shapes.columns,
                num_warps=4,
            )
        if own.has_linear:
            # Matrices are cut into squares; larger ones would not fit the registers.
            side = min(shapes.columns, 64)
            self._launch(
                kernels.update_linear,
                (num_touched, own.num_sides, _blocks(self.dim, side) ** 2),
                tables.src_rows,
                tables.dst_rows,
                arrays["nodes"],
                arrays["weights"],
                *runs,
                *relations,
                *tied,
                own.state,
                own.back_parameters,
                own.back_state,
                self.gradients,
                flags,
                num_positions,
                share,
                lr,
                b,
                DIM=self.dim,
                RECIPROCAL=own.is_reciprocal,
                PRECISION=shapes.precision,
                RUN=shapes.run,
                BLOCK_D=side,
                num_warps=4,
            )
