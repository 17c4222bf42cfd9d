"""Controls of the case ``bottlenecks``: work that is regular, told as graph work is.

Each is one launch of a kernel with a thread per output, as CUDA's samples have it. Its rows
are what each thread visits: so many entries, at these places. What the SIMT model says of
them shows what it says where nothing is irregular.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from graphsys.core.events import count, observe, span
from graphsys.core.threads import ThreadTeam
from graphsys.core.visits import RowVisit

Array = Any
Control = Callable[[int], tuple[float, Callable[[], None]]]


def told(kernel: Callable[[], Any], lengths: Array, indices: Array, kind: str) -> None:
    """Run a kernel as one superstep of one launch, and tell what its threads visit."""
    starts = np.cumsum(lengths) - lengths
    visit = RowVisit(
        superstep=0, kind=kind, lengths=lengths, starts=starts, indices=indices,
        value_bytes=4,
    )  # fmt: skip
    count("edges", len(indices), at_most=False)
    observe("rows", lambda: [visit])
    work = named(kernel)
    with span("superstep", number=0, phase="", mode=kind), ThreadTeam(1) as team:
        team.run(work)


def named(kernel: Callable[[], Any]) -> Callable[[int], None]:
    """Return a kernel as a team calls it."""

    def control(thread: int) -> None:
        kernel()

    return control


def gemm(size: int) -> tuple[float, Callable[[], None]]:
    """C = A B, 64 deep: thread (i, j) reads column j of B, row after row."""
    depth = 64
    rng = np.random.default_rng(1)
    left = rng.random((size, depth), dtype=np.float32)
    right = rng.random((depth, size), dtype=np.float32)
    inner = np.arange(depth, dtype=np.uint32) * np.uint32(size)
    columns = np.tile(np.arange(size, dtype=np.uint32), size)
    indices = (columns[:, None] + inner[None, :]).reshape(-1)
    lengths = np.full(size * size, depth, dtype=np.int64)
    run = functools.partial(told, functools.partial(np.matmul, left, right), lengths,
                            indices, "pull")  # fmt: skip
    return float(size * size * depth), run


def reduction(size: int) -> tuple[float, Callable[[], None]]:
    """A sum: each thread adds up values that lie a grid's width apart."""
    threads, each = size * size, 32
    values = np.ones(threads * each, dtype=np.float32)
    steps = np.arange(each, dtype=np.uint32) * np.uint32(threads)
    indices = (np.arange(threads, dtype=np.uint32)[:, None] + steps[None, :]).reshape(-1)
    lengths = np.full(threads, each, dtype=np.int64)
    run = functools.partial(told, values.sum, lengths, indices, "pull")
    return float(len(values)), run


def stencil(size: int) -> tuple[float, Callable[[], None]]:
    """The mean of each cell of a grid and its neighbors; fewer at the border."""
    grid = np.random.default_rng(1).random((size, size), dtype=np.float32)
    place = np.arange(size * size, dtype=np.int64).reshape(size, size)
    padded = np.pad(place, 1, constant_values=-1)
    near = np.stack(
        [padded[1:-1, 1:-1], padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2],
         padded[1:-1, 2:]], axis=-1,
    ).reshape(-1, 5)  # fmt: skip
    lengths = (near >= 0).sum(axis=1)
    indices = near[near >= 0].astype(np.uint32)

    def smooth() -> Array:
        wide = np.pad(grid, 1)
        around = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
        return (wide[1:-1, 1:-1] + around) / 5

    return float(len(indices)), functools.partial(told, smooth, lengths, indices, "pull")


def histogram(size: int) -> tuple[float, Callable[[], None]]:
    """Each thread adds one to the bin of its value: atomics that collide."""
    bins = np.random.default_rng(1).integers(0, 256, size * size).astype(np.uint32)
    lengths = np.ones(len(bins), dtype=np.int64)
    work = functools.partial(np.bincount, bins, minlength=256)
    return float(len(bins)), functools.partial(told, work, lengths, bins, "push")


CONTROLS: dict[str, Control] = {
    "GEMM": gemm,
    "reduction": reduction,
    "stencil": stencil,
    "histogram": histogram,
}
