"""Messages of one's own against loops over entries, against our layers, by gradcheck."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from graphsys import gnn
from graphsys.core.errors import ConfigError, UnknownNameError
from tests.unit.gnn.ops.test_functional import NUM_DST, NUM_SRC, random_rows, values


def by_hand(rows: Any, messages: torch.Tensor, reduce: str) -> torch.Tensor:
    """Reduce the messages of every row in a loop."""
    found = []
    for begin, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        own = messages[begin:end]
        if not len(own):
            found.append(torch.zeros(messages.shape[1:], dtype=messages.dtype))
        elif reduce == "max":
            found.append(own.max(dim=0).values)
        else:
            found.append(own.sum(dim=0) / (len(own) if reduce == "mean" else 1))
    return torch.stack(found)


def ends(rows: Any) -> tuple[torch.Tensor, torch.Tensor]:
    row = np.repeat(np.arange(rows.num_dst), np.diff(rows.indptr))
    return torch.from_numpy(rows.indices).long(), torch.from_numpy(row)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
def test_messages_of_a_function_are_reduced_by_row(reduce: Any) -> None:
    rows, _ = random_rows()
    x, y, w = values(NUM_SRC, 4), values(NUM_DST, 4), values(rows.num_edges)
    found = gnn.update_all(
        rows,
        lambda e: torch.tanh(e.src("x") - e.dst("y")) * e.edge("w")[:, None],
        reduce,
        src={"x": x},
        dst={"y": y},
        edge={"w": w},
    )
    src, dst = ends(rows)
    wanted = by_hand(rows, torch.tanh(x[src] - y[dst]) * w[:, None], reduce)
    assert torch.allclose(found, wanted)
    inputs = (x, y, w)
    mine = torch.autograd.grad(found.square().sum(), inputs)
    theirs = torch.autograd.grad(wanted.square().sum(), inputs)
    assert all(torch.allclose(a, b) for a, b in zip(mine, theirs, strict=True))


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 2)])
@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
def test_copies_are_reduced_without_messages(shape: tuple[int, ...], reduce: Any) -> None:
    rows, _ = random_rows()
    x = values(NUM_SRC, *shape)
    found = gnn.update_all(rows, gnn.copy_u("x"), reduce, src={"x": x})
    src, _ = ends(rows)
    assert torch.allclose(found, by_hand(rows, x[src], reduce))
    each = gnn.apply_edges(rows, gnn.copy_u("x"), src={"x": x})
    assert torch.equal(each, x[src])


@pytest.mark.parametrize(
    ("shape", "of_factor"), [((3,), ()), ((2, 3), (2,)), ((2, 3), ()), ((3,), (3,))]
)
@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_factors_of_entries_or_of_heads(
    shape: tuple[int, ...], of_factor: tuple[int, ...], reduce: Any
) -> None:
    rows, _ = random_rows()
    x, w = values(NUM_SRC, *shape), values(rows.num_edges, *of_factor)
    given: Any = {"src": {"x": x}, "edge": {"w": w}}
    found = gnn.update_all(rows, gnn.u_mul_e("x", "w"), reduce, **given)
    src, _ = ends(rows)
    wide = w.reshape(*w.shape, *[1] * (x.dim() - w.dim()))
    assert torch.allclose(found, by_hand(rows, x[src] * wide, reduce))


def test_a_layer_written_by_hand_is_gat() -> None:
    rows, _ = random_rows()
    layer = gnn.layers.GAT(5, 3, 2).double()
    x = values(NUM_SRC, 5)
    wanted = layer(rows, x, x[: rows.num_dst])

    full = rows.with_self
    h = layer.source(x).reshape(NUM_SRC, 2, 3)
    left = (h * layer.of_src).sum(-1)
    right = (h[:NUM_DST] * layer.of_dst).sum(-1)
    scores = gnn.apply_edges(
        full,
        lambda e: functional.leaky_relu(e.src("l") + e.dst("r"), 0.2),
        src={"l": left},
        dst={"r": right},
    )
    shares = gnn.segment_softmax(full, scores)
    pooled = gnn.update_all(full, gnn.u_mul_e("h", "a"), src={"h": h}, edge={"a": shares})
    assert torch.allclose(pooled.reshape(NUM_DST, 6) + layer.bias, wanted)


def test_numbers_that_are_no_floats_are_read_too() -> None:
    rows, _ = random_rows()
    kind = torch.arange(NUM_SRC)
    src, _ = ends(rows)
    found = gnn.apply_edges(rows, lambda e: e.src("kind") % 2, src={"kind": kind})
    assert torch.equal(found, src % 2)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
@pytest.mark.parametrize(("num_src", "num_dst"), [(0, 0), (1, 1), (0, 2)])
def test_rows_without_entries_receive_nothing(
    num_src: int, num_dst: int, reduce: Any
) -> None:
    indptr, indices = np.zeros(num_dst + 1, np.int64), np.empty(0, np.int32)
    rows = gnn.SparseRows(indptr, indices, num_src, is_prefix=False)
    for x in (torch.ones(num_src), torch.ones(num_src, 3), torch.ones(num_src, 2, 3)):
        for message in (gnn.copy_u("x"), lambda e: 2 * e.src("x")):
            found = gnn.update_all(rows, message, reduce, src={"x": x})
            assert torch.equal(found, torch.zeros(num_dst, *x.shape[1:]))


def test_what_does_not_fit_is_refused() -> None:
    rows, _ = random_rows()
    x = values(NUM_SRC, 3)
    with pytest.raises(UnknownNameError, match="src field 'h'"):
        gnn.update_all(rows, gnn.copy_u("h"), src={"x": x})
    with pytest.raises(ConfigError, match=r"src field 'x' is \[9, 3\]|expected \[6, ...\]"):
        gnn.apply_edges(rows, lambda e: e.dst("x"), dst={"x": x})
    with pytest.raises(ConfigError, match=r"the message is \[9, 3\], expected a tensor of"):
        gnn.update_all(rows, lambda _: x, src={"x": x})
