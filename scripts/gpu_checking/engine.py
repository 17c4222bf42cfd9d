"""Vertex programs by every strategy, beside the CPU's results."""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_checking import references
from gpu_checking.graphs import grid, kronecker
from gpu_checking.steps import Context
from gpu_checking.vectors import Mixing

_LARGE = ("auto", "fused", "twc", "warp")
"""Strategies of graphs on which all would take too long."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A graph, and what is asked of it.

    Attributes:
        name: Of the graph.
        make: Makes it.
        strategies: Of the device; all where there are none.
        has_cpu: Whether the CPU of the machine is timed too; else its results are known
            beforehand alone.
    """

    name: str
    make: Callable[[], Any]
    strategies: tuple[str, ...] = ()
    has_cpu: bool = True


TINY = (
    Workload(name="kron4", make=lambda: kronecker(4), strategies=_LARGE[:2]),
    Workload(name="grid5", make=lambda: grid(5), strategies=_LARGE[:2]),
)
FULL = (
    Workload(name="kron20", make=lambda: kronecker(20)),
    Workload(name="kron22", make=lambda: kronecker(22), strategies=_LARGE, has_cpu=False),
    Workload(
        name="grid2048", make=lambda: grid(2048), strategies=_LARGE[:2], has_cpu=False
    ),
)
_ROUNDS, _ROUNDS_S = 5, 1.0
"""Runs that are timed, and seconds after which no other is begun."""


def measure(context: Context) -> None:
    """Time programs on Kronecker graphs and a grid; results are compared first."""
    left_out: list[str] = []
    expected = references.known()
    for work in TINY if context.is_simulated else FULL:
        if time.monotonic() > context.deadline:
            left_out.append(work.name)
            continue
        graph = work.make()
        on_it = programs_on(work, source_of(graph), context.is_simulated)
        for what, program in on_it.items():
            case = f"{what}, {work.name}"
            known = expected.get(case)
            table = None
            if work.has_cpu or known is None:
                table, row = timed(program, graph, context.deadline)
                if row is None:
                    left_out.append(case)
                    continue
                row |= judged(table, None, known)
                context.tell({"case": case, "device": "cpu", **row})
            strategies = strategies_of(work, what)
            run_all(context, case, (program, graph), strategies, (table, known), left_out)
    context.leave_out(left_out)


def run_all(
    context: Context,
    case: str,
    work: tuple[Any, Any],
    strategies: tuple[str, ...],
    wanted: tuple[Any, Any],
    left_out: list[str],
) -> None:
    """Time a program by each strategy on the device.

    Args:
        context: Of the step.
        case: Names the program and the graph.
        work: Both.
        strategies: Each is timed.
        wanted: The CPU's table, if it ran, and the checksums known, if there are any.
        left_out: Receives what did not fit.
    """
    program, graph = work
    edges = int(graph.out_degree.sum())
    for strategy in strategies:
        if time.monotonic() > context.deadline:
            left_out.append(f"{case}, {strategy}")
            continue
        about = {"case": case, "device": "cuda", "strategy": strategy}
        try:
            table, row = timed(
                program, graph, context.deadline, device="cuda", strategy=strategy
            )
        except Exception as err:  # one that fails must not hide the others
            context.tell(about | {"error": f"{type(err).__name__}: {err}"[:300]})
            continue
        if row is None:
            left_out.append(f"{case}, {strategy}")
            continue
        row |= judged(table, *wanted)
        row["edges_per_second"] = edges / max(row["seconds"], 1e-9)
        context.tell(about | row)


def judged(table: Any, expected: Any, known: Any) -> dict[str, str]:
    """Return what a result was compared with, and an error where it differs.

    Args:
        table: The result.
        expected: The CPU's on this machine, or None.
        known: Checksums computed beforehand, or None.
    """
    if expected is not None and not is_close(expected, table):
        return {"error": "the result differs from the CPU's"}
    if known is not None:
        lines = references.differences(known, references.checksums(table))
        if lines:
            return {"error": f"differs from what is known: {'; '.join(lines)}"[:300]}
    by = ["the CPU"] * (expected is not None) + ["checksums"] * (known is not None)
    return {"compared_with": " and ".join(by) or "nothing"}


def planned() -> list[str]:
    """Return the rows that a card is to give."""
    return [
        f"{what}, {work.name}, {device}"
        for work in FULL
        for what in programs_on(work, 0, is_simulated=False)
        for device in (
            *["cpu"] * work.has_cpu,
            *(f"cuda, {strategy}" for strategy in strategies_of(work, what)),
        )
    ]


def compute() -> Iterator[tuple[str, Any]]:
    """Yield the CPU's results as checksums, by case."""
    from graphsys.engine.run import run

    for works, is_simulated in ((TINY, True), (FULL, False)):
        for work in works:
            graph = work.make()
            on_it = programs_on(work, source_of(graph), is_simulated)
            for what, program in on_it.items():
                table = run(program, graph).table
                yield f"{what}, {work.name}", references.checksums(table)


def source_of(graph: Any) -> int:
    """Return the node of the most edges: searches begin there."""
    return int(graph.out_degree.argmax())


def programs(source: int, is_simulated: bool) -> dict[str, Any]:
    """Return what is timed; in the simulator what ends in seconds there."""
    from graphsys.engine.programs.bfs import BreadthFirst
    from graphsys.engine.programs.cdlp import Cdlp
    from graphsys.engine.programs.pagerank import PageRank
    from graphsys.engine.programs.sssp import ShortestPaths
    from graphsys.engine.programs.wcc import WeakComponents

    found: dict[str, Any] = {"bfs": BreadthFirst(source=source), "wcc": WeakComponents()}
    if not is_simulated:
        found |= {"pagerank": PageRank(), "sssp": ShortestPaths(source=source)}
        found["cdlp"] = Cdlp()
    return found


def programs_on(work: Workload, source: int, is_simulated: bool) -> dict[str, Any]:
    """Return what is timed on a graph: vectors where there is time for them."""
    vectors = {"vectors": Mixing()} if work.has_cpu else {}
    return programs(source, is_simulated) | vectors


def strategies_of(work: Workload, what: str) -> tuple[str, ...]:
    """Return the strategies of a program on a graph; vectors know one way."""
    from graphsys.engine.cuda.strategy import STRATEGIES

    return ("auto",) if what == "vectors" else work.strategies or STRATEGIES


def timed(program: Any, graph: Any, deadline: float, **options: Any) -> tuple[Any, Any]:
    """Run once, which compiles, then some rounds; return the table and a row of medians.

    The first leaves the rows on the device, where the others find them.
    """
    from graphsys.core.events import recording
    from graphsys.engine.run import run

    run(program, graph, **options)
    rounds: list[dict[str, Any]] = []
    began = time.monotonic()
    while len(rounds) < _ROUNDS:
        if time.monotonic() > deadline:
            break
        if rounds and time.monotonic() - began > _ROUNDS_S:
            break
        with recording() as recorder:
            begin = time.perf_counter()
            result = run(program, graph, **options)
            seconds = time.perf_counter() - begin
        row = {"seconds": result.seconds, "seconds_with_loading": seconds}
        row["seconds_supersteps"] = recorder.total_seconds("superstep")
        for name in ("kernel_device_seconds", "kernel_launches", "bytes_copied"):
            row[name] = sum(e.value for e in recorder.events if e.name == name)
        rounds.append(row)
    if not rounds:
        return None, None
    row = {name: statistics.median(it[name] for it in rounds) for name in rounds[0]}
    return result.table, row | {"rounds": len(rounds), "supersteps": result.supersteps}


def is_close(one: Any, other: Any) -> bool:
    """Whether two tables have equal integers and close floats."""
    for name in one.column_names:
        first, second = (table.column(name) for table in (one, other))
        if not first.is_null().equals(second.is_null()):
            return False
        values = [references.flat(it) for it in (first, second)]
        if values[0].dtype.kind != "f":
            if not np.array_equal(*values):
                return False
        elif not np.allclose(*values):
            return False
    return True
