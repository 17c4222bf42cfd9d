"""Vertex programs by every strategy, beside this machine's CPU."""

import time
from typing import Any

import numpy as np

from gpu_checking.steps import Context

_SCALES = ((20, ()), (22, ("auto", "fused", "twc")))
"""Logarithms of the nodes of Kronecker graphs, and the strategies (all where none)."""
_SIDE = 2048
_TINY_SCALE, _TINY_SIDE = 4, 5


def measure(context: Context) -> None:
    """Time programs on Kronecker graphs and a grid; results are compared first."""
    from graphsys.engine.cuda.strategy import STRATEGIES

    left_out: list[str] = []
    if context.is_simulated:
        few = ("auto", "fused")
        graphs = [(f"kron{_TINY_SCALE}", lambda: kronecker(_TINY_SCALE), few),
                  (f"grid{_TINY_SIDE}", lambda: grid(_TINY_SIDE), few)]  # fmt: skip
    else:
        graphs = [
            (f"kron{scale}", lambda s=scale: kronecker(s), tuple(few) or tuple(STRATEGIES))  # type: ignore[misc]
            for scale, few in _SCALES
        ]
        graphs.insert(1, (f"grid{_SIDE}", lambda: grid(_SIDE), ("auto", "fused", "twc")))
    for name, make, strategies in graphs:
        if time.monotonic() > context.deadline:
            left_out.append(name)
            continue
        graph = make()
        source = int(graph.out_degree.argmax())
        for what, program in programs(source, context).items():
            compare(context, name, what, program, graph, strategies, left_out)
    context.leave_out(left_out)


def compare(
    context: Context, name: str, what: str, program: Any, graph: Any,
    strategies: tuple[str, ...], left_out: list[str],
) -> None:  # fmt: skip
    """Time a program on the CPU and by each strategy on the device."""
    case = f"{what}, {name}"
    expected, row = timed(program, graph, context.deadline)
    if row is None:
        left_out.append(case)
        return
    context.tell({"case": case, "device": "cpu", **row})
    edges = int(graph.out_degree.sum())
    for strategy in strategies:
        if time.monotonic() > context.deadline:
            left_out.append(f"{case}, {strategy}")
            continue
        about = {"case": case, "device": "cuda", "strategy": strategy}
        try:
            result, row = timed(
                program, graph, context.deadline, device="cuda", strategy=strategy
            )
        except Exception as err:  # one that fails must not hide the others
            context.tell(about | {"error": f"{type(err).__name__}: {err}"[:300]})
            continue
        if row is None:
            left_out.append(f"{case}, {strategy}")
            continue
        if not is_close(expected, result):
            row["error"] = "the result differs from the CPU's"
        row["edges_per_second"] = edges / max(row["seconds"], 1e-9)
        context.tell(about | row)


def kronecker(scale: int, edge_factor: int = 16) -> Any:
    """Return Graph500's Kronecker graph, undirected, random labels, uniform weights.

    Its ends are drawn by torch, on the device where there is one: on 2**26 edges the host
    takes as long as all programs.
    """
    import torch

    from graphsys.engine.topology import Topology

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(7)
    num_edges = edge_factor << scale
    src = torch.zeros(num_edges, dtype=torch.int64, device=device)
    dst = torch.zeros(num_edges, dtype=torch.int64, device=device)
    for bit in range(scale):
        down = torch.rand(num_edges, device=device) > 0.76
        right = torch.rand(num_edges, device=device) > torch.where(down, 0.24, 0.75)
        src |= down.long() << bit
        dst |= right.long() << bit
    labels = torch.randperm(1 << scale, device=device)
    weight = torch.rand(num_edges, device=device).cpu().numpy()
    ends = (labels[src].cpu().numpy(), labels[dst].cpu().numpy())
    return Topology.from_edges(*ends, 1 << scale, weight=weight, directed=False)


def grid(side: int) -> Any:
    """Return a square grid, undirected: long paths, small frontiers."""
    from graphsys.engine.topology import Topology

    nodes = np.arange(side * side).reshape(side, side)
    src = np.concatenate([nodes[:, :-1].ravel(), nodes[:-1].ravel()])
    dst = np.concatenate([nodes[:, 1:].ravel(), nodes[1:].ravel()])
    weight = np.random.default_rng(3).random(len(src), dtype=np.float32)
    return Topology.from_edges(src, dst, side * side, weight=weight, directed=False)


def programs(source: int, context: Context) -> dict[str, Any]:
    """Return what is timed; in the simulator what ends in seconds there."""
    from graphsys.engine.programs.bfs import BreadthFirst
    from graphsys.engine.programs.cdlp import Cdlp
    from graphsys.engine.programs.pagerank import PageRank
    from graphsys.engine.programs.sssp import ShortestPaths
    from graphsys.engine.programs.wcc import WeakComponents

    found = {"bfs": BreadthFirst(source=source), "wcc": WeakComponents()}
    if context.is_simulated:
        return found
    others = {"pagerank": PageRank(), "sssp": ShortestPaths(source=source), "cdlp": Cdlp()}
    return found | others


def timed(program: Any, graph: Any, deadline: float, **options: Any) -> tuple[Any, Any]:
    """Run twice, the second time counted; return the result and a row."""
    from graphsys.core.events import recording
    from graphsys.engine.run import run

    run(program, graph, **options)
    if time.monotonic() > deadline:
        return None, None
    with recording() as recorder:
        begin = time.perf_counter()
        result = run(program, graph, **options)
        seconds = time.perf_counter() - begin
    row = {"seconds": result.seconds, "seconds_with_loading": seconds,
           "seconds_supersteps": recorder.total_seconds("superstep"),
           "supersteps": result.supersteps}  # fmt: skip
    for name in ("kernel_launches", "bytes_copied"):
        row[name] = int(sum(e.value for e in recorder.events if e.name == name))
    return result, row


def is_close(one: Any, other: Any) -> bool:
    """Whether two results have equal integers and close floats."""
    for name in one.table.column_names:
        first, second = (table.table.column(name) for table in (one, other))
        if not first.is_null().equals(second.is_null()):
            return False
        values = [it.drop_null().to_numpy() for it in (first, second)]
        if values[0].dtype.kind != "f":
            if not np.array_equal(*values):
                return False
        elif not np.allclose(*values):
            return False
    return True
