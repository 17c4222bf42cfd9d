"""The benchmark harness measures in rounds, verifies first, and keeps its JSON."""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
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


def test_a_peer_may_be_a_folder_of_programs(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = bench("bench.harness")
    monkeypatch.delenv("GAPBS", raising=False)
    assert harness.missing_peers({"GAPBS": "$GAPBS"}) == ["GAPBS"]
    monkeypatch.setenv("GAPBS", str(tmp_path))
    assert harness.missing_peers({"GAPBS": "$GAPBS"}) == []


# reads what GAPBS reads (src/reader.h, ReadSerializedGraph), tells the sum of a row
READS_GRAPHS = """#!{python}
import sys
import numpy as np
words = sys.argv[1:]
data = open(words[words.index("-f") + 1], "rb").read()
num_entries, num_nodes = np.frombuffer(data, np.int64, 2, offset=1)
offsets = np.frombuffer(data, np.int64, num_nodes + 1, offset=17)
wide = 2 if "sssp" in sys.argv[0] else 1
rows = np.frombuffer(data, np.int32, offset=17 + 8 * (num_nodes + 1)).reshape(-1, wide)
assert len(rows) == num_entries == offsets[-1] and data[0] == 0
delta = int(words[words.index("-d") + 1]) if "-d" in words else 0
source = int(words[words.index("-r") + 1])
print("Trial Time:          9.00000")
print(f"Trial Time:          {{1 + abs(delta - 32)}}.50000")
found = rows[offsets[source] : offsets[source + 1], -1].sum()
print(f"BFS Tree has {{found}} nodes and", f"SSSP Tree reaches {{found}} nodes")
"""


@pytest.mark.parametrize(("work", "reached"), [("bfs", [1, 2]), ("sssp", [7, 16])])
def test_gapbs_reads_the_same_rows_and_the_best_delta_counts(
    bench: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    work: str,
    reached: list[int],
) -> None:
    for name in ("bfs", "sssp"):
        (tmp_path / name).write_text(READS_GRAPHS.format(python=sys.executable))
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("GAPBS", str(tmp_path))
    arrays = {  # a path 0 - 1 - 2
        "indptr": np.array([0, 1, 3, 4], dtype=np.uint32),
        "indices": np.array([1, 0, 2, 1], dtype=np.uint32),
        "weight": np.array([7, 7, 9, 9], dtype=np.float32),
        "sources": np.array([0, 1]),
    }
    for name, values in arrays.items():
        np.save(tmp_path / f"{name}.npy", values)
    found = bench("bench.cases.engine_gapbs").run(work, str(tmp_path))
    assert found.result == [{"reached": number} for number in reached]
    assert found.seconds == (33.5 if work == "bfs" else 1.5)


def test_parts_of_cases_are_no_cases(bench: Any) -> None:
    names = list(bench("bench.__main__").case_names())
    assert {"engine", "billion", "mining"} <= set(names)
    assert not {"engine_systems", "engine_gapbs", "__init__"} & set(names)


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


def test_results_name_no_folders_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    output = importlib.import_module("bench.output")
    machine = {"cuda_compiler": {"path": "/opt/cuda/libnvvm.so.4"}, "numba_cache": "on"}
    told = {"command": "scripts/a --out /somewhere/else --save", "machine": machine}
    output._write(tmp_path / "a.json", told)
    written = json.loads((tmp_path / "a.json").read_text())
    assert written["machine"]["cuda_compiler"] == {"path": "libnvvm.so.4"}
    assert written["command"] == "scripts/a --out FOLDER --save"
