"""``--memory`` is kept: the peak of the whole command, sampled 100 times a second."""

import json
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pytest

from graphsys.core.memory import parse_bytes
from graphsys.storage import EdgeChunk
from tests.conftest import Run
from tests.marks import slow_but
from tests.stores import make_store

pytestmark = pytest.mark.e2e

SLACK = 32 * 10**6
"""What a command may take beyond its budget."""
BUDGET = "150MB"
"""Less than the process and the rows of the graph take together, by far more than that."""
MAPPED = {"pagerank": (), "wcc": (), "bfs": ("--param", "source=1")}
"""What reads the rows where they lie in the files, and copies none."""
STREAMED = {"pagerank, program": ("--implementation", "program"), "k_core": ()}


NEAR = {
    "k_core, program": ("--implementation", "program"),
    "degree_statistics": (),
    "degree_assortativity": (),
    "random_walks": ("--param", "length=4"),
}


def tree_bytes(pid: int) -> int:
    """Return RssAnon + RssShmem of a process and its descendants, in bytes."""
    total = 0
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(("RssAnon:", "RssShmem:")):
                total += int(line.split()[1]) * 1024
        tasks = Path(f"/proc/{pid}/task").iterdir()
        found = [kid for task in tasks for kid in (task / "children").read_text().split()]
    except OSError:  # it has just ended
        return total
    return total + sum(tree_bytes(int(kid)) for kid in found)


def peak_of(*command: object) -> tuple[int, str]:
    """Run a command that must succeed; return its peak in bytes and what it printed."""
    process = subprocess.Popen(
        [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    peak = 0
    while process.poll() is None:
        peak = max(peak, tree_bytes(process.pid))
        time.sleep(0.01)
    printed, errors = process.communicate()
    assert process.returncode == 0, errors
    return peak, printed


def drawn(folder: Path, nodes: int, edges: int, parts: int, *, directed: bool) -> Path:
    """Return a store of random edges."""
    ends = np.random.default_rng(0).integers(0, nodes, (2, edges))
    chunk = EdgeChunk(src=ends[0], dst=ends[1])
    make_store(folder / "graph", chunk, is_directed=directed, partitions=parts)
    return folder / "graph"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: Any) -> Path:
    """Return a store whose rows take 94 MB, of few nodes."""
    folder = tmp_path_factory.mktemp("memory")
    return drawn(folder, 1 << 16, 11_800_000, 8, directed=False)


@pytest.fixture(scope="module")
def many(tmp_path_factory: Any) -> Path:
    """Return a store of a million nodes."""
    folder = tmp_path_factory.mktemp("memory")
    return drawn(folder, 1 << 20, 3_000_000, 4, directed=False)


@pytest.fixture(scope="module")
def small(tmp_path_factory: Any) -> Path:
    """Return a store of a thousand nodes."""
    return drawn(tmp_path_factory.mktemp("memory"), 1000, 8000, 3, directed=True)


@pytest.mark.parametrize(
    "name", slow_but(["k_core", "pagerank, program"], [*MAPPED, *STREAMED])
)
def test_a_run_is_what_was_explained_and_keeps_its_budget(
    name: str, graph: Path, tmp_path: Path, run_installed: Run, graphsys_command: str
) -> None:
    algorithm, options = name.partition(",")[0], {**MAPPED, **STREAMED}[name]
    mode = "memory" if name in MAPPED else "streamed"
    words = ("run", algorithm, graph, *options)
    free = run_installed(
        *words, "-o", tmp_path / "free.parquet"
    )  # compiles what is missing
    assert free.returncode == 0, free.stderr
    explained = run_installed(*words, "--memory", BUDGET, "--explain", "--json")
    assert explained.returncode == 0, explained.stderr
    told = json.loads(explained.stdout)
    budget = parse_bytes(BUDGET)
    assert (told["mode"], told["budget_bytes"]) == (mode, budget)
    assert told["peak_bytes"] == told["needs"][mode] <= budget
    if (
        name == "k_core"
    ):  # copied to memory the rows would break the rule; others are mapped
        assert told["needs"]["memory"] > budget + SLACK
    where = "rows streamed from" if name in STREAMED else "rows mapped as they are"
    assert any(where in line for line in told["explanation"])

    out = tmp_path / "kept.parquet"
    peak, _ = peak_of(graphsys_command, *words, "-o", out, "--memory", BUDGET)
    assert peak <= budget + SLACK, f"{peak / 1e6:.0f} MB"
    assert peak <= told["peak_bytes"] <= 1.25 * peak
    kept, expected = (
        pyarrow.parquet.read_table(tmp_path / f"{n}.parquet") for n in ("kept", "free")
    )
    assert kept.equals(expected)


@pytest.mark.parametrize("budget", slow_but(["450MB"], ["", "450MB"]))
@pytest.mark.parametrize("name", slow_but(["k_core, program"], NEAR))
def test_what_is_told_is_near_the_peak_where_nodes_are_many(
    name: str,
    budget: str,
    many: Path,
    tmp_path: Path,
    run_installed: Run,
    graphsys_command: str,
) -> None:
    algorithm, options = name.partition(",")[0], NEAR[name]
    words = ["run", algorithm, many, *options, *(["--memory", budget] if budget else [])]
    run_installed(*words, "-o", tmp_path / "first.parquet")  # compiles what is missing
    told = json.loads(run_installed(*words, "--explain", "--json").stdout)["peak_bytes"]
    peak, _ = peak_of(graphsys_command, *words, "-o", tmp_path / "out.parquet")
    assert peak <= told <= 1.25 * peak, f"{told / 1e6:.0f} of {peak / 1e6:.0f} MB"


@pytest.mark.parametrize(
    "algorithm", slow_but(["leiden"], ["triangle_count", "leiden", "jaccard"])
)
def test_a_refusal_names_an_amount_that_works(
    algorithm: str, small: Path, tmp_path: Path, run_installed: Run, graphsys_command: str
) -> None:
    words = ("run", algorithm, small, "-o", tmp_path / "out.parquet")
    assert run_installed(*words).returncode == 0  # compiles what is missing
    done = run_installed(*words, "--overwrite", "--memory", "60MB")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    named = re.search(r"give --memory (\d+MB)", line)
    assert line.startswith("error: memory: ")
    assert named is not None, line
    command = (graphsys_command, *words, "--overwrite", "--memory", named[1])
    peak, _ = peak_of(*command)
    assert peak <= parse_bytes(named[1]) + SLACK


def test_explain_needs_the_graph(run_installed: Run, tmp_path: Path) -> None:
    for algorithm in ("pagerank", "triangle_count"):
        done = run_installed("run", algorithm, tmp_path / "none", "--explain")
        assert done.returncode == 2
        assert re.fullmatch(r"error: .*none.*\n", done.stderr)


def test_ingest_says_its_minimum_and_keeps_it(
    tmp_path: Path, run_installed: Run, graphsys_command: str
) -> None:
    ends = np.random.default_rng(0).integers(0, 1 << 18, (2, 3_000_000))
    table = pa.table({"src": ends[0], "dst": ends[1]})
    header = pyarrow.csv.WriteOptions(include_header=False, delimiter=" ")
    pyarrow.csv.write_csv(table, tmp_path / "edges.txt", header)
    words = ("ingest", tmp_path / "edges.txt", "-o", tmp_path / "graph")
    done = run_installed(*words, "--memory", "17MB")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    named = re.search(
        r"^error: memory: .*; give --memory (\d+MB) \(memory=.*\) or more$", line
    )
    assert named is not None, line
    assert not (tmp_path / "graph").exists()
    peak, _ = peak_of(graphsys_command, *words, "--memory", named[1])
    assert peak <= parse_bytes(named[1]) + SLACK
    again = ("partition", tmp_path / "graph", "-o", tmp_path / "other", "--partitions", "3")
    done = run_installed(*again, "--memory", "17MB")
    assert done.returncode == 2
    assert re.search(r"give --memory \d+MB \(memory=.*\) or more$", done.stderr.strip())
    peak, _ = peak_of(graphsys_command, *again, "--memory", named[1])
    assert peak <= parse_bytes(named[1]) + SLACK


@pytest.mark.parametrize("kind", slow_but(["tables"], ["integers", "strings", "tables"]))
def test_ingest_keeps_a_budget_that_its_nodes_would_fill(
    kind: str, tmp_path: Path, graphsys_command: str
) -> None:
    num = 2_500_000 if kind == "strings" else 5_000_000  # edges; twice as many nodes
    ids = np.random.default_rng(0).permutation(2 * num) * 7919
    ends = {"src": pa.array(ids[:num]), "dst": pa.array(ids[num:])}
    if kind == "strings":
        ends = {it: pc.cast(values, pa.string()) for it, values in ends.items()}
    edges, nodes = tmp_path / "edges.parquet", tmp_path / "nodes.parquet"
    pyarrow.parquet.write_table(pa.table(ends), edges)
    words: list[Any] = ["ingest", edges]
    if kind == "tables":
        columns = {"id": ids, "label": ids % 7, "x": ids / 3}
        pyarrow.parquet.write_table(pa.table(columns), nodes)
        words = ["ingest", "--nodes", f"node={nodes}", "--edges", f"node,to,node={edges}"]
    budget, out = 270_000_000, tmp_path / "graph"
    peak, printed = peak_of(
        graphsys_command,
        *words,
        "-o",
        out,
        "--partitions",
        "2",
        "--memory",
        budget,
        "--json",
    )
    assert json.loads(printed)["num_nodes"] == 2 * num
    assert peak <= budget + SLACK, f"{peak / 1e6:.0f} MB"


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ("300MB", ("--partitioner", "ldg")),
        pytest.param("210MB", ("--compare",), marks=pytest.mark.slow),
    ],
)
def test_partition_counts_the_nodes(
    budget: str,
    words: tuple[str, ...],
    tmp_path: Path,
    run_installed: Run,
    graphsys_command: str,
) -> None:
    ends = np.random.default_rng(0).integers(0, 1 << 22, (2, 2_200_000))
    make_store(tmp_path / "graph", EdgeChunk(src=ends[0], dst=ends[1]), partitions=2)
    command = ["partition", tmp_path / "graph", "--partitions", "4", *words]
    if "--compare" not in words:
        command += ["-o", tmp_path / "other"]
    done = run_installed(*command, "--memory", budget)  # enough for a graph of few nodes
    assert done.returncode == 2
    named = re.search(
        r"^error: memory: .*; give --memory (\d+MB) \(memory=.*\) or more$", done.stderr
    )
    assert named is not None, done.stderr
    assert not (tmp_path / "other").exists()
    peak, _ = peak_of(graphsys_command, *command, "--memory", named[1])
    assert peak <= parse_bytes(named[1]) + SLACK, f"{peak / 1e6:.0f} MB"


@pytest.mark.slow  # test_mine_memory.py: other patterns, on a smaller graph
def test_mining_keeps_its_budget(
    graph: Path, run_installed: Run, graphsys_command: str
) -> None:
    words = ("mine", graph, "--pattern", "triangle", "--json")
    assert run_installed(*words).returncode == 0  # compiles what is missing
    budget = parse_bytes(BUDGET)
    free, expected = peak_of(graphsys_command, *words)
    kept, found = peak_of(graphsys_command, *words, "--memory", BUDGET)
    assert kept <= budget + SLACK, f"{kept / 1e6:.0f} MB"
    assert free > budget + SLACK  # in memory the rule would be broken
    assert json.loads(found)["counts"] == json.loads(expected)["counts"]
    refused = run_installed(*words, "--memory", "60MB")
    assert refused.returncode == 2
    [line] = refused.stderr.splitlines()
    assert line.startswith("error: memory: mining on 65536 nodes needs ")
    named = re.search(r"give --memory (\d+MB)", line)
    assert named is not None
    peak, found = peak_of(graphsys_command, *words, "--memory", named[1])
    assert peak <= parse_bytes(named[1]) + SLACK
    assert json.loads(found)["counts"] == json.loads(expected)["counts"]
