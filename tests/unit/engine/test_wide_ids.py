"""Graphs with 2**31 nodes or edges take 64-bit numbers: the same code on small graphs."""

import numpy as np

import graphsys as gs
from graphsys.engine.codegen.cpu import module_source
from graphsys.engine.codegen.plan import plan_of
from graphsys.engine.codegen.spec import spec_of
from graphsys.engine.execute.executor import Executor
from graphsys.engine.execute.rows import MemoryBlocks
from graphsys.engine.program import VertexProgram
from graphsys.engine.programs.bfs import BreadthFirst
from graphsys.engine.programs.pagerank import PageRank
from graphsys.engine.topology import Topology
from graphsys.generated.modules import load_module
from graphsys.graph.csr import Csr


def wide(csr: Csr) -> Csr:
    return Csr(indptr=csr.indptr.astype(np.int64), indices=csr.indices.astype(np.int64))


def states(program: VertexProgram, topology: Topology) -> dict[str, np.ndarray]:
    plan = plan_of(spec_of(type(program)), {}, wide_ids=True)
    kernels = load_module(module_source(plan)).KERNELS
    executor = Executor(program, plan, kernels, topology, MemoryBlocks(topology))
    assert len(list(executor.run())) > 1
    executor.close()
    return executor.arrays.states


def test_64_bit_numbers_give_the_same_results() -> None:
    rng = np.random.default_rng(3)
    src, dst = rng.integers(0, 300, 900), rng.integers(0, 300, 900)
    narrow = Topology.from_edges(src, dst, 300)
    rows = {"out": wide(narrow.csr("out")), "in": wide(narrow.csr("in"))}
    large = Topology(narrow.numbers, is_directed=True, rows=rows)  # type: ignore[arg-type]
    source = int(src[0])
    for make, field in (
        (lambda: BreadthFirst(source=source), "hops"),
        (lambda: PageRank(iterations=20), "score"),
    ):
        found = states(make(), large)
        expected = gs.run(make(), narrow).table.column("value").to_numpy()
        values = np.where(found[field] < 0, np.nan, found[field].astype(np.float64))
        np.testing.assert_allclose(values, expected.astype(np.float64), rtol=1e-12)
        assert found[field].dtype.itemsize == 8
