"""The benchmark harness measures in rounds, verifies first, and keeps its JSON."""

import importlib
from typing import Any

import pytest

from tests.conftest import ROOT

ROW = {
    "work",
    "system",
    "median_s",
    "rate",
    "unit",
    "peak_bytes",
    "ratio_to_best_peer",
    "fraction_of_limit",
}


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return importlib.import_module


def make_work(harness: Any, times: dict[str, list[float]], calls: list[str]) -> Any:
    def contender(system: str) -> Any:
        seconds = iter(times[system])

        def run() -> Any:
            calls.append(system)
            return harness.Outcome(seconds=next(seconds), result=7, peak_bytes=len(calls))

        return harness.Contender(system=system, run=run, is_reference="only" in system)

    return harness.Work(
        name="w",
        amount=100.0,
        unit="edges/s",
        contenders=[contender(system) for system in times],
        verify=harness.same_results,
        limit_s=0.5,
    )


def test_rounds_are_interleaved_and_the_warm_up_is_not_timed(bench: Any) -> None:
    harness = bench("bench.harness")
    calls: list[str] = []
    times = {"graphsys": [99.0, 1.0, 2.0, 3.0], "peer": [99.0, 4.0, 4.0, 4.0]}
    rows, runs = harness.measure(
        make_work(harness, times, calls), rounds=3, report=lambda _: None
    )
    assert calls == ["graphsys", "peer"] * 4
    assert runs[0].seconds == [1.0, 2.0, 3.0]
    assert (rows[0].median_s, rows[0].rate, rows[0].fraction_of_limit) == (2.0, 50.0, 0.25)
    assert rows[0].peak_bytes == 7


def test_ratio_is_the_median_of_the_ratios_within_rounds(bench: Any) -> None:
    harness = bench("bench.harness")
    times = {
        "graphsys": [0.0, 1.0, 10.0, 1.0],
        "slow peer": [0.0, 9.0, 90.0, 9.0],
        "peer": [0.0, 3.0, 40.0, 2.0],
        "parse only": [0.0, 0.1, 0.1, 0.1],
    }
    rows, _ = harness.measure(
        make_work(harness, times, []), rounds=3, report=lambda _: None
    )
    assert rows[0].ratio_to_best_peer == 3.0
    assert rows[2].ratio_to_best_peer == 1.0


def test_wrong_results_are_never_timed(bench: Any) -> None:
    harness = bench("bench.harness")
    work = harness.Work(
        name="w",
        amount=1.0,
        unit="edges/s",
        contenders=[
            harness.Contender(
                system=name, run=lambda n=number: harness.Outcome(seconds=1, result=n)
            )
            for number, name in enumerate(("graphsys", "peer"))
        ],
        verify=harness.same_results,
    )
    with pytest.raises(harness.WrongResultError, match="differ"):
        harness.measure(work, rounds=3, report=lambda _: None)


def test_json_has_exactly_the_agreed_keys(bench: Any) -> None:
    harness = bench("bench.harness")
    output = bench("bench.output")
    rows, _ = harness.measure(
        make_work(harness, {"graphsys": [1.0, 1.0]}, []), rounds=1, report=lambda _: None
    )
    result = output.as_json("ingest", {"cpu": {}}, rows)
    assert set(result) == {"case", "machine", "rows"}
    assert set(result["rows"][0]) == ROW
    assert result["rows"][0]["ratio_to_best_peer"] is None


def test_missing_peers_are_named(bench: Any) -> None:
    harness = bench("bench.harness")
    found = harness.missing_peers({"numpy": "numpy", "Nothing": "no_such_package_xyz"})
    assert found == ["Nothing"]


def test_inputs_and_peers_are_chosen_by_name_and_unknown_ones_refused(bench: Any) -> None:
    chosen = bench("bench.__main__").chosen
    assert chosen("a, b", ("a", "b", "c"), "inputs") == ("a", "b")
    assert chosen(None, ("a",), "inputs") == ()
    with pytest.raises(SystemExit, match="--peers: got x; the case has a, b"):
        chosen("a,x", {"a": "a", "b": "b"}, "peers")


def test_child_reports_time_result_and_its_own_peak(bench: Any, monkeypatch: Any) -> None:
    child = bench("bench.child")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "scripts"))
    outcome = child.in_child("statistics:median", data=[3, 1, 2])()
    assert outcome.result == 2
    assert outcome.peak_bytes is not None
    with pytest.raises(child.ChildFailedError, match="no median"):
        child.in_child("statistics:median", data=[])()
