"""Case ``engine_vectors``: programs of vector states against SpMM by hand.

One process, both timed in turn on the same rows in memory, equal supersteps, two threads;
compiled code is loaded before. The target is a ratio of 1.1 at most. SciPy's product, of
one thread, is shown beside.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import graphsys as gs
from bench.cases.engine_by_hand import NUM_THREADS
from bench.cases.engine_programs import run_program
from bench.harness import Contender, Outcome, Work, WrongResultError
from bench.limits import Limits
from graphsys.core.threads import ThreadTeam
from graphsys.engine.execute.rows import MemoryBlocks
from graphsys.engine.topology import Topology
from graphsys.graph.csr import Csr
from graphsys.kernels.cpu.loops import claimed_range
from graphsys.kernels.jit import jit

PEERS: dict[str, str] = {}
STEPS = 5
SHARE = np.float32(1 / 64)
"""What keeps sums of sums small."""


@jit
def spmm(
    thread: int, counter: Any, bounds: Any, indptr: Any, indices: Any, x: Any, out: Any
) -> None:
    """Write a sixty-fourth of the sum of the neighbors' rows, a row of ``out`` a node."""
    for c in claimed_range(0, len(bounds) - 1, 1, counter):
        for v in range(bounds[c], bounds[c + 1]):
            for j in range(x.shape[1]):
                out[v, j] = 0.0
            for e in range(np.int64(indptr[v]), np.int64(indptr[v + 1])):
                u = indices[e]
                for j in range(x.shape[1]):
                    out[v, j] += x[u, j]
            for j in range(x.shape[1]):
                out[v, j] *= SHARE


@jit
def weighted_spmm(
    thread: int,
    counter: Any,
    bounds: Any,
    indptr: Any,
    indices: Any,
    weight: Any,
    x: Any,
    out: Any,
) -> None:
    """The same, each row times its edge's weight."""
    for c in claimed_range(0, len(bounds) - 1, 1, counter):
        for v in range(bounds[c], bounds[c + 1]):
            for j in range(x.shape[1]):
                out[v, j] = 0.0
            for e in range(np.int64(indptr[v]), np.int64(indptr[v + 1])):
                u, w = indices[e], weight[e]
                for j in range(x.shape[1]):
                    out[v, j] += w * x[u, j]
            for j in range(x.shape[1]):
                out[v, j] *= SHARE


def program_of(size: int, *, is_weighted: bool) -> type[gs.VertexProgram]:
    """Return a program that sums vectors of a length along edges."""

    class Sums(gs.VertexProgram):
        x = gs.state("float32", shape=(size,))
        combine = gs.sum
        max_supersteps = STEPS

        def init(self, node: Any) -> Any:
            return (7 * node.id + 3 * gs.component) % 11

        def message(self, src: Any) -> Any:
            return src.x

        def update(self, node: Any, message: Any) -> Any:
            return SHARE * message

    class WeightedSums(Sums):
        def message(self, src: Any, edge: Any) -> Any:
            return edge.weight * src.x

    return WeightedSums if is_weighted else Sums


def works(
    *, quick: bool, folder: Path, limits: Limits, missing: list[str]
) -> Iterator[Work]:
    """Yield a work per length, without weights and with them."""
    from graphsys.datasets import generators

    scale = 14 if quick else 20
    gs.ingest(generators.rmat(scale, variant="gap"), folder / "kron")
    stored = Topology.of(folder / "kron")
    rows = stored.csr("out")
    weight = np.random.default_rng(1).random(rows.num_edges, dtype=np.float32)
    weighted = Csr(indptr=rows.indptr, indices=rows.indices, weight=weight)
    topology = Topology(
        stored.numbers, is_directed=False, rows={"out": weighted, "in": weighted}
    )
    for size, is_weighted in ((16, False), (64, False), (16, True)):
        program = program_of(size, is_weighted=is_weighted)
        given = {"x": _first(size, topology), "is_weighted": is_weighted}
        kind = "weighted sums" if is_weighted else "sums"
        yield Work(
            name=f"{kind} of {size} float32, {STEPS} supersteps, kron{scale}",
            amount=STEPS * rows.num_edges,
            unit="edges/s",
            contenders=[
                Contender(
                    system="graphsys", run=lambda p=program: run_program(p(), topology)
                ),
                Contender(
                    system="SpMM by hand", run=lambda g=given: by_hand(topology, **g)
                ),
                Contender(
                    system="scipy, one thread",
                    run=lambda g=given: by_scipy(weighted, **g),
                    is_reference=True,
                ),
            ],
            verify=close_vectors,
        )


def _first(size: int, topology: Topology) -> Any:
    """Return what the program's vectors begin as, float32 ``[N, K]``."""
    ranks = np.arange(topology.num_nodes) if topology.rank is None else topology.rank
    return ((7 * ranks[:, None] + 3 * np.arange(size)) % 11).astype(np.float32)


def by_hand(topology: Topology, x: Any, *, is_weighted: bool) -> Outcome:
    """Time the supersteps as products of matrices."""
    block, rows = MemoryBlocks(topology).block("out"), topology.csr("out")
    team, counter = ThreadTeam(NUM_THREADS), np.zeros(1, dtype=np.int64)
    begin = time.perf_counter()
    x, out = x.copy(), np.empty_like(x)
    more = (rows.weight,) if is_weighted else ()
    kernel: Any = weighted_spmm if is_weighted else spmm
    for _ in range(STEPS):
        counter[0] = 0
        team.run(kernel, counter, block.bounds, rows.indptr, rows.indices, *more, x, out)
        x, out = out, x
    seconds = time.perf_counter() - begin
    team.close()
    return Outcome(seconds=seconds, result={"x": x})


def by_scipy(rows: Csr, x: Any, *, is_weighted: bool) -> Outcome:
    """Time the same by SciPy."""
    values = rows.weight if is_weighted else np.ones(rows.num_edges, np.float32)
    shape = (len(x), len(x))
    matrix = sp.csr_matrix((values, rows.indices, rows.indptr), shape=shape)
    begin = time.perf_counter()
    for _ in range(STEPS):
        x = SHARE * (matrix @ x)
    return Outcome(seconds=time.perf_counter() - begin, result={"x": x})


def close_vectors(results: Any) -> None:
    """Verify that all have the same vectors."""
    ours = results["graphsys"]["x"]
    for system, found in results.items():
        if not np.allclose(ours, found["x"], rtol=1e-3, atol=1e-20):
            raise WrongResultError(f"the vectors of {system} differ")
