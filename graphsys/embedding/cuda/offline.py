"""The trainer's kernels compiled to Hopper's machine code without a GPU or a driver.

The kernels are enqueued as in training, by :class:`BatchStep`, only that every start is
a compilation: so what is compiled has the argument types, alignments and block sizes of
real launches. ``ptxas``, which comes with Triton, says what each kernel takes.
"""

import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from graphsys.core.errors import MissingDependencyError
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.cuda.operands import DeviceTables, Workspace, device_operators
from graphsys.embedding.cuda.shapes import block_shapes
from graphsys.embedding.cuda.step import BatchStep
from graphsys.embedding.model import OPERATOR_CODES, REGULARISER_CODES, objective_of
from graphsys.embedding.samplers import uniform_candidates
from graphsys.kernels.cpu.embedding_batches import NUM_COUNTS, BatchArrays
from graphsys.kernels.cpu.embedding_operators import Operators
from graphsys.kernels.cpu.embedding_step import Settings

CAPABILITY = 90
"""Hopper."""

_LENGTH = 64


@dataclass(frozen=True, slots=True)
class KernelReport:
    """What ``ptxas`` says of one kernel.

    Attributes:
        name: The kernel.
        registers: Registers per thread.
        shared_bytes: Shared memory per block.
        stack_bytes: Stack per thread.
        spill_bytes: Bytes of registers spilled to memory, stores and loads.
        warps: Warps per block.
    """

    name: str
    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_bytes: int
    warps: int


class _Driver:
    """What Triton asks its driver before it compiles."""

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return device

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", CAPABILITY, 32)


def compile_step(config: EmbeddingConfig, *, is_bfloat16: bool) -> list[KernelReport]:
    """Compile every kernel that training with these settings starts.

    Args:
        config: The settings; all relations have its operator.
        is_bfloat16: Whether rows are bfloat16.

    Returns:
        A report per kernel, in the order of launches.

    Raises:
        MissingDependencyError: Triton is not installed.
    """
    import torch

    dtype = torch.bfloat16 if is_bfloat16 else torch.float32
    dim = config.dim
    found: list[KernelReport] = []

    def compile_one(kernel: Any, grid: Any, *arguments: Any, **options: Any) -> None:
        compiled = kernel.warmup(*arguments, grid=grid, **options)
        found.append(_report(kernel.__name__, compiled))

    rows, state = torch.empty((_LENGTH, dim), dtype=dtype), torch.empty(_LENGTH)
    floats = ("weights", "bias")
    arrays = {
        name: torch.empty(_LENGTH, dtype=torch.float32 if name in floats else torch.int32)
        for name in BatchArrays._fields
    }
    place: Any = SimpleNamespace(
        on_device=arrays, counts=np.full(NUM_COUNTS, _LENGTH, dtype=np.int64)
    )
    with _compiling():
        step = BatchStep(
            DeviceTables(rows, state, rows, state),
            device_operators(_operators(config), torch.device("cpu")),
            _settings(config),
            block_shapes(dim, is_bfloat16=is_bfloat16),
            Workspace(torch.device("cpu")),
            (_LENGTH, _LENGTH),
            dim,
            launch=compile_one,
        )
        losses = torch.empty(_LENGTH, dtype=torch.float64)
        step.train(0, place, losses, torch.empty(_LENGTH, dtype=torch.int32))
    return found


def _operators(config: EmbeddingConfig) -> Operators:
    code = OPERATOR_CODES[config.operator]
    size = config.dim * (config.dim if config.operator == "linear" else 1)
    values, none = np.zeros(size, dtype=np.float32), np.empty(0, dtype=np.float32)
    back = values if config.reciprocal else none
    return Operators(
        codes=np.array([code], dtype=np.int64),
        offsets=np.array([0, size], dtype=np.int64),
        parameters=values,
        state=values,
        back_parameters=back,
        back_state=back,
        is_reciprocal=config.reciprocal,
        has_complex=config.operator == "complex_diagonal",
        lr_factors=np.ones(1, dtype=np.float32),
    )


def _settings(config: EmbeddingConfig) -> Settings:
    return Settings(
        candidates=uniform_candidates(config, (1, 1)),
        use_batch=config.num_batch_negatives > 0,
        objective=objective_of(config),
        lr=np.float32(config.lr),
        relation_lr=np.float32(config.lr),
        regulariser=np.float32(config.regulariser),
        regulariser_kind=REGULARISER_CODES[config.regulariser_kind],
        key=np.uint64(1),
    )


@contextmanager
def _compiling() -> Iterator[None]:
    """Answer Triton's questions for the device with Hopper."""
    try:
        from triton.runtime import driver
    except ImportError as err:
        raise MissingDependencyError(
            "compiling for CUDA needs Triton: pip install 'graphsys[gpu]'"
        ) from err
    driver.set_active(_Driver())
    try:
        yield
    finally:
        with suppress(RuntimeError):  # no driver to go back to
            driver.reset_active()


def _report(name: str, compiled: Any) -> KernelReport:
    text = _assemble(name, compiled.asm["ptx"])

    def amount(pattern: str) -> int:
        return sum(int(n) for n in re.findall(pattern, text))

    return KernelReport(
        name=name,
        registers=amount(r"Used (\d+) registers"),
        shared_bytes=int(compiled.metadata.shared),
        stack_bytes=amount(r"(\d+) bytes stack frame"),
        spill_bytes=amount(r"(\d+) bytes spill (?:stores|loads)"),
        warps=int(compiled.metadata.num_warps),
    )


def _assemble(name: str, ptx: str) -> str:
    """Assemble as Triton does, with its ptxas and its option; return what ptxas says."""
    from triton.backends.nvidia.compiler import get_ptxas

    arch = re.search(r"\.target (sm_\w+)", ptx)
    assert arch is not None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.ptx"
        path.write_text(ptx)
        command = [get_ptxas(CAPABILITY).path, "-v", f"-arch={arch[1]}", str(path)]
        command += ["-o", str(path.with_suffix(".cubin"))]
        for options in (["--regAllocOptLevel=2"], []):  # older ones do not know it
            done = subprocess.run(
                [*command, *options], capture_output=True, text=True, check=False
            )
            if done.returncode == 0:
                return done.stdout + done.stderr
    raise RuntimeError(f"ptxas refuses {name}: {(done.stdout + done.stderr).strip()[:500]}")
