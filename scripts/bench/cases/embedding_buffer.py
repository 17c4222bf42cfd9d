"""Case ``embedding_buffer``: one training with buffers and orders of several kinds.

An R-MAT graph in many partitions is trained for two epochs. The first work has buffers of
2 partitions up to all, with and without reading ahead, the second every order with a buffer
of a quarter. Checkpoints come at the end only, so what is read and written is the swaps'.
The figures of a run: swaps, the lower bound, bytes, waiting, and the overlap coefficient
alpha = (N + C - T) / min(N, C) with N input and output, C computing and T both together.
Results are right if the mean loss is finite and below that of guessing, and no order swaps
less than the lower bound allows.
"""

import itertools
import math
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.child import in_child
from bench.harness import OURS, Contender, Outcome, Work, WrongResultError
from bench.limits import Limits

PEERS: dict[str, str] = {}
EPOCHS = 2
CHUNK = 50
FIGURES = (
    "swaps",
    "bytes_read",
    "bytes_written",
    "io_seconds",
    "waiting_seconds",
    "compute_seconds",
    "overlap_alpha",
    "buffer_partitions",
    "loss",
    "peak_memory_bytes",
    "planned_memory_bytes",
)


def works(
    *, quick: bool, folder: Path, limits: Limits, missing: list[str]
) -> Iterator[Work]:
    """Yield the two works."""
    from graphsys.datasets import recipes
    from graphsys.embedding.data.bucket_order import ORDERS

    scale, partitions, dim = (15, 8, 32) if quick else (20, 16, 100)
    graph = folder / "rmat"
    recipes.build("rmat", graph, scale=scale, edge_factor=10, partitions=partitions)
    name = f"R-MAT scale {scale}, {10 << scale:,} edges, {partitions} partitions, d{dim}"
    common = {"graph": graph, "out": folder / "run", "dim": dim}
    capacities = [2**k for k in range(1, partitions.bit_length())]
    yield _work(
        f"buffers, {name}",
        10 << scale,
        {
            f"{OURS}, buffer of {capacity}{'' if prefetch else ', no prefetch'}": {
                "order": "beta",
                "capacity": capacity,
                "prefetch": prefetch,
            }
            for capacity in capacities
            for prefetch in ([True, False] if capacity < partitions else [True])
        },
        common,
    )
    yield _work(
        f"orders, buffer of {partitions // 4}, {name}",
        10 << scale,
        {
            f"{OURS}, {order}": {
                "order": order,
                "capacity": partitions // 4,
                "prefetch": True,
            }
            for order in ORDERS
        },
        common,
    )


def _work(
    name: str,
    num_edges: int,
    variants: Mapping[str, dict[str, Any]],
    common: dict[str, Any],
) -> Work:
    def verify(results: Mapping[str, Any]) -> None:
        for system, result in results.items():
            figures, guessing = result["figures"], 2 * math.log(2 * CHUNK)
            if not 0 < figures["loss"] < guessing:
                raise WrongResultError(
                    f"{system}: mean loss {figures['loss']:.3f}, guessing {guessing:.3f}"
                )
            if figures["swaps"] < figures["min_swaps"]:
                raise WrongResultError(
                    f"{system}: {figures['swaps']} swaps, at least {figures['min_swaps']}"
                )

    contenders = [
        Contender(
            system=system,
            run=in_child(
                "bench.cases.embedding_buffer:train_with",
                **{k: str(v) if isinstance(v, Path) else v for k, v in common.items()},
                **options,
            ),
        )
        for system, options in variants.items()
    ]
    return Work(
        name=name,
        amount=EPOCHS * num_edges,
        unit="edges/s",
        contenders=contenders,
        verify=verify,
    )


def train_with(
    graph: str, out: str, dim: int, order: str, capacity: int, prefetch: bool
) -> Outcome:
    """Train two epochs; compiling and loading are timed apart."""
    import graphsys
    from graphsys.embedding import EmbeddingConfig, train
    from graphsys.embedding.data.bucket_order import lower_bound

    shutil.rmtree(out, ignore_errors=True)
    config = EmbeddingConfig(
        dim=dim,
        epochs=EPOCHS,
        batch_size=1000,
        num_batch_negatives=CHUNK,
        num_uniform_negatives=CHUNK,
        checkpoint_seconds=3600.0,
        bucket_order=order,  # type: ignore[arg-type]  # one of the names
        buffer_partitions=capacity,
        prefetch=prefetch,
    )
    began = time.perf_counter()
    report = train(graphsys.open(graph), config, out)
    compile_s = time.perf_counter() - began - report.seconds
    parts = range(graphsys.open(graph).num_partitions("node"))
    pairs = [frozenset(pair) for pair in itertools.combinations(parts, 2)]
    metrics = report.metrics
    figures = {name: metrics[name] for name in FIGURES if name in metrics}
    return Outcome(
        seconds=report.seconds,
        result={"figures": figures | {"min_swaps": EPOCHS * lower_bound(pairs, capacity)}},
        compile_s=compile_s,
    )
