"""Case ``embedding_step``: where the time of a training step goes, on one thread.

The settings are those of the case ``embedding``: R-MAT, one partition, dim 100, batches of
1000, chunks of 50 (and of 500) with as many batch as uniform negatives, softmax over inner
products. ``graphsys`` is the step itself, ``train_batches``; ``graphsys, PHASE`` are its
parts: the same kernels in the same order, with the processor's cycles read between them.
That loop must give the same losses, bit by bit, or the result is wrong.

Times are processor time of one thread, so others on the machine disturb little; a phase's
share is the median over batches. The limit is that of the products alone, at this machine's
rate on one core.

    edges       positives and draws of the next chunk; asking for the edges after that
    ahead       asking for the rows of the next chunk
    gather      rows into the chunk
    scores      their products, and transposes for them
    losses      softmax, losses, gradients at scores
    gradients   products back to rows
    sums        gradients summed per row of the batch
    update      row-wise Adagrad on these
"""

import statistics
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bench.cases.embedding import DIM, gemm_rate
from bench.child import in_child
from bench.harness import OURS, Contender, Outcome, Work, WrongResultError
from bench.limits import Limits

PEERS: dict[str, str] = {}
MODULE = "bench.cases.embedding_step"
BATCH = 1000
PHASES = (
    "edges",
    "ahead",
    "gather",
    "scores",
    "losses",
    "gradients",
    "sums",
    "update",
)


def works(
    *, quick: bool, folder: Path, limits: Limits, missing: list[str]
) -> Iterator[Work]:
    """Yield a work for chunks of 50 and one for chunks of 500."""
    from graphsys.core.threads import num_cores
    from graphsys.datasets import recipes

    scale, batches = (16, 100) if quick else (20, 400)
    graph = folder / "rmat"
    recipes.build("rmat", graph, scale=scale, edge_factor=4, partitions=1)
    for chunk in (50, 500):
        run = in_child(f"{MODULE}:measure", graph=graph, chunk=chunk, batches=batches)
        edges = batches * BATCH
        flops = edges * 2 * 3 * 2 * (2 * chunk) * DIM  # as in the case embedding
        yield Work(
            name=f"R-MAT scale {scale}, {edges:,} edges, chunks of {chunk}, one thread",
            amount=edges,
            unit="edges/s",
            contenders=_contenders(run),
            verify=_verify,
            limit_s=flops / gemm_rate(chunk) * num_cores(),
        )


def _contenders(run: Any) -> list[Contender]:
    """Return the step and its phases; the step's run measures them all."""
    latest: dict[str, Outcome] = {}

    def step() -> Outcome:
        latest["step"] = run()
        return latest["step"]

    def phase(name: str) -> Outcome:
        return Outcome(seconds=latest["step"].result["phases"][name])

    return [
        Contender(system=OURS, run=step),
        *(
            Contender(system=f"{OURS}, {name}", run=lambda name=name: phase(name))  # type: ignore[misc]
            for name in PHASES
        ),
    ]


def _verify(results: Mapping[str, Any]) -> None:
    """Compare the losses of the step with those of the loop that is timed inside."""
    step, timed = (results[OURS][name] for name in ("losses", "timed_losses"))
    if step != timed:
        raise WrongResultError(f"the timed loop has the losses {timed}, the step {step}")


def measure(graph: str, chunk: int, batches: int) -> Outcome:
    """Train batches by the step and by the timed loop, each from the first values on."""
    from bench.embedding_phases import train_timed
    from graphsys.kernels.cpu.embedding.step import train_batches

    ticks = np.zeros((batches, len(PHASES)), dtype=np.int64)
    taken, losses = [], []
    for is_timed in (False, True):
        for size in (1, batches):  # the first compiles
            tables, extras, operators, work, slot = _prepare(graph, chunk)
            parts = (work.edges, work.settings)
            began = time.thread_time()
            if is_timed:
                train_timed(tables, *parts, size, slot, work.losses, ticks)
            else:
                train_batches(
                    tables, extras, operators, *parts, 0, size, 1, slot, work.losses
                )
            seconds = time.thread_time() - began
        taken.append(seconds)
        losses.append(work.losses[:3].tolist())
    shares = np.array([statistics.median(column) for column in ticks.T.tolist()])
    phases = shares / shares.sum() * taken[1]
    return Outcome(
        seconds=taken[0],
        result={
            "losses": losses[0],
            "timed_losses": losses[1],
            "phases": dict(zip(PHASES, phases.tolist(), strict=True)),
            "figures": {"timed_s": taken[1]},
        },
    )


def _prepare(graph: str, chunk: int) -> tuple[Any, ...]:
    """Return what the step is called with."""
    import graphsys
    from graphsys.core.types import Bucket
    from graphsys.embedding import EmbeddingConfig
    from graphsys.embedding.context import EmbeddingContext
    from graphsys.embedding.data.schedule import BucketTask
    from graphsys.embedding.model import relation_sets
    from graphsys.embedding.rows.table_files import TableFiles
    from graphsys.embedding.training.bucket_trainer import BucketTrainer

    opened = graphsys.open(graph)
    config = EmbeddingConfig(
        dim=DIM,
        batch_size=BATCH,
        num_batch_negatives=chunk,
        num_uniform_negatives=chunk,
        deterministic=True,
    )
    model = relation_sets(opened, config)
    part = (model[0].edge_type.src_type, 0)
    context = EmbeddingContext(
        path=Path(graph), graph=opened, config=config, model=model, steps=[]
    )
    files = TableFiles(context)
    tables = {part: files.load(part)}
    trainer = BucketTrainer(
        context, tables, files.operators, files.extras, lambda epoch, step, order: order
    )
    step = BucketTask(0, Bucket(0, 0), part, part, 0)
    work = trainer._prepare(0, step)
    arrays, operators = trainer._arrays(step)
    slot = np.full(len(tables[part][0]), -1, dtype=np.int32)
    return arrays, trainer.extras(part[0], part[0]), operators, work, slot
