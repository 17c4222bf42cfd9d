"""Chunks are loaded one ahead: each once, in order, whatever the stride and the sizes."""

import numpy as np
import numpy.typing as npt
import pytest

from graphsys.kernels.cpu.embedding.chunk import Edges
from graphsys.kernels.cpu.embedding.prefetch import chunks_of
from graphsys.kernels.jit import jit


@jit
def _listed(edges: Edges, first: int, last: int, stride: int) -> npt.NDArray[np.int64]:
    return chunks_of(edges, first, last, stride)


def cut(batches: list[int]) -> Edges:
    none = np.empty(0, dtype=np.uint32)
    return Edges(
        none,
        none,
        none,
        np.empty(0, np.float32),
        np.ones(1, np.float32),
        np.zeros(1, np.bool_),
        none,
        np.zeros((batches[-1], 2), np.int64),
        np.array(batches, dtype=np.int64),
    )


@pytest.mark.parametrize(
    ("first", "last", "stride", "wanted"),
    [
        (0, 4, 1, [0, 1, 2, 3, 4, 5, 6]),
        (0, 4, 2, [0, 1, 2, 4, 5]),
        (1, 4, 2, [3, 6]),
        (3, 3, 1, []),
    ],
)
def test_a_workers_chunks_are_those_of_its_batches(
    first: int, last: int, stride: int, wanted: list[int]
) -> None:
    assert _listed(cut([0, 3, 4, 6, 7]), first, last, stride).tolist() == wanted
