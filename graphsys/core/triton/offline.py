"""Triton's kernels compiled to Hopper's machine code without a GPU or a driver.

``ptxas``, which comes with Triton, says what each kernel takes.
"""

import functools
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from graphsys.core.cuda.offline import KernelReport
from graphsys.core.errors import MissingDependencyError

CAPABILITY = 90
"""Hopper."""


class _Driver:
    """What Triton asks its driver before it compiles."""

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return device

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", CAPABILITY, 32)


@contextmanager
def compiling_offline() -> Iterator[None]:
    """Answer Triton's questions for the device with Hopper.

    Raises:
        MissingDependencyError: Triton is not installed.
    """
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


def compile_one(
    kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any
) -> KernelReport:
    """Compile a kernel for the arguments of a launch, within :func:`compiling_offline`."""
    compiled = kernel.warmup(*arguments, grid=grid, **options)
    text = _assemble(kernel.__name__, compiled.asm["ptx"])

    return KernelReport.of(
        kernel.__name__,
        text,
        shared_bytes=int(compiled.metadata.shared),
        warps=int(compiled.metadata.num_warps),
    )


@functools.cache  # several launches have the same code
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
