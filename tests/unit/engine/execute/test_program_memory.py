"""Memory of a run: stated, chosen by, kept."""

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import BudgetError
from graphsys.engine import memory_plan
from graphsys.engine import program as gs
from graphsys.engine.execute import program_memory
from graphsys.engine.execute.prepared import compile_program
from graphsys.engine.execute.program_memory import choose
from graphsys.engine.program_run import explain
from graphsys.engine.programs.pagerank import PageRank
from graphsys.engine.programs.sssp import ShortestPaths
from graphsys.engine.run import run
from graphsys.engine.topology import Topology
from graphsys.storage import EdgeChunk, Graph
from tests.stores import edge_chunk, make_store


@pytest.fixture(scope="module")
def graph(tmp_path_factory: Any) -> Graph:
    rng = np.random.default_rng(0)
    chunk = edge_chunk(rng.integers(0, 5000, (60_000, 2)).tolist())
    return make_store(
        tmp_path_factory.mktemp("budget") / "graph", chunk, partitions=4
    ).graph


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the process's own part of the need stay as it is.

    Compiling has none: a kernel that another test compiles meanwhile would end it.
    """
    monkeypatch.setattr(memory_plan, "resident_bytes", lambda: 200 << 20)
    compiled = SimpleNamespace(compile_bytes=lambda: 0)
    monkeypatch.setattr(program_memory, "kernels_of", lambda *_: compiled)


@pytest.mark.usefixtures("still")
def test_modes_take_less_one_after_the_other(graph: Graph) -> None:
    topology = Topology.of(graph)
    plan, _, _ = compile_program(PageRank(), topology)
    free = choose(plan, topology, None)
    needs = free.needs
    assert free.needs["memory"] > free.needs["streamed"] > free.needs["paged"]
    for mode, needed in free.needs.items():
        # rows that are mapped are read in order, unless all of them fit besides
        besides = free.index_bytes if mode == "memory" else 0
        assert choose(plan, topology, needed + besides).mode == mode
    with pytest.raises(BudgetError):
        choose(plan, topology, needs["paged"] - 1)


def test_what_a_start_takes_is_counted(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_memory, "base_bytes", lambda: 0)
    free = SimpleNamespace(compile_bytes=lambda: 0)
    monkeypatch.setattr(program_memory, "kernels_of", lambda *_: free)

    class Greedy(PageRank):
        start_bytes = 1000

    topology = Topology.of(graph)
    plain, greedy = (
        choose(compile_program(each, topology)[0], topology, None).needs
        for each in (PageRank(), Greedy())
    )
    assert {greedy[it] - plain[it] for it in plain} == {1000 * topology.num_nodes}


def test_a_budget_too_small_names_one_that_works(graph: Graph) -> None:
    with pytest.raises(BudgetError, match=r"PageRank on .* needs .* got 1\.0 MiB") as error:
        run(PageRank(iterations=3), graph, memory="1MiB")
    found = re.search(r"memory='(\d+MB)'", str(error.value))
    assert found is not None
    run(PageRank(iterations=3), graph, memory=found[1])


def test_edges_in_memory_cannot_be_streamed() -> None:
    topology = Topology.from_edges(np.array([0, 1]), np.array([1, 2]), 3)
    with pytest.raises(BudgetError, match="rows must be in memory: the graph is"):
        run(PageRank(iterations=3), topology, memory=1000)


@pytest.mark.usefixtures("still")
def test_one_partition_is_mapped_and_read_in_order_where_it_is_large(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(0)
    chunk = edge_chunk(rng.integers(0, 1000, (300_000, 2)).tolist())
    topology = Topology.of(make_store(tmp_path / "graph", chunk, partitions=1).graph)
    plan, _, _ = compile_program(PageRank(), topology)
    choice = choose(plan, topology, 10**12)
    assert choice.mode == "memory"
    assert "mapped as they are" in choice.reasons[0]
    assert choose(plan, topology, choice.needed).mode == "streamed"


LIMITED = """
import resource, sys
from dataclasses import replace
from pathlib import Path
from graphsys.core.memory import MemoryMeter
from graphsys.engine import run as runs
from graphsys.engine.execute import program_memory, prepared
from graphsys.engine.execute.rows import MemoryBlocks
from graphsys.engine.programs.pagerank import PageRank
from graphsys.engine.topology import Topology

def use(mode):
    prepared.choose = lambda plan, topology, _: replace(
        program_memory.choose(plan, topology, None), mode=mode, budget=0)

small, large = sys.argv[1:]
for mode in ("memory", "streamed"):
    use(mode)
    runs.run(PageRank(iterations=2), small, num_threads=2)  # compiles, starts threads
topology = Topology.of(large)
plan, _, _ = prepared.compile_program(PageRank(iterations=2), topology)
stated = program_memory.choose(plan, topology, None).needs["streamed"]
for line in Path("/proc/self/status").read_text().splitlines():
    if line.startswith("VmData:"):
        data = int(line.split()[1]) * 1024
resource.setrlimit(resource.RLIMIT_DATA, (data + (12 << 20), data + (12 << 20)))
with MemoryMeter() as meter:
    found = runs.run(PageRank(iterations=2), large, num_threads=2)
assert meter.peak_bytes <= stated, (meter.peak_bytes, stated)
print("streamed", len(found))
use("memory")
print("mapped", len(runs.run(PageRank(iterations=2), large, num_threads=2)))
prepared.rows_of = lambda choice, plan, topology: MemoryBlocks(topology)
try:
    runs.run(PageRank(iterations=2), large, num_threads=2)
except MemoryError:
    print("copied failed")
"""


def test_rows_in_files_pass_where_copies_do_not(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name, nodes, edges in (("small", 5000, 200_000), ("large", 50_000, 4_000_000)):
        ends = rng.integers(0, nodes, (2, edges))
        make_store(tmp_path / name, EdgeChunk(src=ends[0], dst=ends[1]), partitions=4)
    graphs = (str(tmp_path / "small"), str(tmp_path / "large"))
    command = [sys.executable, "-c", LIMITED, *graphs]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        "streamed",
        "50000",
        "mapped",
        "50000",
        "copied",
        "failed",
    ]


def test_explain_tells_messages_storage_and_kernels(graph: Graph) -> None:
    text = explain(ShortestPaths(source=0), graph, memory="4GB")
    assert re.search(r"ShortestPaths on \d+ nodes, 60000 directed edges", text)
    assert "push while few, pull when many" in text
    assert "storage: rows mapped as they are" in text
    assert re.search(r"peaks: memory [\d.]+ [MG]iB, streamed [\d.]+ [MG]iB, paged", text)
    assert re.search(r"kernels: .*push_0", text)
    on_device = explain(ShortestPaths(source=0), graph, device="cuda")
    assert "storage: arrays of nodes on the device" in on_device


class Counts(gs.VertexProgram):
    """Sums with edge states, which need rows in memory."""

    kept = gs.edge_state("float64")
    total = gs.state("float64")
    stores = "kept"
    max_supersteps = 1
    combine = gs.sum_

    def message(self, src: Any, edge: Any) -> Any:
        return edge.weight

    def update(self, node: Any, message: Any) -> Any:
        return message


def test_states_of_edges_stay_in_memory(graph: Graph) -> None:
    with pytest.raises(BudgetError, match="edges have states"):
        run(Counts(), graph, memory="1MiB")
