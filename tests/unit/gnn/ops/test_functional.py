"""Kernels against SciPy's products and torch's own functions; gradients by gradcheck."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from graphsys.core.errors import ConfigError
from graphsys.gnn.ops.adjacency import SparseRows, kernel_threads
from graphsys.gnn.ops.functional import (
    attention_scores,
    sddmm,
    segment_softmax,
    spmm,
    spmm_with_own,
)

NUM_SRC, NUM_DST = 9, 6


def random_rows(num_dst: int = NUM_DST, num_src: int = NUM_SRC, share: float = 0.4) -> Any:
    """Return rows and the same as SciPy's matrix; the last row is empty."""
    rng = np.random.default_rng(4)
    dense = rng.random((num_dst, num_src)) < share
    dense[-1] = False
    matrix = sp.csr_matrix(dense.astype(np.float64))
    rows = SparseRows(
        matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), num_src
    )
    return rows, matrix


def values(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, dtype=dtype, generator=generator).requires_grad_()


@pytest.mark.parametrize("num_threads", [1, 3])
def test_sums_and_means_are_scipy_s(num_threads: int) -> None:
    rows, matrix = random_rows(200, 150, 0.1)
    x = values(150, 33, dtype=torch.float32)
    weight = values(rows.num_edges, dtype=torch.float32)
    with kernel_threads(num_threads):
        found = spmm(rows, x).detach().numpy()
        mean = spmm(rows, x, reduce="mean").detach().numpy()
        weighted = spmm(rows, x, weight).detach().numpy()
    dense = x.detach().numpy().astype(np.float64)
    assert np.allclose(found, matrix @ dense, atol=1e-5)
    degrees = np.maximum(np.diff(matrix.indptr), 1)[:, None]
    assert np.allclose(mean, (matrix @ dense) / degrees, atol=1e-5)
    matrix.data = weight.detach().numpy().astype(np.float64)
    assert np.allclose(weighted, matrix @ dense, atol=1e-5)


def test_heads_are_sums_of_their_own() -> None:
    rows, matrix = random_rows()
    x, weight = values(NUM_SRC, 2, 3), values(rows.num_edges, 2)
    found = spmm(rows, x, weight).detach().numpy()
    for head in range(2):
        matrix.data = weight[:, head].detach().numpy()
        assert np.allclose(found[:, head], matrix @ x[:, head].detach().numpy())


def test_maxima_are_torch_s() -> None:
    rows, matrix = random_rows()
    x = values(NUM_SRC, 4)
    found = spmm(rows, x, reduce="max")
    found.sum().backward()  # type: ignore[no-untyped-call]
    own = values(NUM_SRC, 4)
    lines = [
        own[torch.from_numpy(matrix[row].indices).long()].amax(dim=0)
        if matrix[row].nnz
        else torch.zeros(4, dtype=torch.float64)
        for row in range(NUM_DST)
    ]
    expected = torch.stack(lines)
    expected.sum().backward()  # type: ignore[no-untyped-call]
    assert torch.equal(found, expected)
    assert torch.allclose(x.grad, own.grad)  # type: ignore[arg-type]


def test_softmax_is_torch_s_row_by_row() -> None:
    rows, matrix = random_rows()
    scores = values(rows.num_edges, 3)
    shares = segment_softmax(rows, scores)
    for begin, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        expected = torch.softmax(scores[begin:end], dim=0)
        assert torch.allclose(shares[begin:end], expected)


CASES: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "sum": (lambda rows, x: spmm(rows, x), [(NUM_SRC, 5)]),
    "mean": (lambda rows, x: spmm(rows, x, reduce="mean"), [(NUM_SRC, 5)]),
    "max": (lambda rows, x: spmm(rows, x, reduce="max"), [(NUM_SRC, 5)]),
    "weighted": (lambda rows, x, w: spmm(rows, x, w), [(NUM_SRC, 5), (-1,)]),
    "heads": (lambda rows, x, w: spmm(rows, x, w), [(NUM_SRC, 2, 3), (-1, 2)]),
    "dot": (lambda rows, x, y: sddmm(rows, x, y), [(NUM_SRC, 2, 3), (NUM_DST, 2, 3)]),
    "add": (
        lambda rows, x, y: sddmm(rows, x, y, "add"),
        [(NUM_SRC, 2), (NUM_DST, 2)],
    ),
    "softmax": (segment_softmax, [(-1, 2)]),
    "sum and own": (lambda rows, x: spmm_with_own(rows, x, "sum"), [(NUM_SRC, 5)]),
    "mean and own": (lambda rows, x: spmm_with_own(rows, x, "mean"), [(NUM_SRC, 5)]),
    "attention": (attention_scores, [(NUM_SRC, 2, 3), (NUM_DST, 2, 3), (2, 3)]),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_right(name: str) -> None:
    rows, _ = random_rows()
    function, shapes = CASES[name]
    inputs = [
        values(*(rows.num_edges if size < 0 else size for size in shape))
        for shape in shapes
    ]
    with kernel_threads(2):
        assert torch.autograd.gradcheck(lambda *given: function(rows, *given), inputs)


def test_sums_beside_own_rows_are_both() -> None:
    rows, _ = random_rows()
    x = values(NUM_SRC, 4)
    for reduce in ("sum", "mean"):
        summed, own = spmm_with_own(rows, x, reduce)
        assert torch.equal(summed, spmm(rows, x, reduce=reduce))
        assert torch.equal(own, x[:NUM_DST])
    apart = SparseRows(rows.indptr, rows.indices, NUM_SRC, is_prefix=False)
    with pytest.raises(ConfigError, match="have no own rows"):
        spmm_with_own(apart, x, "sum")


def test_rows_with_their_own_nodes() -> None:
    rows, matrix = random_rows()
    whole = rows.with_self
    dense = np.zeros((NUM_DST, NUM_SRC))
    for row in range(NUM_DST):
        np.add.at(dense[row], whole.indices[whole.indptr[row] : whole.indptr[row + 1]], 1)
    assert (dense == matrix.toarray() + np.eye(NUM_DST, NUM_SRC)).all()
    x = values(NUM_SRC, 3)
    expected = torch.from_numpy(dense) @ x
    assert torch.allclose(spmm(whole, x), expected)
    apart = SparseRows(rows.indptr, rows.indices, NUM_SRC, is_prefix=False)
    assert apart.with_self is apart


def test_shapes_that_do_not_fit() -> None:
    rows, _ = random_rows()
    with pytest.raises(ConfigError, match=r"x is float64 \[4, 2\], expected floats of \[9"):
        spmm(rows, values(4, 2))
    with pytest.raises(ConfigError, match=r"weight is .3., expected"):
        spmm(rows, values(NUM_SRC, 2), values(3))
    with pytest.raises(ConfigError, match="reduce: got 'mean' with weights, expected sum"):
        spmm(rows, values(NUM_SRC, 2), values(rows.num_edges), "mean")
    with pytest.raises(ConfigError, match="scores are"):
        segment_softmax(rows, values(3, 2))
    with pytest.raises(ConfigError, match=r"expected the same .heads, features. for op"):
        sddmm(rows, values(NUM_SRC, 2, 3), values(NUM_DST, 2, 4))
