"""The case of formulas: who solves which, and that assignments are checked."""

import importlib
from typing import Any

import numpy as np
import pytest

from tests.conftest import ROOT


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what imports modules of ``bench``."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return importlib.import_module


def test_assignments_count_only_where_they_satisfy_all_clauses(bench: Any) -> None:
    case = bench("bench.cases.satisfiability")
    graphs = [bench("bench.cases.bottlenecks").drawn_formula(100, 3.0, k) for k in (1, 2)]
    for solve in (case.by_surveys, case.by_walks):
        figures = case.solved(graphs, solve).result["figures"]
        assert figures["solved_share"] == 1.0
        assert figures["longest_formula_seconds"] >= figures["median_formula_seconds"] > 0
    wrong = case.solved(
        graphs, lambda graph, formula, seed: (np.zeros(formula.num_variables), 0.0)
    )
    assert wrong.result["figures"]["solved_share"] == 0.0
    gave_up = case.solved(graphs, lambda graph, formula, seed: (None, 0.0))
    assert gave_up.result["figures"]["solved_share"] == 0.0
    with pytest.raises(Exception, match="solved no formula"):
        case.verify({"graphsys": gave_up.result})
