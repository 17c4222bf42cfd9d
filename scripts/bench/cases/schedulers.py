"""Case ``schedulers``: the paper's warp-scheduler study, by a small simulation.

One scheduler of one SM runs the rows of a graph, a thread each, under loose round-robin,
greedy-then-oldest and two-level scheduling; GEMM's rows are the control. Instructions per
cycle are simulated with assumed latencies (``analysis.model.schedulers.Timing``): they
compare the policies with each other. The times of the rows are those of the simulation.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.cases.bottlenecks import load
from bench.harness import OURS, Contender, Outcome, Work, WrongResultError
from bench.limits import Limits

PEERS: dict[str, str] = {}
COUNTS_ONLY = True
INPUTS = ("kron13", "grid100", "wiki-Vote", "brightkite")
QUICK_INPUTS = ("kron11",)
GPUS = ("h100", "m2050")
GEMM_ROWS, GEMM_DEPTH = 512 * 512, 64


def works(
    *, quick: bool, folder: Path, limits: Limits, missing: list[str],
    inputs: tuple[str, ...] = (),
) -> Iterator[Work]:  # fmt: skip
    """Yield a work per graph, and the control."""
    import numpy as np

    for name in inputs or (QUICK_INPUTS if quick else INPUTS):
        topology = load(name)
        if topology is None:
            print(f"{name}: its file is not at hand; left out")
            continue
        rows = topology.csr("in")
        yield _work(name, np.diff(rows.indptr.astype(np.int64)), rows)
    lengths = np.full(GEMM_ROWS, GEMM_DEPTH, dtype=np.int64)
    yield _work("control GEMM", lengths, None)


def _work(name: str, lengths: Any, rows: Any) -> Work:
    from graphsys.analysis.model.schedulers import POLICIES

    sectors = 4.0 if rows is None else _sectors(lengths, rows)  # GEMM reads side by side

    def run(policy: str) -> Outcome:
        import time

        from graphsys.analysis.model.devices import GPUS as KNOWN
        from graphsys.analysis.model.schedulers import schedule

        began, figures = time.perf_counter(), {"sectors": sectors}
        for gpu in GPUS:
            found = schedule(lengths, KNOWN[gpu], policy, sectors=sectors)
            figures |= {f"{gpu} ipc": found.ipc, f"{gpu} instructions": found.instructions}
        seconds = time.perf_counter() - began
        return Outcome(seconds=seconds, result={"figures": figures})

    def verify(results: Mapping[str, Any]) -> None:
        for gpu in GPUS:
            issued = {r["figures"][f"{gpu} instructions"] for r in results.values()}
            if len(issued) != 1:
                raise WrongResultError(f"{name}: the policies issued {issued} instructions")

    contenders = [
        Contender(system=f"{OURS} {policy}", run=lambda policy=policy: run(policy))  # type: ignore[misc]
        for policy in POLICIES
    ]
    return Work(
        name=f"simulated schedulers, {name}", amount=float(lengths.sum()), unit="edges/s",
        contenders=contenders, verify=verify,
    )  # fmt: skip


def _sectors(lengths: Any, rows: Any) -> float:
    """Return the sectors of a load of ``x[indices]``, a thread per row."""
    from graphsys.analysis.model.sectors import requests_of
    from graphsys.core.visits import RowVisit

    visit = RowVisit(
        superstep=0, kind="pull", lengths=lengths, starts=rows.indptr[:-1],
        indices=rows.indices,
    )  # fmt: skip
    found = requests_of(visit, 256)["thread"]
    assert found is not None  # indices are at hand
    return float(found.per_request(found.value_sectors) or 0.0)
