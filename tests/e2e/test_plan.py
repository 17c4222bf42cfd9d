"""``graphsys plan`` as a user types it."""

import json
from pathlib import Path
from typing import Any

import pytest

from graphsys.planning.rates import write_rates
from tests.unit.planning.test_plan import some_rates

Run = Any


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rates that were measured before, so that nothing is measured here."""
    monkeypatch.setenv("GRAPHSYS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache" / "rates").mkdir(parents=True, mode=0o700)
    write_rates(some_rates(), tmp_path / "cache" / "rates" / "rates.json")


@pytest.mark.usefixtures("measured")
def test_a_plan_is_a_table_and_its_assumptions(run_cli: Run) -> None:
    done = run_cli("plan", "--edges", "1e12", "--nodes", "64e9", "--machines", "64")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split("\t")[:3] == ["verb", "memory", "disk"]
    verbs = [line.split("\t")[0] for line in lines[1:]]
    assert {"ingest", "verify", "run pagerank", "train embedding", "nearest"} <= set(verbs)
    assert "(too much)" in done.stdout
    assert "extrapolated: " in done.stderr
    assert done.stderr.count("assumed: ") == 6
    assert "measuring" not in done.stderr


@pytest.mark.usefixtures("measured")
def test_a_plan_for_machines_is_one_object(run_cli: Run) -> None:
    done = run_cli("plan", "--edges", "1e6", "--nodes", "1e5", "--memory", "8GB", "--json")
    answer = json.loads(done.stdout)
    assert answer["num_edges"] == 10**6
    assert answer["memory_bytes"] == 8 * 10**9
    assert answer["extrapolated"] is False
    [pagerank] = [it for it in answer["verbs"] if it["verb"] == "run pagerank"]
    for key in ("memory_bytes", "disk_bytes", "read_bytes", "network_bytes"):
        assert isinstance(pagerank[key], int)
    assert pagerank["seconds"] > 0


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--edges", "0", "--nodes", "5"], "error: edges=0: expected a number from 1"),
        (["--edges", "many", "--nodes", "5"], "'--edges': Input should be a"),
        (["--edges", "5"], "--nodes"),
        (["--edges", "5", "--nodes", "5", "--memory", "1kg"], "error: "),
    ],
)
def test_sizes_that_are_none_are_refused(
    run_cli: Run, words: list[str], message: str
) -> None:
    done = run_cli("plan", *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
