"""The case ``mining`` refuses counts that differ."""

import importlib

import pytest

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
