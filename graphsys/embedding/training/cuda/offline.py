"""The trainer's kernels compiled to Hopper's machine code without a GPU or a driver.

The kernels are enqueued as in training, by :class:`BatchStep`, only that every start is
a compilation: so what is compiled has the argument types, alignments and block sizes of
real launches.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np

from graphsys.core.cuda.offline import KernelReport
from graphsys.core.triton.offline import compile_one, compiling_offline
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.spec.operators import operator_of
from graphsys.embedding.training.cuda.operands import (
    DeviceTables,
    Workspace,
    device_operators,
)
from graphsys.embedding.training.cuda.shapes import block_shapes
from graphsys.embedding.training.cuda.step import BatchStep
from graphsys.embedding.training.negative_tables import uniform_candidates
from graphsys.embedding.training.objective import REGULARIZER_CODES, objective_of
from graphsys.kernels.cpu.embedding.batches import NUM_COUNTS, BatchArrays
from graphsys.kernels.cpu.embedding.operators import Operators
from graphsys.kernels.cpu.embedding.step import Settings

_LENGTH = 64


def compile_step(
    config: EmbeddingConfig,
    *,
    is_bfloat16: bool,
    count: int = _LENGTH,
    is_aligned: bool = True,
) -> list[KernelReport]:
    """Compile every kernel that training with these settings starts.

    Args:
        config: The settings; all relations have its operator.
        is_bfloat16: Whether rows are bfloat16.
        count: Of positions, runs and all else that a batch has; Triton compiles an
            argument apart where it is 1, a multiple of 16, or beyond 32 bits.
        is_aligned: Whether tensors begin at multiples of 16 bytes.

    Returns:
        A report per kernel, in the order of launches.

    Raises:
        MissingDependencyError: Triton is not installed.
    """
    import torch

    dtype = torch.bfloat16 if is_bfloat16 else torch.float32
    dim = config.dim
    found: list[KernelReport] = []

    def keep(*launch: Any, **options: Any) -> None:
        found.append(compile_one(*launch, **options))

    first = 0 if is_aligned else 1

    def empty(*shape: int, dtype: Any = torch.float32) -> Any:
        return torch.empty((shape[0] + first, *shape[1:]), dtype=dtype)[first:]

    rows, state = empty(_LENGTH, dim, dtype=dtype), empty(_LENGTH)
    floats = ("weights", "bias")
    arrays = {
        name: empty(_LENGTH, dtype=torch.float32 if name in floats else torch.int32)
        for name in BatchArrays._fields
    }
    place: Any = SimpleNamespace(
        on_device=arrays, counts=np.full(NUM_COUNTS, count, dtype=np.int64)
    )
    with compiling_offline():
        step = BatchStep(
            DeviceTables(rows, state, rows, state),
            device_operators(_operators(config), torch.device("cpu")),
            _settings(config),
            block_shapes(dim, is_bfloat16=is_bfloat16),
            Workspace(torch.device("cpu")),
            (_LENGTH, _LENGTH),
            dim,
            launch=keep,
        )
        losses = empty(_LENGTH, dtype=torch.float64)
        step.train(0, place, losses, empty(_LENGTH, dtype=torch.int32))
    return found


def _operators(config: EmbeddingConfig) -> Operators:
    operator = operator_of(config.operator)
    size = operator.num_parameters(config.dim)
    values, none = np.zeros(size, dtype=np.float32), np.empty(0, dtype=np.float32)
    back = values if config.reciprocal else none
    return Operators(
        codes=np.array([operator.code], dtype=np.int64),
        offsets=np.array([0, size], dtype=np.int64),
        parameters=values,
        state=values,
        back_parameters=back,
        back_state=back,
        is_reciprocal=config.reciprocal,
        has_complex=operator.is_complex,
        lr_factors=np.ones(1, dtype=np.float32),
    )


def _settings(config: EmbeddingConfig) -> Settings:
    return Settings(
        candidates=uniform_candidates(config, (1, 1)),
        use_batch=config.num_batch_negatives > 0,
        objective=objective_of(config),
        lr=np.float32(config.lr),
        relation_lr=np.float32(config.lr),
        regularizer=np.float32(config.regularizer),
        regularizer_kind=REGULARIZER_CODES[config.regularizer_kind],
        key=np.uint64(1),
    )
