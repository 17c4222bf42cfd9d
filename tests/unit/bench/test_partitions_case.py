"""The benchmark of all listed algorithms has a work for each, with what it needs."""

import importlib
from pathlib import Path
from typing import Any

import pytest

from graphsys.engine.algorithms import ALGORITHMS
from tests.conftest import ROOT


@pytest.mark.filterwarnings("ignore:most of the")  # R-MAT repeats edges
def test_every_algorithm_is_benchmarked_or_says_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    case = importlib.import_module("bench.cases.engine_partitions")
    make = case._stores
    monkeypatch.setattr(case, "_stores", lambda folder, scale: make(folder, 6))
    prepared = []

    def in_child(where: str, *, store: Path, name: str, options: dict[str, Any]) -> Any:
        prepared.append(name)
        ALGORITHMS[name].prepare(str(store), **options)  # parameters fit
        return where

    monkeypatch.setattr(case, "in_child", in_child)
    missing: list[str] = []
    works = case.works(quick=False, folder=tmp_path, limits=None, missing=missing)
    assert len(list(works)) >= len(set(prepared)) > 30
    assert set(prepared) | set(missing) == ALGORITHMS.keys()
    assert missing == [
        name for name in sorted(ALGORITHMS) if ALGORITHMS[name].example.needs
    ]
