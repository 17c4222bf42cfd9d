"""The case ``mining`` refuses counts that differ."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from graphsys.generated.modules import cache_folder
from graphsys.mining import SimpleGraph
from tests.conftest import ROOT


def test_counts_that_differ_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    check = importlib.import_module("bench.cases.mining").check
    wrong = importlib.import_module("bench.harness").WrongResultError
    check("diamond", "rmat16", {"graphsys": {"diamond": 5}, "x": {"triangle": 3}})
    with pytest.raises(wrong, match="3 motifs, rmat16: x counts 4 of triangle, not 3"):
        check("3 motifs", "rmat16", {"graphsys": {"triangle": 3}, "x": {"triangle": 4}})
    with pytest.raises(wrong, match="wiki-Vote: 3 triangles, published are 608389"):
        check("triangle", "wiki-Vote", {"graphsys": {"triangle": 3}})


def test_kernels_are_made_anew_and_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GRAPHSYS_CACHE", str(tmp_path))  # other tests fill the common one
    monkeypatch.syspath_prepend(ROOT / "scripts")
    module = importlib.import_module("bench.cases.mining_works")
    ends = np.array([0, 1, 2, 3, 4]), np.array([1, 2, 0, 0, 1])
    works = module.compiled_works(SimpleGraph.of(ends))
    assert works.keys() == {
        f"{it}, {how}" for it in ("bull", "7-cycle") for how in ("compiled", "cached")
    }
    made = [len(list(cache_folder().glob("*.py")))]
    for what in ("bull, compiled", "bull, compiled", "bull, cached", "bull, cached"):
        assert works[what]() == {"bull in an edge": 0}
        made.append(len(list(cache_folder().glob("*.py"))))
    assert made[1] == made[0] + 1
    assert made[2] == made[0] + 2
    assert made[4] == made[3] <= made[0] + 3
