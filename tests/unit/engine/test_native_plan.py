"""Memory of listed algorithms: one decision, told and run."""

import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys.core.compiling import (
    FIRST_KERNEL_BYTES,
    KERNEL_BYTES,
    WorkKernels,
    compile_bytes,
    name_of,
    remember_kernels,
    used_kernels,
)
from graphsys.core.errors import BudgetError, InvalidGraphError
from graphsys.core.memory import resident_bytes, scratch_is_memory
from graphsys.core.progress import Progress
from graphsys.core.types import EDGE, EdgeType
from graphsys.engine import algorithms, native_plan, united_rows
from graphsys.engine.algorithms import algorithm
from graphsys.engine.execute import program_memory
from graphsys.engine.execute.prepared import prepare
from graphsys.engine.execute.program_memory import choose
from graphsys.engine.memory_plan import (
    Facts,
    budget_of,
    num_simple_entries,
    simple_bytes,
    united_bytes,
)
from graphsys.engine.native_plan import NativeRun
from graphsys.engine.program_run import ProgramRun
from graphsys.engine.programs.pagerank import PageRank
from graphsys.engine.topology import Topology
from graphsys.graph.csr import Csr
from graphsys.kernels.cpu.algorithms.traversal import find_parents, push_levels
from graphsys.kernels.cpu.bits import has_bit
from graphsys.storage import Graph
from graphsys.storage.scratch import ScratchArrays
from tests.stores import edge_chunk, make_store

NATIVE = [name for name, listed in algorithms.ALGORITHMS.items() if listed.native]
GIVEN: dict[str, dict[str, Any]] = {
    name: dict(listed.example.parameters) for name, listed in algorithms.ALGORITHMS.items()
} | {
    "label_propagation": {"labels": {0: 1}},
    "random_walks": {"length": 5},
    "leiden": {"max_supersteps": 2},
}


@pytest.fixture(scope="module", params=["directed", "undirected", "types"])
def graph(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Graph]:
    rng = np.random.default_rng(7)
    pairs = rng.integers(0, 60, (900, 2)).tolist()
    folder = tmp_path_factory.mktemp(request.param) / "graph"
    chunks = [edge_chunk(pairs, weight=rng.integers(1, 9, 900) / 4)]
    if request.param == "types":
        more = rng.integers(0, 60, (200, 2)).tolist()
        kind = EdgeType(EDGE.src_type, "other", EDGE.dst_type)
        chunks.append(edge_chunk(more, kind, weight=np.ones(200)))
    is_directed = request.param != "undirected"
    report = make_store(folder, *chunks, is_directed=is_directed, partitions=3)
    with report.graph as found:
        yield found


@pytest.mark.parametrize("name", algorithms.ALGORITHMS)
def test_no_algorithm_drops_its_budget(name: str, graph: Graph) -> None:
    listed, given = algorithms.get(name), GIVEN[name]
    with pytest.raises(BudgetError, match=r"give --memory \d+MB \(memory='\d+MB'\)") as err:
        listed(graph, memory="1MB", **given)
    assert err.value.smallest > 10**6
    assert listed.prepare(graph, memory=err.value.smallest, **given).choice.needed > 0


@pytest.mark.parametrize("name", algorithms.ALGORITHMS)
def test_every_algorithm_explains_what_it_would_run(name: str, graph: Graph) -> None:
    listed = algorithms.get(name)
    work = listed.prepare(graph, **GIVEN[name])
    assert isinstance(work, NativeRun if listed.native else ProgramRun)
    text = work.explanation()
    assert f"{Topology.of(graph).num_nodes} nodes," in text
    assert f"({work.choice.needed} B), {work.choice.mode}" in text


# survey_propagation copies its rows in any case
@pytest.mark.parametrize("name", [it for it in NATIVE if it != "survey_propagation"])
def test_rows_in_a_scratch_file_give_the_same(name: str, graph: Graph) -> None:
    listed, given = algorithms.get(name), GIVEN[name]
    options = {**given, "num_threads": 1}
    work = listed.prepare(graph, implementation="native", **options)
    assert isinstance(work, NativeRun)
    assert {"memory", "streamed"} == set(work.choice.needs)
    assert work.choice.needs["streamed"] <= work.choice.needs["memory"]
    topology = Topology.of(graph).placed(ScratchArrays().zeros)

    def streamed() -> Any:
        return listed(topology, implementation="native", **options).table

    try:
        in_memory = work.run().table
    except InvalidGraphError as err:  # it takes other graphs
        with pytest.raises(InvalidGraphError, match=re.escape(str(err))):
            streamed()
        return
    assert in_memory.equals(streamed())


def test_the_program_runs_where_the_native_one_has_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = np.random.default_rng(0).integers(0, 50, (400, 2)).tolist()
    graph = make_store(tmp_path / "graph", edge_chunk(pairs), partitions=2).graph
    listed = algorithms.get("pagerank")
    plain = listed(graph).table

    def none(*_: Any) -> NativeRun:
        refusal = BudgetError("memory: no")
        refusal.smallest = 10**12
        raise refusal

    monkeypatch.setattr(algorithm, "prepare_native", none)
    memory = resident_bytes() + 10**9  # all of this process counts, other tests' too
    work = listed.prepare(graph, memory=memory)
    assert isinstance(work, ProgramRun)
    assert work.run().algorithm == "pagerank"
    np.testing.assert_allclose(
        work.run().table["value"].to_numpy(), plain["value"].to_numpy(), rtol=1e-4
    )
    with pytest.raises(BudgetError, match="memory: no"):  # the program knows no weights
        listed.prepare(graph, memory=memory, weighted=True)
    with pytest.raises(BudgetError, match="memory: no"):
        listed.prepare(graph, memory=memory, implementation="native")


def test_every_native_algorithm_says_what_it_needs() -> None:
    for name in NATIVE:
        assert algorithms.get(name).needs is not None, name


def test_united_rows_do_not_depend_on_how_many_are_placed_at_a_time(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Topology.of(graph).csr("out")
    monkeypatch.setattr(united_rows, "ENTRIES_AT_A_TIME", 7)
    pieces = Topology.of(graph).csr("out")
    assert same(whole, pieces)


def same(first: Csr, second: Csr) -> bool:
    columns = zip(first.columns.values(), second.columns.values(), strict=True)
    return (
        np.array_equal(first.indptr, second.indptr)
        and np.array_equal(first.indices, second.indices)
        and all(np.array_equal(a, b) for a, b in columns)
    )


def test_rows_at_hand_take_nothing(graph: Graph) -> None:
    topology = Topology.of(graph)
    assert united_bytes(topology, ("out",)).entries > 0
    topology.csr("out")
    assert united_bytes(topology, ("out",)).in_memory == 0
    simple = topology.simple()
    assert simple.num_edges <= num_simple_entries(topology)
    if not topology.is_directed:
        assert simple.num_edges == num_simple_entries(topology)
    assert simple_bytes(topology).in_memory == 0


def test_scratch_files_in_memory_count_as_memory(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    shm = Path("/dev/shm")
    if not shm.is_dir():
        pytest.skip("no /dev/shm here")
    assert not scratch_is_memory()
    monkeypatch.setenv("TMPDIR", str(shm))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert scratch_is_memory()
    assert set(algorithms.get("pagerank").prepare(graph).choice.needs) == {"memory"}


def test_only_what_no_cache_holds_is_charged_for_compiling(
    monkeypatch: pytest.MonkeyPatch, graph: Graph
) -> None:
    algorithms.get("bfs")(graph, source=0)
    assert compile_bytes([push_levels, "no kernel"]) == 0
    monkeypatch.setattr(
        "graphsys.core.compiling.is_compiled", lambda kernel: kernel is push_levels
    )
    one = FIRST_KERNEL_BYTES + KERNEL_BYTES
    assert compile_bytes([push_levels, find_parents]) == one  # the cache is partly cold
    assert compile_bytes([push_levels, find_parents], [name_of(push_levels)]) == 0
    assert compile_bytes([push_levels, has_bit]) == 0  # part of what calls it
    assert compile_bytes(["no kernel"]) == 0


def test_a_run_notes_the_kernels_that_it_called(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, graph: Graph
) -> None:
    monkeypatch.setenv("GRAPHSYS_CACHE", str(tmp_path))
    assert used_kernels("traversal") == frozenset()
    algorithms.get("bfs")(graph, source=0)
    assert name_of(push_levels) in used_kernels("traversal")
    remember_kernels("traversal", ["a.b", name_of(push_levels)])
    assert {"a.b", name_of(push_levels)} <= used_kernels("traversal")
    before = (tmp_path / "kernels" / "traversal.txt").stat().st_mtime_ns
    monkeypatch.setattr("graphsys.core.compiling.remember_kernels", None)
    algorithms.get("bfs")(graph, source=0)  # nothing new: the file is not even read
    assert (tmp_path / "kernels" / "traversal.txt").stat().st_mtime_ns == before
    (tmp_path / "kernels" / "traversal.txt").write_bytes(b"\xff\xfe")
    assert used_kernels("traversal") == frozenset()  # damaged: as if nothing were known


class Kernel:
    """A kernel that this process has called, or not."""

    def __init__(self, name: str, *, is_called: bool) -> None:
        self.__module__, self.__name__ = "kernels", name
        self.overloads = {"types": "code"} if is_called else {}


def test_kernels_without_a_use_are_not_charged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GRAPHSYS_CACHE", str(tmp_path))
    kernels = [Kernel("called", is_called=True), Kernel("idle", is_called=False)]
    work = WorkKernels("work", lambda: kernels)
    one = FIRST_KERNEL_BYTES + KERNEL_BYTES
    assert work.compile_bytes() == one  # of no run is anything known: the idle one, too
    work.remember()
    assert work.compile_bytes() == 0
    kernels[0].overloads.clear()
    assert work.compile_bytes() == 0  # asked once: what is compiled stays so in a process
    monkeypatch.setattr("graphsys.core.compiling._cached", set())  # in another one,
    assert work.compile_bytes() == one  # whose cache is empty
    assert work.compile_bytes() == one
    assert WorkKernels("other", lambda: kernels).compile_bytes() == one + KERNEL_BYTES


def test_a_program_is_planned_by_the_kernels_of_each_mode(
    monkeypatch: pytest.MonkeyPatch, graph: Graph
) -> None:
    plan = prepare(PageRank(), graph).plan
    plain = choose(plan, Topology.of(graph), None).needs
    charged = {"memory": 1000, "streamed": 20, "paged": 3}

    def kernels(plan: Any, mode: str) -> Any:
        return SimpleNamespace(compile_bytes=lambda: charged[mode])

    monkeypatch.setattr(program_memory, "kernels_of", kernels)
    monkeypatch.setattr(program_memory, "base_bytes", lambda: 0)
    needs = choose(plan, Topology.of(graph), None).needs
    monkeypatch.setattr(
        program_memory, "kernels_of", lambda *_: SimpleNamespace(compile_bytes=int)
    )
    without = choose(plan, Topology.of(graph), None).needs
    assert {mode: needs[mode] - without[mode] for mode in plain} == charged


def test_a_stated_budget_has_arrow_give_back_what_it_frees() -> None:
    assert budget_of("1GB") == 10**9
    assert pa.default_memory_pool().backend_name == "system"
    assert budget_of(None) > 0


@pytest.mark.parametrize("name", ["jaccard", "adamic_adar"])
@pytest.mark.parametrize("given", [{}, {"threshold": 0.02}, {"top_k": 40}], ids=str)
def test_pairs_are_counted_in_a_sample_where_no_budget_is_stated(
    name: str, given: dict[str, Any], tmp_path: Path
) -> None:
    ends = (4000 * np.random.default_rng(0).random((30_000, 2)) ** 2).astype(int)
    chunk = edge_chunk(ends.tolist())
    with make_store(tmp_path / "graph", chunk, partitions=2).graph as graph:
        topology, needs = Topology.of(graph), algorithms.get(name).needs
        assert needs is not None
        told, counted = (
            needs(
                Facts(topology=topology, options=given, threads=1, is_stated=is_stated)
            ).bytes
            for is_stated in (False, True)
        )
    assert counted > 10**6
    assert counted <= told <= 1.25 * counted


class Ticks(Progress):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.has_ticked = threading.Event()

    def stage(self, name: str, total: int | None = None, unit: str = "") -> None:
        self.told.append(name)

    def advance(self, steps: int, **figures: float) -> None:
        self.told.append("seconds" if figures["seconds"] > 0 else "none")
        self.has_ticked.set()


def test_a_long_native_run_tells_that_it_goes_on(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = Ticks()
    monkeypatch.setattr(native_plan, "_TICK_S", 0.01)
    work = algorithms.get("leiden").prepare(graph, **GIVEN["leiden"])
    assert isinstance(work, NativeRun)
    function = work.function

    def waits(*words: Any, **named: Any) -> Any:
        assert ticks.has_ticked.wait(20)
        return function(*words, **named)

    replace(work, function=waits, parameters={}).run(ticks)
    assert ticks.told[:2] == ["leiden", "seconds"]
    assert "graphsys-ticker" not in {it.name for it in threading.enumerate()}
