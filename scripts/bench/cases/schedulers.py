"""Case ``schedulers``: the paper's warp-scheduler study, by a small simulation.

One scheduler of each of four SMs runs the rows of a graph, a thread each, under loose
round-robin, greedy-then-oldest and two-level scheduling; the twelve controls are run as
programs, all of their launches. Instructions per cycle are simulated with latencies from
the cache model, whose hit rates are kept too. The times are those of the simulation.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.cases.bottlenecks import load, run_application
from bench.controls.catalog import CONTROLS
from bench.harness import OURS, Contender, Outcome, Work, WrongResultError
from bench.limits import Limits

PEERS: dict[str, str] = {}
COUNTS_ONLY = True
INPUTS = ("rmat-1e5", "road-1e5", "uniform-1e5", "wiki-Vote", "brightkite")
QUICK_INPUTS = ("rmat-1e4",)
APPLICATIONS = ("BFS", "MIS", "PR", "SSSP")
GPUS = ("h100", "m2050")
SIZE, QUICK_SIZE = 100_000, 10_000


def works(
    *, quick: bool, folder: Path, limits: Limits, missing: list[str],
    inputs: tuple[str, ...] = (),
) -> Iterator[Work]:  # fmt: skip
    """Yield a work per application and graph, and one per control."""
    for name in inputs or (QUICK_INPUTS if quick else INPUTS):
        topology = load(name)
        if topology is None:
            print(f"{name}: its file is not at hand; left out")
            continue
        for application in APPLICATIONS:
            simulated = Simulated(lambda a=application, t=topology: run_application(a, t))
            yield _work(f"{application}, {name}", topology.num_edges, simulated)
    for name, control in CONTROLS.items():
        amount, run = control.bind(QUICK_SIZE if quick else SIZE)
        yield _work(f"control {name}", amount, Simulated(run))


class Simulated:
    """Runs a work once for each GPU, and simulates all policies on the rows it tells.

    Args:
        run: The work.
    """

    def __init__(self, run: Callable[[], Any]) -> None:
        self._run = run
        self._figures: dict[str, dict[str, float]] = {}

    def __call__(self, policy: str) -> Outcome:
        """Return a policy's figures."""
        from graphsys.analysis.model.caches import CacheModel, cache_metrics
        from graphsys.analysis.model.devices import GPUS as KNOWN
        from graphsys.analysis.model.schedulers import (
            POLICIES,
            SchedulerModel,
            scheduler_metrics,
        )
        from graphsys.core.events import recording

        began = time.perf_counter()
        for gpu in GPUS if not self._figures else ():
            model = SchedulerModel(KNOWN[gpu], caches=CacheModel(KNOWN[gpu]))
            with recording({"rows": model}):
                self._run()
            for name in POLICIES:
                own = self._figures.setdefault(name, {})
                own[f"{gpu} ipc"] = model.ipc(name) or 0.0
                own[f"{gpu} instructions"] = float(model.instructions(name))
                own |= {
                    f"{gpu} {metric.name}": float(metric.value)
                    for metric in (*cache_metrics(model.caches), *scheduler_metrics(model))
                    if metric.value is not None
                }
        seconds = time.perf_counter() - began
        return Outcome(seconds=seconds, result={"figures": self._figures[policy]})


def _work(name: str, amount: float, simulated: Simulated) -> Work:
    from graphsys.analysis.model.schedulers import POLICIES

    def verify(results: Mapping[str, Any]) -> None:
        for gpu in GPUS:
            issued = {r["figures"][f"{gpu} instructions"] for r in results.values()}
            if len(issued) != 1:
                raise WrongResultError(f"{name}: the policies issued {issued} instructions")

    contenders = [
        Contender(system=f"{OURS} {policy}", run=lambda policy=policy: simulated(policy))  # type: ignore[misc]
        for policy in POLICIES
    ]
    return Work(
        name=f"simulated schedulers, {name}", amount=float(amount), unit="values/s",
        contenders=contenders, verify=verify,
    )  # fmt: skip
