"""Case ``schedulers``: the paper's warp-scheduler study, by a small simulation.

One scheduler of each of four SMs runs the rows of a graph, a thread each, under loose
round-robin, greedy-then-oldest and two-level scheduling; the twelve controls are run as
programs, all of their launches. Instructions per cycle are simulated with latencies from
the cache model, whose hit rates are kept too. The times are those of the simulation.

Up to 2,000,000 entries the cache model looks at all sets of all SMs' caches, and a second
one at a quarter of the sets on the same launches (figures ``sampled ...``, with the errors
that it states); beyond, sampled sets are all there is, and the figures are theirs.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.cases.bottlenecks import HUGE, KINDS, left_out, load, run_application
from bench.controls.catalog import CONTROLS
from bench.harness import OURS, Contender, Outcome, Work, WrongResultError
from bench.limits import Limits

PEERS: dict[str, str] = {}
COUNTS_ONLY = True
INPUTS = (
    *(f"{kind}-{size}" for size in ("1e5", "1e6", "1e7") for kind in KINDS),
    "wiki-Vote",
    "brightkite",
)
QUICK_INPUTS = ("rmat-1e4",)
APPLICATIONS = ("BFS", "MIS", "PR", "SSSP")
GPUS = ("h100", "m2050")
CONTROL_SIZES, QUICK_CONTROL_SIZES = (100_000, 1_000_000), (10_000,)
"""Values of the controls' inputs; graphs with no more than twice as many entries are set
beside them."""


def works(
    *,
    quick: bool,
    folder: Path,
    limits: Limits,
    missing: list[str],
    inputs: tuple[str, ...] = (),
) -> Iterator[Work]:
    """Yield a work per application and graph, and one per control."""
    for name in inputs or (QUICK_INPUTS if quick else INPUTS):
        topology = load(name)
        if topology is None:
            print(f"{name}: its file is not at hand; left out")
            continue
        for application in APPLICATIONS:
            if application in left_out(name, topology.num_edges):
                continue
            simulated = Simulated(
                lambda a=application, t=topology: run_application(a, t),
                topology.num_edges,
                is_sampled=topology.num_edges > HUGE,
            )
            yield _work(f"{application}, {name}", topology.num_edges, simulated)
    if inputs:  # some graphs anew: the controls are as they were
        return
    for size in QUICK_CONTROL_SIZES if quick else CONTROL_SIZES:
        for name, control in CONTROLS.items():
            amount, run = control.bind(size)
            title = f"control {name}, {amount / 1e6:.3g}M values"
            yield _work(title, amount, Simulated(run, amount))


class Simulated:
    """Runs a work once for each GPU, and simulates all policies on the rows it tells.

    Args:
        run: The work.
        entries: Of the graph's rows, or values of the control, about.
        is_sampled: Whether some sets of the caches stand for all.
    """

    def __init__(
        self, run: Callable[[], Any], entries: float, *, is_sampled: bool = False
    ) -> None:
        self._run, self._entries, self._is_sampled = run, float(entries), is_sampled
        self._figures: dict[str, dict[str, float]] = {}

    def __call__(self, policy: str) -> Outcome:
        """Return a policy's figures."""
        from graphsys.analysis.model.caches import SAMPLED_SETS, CacheModel, cache_metrics
        from graphsys.analysis.model.devices import GPUS as KNOWN
        from graphsys.analysis.model.schedulers import (
            POLICIES,
            SchedulerModel,
            scheduler_metrics,
        )
        from graphsys.core.events import recording

        began = time.perf_counter()
        for gpu in GPUS if not self._figures else ():
            some = CacheModel(KNOWN[gpu], sampled_sets=SAMPLED_SETS)
            caches = some if self._is_sampled else CacheModel(KNOWN[gpu])
            model = SchedulerModel(KNOWN[gpu], caches=caches)
            shown = [model] if self._is_sampled else [model, some]
            with recording({"rows": _to_all(shown)}):
                self._run()
            for name in POLICIES:
                own = self._figures.setdefault(name, {"entries": self._entries})
                own[f"{gpu} ipc"] = model.ipc(name) or 0.0
                own[f"{gpu} instructions"] = float(model.instructions(name))
                own |= {
                    f"{gpu} {metric.name}": float(metric.value)
                    for metric in (*cache_metrics(caches), *scheduler_metrics(model))
                    if metric.value is not None
                }
                own |= {
                    f"{gpu} sampled {metric.name}": float(metric.value)
                    for metric in cache_metrics(some)
                    if not self._is_sampled
                    if metric.value is not None
                }
        seconds = time.perf_counter() - began
        return Outcome(seconds=seconds, result={"figures": self._figures[policy]})


def _to_all(models: Sequence[Callable[[Any], None]]) -> Callable[[Any], None]:
    """Return what shows the same launches to each of several models."""

    def show(visits: Any) -> None:
        known = list(visits)
        for model in models:
            model(known)

    return show


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
        name=f"simulated schedulers, {name}",
        amount=float(amount),
        unit="values/s",
        contenders=contenders,
        verify=verify,
    )
