"""Every comparator, loss and operator of ours keeps its contract; tests/meta demands it."""

from math import exp, log, log1p

import pytest

from graphsys.embedding.spec.comparators import COMPARATORS
from graphsys.embedding.spec.operators import OPERATORS
from graphsys.embedding.testing import (
    ComparatorContract,
    LossContract,
    OperatorContract,
)


@pytest.mark.parametrize("name", COMPARATORS.names())
class TestComparators(ComparatorContract):
    @pytest.fixture(autouse=True)
    def _named(self, name: str) -> None:
        self.name = name  # type: ignore[misc]


@pytest.mark.parametrize("name", OPERATORS.names())
class TestOperators(OperatorContract):
    @pytest.fixture(autouse=True)
    def _named(self, name: str) -> None:
        self.name = name  # type: ignore[misc]


class TestSoftmax(LossContract):
    name = "softmax"
    known = ((1.0, (1.0, 1.0), 0.0, log(3)), (2.0, (0.0,), 0.0, log1p(exp(-2))))


class TestLogistic(LossContract):
    name = "logistic"
    known = (
        (0.0, (0.0, 0.0), 0.0, 2 * log(2)),
        (2.0, (-1.0,), 0.0, log1p(exp(-2)) + log1p(exp(-1))),
    )


class TestRanking(LossContract):
    name = "ranking"
    known = ((1.0, (0.9, 0.2, 2.0), 0.5, 0.4 + 1.5), (1.0, (0.0,), 0.5, 0.0))
