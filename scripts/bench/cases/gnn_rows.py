"""Learned rows: on disk within a quarter of their size, and in memory.

Each run is a process of its own that trains GraphSAGE on an R-MAT graph without features.
On disk RLIMIT_DATA is what the process had after its imports, kernels and first batches,
and a quarter of the table's bytes (64 MiB at least, since a batch does not shrink with the
table). Mapped pages are the page cache's and do not count. ``row-wise Adagrad in memory``
is the same code on arrays; ``Adam`` moves all rows in every step, as parameters.
"""

import resource
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.cases.gnn import similar_losses
from bench.cases.gnn_inputs import BATCH_SIZE, make_graph, seeds_with_edges
from bench.cases.sampling_store import LEAST, SHARE, data_bytes
from bench.child import in_child
from bench.harness import Contender, Outcome, Work, WrongResultError
from bench.limits import Limits
from graphsys.core.threads import num_cores

PEERS: Mapping[str, str] = {}
FANOUTS = (5, 10)
DIM = 128
_WARM = 3


def works(
    *, quick: bool, folder: Path, limits: Limits, missing: list[str]
) -> Iterator[Work]:
    """Yield the works."""
    graph, name = make_graph(folder, quick=quick, num_features=0)
    batches = seeds_with_edges(graph, 10 if quick else 30)
    seeds = folder / "seeds.npy"
    np.save(seeds, np.stack(batches))
    arguments = {"store": folder / "graph", "seeds": seeds, "folder": folder / "run"}
    target = "bench.cases.gnn_rows:train"
    yield Work(
        name=f"GraphSAGE {len(batches)} batches of {BATCH_SIZE}, 5/10, learned rows of "
        f"{DIM}, {name}",
        amount=float(len(batches)),
        unit="batches/s",
        contenders=[
            Contender(system="graphsys", run=in_child(target, kind="disk", **arguments)),
            Contender(
                system="row-wise Adagrad in memory, no limit",
                run=in_child(target, kind="memory", **arguments),
            ),
            Contender(
                system="Adam in memory, no limit",
                is_reference=True,
                run=in_child(target, kind="parameters", **arguments),
            ),
        ],
        verify=alike,
    )


def train(store: str, seeds: str, folder: str, kind: str) -> Outcome:
    """Train on the batches of seeds; the first few are not timed."""
    from graphsys.gnn import GnnConfig
    from graphsys.gnn.ops.adjacency import kernel_threads
    from graphsys.gnn.training.api import build_context
    from graphsys.gnn.training.trainer import GnnTrainer
    from graphsys.storage import Graph

    config = GnnConfig(
        model="sage",
        dim=DIM,
        fanouts=FANOUTS,
        batch_size=BATCH_SIZE,
        lr=0.003,
        reverse_edges=False,
        learned_rows="memory" if kind == "parameters" else "disk",
    )
    path = Path(folder) if kind == "disk" else None
    if path is not None:
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
    graph, batches = Graph(Path(store)), [{"node": part} for part in np.load(seeds)]
    table_bytes = 4 * DIM * graph.num_nodes
    with kernel_threads(num_cores()):
        context = build_context(graph, config, is_checking=False)
        trainer = GnnTrainer(replace(context, path=path))
        _losses(trainer, batches[:_WARM])
        limit = data_bytes() + max(int(SHARE * table_bytes), LEAST)
        if path is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        began = time.perf_counter()
        losses = _losses(trainer, batches)
        seconds = time.perf_counter() - began
        trainer.checkpoint()
        figures: dict[str, Any] = {"s_per_100_batches": 100 * seconds / len(batches)}
        if path is not None:
            figures |= {
                "checkpoint_s": time.perf_counter() - began - seconds,
                "limit_bytes": limit,
                "table_bytes": table_bytes,
                "file_bytes": sum(f.stat().st_size for f in path.rglob("rows/**/*.bin")),
            }
    result = {"loss": float(np.mean(losses)), "figures": figures}
    return Outcome(seconds=seconds, result=result)


def alike(results: Mapping[str, Any]) -> None:
    """Verify that all learn alike, and Adagrad on disk what it learns in memory."""
    similar_losses(results)
    disk, memory = list(results.values())[:2]
    if abs(disk["loss"] - memory["loss"]) > 1e-3:
        raise WrongResultError(f"loss on disk {disk['loss']}, in memory {memory['loss']}")


def _losses(trainer: Any, batches: list[Any]) -> list[float]:
    losses = []
    for batch in trainer.batches(0, batches):
        losses.append(trainer.train_batch(0, batch, len(batches)))
        trainer.loader.release(batch)
    return losses
