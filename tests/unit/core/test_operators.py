"""Torch's operators as spans: which, how many bytes and operations."""

from typing import Any

import pytest
import torch

from graphsys.core.events import recording
from graphsys.core.operators import OPERATORS, watch_operators
from graphsys.core.torch_operators import kind_of


def watched(run: Any) -> list[dict[str, Any]]:
    with recording({OPERATORS: lambda made: None}) as recorder, watch_operators():
        run()
    return [dict(e.attributes) for e in recorder.events if e.name == "operator"]


def test_nobody_asks_and_nothing_is_watched() -> None:
    with recording() as recorder, watch_operators():
        torch.ones(3) + 1
    assert recorder.events == []


def test_products_have_their_operations() -> None:
    left, right, bias = torch.ones(3, 4), torch.ones(4, 5), torch.ones(5)
    (product,) = watched(lambda: left @ right)
    assert product["kind"] == "gemm"
    assert product["flop"] == 2 * 3 * 4 * 5
    assert product["bytes"] == 4 * (12 + 20 + 15)
    (added,) = watched(lambda: torch.addmm(bias, left, right))
    assert added["flop"] == 2 * 3 * 4 * 5


def test_a_backward_pass_is_watched_too() -> None:
    weight = torch.ones(4, 2, requires_grad=True)
    x = torch.ones(3, 4)

    def train() -> None:
        loss = torch.relu(x @ weight).sum()
        loss.backward()  # type: ignore[no-untyped-call]

    kinds = [operator["kind"] for operator in watched(train)]
    assert kinds.count("gemm") == 2  # forward, and the gradient of the weight
    assert "elementwise" in kinds
    assert "reduce" in kinds


@pytest.mark.parametrize(
    ("run", "kind"),
    [
        (lambda: torch.ones(4)[torch.tensor([1, 2])], "gather"),
        (lambda: torch.zeros(4).index_add_(0, torch.tensor([1]), torch.ones(1)), "scatter"),
        (lambda: torch.tensor([3.0, 1.0]).sort(), "sort"),
        (lambda: torch.cat([torch.ones(1), torch.ones(1)]), "copy"),
    ],
)
def test_kinds(run: Any, kind: str) -> None:
    assert kind in [operator["kind"] for operator in watched(run)]


def test_views_are_free() -> None:
    x = torch.ones(4, 2)
    assert watched(lambda: x.t()[0].view(2, 2).unsqueeze(0)) == []
    assert kind_of("as_strided") is None
