"""Case ``embedding``: one epoch on an R-MAT graph, in 1 and in 4 partitions.

The work is that of the comparison with PyTorch-BigGraph, which runs in an environment of
its own (scripts/bench/peer_environments): dim 100, batches of 1000, chunks of 50 positives
with 50 batch and 50 uniform negatives for either side, softmax over inner products, lr
.1, 2 workers, the same training edges; and chunks of 500, on fewer edges.

The times are of the training loop: PBG's the sum of what it reports for its buckets, which
leaves out reading edges and swapping (its ``io_s``); ours has both in it. Memory is the
peak of the proportional set size of all processes. A run is right if its mean loss is
below that of guessing; and both checkpoints rank the same held-out edges, PBG's after an
import, by one evaluator: ours may not be worse.

The limit is the time of the matrix products alone, at the rate that this machine reaches
at their shapes with one product per core side by side (measured here, right before: one
small product spread over all cores is slower).
"""

import math
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.cases import embedding_inputs as inputs
from bench.child import in_child
from bench.environments import peer_python
from bench.harness import OURS, Contender, Outcome, Work, WrongResultError
from bench.limits import Limits

PEER = "PyTorch-BigGraph"
PEERS = {PEER: "torchbiggraph"}
MODULE = "bench.cases.embedding"
DIM = 100
WORKERS = 2
LEAST_QUALITY = 0.9  # of the peer's MRR; HOGWILD runs differ by less


class Sizes(NamedTuple):
    """One work: its graph, its chunks."""

    scale: int
    edge_factor: int
    num_test: int
    chunk: int


FULL = (Sizes(20, 10, 2000, 50), Sizes(17, 8, 2000, 500))
QUICK = (Sizes(16, 10, 500, 50), Sizes(16, 2, 500, 500))


def works(
    *, quick: bool, folder: Path, limits: Limits, missing: list[str]
) -> Iterator[Work]:
    """Yield the works; without the peer's environment it is only named."""
    from graphsys.storage.ingest.ingest import ingest

    for number, sizes in enumerate(QUICK if quick else FULL):
        here = folder / str(number)
        for partitions in (1, 4):
            source = inputs.HeldOut(sizes.scale, sizes.edge_factor, sizes.num_test)
            ingest(source, here / f"graph-{partitions}", partitions=partitions)
            if PEER not in missing:
                inputs.write_pbg(source, here / f"pbg-{partitions}", partitions)
        yield _make_work(sizes, here, has_peer=PEER not in missing)
        shutil.rmtree(here)


def _make_work(sizes: Sizes, folder: Path, *, has_peer: bool) -> Work:
    num_edges = (sizes.edge_factor << sizes.scale) - sizes.num_test
    contenders, scores = [], {}
    for partitions in (1, 4):
        graph = folder / f"graph-{partitions}"
        more = f", {partitions} partitions" if partitions > 1 else ""
        out = folder / f"run-{partitions}"
        run = in_child(
            f"{MODULE}:train_ours", pss=True, graph=graph, out=out, chunk=sizes.chunk
        )
        contenders.append(Contender(system=OURS + more, run=run))
        scores[OURS + more] = in_child(f"{MODULE}:score", graph=graph, run=out)
        if has_peer:
            checkpoint = folder / f"checkpoint-{partitions}"
            run = _peer_run(folder / f"pbg-{partitions}", checkpoint, partitions, sizes)
            contenders.append(Contender(system=PEER + more, run=run))
            scores[PEER + more] = in_child(
                f"{MODULE}:score", graph=graph, run=checkpoint, is_checkpoint=True
            )
    flops = num_edges * 2 * 3 * 2 * (2 * sizes.chunk) * DIM  # sides, products, multiply-add
    size = f"R-MAT scale {sizes.scale}, {num_edges / 1e6:.3g}M edges"
    return Work(
        name=f"{size}, chunks of {sizes.chunk}",
        amount=num_edges,
        unit="edges/s",
        contenders=contenders,
        verify=lambda results: _verify(results, scores, num_edges, sizes.chunk),
        limit_s=flops / gemm_rate(sizes.chunk),
    )


def _peer_run(
    data: Path, checkpoint: Path, partitions: int, sizes: Sizes
) -> Callable[[], Outcome]:
    config = inputs.pbg_config(
        data,
        checkpoint,
        partitions=partitions,
        dim=DIM,
        chunk=sizes.chunk,
        workers=WORKERS,
    )
    python = peer_python("torchbiggraph")
    assert python is not None
    return in_child(
        "bench.cases.embedding_peer:train",
        python=python,
        pss=True,
        config=inputs.write_config(data, config),
    )


def _verify(
    results: Any, scores: dict[str, Callable[[], Outcome]], num_edges: int, chunk: int
) -> None:
    """Check losses and numbers of edges, then rank with every checkpoint."""
    guessing = 2 * math.log(2 * chunk)
    for system, result in results.items():
        if not 0 < result["loss"] < guessing:
            raise WrongResultError(
                f"{system}: mean loss {result['loss']:.3f}, guessing has {guessing:.3f}"
            )
        if result["num_edges"] != num_edges:
            raise WrongResultError(
                f"{system}: trained {result['num_edges']} edges, expected {num_edges}"
            )
        result["figures"] |= {"loss": result["loss"], **scores[system]().result}
    for system, result in results.items():
        ours, theirs = results[system.replace(PEER, OURS)]["figures"], result["figures"]
        # 95 % intervals: few test edges on a barely trained graph tell little apart
        if ours["mrr_high"] < LEAST_QUALITY * theirs["mrr_low"]:
            raise WrongResultError(
                f"{system} reaches the MRR {theirs['mrr']:.4f}, at least "
                f"{theirs['mrr_low']:.4f}; ours {ours['mrr']:.4f}, at most "
                f"{ours['mrr_high']:.4f}"
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
    from graphsys.embedding import EmbeddingConfig, open_run, train

    shutil.rmtree(out, ignore_errors=True)
    config = EmbeddingConfig(
        dim=DIM,
        epochs=1,
        threads=WORKERS,
        batch_size=1000,
        num_batch_negatives=chunk,
        num_uniform_negatives=chunk,
        checkpoint_seconds=3600.0,
    )
    began = time.perf_counter()
    report = train(graphsys.open(graph), config, out)
    wall_s = time.perf_counter() - began
    return Outcome(
        seconds=report.seconds,
        result={
            "loss": report.metrics["loss"],
            "num_edges": open_run(out).state.num_edges,
            "figures": {"wall_s": wall_s},
        },
    )


def score(graph: str, run: str, is_checkpoint: bool = False) -> dict[str, float]:
    """Rank the held-out edges with a run, or with PBG's checkpoint once it is imported."""
    import tempfile

    import graphsys
    from graphsys import embedding

    with tempfile.TemporaryDirectory(dir=Path(run).parent) as folder:
        opened = graphsys.open(graph)
        if is_checkpoint:
            imported = Path(folder) / "run"
            embedding.import_pbg(run, opened, imported)
            run = str(imported)
        metrics = embedding.evaluate(run, split="test", graph=opened)["metrics"]
    low, high = metrics["confidence"]["mrr"]
    return {
        "mrr": metrics["mrr"],
        "mrr_low": low,
        "mrr_high": high,
        "hits@10": metrics["hits@10"],
    }
