"""Case ``analysis``: what profiling costs a run, and how long the SIMT model takes.

The same work runs inside ``gs.profile(level="L0")`` and without, turn by turn in one
process on one loaded graph, so that what differs is the profile alone: a superstep of
PageRank (vertex program and native), and the training batches of an epoch of embeddings
and of a GNN. A run is the best of several repetitions, since a busy machine only adds time.
``ratio_to_best_peer`` is the time without over the time with: 0.97 is an overhead of 3 %.
``events`` of a profiled run, times what one event costs here, over the run's time, is kept
beside it as ``share_by_events``: it does not depend on what else the machine does.

The model is given all rows of a graph of about 31M entries, on one core; ``limit_s`` is the
2 seconds that a superstep of 20M edges may take, for as many entries as it has.
"""

import functools
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.cases.engine_graphs import load, save
from bench.cases.engine_systems import Graphsys
from bench.harness import OURS, Contender, Outcome, Work, WrongResultError
from bench.limits import Limits

PEERS: dict[str, str] = {}
ITERATIONS = 10
MODEL_LIMIT_S = 2.0
REPETITIONS = 2
Run = Callable[[], tuple[float, Any]]
"""Does the work once; returns its seconds and what it computed."""


def works(
    *, quick: bool, folder: Path, limits: Limits, missing: list[str]
) -> Iterator[Work]:
    """Yield the works; each graph is made when its work begins."""
    graph = save("kron16" if quick else "kron20", folder)
    topology = Graphsys(load(str(graph.folder))).topology
    size = f"{graph.name}, {graph.num_edges / 1e6:.3g}M entries"
    for kind in ("program", "native"):
        run = functools.partial(_pagerank, topology, kind)
        yield _beside(f"superstep of PageRank, {kind}, {size}", graph.num_edges, run)
    yield _model(topology, graph.num_edges, size)
    del topology
    num_edges = 50_000 if quick else 300_000
    name = f"epoch of embedding training, {num_edges / 1e6:.3g}M edges"
    yield _beside(name, num_edges, _embedding(folder / "embedding", num_edges))
    scale = 11 if quick else 16  # seconds: starting a profile costs some ms
    name = f"epoch of GNN training, {(1 << scale) / 1e3:.3g}k nodes"
    yield _beside(name, 1 << scale, _gnn(folder / "gnn", scale))


def event_seconds(count: int = 20_000) -> float:
    """Return what one span costs while somebody records, in seconds."""
    from graphsys.core.events import recording, span

    with recording():
        began = time.perf_counter()
        for _ in range(count):
            with span("step", number=1):
                pass
        return (time.perf_counter() - began) / count


def _beside(name: str, amount: float, run: Run) -> Work:
    """Return a work done inside a profile and without."""
    from graphsys.analysis.profile import profile

    def profiled() -> Outcome:
        num_events = 0

        def once() -> tuple[float, Any]:
            nonlocal num_events
            with profile(level="L0") as recorded:
                found = run()
            num_events = recorded.events().num_rows
            return found

        found = _best(once)
        share = num_events * event_seconds() / found[2]
        figures = {"events": float(num_events), "share_by_events": share}
        return Outcome(seconds=found[0], result={"value": found[1], "figures": figures})

    def alone() -> Outcome:
        found = _best(run)
        return Outcome(seconds=found[0], result={"value": found[1]})

    def verify(results: Mapping[str, Any]) -> None:
        if results[OURS]["value"] != results["off"]["value"]:
            raise WrongResultError(f"{name}: profiled, the result differs: {results}")

    contenders = [Contender(system=OURS, run=profiled), Contender(system="off", run=alone)]
    return Work(
        name=name, amount=amount, unit="units/s", contenders=contenders, verify=verify
    )


def _best(run: Run) -> tuple[float, Any, float]:
    """Return the least of the seconds, the result, and the whole time of the last run."""
    found = []
    for _ in range(REPETITIONS):
        began = time.perf_counter()
        found.append((*run(), time.perf_counter() - began))
    return min(seconds for seconds, _, _ in found), found[-1][1], found[-1][2]


def _pagerank(topology: Any, implementation: str) -> tuple[float, Any]:
    from graphsys.engine import algorithms

    done = algorithms.get("pagerank")(
        topology, implementation=implementation, iterations=ITERATIONS
    )
    return done.seconds / ITERATIONS, float(done.table["value"].to_numpy().max())


def _model(topology: Any, num_edges: int, size: str) -> Work:
    import numpy as np

    from graphsys.analysis.model.devices import GPUS
    from graphsys.analysis.model.row_model import RowModel
    from graphsys.core.row_trace import RowVisit

    rows = topology.csr("in")
    lengths = np.diff(rows.indptr.astype(np.int64))

    def run() -> Outcome:
        model = RowModel(GPUS["h100"])
        visit = RowVisit(
            superstep=0,
            kind="push",
            lengths=lengths,
            starts=rows.indptr[:-1],
            indices=rows.indices,
        )
        began, busy = time.perf_counter(), time.process_time()
        model([visit])
        seconds, cores = time.perf_counter() - began, time.process_time() - busy
        figures = {"cpu_seconds": cores}
        result = {"active": model.totals["thread"].active, "figures": figures}
        return Outcome(seconds=seconds, result=result)

    def verify(results: Mapping[str, Any]) -> None:
        if results[OURS]["active"] != num_edges:
            raise WrongResultError(f"the lanes did {results[OURS]} of {num_edges} entries")

    return Work(
        name=f"SIMT model, all mappings, {size}",
        amount=num_edges,
        unit="edges/s",
        contenders=[Contender(system=OURS, run=run)],
        verify=verify,
        limit_s=MODEL_LIMIT_S * num_edges / 20e6,
    )


def _embedding(folder: Path, num_edges: int) -> Run:
    import numpy as np

    import graphsys as gs

    folder.mkdir()
    rng = np.random.default_rng(1)
    edges = rng.integers(0, 20_000, (num_edges, 2))
    graph = gs.ingest(edges, folder / "graph", partitions=4).graph
    config = gs.embedding.EmbeddingConfig(dim=100, epochs=1)

    def run() -> tuple[float, Any]:
        done = gs.embedding.train(graph, config, folder / "run", overwrite=True)
        return done.seconds, done.epochs

    return run


def _gnn(folder: Path, scale: int) -> Run:
    import graphsys as gs
    from bench.cases.gnn_inputs import Labeled

    folder.mkdir()
    graph = gs.ingest(Labeled(scale, 20), folder / "graph").graph
    config = gs.gnn.GnnConfig(epochs=1, eval_every=0, fanouts=(10, 5))

    def run() -> tuple[float, Any]:
        done = gs.gnn.train(graph, config, folder / "run", overwrite=True)
        return done.seconds, done.epochs

    return run
