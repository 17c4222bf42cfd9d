"""Case ``analysis``: what recording costs a run, and how long the SIMT model takes.

The same work runs with a recorder at level L0 and without, turn by turn in one process on
one loaded graph, so that what differs is the events alone: a superstep of PageRank (vertex
program and native), and an epoch of embedding training. ``ratio_to_best_peer`` is the time
without over the time with. The model is given all rows of a graph of about 20M entries, on
one core; ``limit_s`` is the 2 seconds that a superstep may take.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.cases.engine_graphs import load, save
from bench.cases.engine_systems import Graphsys
from bench.harness import OURS, Contender, Outcome, Work, WrongResultError, same_results
from bench.limits import Limits

PEERS: dict[str, str] = {}
ITERATIONS = 10
MODEL_LIMIT_S = 2.0


def works(
    *, quick: bool, folder: Path, limits: Limits, missing: list[str]
) -> Iterator[Work]:
    """Yield the works; the graphs are deleted after their own."""
    graph = save("kron16" if quick else "kron20", folder)
    topology = Graphsys(load(str(graph.folder))).topology
    size = f"{graph.name}, {graph.num_edges / 1e6:.3g}M entries"
    for kind in ("program", "native"):
        yield _beside(
            f"superstep of PageRank, {kind}, {size}",
            graph.num_edges,
            lambda kind=kind: _pagerank(topology, kind),  # type: ignore[misc]
        )
    yield _model(topology, graph.num_edges, size)
    yield _training(folder / "train", 100_000 if quick else 1_000_000)


def _beside(name: str, amount: float, run: Callable[[], Outcome]) -> Work:
    """Return a work done with a recorder and without."""
    from graphsys.core.events import recording

    def recorded() -> Outcome:
        with recording():
            return run()

    contenders = [Contender(system=OURS, run=recorded), Contender(system="off", run=run)]
    return Work(
        name=name, amount=amount, unit="edges/s", contenders=contenders, verify=same_results
    )


def _pagerank(topology: Any, implementation: str) -> Outcome:
    from graphsys.engine import algorithms

    done = algorithms.get("pagerank")(
        topology, implementation=implementation, iterations=ITERATIONS
    )
    largest = float(done.table["value"].to_numpy().max())
    return Outcome(
        seconds=done.seconds / ITERATIONS, result=largest, compile_s=done.compile_seconds
    )


def _model(topology: Any, num_edges: int, size: str) -> Work:
    import numpy as np

    from graphsys.analysis.devices import GPUS
    from graphsys.analysis.row_model import RowModel
    from graphsys.core.visits import RowVisit

    rows = topology.csr("in")
    lengths = np.diff(rows.indptr.astype(np.int64))

    def run() -> Outcome:
        model = RowModel(GPUS["h100"])
        visit = RowVisit(
            superstep=0, kind="push", lengths=lengths, starts=rows.indptr[:-1],
            indices=rows.indices,
        )  # fmt: skip
        began = time.perf_counter()
        model([visit])
        return Outcome(
            seconds=time.perf_counter() - began,
            result=model.totals["thread"].active,
        )

    def verify(results: Mapping[str, Any]) -> None:
        if results[OURS] != num_edges:
            raise WrongResultError(f"the lanes did {results[OURS]} of {num_edges} entries")

    return Work(
        name=f"SIMT model, all mappings, {size}",
        amount=num_edges,
        unit="edges/s",
        contenders=[Contender(system=OURS, run=run)],
        verify=verify,
        limit_s=MODEL_LIMIT_S * num_edges / 20e6,
    )


def _training(folder: Path, num_edges: int) -> Work:
    import numpy as np

    import graphsys as gs

    folder.mkdir()
    rng = np.random.default_rng(1)
    edges = rng.integers(0, 20_000, (num_edges, 2))
    graph = gs.ingest(edges, folder / "graph", partitions=4).graph
    config = gs.embedding.EmbeddingConfig(dim=100, epochs=1)

    def run() -> Outcome:
        done = gs.embedding.train(graph, config, folder / "run", overwrite=True)
        return Outcome(seconds=done.seconds, result=done.epochs)

    return _beside(f"epoch of training, {num_edges / 1e6:.3g}M edges", num_edges, run)
