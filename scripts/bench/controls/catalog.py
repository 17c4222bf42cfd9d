"""The twelve controls by name: their inputs of about some size, and how they are run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.controls import dense, lists, numbers
from bench.controls.device import THREADS, Array, Device, Kernel

Inputs = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Control:
    """One application.

    Attributes:
        inputs: Returns its inputs, drawn, of about so many values.
        run: Runs it on a device.
    """

    inputs: Callable[[int, np.random.Generator], Inputs]
    run: Callable[..., Array]

    def bind(self, size: int) -> tuple[int, Callable[[], Array]]:
        """Return how many values its inputs have, and what runs it on a new device."""
        inputs = self.inputs(size, np.random.default_rng(1))
        amount = sum(it.size for it in inputs if isinstance(it, np.ndarray))
        return amount, lambda: self.run(Device(), *inputs)


def _side(size: int, unit: int) -> int:
    """Return the side of a square of about ``size`` values, a multiple of ``unit``."""
    return max(round(size**0.5 / unit), 1) * unit


def _power(size: int, least: int) -> int:
    return max(1 << max(round(np.log2(size)), 0), least)


def _matrices(size: int, rng: np.random.Generator) -> Inputs:
    n = _side(size // 2, dense.TILE)
    a, b = rng.random((2, n, n), dtype=np.float32)
    return a, b


def _dominant(size: int, rng: np.random.Generator) -> Inputs:
    n = _side(size, dense.TILE)
    matrix = rng.random((n, n), dtype=np.float32)
    return (matrix + n * np.eye(n, dtype=np.float32),)


def _grid(size: int, rng: np.random.Generator) -> Inputs:
    n = _side(size, 1)
    return rng.random((n, n), dtype=np.float32), 20


def _picture(size: int, rng: np.random.Generator) -> Inputs:
    n = _side(size, THREADS)
    weights = rng.random(2 * dense.RADIUS + 1, dtype=np.float32)
    return rng.random((n, n), dtype=np.float32), weights / weights.sum()


def _values(size: int, rng: np.random.Generator) -> Inputs:
    return (rng.random(size, dtype=np.float32),)


def _integers(size: int, rng: np.random.Generator) -> Inputs:
    return (rng.integers(0, lists.BINS, size).astype(np.int32),)


def _sortable(size: int, rng: np.random.Generator) -> Inputs:
    return (rng.random(_power(size, 2 * THREADS), dtype=np.float32),)


def _signals(size: int, rng: np.random.Generator) -> Inputs:
    rows = max(size // numbers.POINTS, 1)
    parts = rng.random((2, rows, numbers.POINTS), dtype=np.float32)
    return (parts[0] + 1j * parts[1],)


def _options(size: int, rng: np.random.Generator) -> Inputs:
    spot, strike, years = rng.random((3, size // 3), dtype=np.float32)
    return 5 + 25 * spot, 1 + 99 * strike, np.float32(0.25) + 9 * years


def _points(size: int, rng: np.random.Generator) -> Inputs:
    """Eight clouds in four dimensions; the first eight points are the first centers."""
    where = rng.integers(0, 8, size // 4)
    clouds = 4 * rng.random((8, 4), dtype=np.float32)
    points = clouds[where] + rng.standard_normal((len(where), 4)).astype(np.float32) / 4
    return points, points[:8].astype(np.float64), 20


def _bodies(size: int, rng: np.random.Generator) -> Inputs:
    """So many that pairs are at most 16 times ``size``."""
    n = max(round((16 * size) ** 0.5 / THREADS), 1) * THREADS
    return rng.random((4, n), dtype=np.float32), 4, 0.01


def kernels() -> list[Kernel]:
    """Return the kernels of all controls."""
    modules = (dense, lists, numbers)
    return [
        it for module in modules for it in vars(module).values() if isinstance(it, Kernel)
    ]


CONTROLS: dict[str, Control] = {
    "GEMM": Control(inputs=_matrices, run=dense.gemm),
    "LU": Control(inputs=_dominant, run=dense.lu),
    "stencil": Control(inputs=_grid, run=dense.stencil),
    "convolution": Control(inputs=_picture, run=dense.convolution),
    "reduction": Control(inputs=_values, run=lists.reduction),
    "scan": Control(inputs=_integers, run=lists.scan),
    "histogram": Control(inputs=_integers, run=lists.histogram),
    "bitonic sort": Control(inputs=_sortable, run=lists.bitonic_sort),
    "FFT": Control(inputs=_signals, run=numbers.fft),
    "Black-Scholes": Control(inputs=_options, run=numbers.black_scholes),
    "k-means": Control(inputs=_points, run=numbers.k_means),
    "n-body": Control(inputs=_bodies, run=numbers.n_body),
}
