"""Which results are stale: in a history made here, and that all have paths that exist."""

import importlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT


@pytest.fixture
def staleness(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module, imported as scripts/stale_figures does."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return importlib.import_module("bench.staleness")


def git(root: Path, *arguments: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(
        ["git", "-C", str(root), *who, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_every_result_has_paths_and_they_are_there(staleness: Any) -> None:
    cases = {staleness.case_of(path.stem) for path in staleness.RESULTS.glob("*.json")}
    assert cases - staleness.MEASURED.keys() == set()
    paths = {path for measured in staleness.MEASURED.values() for path in measured}
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize(("changed", "is_stale"), [(0, False), (10, False), (11, True)])
def test_more_than_a_tenth_of_the_lines_makes_a_result_stale(
    staleness: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changed: int,
    is_stale: bool,
) -> None:
    monkeypatch.setitem(staleness.MEASURED, "planted", ("measured",))
    (tmp_path / "measured").mkdir()
    lines = [f"line {k}" for k in range(100)]
    (tmp_path / "measured" / "a.py").write_text("\n".join(lines) + "\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    commit = git(tmp_path, "rev-parse", "HEAD")
    lines[:changed] = [f"other {k}" for k in range(changed)]
    (tmp_path / "measured" / "a.py").write_text("\n".join(lines) + "\n")
    (tmp_path / "elsewhere.py").write_text("x\n" * 500)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "two")
    result = tmp_path / "planted_here_202611.json"
    result.write_text(json.dumps({"rows": [{"commit": commit}]}))
    age = staleness.age_of(result, tmp_path)
    assert (age.share, age.is_stale) == (changed / 100, is_stale)
    rows = [{"commit": commit}, {"commit": "0123456789ab"}, {}]
    kept = staleness.fresh(rows, "planted", tmp_path)
    assert kept == ([] if is_stale else rows[:1])
    result.write_text(json.dumps({"rows": [{"commit": "0123456789ab"}]}))
    gone = staleness.age_of(result, tmp_path)
    assert (gone.date, gone.share, gone.is_stale) == ("", None, True)


def test_a_link_to_a_stale_result_says_of_when_it_is(staleness: Any) -> None:
    ages = {
        "old.json": staleness.Age(name="old.json", date="2026-11-20", share=0.5),
        "new.json": staleness.Age(name="new.json", date="2026-11-25", share=0.01),
    }
    page = "a ([runs](../results/old.json)), b ([runs](../results/new.json)), [x](y.md)"
    found = staleness.marked(page, ages)
    assert found == page.replace(
        "[runs](../results/old", "[runs of 2026-11-20](../results/old"
    )
    assert staleness.marked(found, ages) == found
    fresh = {**ages, "old.json": ages["new.json"]}
    assert staleness.marked(found, fresh) == page


def test_a_loaded_machine_is_not_saved_as_quiet(
    staleness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = importlib.import_module("bench.load")
    for during, is_quiet in ((1.5, True), (1.51, False)):
        monkeypatch.setattr(load.os, "getloadavg", lambda during=during: (during, 0, 0))
        with load.LoadMeter() as meter:
            pass
        assert meter.is_quiet is is_quiet
