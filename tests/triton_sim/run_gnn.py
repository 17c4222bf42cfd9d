"""Compute message passing by Triton kernels in its interpreter and on the CPU; compare.

Usage: ``TRITON_INTERPRET=1 python -m tests.triton_sim.run_gnn CASE ...`` from the root;
prints one JSON line per case:

    kernel:FUNCTION:GRAPH:DTYPE    values and gradients of one function
    rows:WHAT                      what is derived from rows, made on the device
    training:MODEL[,FLAG]...       a whole training, then evaluation and prediction
    resume:MODEL                   a training that goes on on the other place
    check:SCALE                    the part of scripts/gpu_check about networks

A process of its own, since the interpreter is chosen when Triton is imported. On a machine
with a GPU, without the variable, the same cases run there.
"""

import importlib
import json
import sys
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from graphsys import gnn
from graphsys.core.progress import Progress
from graphsys.core.triton.device import cuda_device, is_interpreted
from graphsys.core.types import EdgeType
from graphsys.gnn import GnnConfig
from graphsys.gnn.ops import functional as ours
from graphsys.gnn.ops.adjacency import SparseRows, join_rows
from graphsys.gnn.ops.gcn_norm import weigh
from graphsys.storage import Graph, NodeChunk
from tests.stores import edge_chunk, make_store
from tests.triton_sim.run_cases import main

Shapes = list[tuple[int | str, ...]]
FUNCTIONS: dict[str, tuple[Callable[..., Any], Shapes]] = {
    "sum": (ours.spmm, [("S", "F")]),
    "mean": (lambda rows, x: ours.spmm(rows, x, reduce="mean"), [("S", "F")]),
    "max": (lambda rows, x: ours.spmm(rows, x, reduce="max"), [("S", "F")]),
    "weighted": (ours.spmm, [("S", "F"), ("E",)]),
    "heads": (ours.spmm, [("S", 3, "F"), ("E", 3)]),
    "dot": (ours.sddmm, [("S", 3, "F"), ("D", 3, "F")]),
    "add": (lambda rows, x, y: ours.sddmm(rows, x, y, "add"), [("S", 3), ("D", 3)]),
    "softmax": (ours.segment_softmax, [("E", 3)]),
    "attention": (ours.attention_scores, [("S", 3, "F"), ("D", 3, "F"), (3, "F")]),
    "sum and own": (lambda r, x: ours.spmm_with_own(r, x, "sum"), [("S", "F")]),
    "mean and own": (lambda r, x: ours.spmm_with_own(r, x, "mean"), [("S", "F")]),
}
WIDTHS = {"wide": 133, "none": 0}
WIDTH = 5


def make_rows(graph: str) -> SparseRows:
    """Return rows: random ones, two of several pieces, none at all, or repeated ends."""
    rng = np.random.default_rng(3)
    lengths = rng.integers(0, 6, 19)
    lengths[-1] = 0
    num_src = 23
    if graph == "hub":
        lengths[4], lengths[11] = 700, 513
    elif graph == "empty":
        lengths[:] = 0
    elif graph == "repeated":
        num_src = 19  # so that every row names some source twice
        lengths[:] = 25
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    indices = rng.integers(0, num_src, int(indptr[-1])).astype(np.int32)
    if graph == "hub":
        indices[rng.random(len(indices)) < 0.6] = 7  # a hub among the sources, too
    return SparseRows(indptr, indices, num_src)


def values(shape: tuple[int, ...], dtype: torch.dtype, number: int) -> torch.Tensor:
    """Return random numbers, many of them equal so that maxima have ties."""
    generator = torch.Generator().manual_seed(number)
    x = torch.randn(shape, generator=generator)
    return (x * 8).round().div(8).to(dtype)


def computed(
    function: Callable[..., Any], rows: SparseRows, inputs: list[torch.Tensor], place: Any
) -> list[torch.Tensor]:
    """Return the results and gradients, on the CPU as float64."""
    inputs = [x.clone().to(place).requires_grad_() for x in inputs]
    found = function(rows, *inputs)
    found = found if isinstance(found, tuple) else (found,)
    total = sum(
        (f * values(tuple(f.shape), f.dtype, 90 + k).to(place)).sum()
        for k, f in enumerate(found)
    )
    assert isinstance(total, torch.Tensor)
    total.backward()  # type: ignore[no-untyped-call]
    grads = [x.grad for x in inputs]
    dtypes = [x.dtype for x in inputs]
    assert [g.dtype for g in grads if g is not None] == dtypes
    return [f.detach().cpu().double() for f in (*found, *grads) if f is not None]


def run_kernel(case: str) -> dict[str, object]:
    """Compute a function both ways, and twice on the device."""
    name, graph, precision = case.split(":")
    function, shapes = FUNCTIONS[name]
    rows = make_rows(graph)
    sizes: dict[int | str, int] = {
        "S": rows.num_src,
        "D": rows.num_dst,
        "E": rows.num_edges,
        "F": WIDTHS.get(graph, WIDTH),
    }
    dtype = getattr(torch, precision)
    inputs = [
        values(tuple(int(sizes.get(size, size)) for size in shape), dtype, k)
        for k, shape in enumerate(shapes)
    ]
    wanted = computed(function, rows, inputs, "cpu")
    there = rows.to("cuda")
    got = computed(function, there, inputs, cuda_device())
    again = computed(function, rows.to("cuda"), inputs, cuda_device())
    return {
        "from_cpu": max(largest(a, b) for a, b in zip(got, wanted, strict=True)),
        "is_same_again": all(torch.equal(a, b) for a, b in zip(got, again, strict=True)),
        "results": len(got),
        "largest": max((float(w.abs().max()) for w in wanted if w.numel()), default=0.0),
        "is_on_device": there.is_on_device,
    }


def largest(one: torch.Tensor, other: torch.Tensor) -> float:
    """Return the largest difference, relative to the largest value."""
    if one.shape != other.shape:
        return float("inf")
    if not one.numel():
        return 0.0
    return float((one - other).abs().max() / other.abs().max().clamp(min=1))


def run_rows(case: str) -> dict[str, object]:
    """Derive the same from rows on the host and on the device."""
    rows = make_rows("hub")
    there = rows.to("cuda")
    if case == "transposed":
        wanted, got = rows.transposed, there.transposed
        return {"differs": _differs(wanted, (got.indptr, got.indices, got.entry))}
    if case == "weigh":
        degrees = torch.arange(rows.num_src).float()
        own = degrees[: rows.num_dst] * 2
        wanted_weights = weigh(rows, degrees, own)
        place = cuda_device()
        got_weights = weigh(there, degrees.to(place), own.to(place))
        pairs = zip(wanted_weights, got_weights, strict=True)
        return {"differs": max(largest(b.cpu().double(), a.double()) for a, b in pairs)}
    parts = [rows, make_rows("random")]
    one: SparseRows = rows.with_self if case == "with_self" else join_rows(parts)
    other = (
        there.with_self
        if case == "with_self"
        else join_rows([each.to("cuda") for each in parts])
    )
    same = one.num_src == other.num_src and one.is_prefix == other.is_prefix
    found = (other.indptr, other.indices)
    return {"differs": _differs((one.indptr, one.indices), found) + (not same)}


def _differs(wanted: Any, got: Any) -> int:
    pairs = zip(wanted, got, strict=True)
    return sum(not np.array_equal(a, b.cpu().numpy()) for a, b in pairs)


def make_graph(folder: Path, flags: set[str]) -> Graph:
    """Return three groups of nodes whose classes can be learned; with ``typed`` two types.

    Of two types only the one has features, and the other learned rows.
    """
    rng = np.random.default_rng(5)
    num_nodes, label = 36, np.arange(36) % 3
    pairs = [
        (u, v)
        for v in range(num_nodes)
        for u in range(v)
        if rng.random() < (0.35 if label[u] == label[v] else 0.04)
    ]
    x = rng.normal(0, 0.5, (num_nodes, 6)).astype(np.float32)
    x[np.arange(num_nodes), label] += 1
    split = np.array(["train", "valid", "train", "test"])[np.arange(num_nodes) // 3 % 4]
    columns: dict[str, Any] = {"label": label, "split": pa.array(split.tolist())}
    if "temporal" in flags:
        columns["time"] = np.arange(num_nodes) + 100
    features = {} if "bare" in flags else {"x": x}
    nodes = NodeChunk(ids=np.arange(num_nodes), columns=columns, features=features)
    options: Any = {"time": np.arange(len(pairs))} if "temporal" in flags else {}
    chunks: list[Any] = [nodes, edge_chunk(pairs, **options)]
    if "links" in flags:
        chunks += [edge_chunk(pairs[::7], split=s) for s in ("valid", "test")]
    if "typed" in flags:
        kind = EdgeType("node", "has", "tag")
        tagged = [(v, (v + k) % 9) for v in range(num_nodes) for k in (0, 3)]
        chunks += [NodeChunk(ids=np.arange(9), node_type="tag"), edge_chunk(tagged, kind)]
    make_store(folder / "graph", *chunks, is_directed=False)
    return Graph(folder / "graph")


def make_config(case: str, **changes: Any) -> GnnConfig:
    """Return the settings of ``model[,flag]...``."""
    model, *flags = case.split(",")
    options: dict[str, Any] = {
        "model": model,
        "dim": 8,
        "layers": 2,
        "fanouts": () if model == "lightgcn" else (4, 3),
        "epochs": 2,
        "batch_size": 9,
        "heads": 2,
        "num_negatives": 5,
        "walk_length": 2,
        "num_walks": 9,
        "deterministic": True,
        "prefetch": 2 if "prefetch" in flags else 0,
        "seed": 3,
        "eval_every": 1 if "watched" in flags else 0,
    }
    named: dict[str, dict[str, Any]] = {
        "max": {"aggregator": "max"},
        "bfloat16": {"precision": "bfloat16"},
        "whole": {"batch_size": 0, "fanouts": ()},
        "residual": {"residual": True},
        "layer": {"norm": "layer", "dropout": 0.2},
        "mlp": {"decoder": "mlp"},
        "links": {"task": "link_prediction", "batch_size": 40},
        "bare": {"row_decay": 0.01},
        "content": {"side_tasks": {"content": 0.5}},
        "cached": {"cache_device_memory": "240B", "normalize_features": True},
        "disk": {"learned_rows": "disk"},
        "temporal": {"sampler": "temporal"},
    }
    for flag in flags:
        options |= named.get(flag, {})
    return GnnConfig(**options | changes)


def run_training(case: str) -> dict[str, object]:
    """Train, evaluate and predict on the CPU and on the device."""
    losses: list[Any] = []
    metrics: list[Any] = []
    predicted: list[Any] = []
    hit_rates: list[float | None] = []
    with TemporaryDirectory() as name, make_graph(Path(name), {*case.split(",")}) as graph:
        config = make_config(case)
        is_drawn = config.dropout > 0 and not is_interpreted()
        for device in ("cpu", "cuda"):
            out = Path(name) / device
            report = gnn.train(graph, config, out, device=device)
            losses.append(json.loads((out / "run.json").read_text())["losses"])
            hit_rates.append(report.metrics.get("device_cache_hit_rate"))
            found = gnn.evaluate(out, device=device, graph=graph)["metrics"]
            metrics.append([v for v in found.values() if isinstance(v, float)])
            table = gnn.predict(out, device=device, graph=graph)
            predicted.append(np.array(table.column(table.num_columns - 1).to_pylist()))
    return {
        "cpu_losses": losses[0],
        "losses": losses[1],
        "hit_rates": hit_rates,
        "metrics_from_cpu": float(np.abs(np.subtract(metrics[0], metrics[1])).max()),
        "predictions_from_cpu": float(np.abs(predicted[0] - predicted[1]).max()),
        # a GPU draws what is dropped by its own generator
        "tolerance": 0.02 if "bfloat16" in case else 1.0 if is_drawn else 1e-4,
    }


def run_resume(case: str) -> dict[str, object]:
    """Train two epochs on the CPU, and one on each of both places, either first."""
    losses = []
    with TemporaryDirectory() as name, make_graph(Path(name), set()) as graph:
        for number, places in enumerate((("cpu", "cpu"), ("cpu", "cuda"), ("cuda", "cpu"))):
            out = Path(name) / str(number)
            progress = Stop()
            with suppress(KeyboardInterrupt):
                gnn.train(
                    graph,
                    make_config(case, checkpoint_seconds=0),
                    out,
                    device=places[0],
                    progress=progress,
                )
            assert progress.is_stopped
            gnn.train(graph, None, out, device=places[1], resume=True)
            losses.append(json.loads((out / "run.json").read_text())["losses"])
    return {"cpu_losses": losses[0] * 2, "losses": losses[1] + losses[2], "tolerance": 1e-4}


class Stop(Progress):
    """Interrupts a training when its second epoch begins."""

    is_stopped = False

    def stage(self, name: str, total: int | None = None, unit: str = "") -> None:
        """Stop at the second."""
        if name == "epoch 2":
            self.is_stopped = True
            raise KeyboardInterrupt


def run_check(case: str) -> dict[str, object]:
    """Run what ``scripts/gpu_check`` times on a tiny graph, where no time is left.

    With time ``tests/unit/bench/test_gpu_check.py`` runs it.
    """
    sys.path.append(str(Path(__file__).parents[2] / "scripts"))
    checks = importlib.import_module("gpu_checking.gnn")
    steps = importlib.import_module("gpu_checking.steps")
    checks.make_tiny()
    left_out: list[str] = []
    late: list[dict[str, object]] = []
    context = steps.Context(deadline=0.0, is_simulated=True, tell=late.append)
    with redirect_stdout(StringIO()):
        checks.bench(context, int(case), left_out, 1)
    return {"late": late, "left_out": left_out}


RUNNERS = {
    "check": run_check,
    "kernel": run_kernel,
    "rows": run_rows,
    "training": run_training,
    "resume": run_resume,
}


if __name__ == "__main__":
    sys.exit(main(RUNNERS))
