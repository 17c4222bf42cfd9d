"""Case ``embedding``: one epoch on an R-MAT graph, in 1 and in 4 partitions.

The work is that of the comparison with PyTorch-BigGraph: dim 100, batches of 1000, chunks
of 50 positives with 50 batch and 50 uniform negatives for either side, softmax over inner
products; and the same with chunks of 500. A run is right if its mean loss is finite and
below that of guessing. The limit is the time of the matrix products alone, at the rate
that this machine reaches at their three shapes with one product per core side by side
(measured here, right before: one small product spread over all cores is slower).
"""

import math
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.child import in_child
from bench.harness import OURS, Contender, Outcome, Work, WrongResultError
from bench.limits import Limits

PEERS = {"PyTorch-BigGraph": "torchbiggraph"}
MODULE = "bench.cases.embedding"
DIM = 100


def works(
    *, quick: bool, folder: Path, limits: Limits, missing: list[str]
) -> Iterator[Work]:
    """Yield the works; the peer needs an environment of its own and is only named."""
    from graphsys.datasets import recipes

    scale, edge_factor = (17, 8) if quick else (20, 10)
    for partitions in (1, 4):
        recipes.build(
            "rmat",
            folder / f"rmat-{partitions}",
            scale=scale,
            edge_factor=edge_factor,
            partitions=partitions,
        )
    for chunk in (50, 500):
        yield _make_work(chunk, scale, edge_factor, folder)


def _make_work(chunk: int, scale: int, edge_factor: int, folder: Path) -> Work:
    num_edges = edge_factor << scale
    contenders = [
        Contender(
            system=OURS if partitions == 1 else f"{OURS} {partitions} partitions",
            run=in_child(
                f"{MODULE}:train_ours",
                graph=folder / f"rmat-{partitions}",
                out=folder / f"run-{partitions}",
                chunk=chunk,
            ),
        )
        for partitions in (1, 4)
    ]

    def verify(results: Mapping[str, Any]) -> None:
        guessing = 2 * math.log(2 * chunk)
        for system, result in results.items():
            if not 0 < result["loss"] < guessing:
                raise WrongResultError(
                    f"{system}: mean loss {result['loss']:.3f}, guessing has {guessing:.3f}"
                )

    flops = num_edges * 2 * 3 * 2 * (2 * chunk) * DIM  # sides, products, multiply-add
    return Work(
        name=f"R-MAT scale {scale}, {num_edges / 1e6:.3g}M edges, chunks of {chunk}",
        amount=num_edges,
        unit="edges/s",
        contenders=contenders,
        verify=verify,
        limit_s=flops / gemm_rate(chunk),
    )


def gemm_rate(chunk: int, seconds: float = 0.5) -> float:
    """Return FLOP/s of a chunk's three products, on all cores side by side."""
    import numpy as np

    from graphsys.core.threads import num_cores, run_parallel
    from graphsys.embedding.blas import single_threaded_blas

    def work(_: int) -> float:
        rng = np.random.default_rng(0)
        queries = rng.random((chunk, DIM), dtype=np.float32)
        candidates = rng.random((2 * chunk, DIM), dtype=np.float32)
        scores = queries @ candidates.T
        products, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            np.matmul(queries, candidates.T, out=scores)
            scores @ candidates
            scores.T @ queries
            products += 3
        flops = products * 2 * chunk * 2 * chunk * DIM
        return flops / (time.perf_counter() - began)

    with single_threaded_blas():
        return sum(run_parallel(work, range(num_cores())))


def train_ours(graph: str, out: str, chunk: int) -> Outcome:
    """Train one epoch; compilation and loading are timed apart."""
    import graphsys
    from graphsys.embedding import EmbeddingConfig, train

    shutil.rmtree(out, ignore_errors=True)
    config = EmbeddingConfig(
        dim=DIM,
        epochs=1,
        batch_size=1000,
        num_batch_negatives=chunk,
        num_uniform_negatives=chunk,
        checkpoint_seconds=3600.0,
    )
    began = time.perf_counter()
    report = train(graphsys.open(graph), config, out)
    compile_s = time.perf_counter() - began - report.seconds
    return Outcome(
        seconds=report.seconds,
        result={"loss": report.metrics["loss"]},
        compile_s=compile_s,
    )
