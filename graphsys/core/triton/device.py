"""Whether there is a device that Triton's kernels run on, and how they are started.

Triton's interpreter counts as a device: with ``TRITON_INTERPRET=1`` kernels run on the
CPU, slowly, over torch's CPU tensors; streams and pinned memory fall away.
"""

import os
from typing import Any

from graphsys.core.errors import ConfigError, MissingDependencyError


def is_interpreted() -> bool:
    """Whether kernels run in Triton's interpreter."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def require_device() -> None:
    """Check that Triton's kernels can run on a CUDA device here.

    Raises:
        MissingDependencyError: Triton is not installed.
        ConfigError: There is no GPU or no driver, or torch was built without CUDA.
    """
    try:
        import triton  # noqa: F401
    except ImportError as err:
        raise MissingDependencyError(
            "device='cuda' needs Triton: pip install 'graphsys[gpu]'"
        ) from err
    if is_interpreted():
        return
    import torch

    if torch.version.cuda is None:
        raise ConfigError(
            f"device='cuda': torch {torch.__version__} is built without CUDA; install a "
            "build with it (see pytorch.org), or use device='cpu'"
        )
    if not torch.cuda.is_available():
        raise ConfigError(
            "device='cuda': this machine has no CUDA device or driver; use device='cpu' "
            "(see 'graphsys doctor')"
        )


def cuda_device() -> Any:
    """Return torch's device of the first GPU, or in the interpreter the CPU."""
    import torch

    return torch.device("cpu") if is_interpreted() else torch.device("cuda", 0)


def start(kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
    """Start a Triton kernel over a grid, unless the grid is empty."""
    if all(grid):
        kernel[grid](*arguments, **options)
