"""Graph neural networks: kernels beside other libraries', training, cached features."""

import contextlib
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gpu_checking.kernel_times import kernel_times
from gpu_checking.steps import Context

REPEATS = 10
NUM_WARM_REPEATS = 2  # the first compiles
NUM_BATCHES = 100
NUM_WARM_BATCHES = 10
LARGEST_DIFFERENCE = {"float32": 1e-4, "bfloat16": 0.02}
"""Of sums of the same rows, relative to the largest."""
WATCHED = "GraphSAGE, kernels watched"
ATTENTION = ("softmax of 4 heads", "GATv2 scores of 4 x 32")
LARGEST_LOSS_DIFFERENCE = 0.02
"""Of the mean losses of CPU and device, which add in other orders."""
SAGE = {
    "model": "sage",
    "dim": 256,
    "layers": 3,
    "fanouts": (5, 10, 15),
    "batch_size": 1024,
    "lr": 0.003,
    "prefetch": 8,
    "reverse_edges": False,
}


_WORKS = ((100, "float32"), (256, "float32"), (256, "bfloat16"))
"""Widths and types of rows that are summed."""
_SYSTEMS = ("graphsys", "torch.sparse.mm", "PyG scatter")
_TRAININGS: tuple[tuple[str, str], ...] = (
    ("cpu", "graphsys"),
    ("cuda", "graphsys"),
    ("cuda", "graphsys, a quarter of rows cached"),
    ("cuda", "graphsys, bfloat16"),
)


def planned() -> list[str]:
    """Return the rows that a card is to give."""
    works = [f"sum of {width} {dtype}" for width, dtype in _WORKS]
    found = [f"{work}, {system}, cuda" for work in works for system in _SYSTEMS]
    found += [f"{work}, graphsys, cuda" for work in ATTENTION]
    found.append(f"{WATCHED}, graphsys, cuda")
    name = training_of(NUM_BATCHES)
    return [*found, *(f"{name}, {system}, {device}" for device, system in _TRAININGS)]


def training_of(num_batches: int) -> str:
    """Return the name of a training."""
    return f"GraphSAGE, {num_batches} batches"


def measure(context: Context) -> None:
    """Time on an R-MAT graph, a tiny one in the interpreter."""
    if not context.has_triton():
        return
    left_out: list[str] = []
    if context.is_simulated:
        make_tiny()
        bench(context, 4, left_out, 1)
    else:
        bench(context, 18, left_out, NUM_BATCHES)
    context.leave_out(left_out)


def make_tiny() -> None:
    """Have everything take seconds in the interpreter."""
    small = SAGE | {"dim": 8, "batch_size": 8, "fanouts": (2, 2, 2)}
    globals().update(REPEATS=1, NUM_WARM_REPEATS=0, NUM_WARM_BATCHES=1, SAGE=small)


def bench(context: Context, scale: int, left_out: list[str], num_batches: int) -> None:
    """Time kernels beside other libraries', and training beside the CPU's.

    Args:
        context: Of the step.
        scale: Logarithm of the number of nodes of an R-MAT graph with 20 edges a node.
        left_out: Receives the cases that did not fit.
        num_batches: Of a training.
    """
    from bench.cases.gnn_inputs import Labeled

    from graphsys.storage import Graph
    from graphsys.storage.ingest.ingest import ingest

    deadline = context.deadline
    with tempfile.TemporaryDirectory() as name:
        store = Path(name) / "graph"
        ingest(Labeled(scale, 20), store, order="original")
        with Graph(store) as graph:
            rows = (
                kernels(graph, deadline),
                where_time_goes(graph, deadline, num_batches),
                trainings(graph, deadline, num_batches),
            )
            for row in itertools.chain(*rows):
                case = f"{row.pop('program')}, {row.pop('system')}"
                if row.get("left_out"):
                    left_out.append(f"{case}, {row['device']}")
                else:
                    context.tell({"case": case, "graph": f"rmat{scale}", **row})


def kernels(graph: Any, deadline: float) -> Iterator[dict[str, Any]]:
    """Yield a row for each sum over all neighbors, ours and others'."""
    from graphsys.core.triton.device import cuda_device
    from graphsys.gnn import SparseRows

    index = graph.in_index("edge", 0)
    host = SparseRows(
        index.indptr.astype(np.int64), index.indices.astype(np.int32), graph.num_nodes
    )
    rows, device = host.to("cuda"), cuda_device()
    edges = rows.num_edges
    for width, precision in _WORKS:
        x = torch.rand(graph.num_nodes, width, device=device)
        x = x.to(getattr(torch, precision)).requires_grad_()
        exact = sum_in_float64(rows, x.detach())
        own_bytes = edges * (width * x.element_size() + 4)
        for system, function in sums(rows, precision).items():
            work = f"sum of {width} {precision}"
            row = {"program": work, "device": "cuda", "system": system}
            if time.monotonic() > deadline:
                yield row | {"left_out": True}
                continue
            try:
                value, times = timed(function, x)
            except Exception as err:  # one that fails must not hide the others
                kind = "error" if system == "graphsys" else "unavailable"
                yield row | {kind: f"{type(err).__name__}: {err}"[:300]}
                continue
            row |= times | {"edges_per_second": edges / times["seconds"]}
            row["bytes_per_second"] = own_bytes / times["seconds"]
            off = float((value - exact).abs().max() / exact.abs().max())
            row["from_float64"] = off
            # others' is told, not judged: some add bfloat16 in bfloat16
            if system == "graphsys" and off > LARGEST_DIFFERENCE[precision]:
                row["error"] = f"differs from sums in float64 by {off:.2g}"
            yield row
    yield from attention(rows, device, deadline)


def sums(rows: Any, precision: str) -> dict[str, Callable[[Any], Any]]:
    """Return functions that sum the rows of all neighbors, by library."""
    from graphsys.gnn import spmm

    found: dict[str, Callable[[Any], Any]] = {"graphsys": lambda x: spmm(rows, x)}
    ones = torch.ones(rows.num_edges, device=rows.device, dtype=getattr(torch, precision))
    shape = (rows.num_dst, rows.num_src)
    matrix = torch.sparse_csr_tensor(rows.indptr, rows.indices.long(), ones, shape)
    found["torch.sparse.mm"] = lambda x: torch.sparse.mm(matrix, x.detach())
    with contextlib.suppress(Exception):  # not installed, or broken
        from torch_geometric.utils import scatter

        sources, targets = rows.indices.long(), rows.entries.row_of.long()
        found["PyG scatter"] = lambda x: scatter(
            x.index_select(0, sources), targets, 0, rows.num_dst
        )
    return found


def sum_in_float64(rows: Any, x: Any) -> Any:
    """Return the sums of all neighbors' rows, in float64, by torch."""
    out = torch.zeros(rows.num_dst, x.shape[1], dtype=torch.float64, device=x.device)
    sources, targets = rows.indices.long(), rows.entries.row_of.long()
    step = max(1, (1 << 28) // x.shape[1])  # 2 GB of rows at a time
    for at in range(0, len(sources), step):
        part = slice(at, at + step)
        out.index_add_(0, targets[part], x[sources[part]].double())
    return out


def attention(rows: Any, device: Any, deadline: float) -> Iterator[dict[str, Any]]:
    """Yield rows of softmax within rows, and of GATv2's scores."""
    from graphsys.gnn import attention_scores, segment_softmax

    x = torch.rand(rows.num_src, 4, 32, device=device, requires_grad=True)
    scores = torch.rand(rows.num_edges, 4, device=device, requires_grad=True)
    vector = torch.rand(4, 32, device=device)
    works: tuple[tuple[Any, Any], ...] = (
        (lambda s: segment_softmax(rows, s), scores),
        (lambda a: attention_scores(rows, a, a, vector), x),
    )
    for name, (function, given) in zip(ATTENTION, works, strict=True):
        row = {"program": name, "device": "cuda", "system": "graphsys"}
        if time.monotonic() > deadline:
            yield row | {"left_out": True}
            continue
        try:
            _, times = timed(function, given)
            yield row | times | {"edges_per_second": rows.num_edges / times["seconds"]}
        except Exception as err:  # one that fails must not hide the others
            yield row | {"error": f"{type(err).__name__}: {err}"[:300]}


def timed(function: Callable[[Any], Any], x: Any) -> tuple[Any, dict[str, float]]:
    """Return the result, and medians of its time and of its gradient's, in seconds."""

    def median(work: Callable[[], Any]) -> float:
        times = []
        for _ in range(REPEATS + NUM_WARM_REPEATS):
            wait()
            began = time.perf_counter()
            work()
            wait()
            times.append(time.perf_counter() - began)
        return statistics.median(times[NUM_WARM_REPEATS:])

    with torch.no_grad():
        value = function(x)
        found = {"seconds": median(lambda: function(x))}
    out = function(x)
    if out.requires_grad:
        ones = torch.ones_like(out)
        found["seconds_backward"] = median(
            lambda: torch.autograd.grad(out, x, ones, retain_graph=True)
        )
    return value, found


def wait() -> None:
    """Wait for the device, if it is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def trainings(graph: Any, deadline: float, num_batches: int) -> Iterator[dict[str, Any]]:
    """Yield rows of GraphSAGE: the CPU, the device, and with a quarter of rows cached."""
    quarter = f"{graph.num_nodes * 100}B"
    settings = ({}, {}, {"cache_device_memory": quarter}, {"precision": "bfloat16"})
    expected = None
    for (device, system), options in zip(_TRAININGS, settings, strict=True):
        row = {"program": training_of(num_batches), "device": device, "system": system}
        if time.monotonic() > deadline:
            yield row | {"left_out": True}
            continue
        try:
            row |= train(graph, device, num_batches, options)
        except Exception as err:  # one that fails must not hide the others
            row["error"] = f"{type(err).__name__}: {err}"[:300]
        if device == "cpu":
            expected = row.get("loss")
        elif expected and "loss" in row:
            row["loss_from_cpu"] = abs(row["loss"] / expected - 1)
            if row["loss_from_cpu"] > LARGEST_LOSS_DIFFERENCE:
                row["error"] = "the loss differs from the CPU's"
        yield row


def where_time_goes(
    graph: Any, deadline: float, num_batches: int
) -> Iterator[dict[str, Any]]:
    """Yield a row of a training whose kernels are watched, after one that compiles."""
    row: dict[str, Any] = {"program": WATCHED, "device": "cuda", "system": "graphsys"}
    if time.monotonic() > deadline:
        yield row | {"left_out": True}
        return
    few = -(-num_batches // 5)
    try:
        train(graph, "cuda", 1, {})
        yield row | kernel_times(lambda: train(graph, "cuda", few, {}))
    except Exception as err:  # one that fails must not hide the others
        yield row | {"error": f"{type(err).__name__}: {err}"[:300]}


def train(
    graph: Any, device: str, num_batches: int, options: dict[str, Any]
) -> dict[str, Any]:
    """Train batches after a few that compile; return seconds of 100 and of the stages."""
    from graphsys.core.threads import num_cores
    from graphsys.gnn import GnnConfig
    from graphsys.gnn.data.device_transfer import open_transfer
    from graphsys.gnn.ops.adjacency import kernel_threads
    from graphsys.gnn.training.api import build_context
    from graphsys.gnn.training.stats import GnnStats
    from graphsys.gnn.training.trainer import GnnTrainer

    config = GnnConfig(**{**SAGE, **options})
    transfer = open_transfer(device, config)
    with kernel_threads(num_cores()):
        context = build_context(graph, config, transfer)
        trainer = GnnTrainer(context)
        seeds = context.task.seeds(0)[: num_batches + NUM_WARM_BATCHES]
        num_warm = min(NUM_WARM_BATCHES, len(seeds) - 1)
        losses, began = [], 0.0
        for batch in trainer.batches(0, seeds):
            if batch.number == num_warm:
                began, trainer.stats = time.perf_counter(), GnnStats({})
            losses.append(trainer.train_batch(0, batch, len(seeds)))
            trainer.loader.release(batch)
        seconds = time.perf_counter() - began
    num_timed = len(seeds) - num_warm
    metrics: dict[str, Any] = {}
    trainer.stats.update(metrics)
    stages = ("sample", "gather", "forward", "backward", "step")
    per_batch = {f"{s}_ms": 1e3 * metrics[f"{s}_seconds"] / num_timed for s in stages}
    return {
        "seconds_per_100": 100 * seconds / num_timed,
        "loss": statistics.fmean(losses),
        "batches": len(seeds),
        **per_batch,
        **context.features.figures(),
    }
