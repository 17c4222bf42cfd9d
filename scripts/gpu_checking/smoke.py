"""Does anything run at all: the compiler's library, a grid that waits, a Triton kernel."""

import importlib.metadata
import platform
import subprocess
from typing import Any

import numpy as np
from numba import cuda

from gpu_checking.steps import Context

_PACKAGES = ("numba", "numba-cuda", "numpy", "torch", "triton", "pyarrow", "graphsys")


def planned() -> list[str]:
    """Return the rows that a card is to give."""
    return ["versions", "compiler", "a grid waits for all its blocks", "a Triton kernel"]


def check(context: Context) -> None:
    """Tell the versions, then run a kernel of each kind; the first fault ends the step."""
    from graphsys.core.cuda.device import require_device

    context.tell({"case": "versions", **versions()})
    require_device()
    if not context.is_simulated:
        from graphsys.core.cuda.toolkit import require_compiler

        context.tell({"case": "compiler", "libnvvm": str(require_compiler())})
    wait_for_the_grid()
    context.tell({"case": "a grid waits for all its blocks"})
    if context.has_triton():
        add_in_triton()
        context.tell({"case": "a Triton kernel"})


def versions() -> dict[str, Any]:
    """Return versions of packages, of Python, and the device as its driver tells it."""
    found: dict[str, Any] = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    query = "--query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm"
    try:
        done = subprocess.run(
            ["nvidia-smi", query, "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=15,
            check=False,
        )
        found["device"] = done.stdout.strip()
    except (OSError, subprocess.TimeoutExpired) as err:
        found["device"] = f"nvidia-smi: {err}"
    return found


def _reverse(a: Any, b: Any) -> None:
    grid = cuda.cg.this_grid()
    i = cuda.grid(1)
    a[i] = i
    grid.sync()
    b[i] = a[a.size - 1 - i]


def wait_for_the_grid() -> None:
    """Reverse an array over blocks that wait for one another."""
    blocks, threads = (2, 32) if is_simulated() else (256, 256)
    first, second = (cuda.device_array(blocks * threads, np.int64) for _ in range(2))
    cuda.jit(_reverse)[blocks, threads](first, second)
    expected = np.arange(blocks * threads)[::-1]
    assert (second.copy_to_host() == expected).all(), "the grid did not wait"


def is_simulated() -> bool:
    """Whether numba's simulator stands in for a GPU."""
    from graphsys.core.cuda.device import is_simulated as found

    return found()


def add_in_triton() -> None:
    """Sum rows of one neighbor each, by the kernels that networks use."""
    import torch

    from graphsys.core.triton.device import cuda_device, require_device
    from graphsys.gnn import SparseRows, spmm

    require_device()
    places = np.arange(8)
    rows = SparseRows(np.arange(9), places[::-1].astype(np.int32).copy(), 8)
    x = torch.arange(32, dtype=torch.float32).reshape(8, 4).to(cuda_device())
    found = spmm(rows.to("cuda"), x)
    assert torch.equal(found, x.flip(0)), "sums of one row each are not the rows"
