"""Figures that are kept: where they come from, and that nothing else gets in."""

import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.marks import slow_but

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts"
RESULTS = SCRIPTS / "bench" / "results"
STAMP = ("command", "commit", "date", "hardware", "load_average")
_LOAD = re.search(r"^QUIET_LOAD = (.+)$", (SCRIPTS / "bench/load.py").read_text(), re.M)
QUIET_LOAD = float(_LOAD[1]) if _LOAD else 0.0
NAME = re.compile(r"[a-z_]+_(sm90|[a-z]\d{3}|[a-z]+(-[a-z0-9]+)+c)_20\d{4}\.json")
SAVERS = {
    "bench/run": ("analysis", "--save"),
    "bench/run ahep": ("--save",),
    "bench/run changes": ("--save",),
    "bench/before_after": (".", "--save"),
    "bench/run bsp_workers": ("--save",),
    "bench/run embedding_workers": ("--save",),
    "bench/run gnn_workers": ("--save",),
    "bench/run bem": ("--save",),
    "bench/run graph_classes": ("--save",),
    "bench/run low_memory": ("--save",),
    "bench/run network_evaluation": ("--save",),
    "bench/run parameter_servers": ("--save",),
    "bench/run mixture": ("--save",),
    "bench/run neighbor_cache": ("--save",),
    "bench/run partition_groups": ("--save",),
    "bench/run pinsage_negatives": ("--save",),
    "bench/run quality_embedding": ("--save",),
    "bench/run quality_gnn": ("--save",),
    "bench/run temporal": ("--save",),
    "cuda_registers": (),
    "first_hour": ("--data", ".", "--save"),
    "fuzz_readers": (),
    "memory_rule": ("--save",),
    "mutation": ("--save",),
    "networkx_suite": ("--save",),
    "torture": ("--state", "none", "--save"),
}
"""Scripts that write results, with what makes them do so."""
OLDER = {
    "fuzz_readers_intel-xeon-2c_202611.json": "before rows had their load and command; "
    "the readers that changed since are measured again",
    "neighbor_cache_amd-epyc-2c_202611.json": "counts, the same on any machine: no load",
}
"""Files from before every row was stamped by a clean tree, and why they are still there."""


def faults_of(path: Path) -> list[str]:
    """Return what rows of a result do not state, or state of a tree with changes."""
    result = json.loads(path.read_text())
    machine = result.get("machine", {})
    runs = {(run["work"], run["system"]): run for run in machine.get("runs", ())}
    found = set()
    for row in result.get("rows", [result]):
        run: dict[str, Any] = runs.get((row.get("work"), row.get("system")), {})
        told = {name: row.get(name, run.get(name, machine.get(name))) for name in STAMP}
        found |= {f"no {name}" for name, value in told.items() if value in (None, "")}
        if str(told["commit"]).endswith("-dirty"):
            found.add("uncommitted changes")
    return sorted(found)


def test_every_row_states_command_commit_date_hardware_and_load() -> None:
    faults = {path.name: faults_of(path) for path in sorted(RESULTS.glob("*.json"))}
    bad = {name for name, found in faults.items() if found}
    assert {name: faults[name] for name in bad - OLDER.keys()} == {}
    assert OLDER.keys() - bad == set()  # what was measured again leaves the list


def loads_of(result: dict[str, Any]) -> list[float]:
    """Return all load averages of a result: of the whole, its runs and its rows."""
    machine = result.get("machine", {})
    stated = [machine, *machine.get("runs", ()), *result.get("rows", [result])]
    return [load for it in stated for load in it.get("load_average") or ()]


def test_pages_call_a_machine_quiet_only_where_the_file_does() -> None:
    link = re.compile(r"\(([^()\s]*results/[a-z0-9_-]+\.json)\)")
    loud = []
    for page in pages():
        for paragraph in page.read_text().split("\n\n"):
            if not re.search(r"quiet\s+machine", paragraph, re.IGNORECASE):
                continue
            for target in link.findall(paragraph):
                result = json.loads((page.parent / target).resolve().read_text())
                if max(loads_of(result), default=0.0) > QUIET_LOAD:
                    loud.append((page.relative_to(ROOT).as_posix(), target))
    assert loud == []


STORAGE = "scripts/bench/pages/storage.md", "dynamic_amd-epyc-2c_202611.json"
GNN = "scripts/bench/pages/gnn.md", "gnn_amd-epyc-2c_202611.json"
SAMPLING = "scripts/bench/pages/sampling.md", "sampling_amd-epyc-2c_202611.json"
CHANGES = "scripts/bench/pages/engine.md", "incremental_intel-xeon-2c_202611.json"
OURS, TENTH = "graphsys", "10 deltas of 10M edges"
LAYERS = "GraphSAGE 20 batches of 1024, 15/10/5, h256, R-MAT 1M/21M"
GATHER = "gather 105k x 100 float32, R-MAT 1M/21M"
RATIOS = [
    (*STORAGE, r"PageRank \| (\S+) \|", f"pagerank, {TENTH}", OURS, "compacted store"),
    (*STORAGE, r"BFS \| (\S+) \|", f"bfs, {TENTH}", OURS, "compacted store"),
    (*STORAGE, r"sampling \| (\S+) \|", f"sampling, {TENTH}", OURS, "compacted store"),
    (*GNN, r"batches of 1024 \| (\S+) \|", LAYERS, OURS, "DGL"),
    (*GNN, r"one batch ahead \| (\S+),", LAYERS, "graphsys, no prefetching", "DGL"),
    (*GNN, r"\(SpMM\) \| (\S+) \|", "SpMM sum, 100 features, R-MAT 1M/21M", OURS, "DGL"),
    (*SAMPLING, r"time \| (\S+) of `numpy.take`", GATHER, OURS, "numpy.take, clip"),
    (
        *SAMPLING,
        r"numpy.take` \| (\S+) \|",
        GATHER,
        "graphsys, 1 thread",
        "numpy.take, clip",
    ),
    (
        *CHANGES,
        r"\| .01 % \| \S+ \| (\S+) ",
        "sssp, 0.01% of the edges changed",
        "anew",
        OURS,
    ),
    (
        *CHANGES,
        r"\| .1 % \| (\S+) ",
        "triangle_count, 0.10% of the edges changed",
        "anew",
        OURS,
    ),
]
"""Page, result, where the page has a ratio, and of whose times it is."""


@pytest.mark.parametrize(("page", "name", "place", "work", "above", "below"), RATIOS)
def test_a_ratio_on_a_page_is_the_median_of_the_ratios_within_rounds(
    page: str, name: str, place: str, work: str, above: str, below: str
) -> None:
    found = re.search(place, (ROOT / page).read_text())
    assert found is not None
    runs = json.loads((RESULTS / name).read_text())["machine"]["runs"]
    seconds = {it["system"]: it["seconds"] for it in runs if it["work"] == work}
    rounds = zip(seconds[above], seconds[below], strict=True)
    measured = statistics.median(first / second for first, second in rounds)
    last_place = 10.0 ** -len(found[1].partition(".")[2])
    assert float(found[1]) == pytest.approx(measured, abs=0.51 * last_place)


def pages() -> list[Path]:
    """Return the Markdown files of the tree, each once."""
    rooms = ("graphsys", "datasets", "partitioners", "scripts")
    found = [
        *ROOT.glob("*.md"),
        *(it for room in rooms for it in (ROOT / room).rglob("*.md")),
    ]
    return sorted({path.resolve() for path in found})


def test_no_result_tells_folders_of_the_machine() -> None:
    place = re.compile(r'[" =,]/(home|root|tmp|work|mnt|Users|var)/')
    pages = RESULTS.parent.glob("**/*.md")
    found = {
        path.name for path in (*RESULTS.iterdir(), *pages) if place.search(path.read_text())
    }
    assert found == set()


def test_names_of_results_say_case_hardware_and_month() -> None:
    names = {path.name for path in RESULTS.iterdir()}
    strange = {name for name in names if not NAME.fullmatch(name)}
    assert strange == set()


def test_every_script_that_writes_results_is_known_here() -> None:
    writers = set()
    for path in SCRIPTS.rglob("*"):
        if path.is_file() and path.parent != RESULTS and "__pycache__" not in path.parts:
            text = path.read_text(errors="replace")
            if path.suffix == "" and re.search(r"keep_record|result_path", text):
                writers.add(path.relative_to(SCRIPTS).as_posix())
    assert writers <= SAVERS.keys()


@pytest.mark.parametrize("name", slow_but(["bench/run", "torture"], SAVERS))
def test_no_result_is_kept_of_a_tree_with_changes(name: str, tmp_path: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no clone: no result states a commit")
    program, *case = name.split()
    words = [str(SCRIPTS / program), *case, *SAVERS[name]]
    if (SCRIPTS / program).read_text().startswith("#!/usr/bin/env python"):
        words = [sys.executable, "-P", *words]
    before = {path: path.stat().st_mtime_ns for path in RESULTS.iterdir()}
    # with an index of nothing every file of the tree is a change
    environment = os.environ | {
        "GIT_INDEX_FILE": str(tmp_path / "index"),
        "GRAPHSYS_VENV": sys.prefix,
    }
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode != 0
    assert "error: the tree has changes that are not committed" in done.stderr
    assert {path: path.stat().st_mtime_ns for path in RESULTS.iterdir()} == before
