"""Case ``instructions``: what machine code of the twelve and of the controls consists of.

Kernels of a thread per row (``pull_thread``, ``push_thread``) and those of the controls are
compiled for Hopper, without a GPU, and their instructions counted by kind in the text: not
as often as a run executes them. Needs the extra ``gpu`` and ``ptxas``.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.cases.bottlenecks import APPLICATIONS
from bench.controls.catalog import CONTROLS
from bench.controls.machine_code import instructions, recorded
from bench.harness import OURS, Contender, Outcome, Work
from bench.limits import Limits
from graphsys.engine.cuda.disassembly import KINDS

PEERS: dict[str, str] = {}
COUNTS_ONLY = True
QUICK_APPLICATIONS, QUICK_CONTROLS = ("PR",), ("stencil",)
SIZE = 4096
"""Values of a control's input: enough that all of its kernels are launched."""

Mix = dict[str, int]


def works(
    *, quick: bool, folder: Path, limits: Limits, missing: list[str]
) -> Iterator[Work]:
    """Yield a work per application and per control."""
    for name in QUICK_APPLICATIONS if quick else APPLICATIONS:
        yield _work(name, lambda n=name: application_mixes(n))  # type: ignore[misc]
    for name in QUICK_CONTROLS if quick else CONTROLS:
        yield _work(f"control {name}", lambda n=name: control_mixes(n))  # type: ignore[misc]


def application_mixes(application: str) -> list[Mix]:
    """Return the mixes of an application's kernels over rows, a thread per row."""
    import numpy as np

    from graphsys.analysis.model.compiled import program_of
    from graphsys.engine.codegen.plan import plan_of
    from graphsys.engine.codegen.spec import spec_of
    from graphsys.engine.cuda.offline import count_program

    name, _ = APPLICATIONS[application]
    plan = plan_of(spec_of(program_of(name)), {"weight": np.dtype(np.float64)})
    return list(count_program(plan, "thread").values())


def control_mixes(name: str) -> list[Mix]:
    """Return the mixes of a control's kernels."""
    _, run = CONTROLS[name].bind(SIZE)
    with recorded() as launches:
        run()
    return [instructions(it) for it in launches]


def _work(name: str, count: Callable[[], list[Mix]]) -> Work:
    def run() -> Outcome:
        began = time.perf_counter()
        mixes = count()
        figures = {"kernels": float(len(mixes))}
        for kind in sorted({*KINDS, *(kind for mix in mixes for kind in mix)}):
            shares = [mix.get(kind, 0) / sum(mix.values()) for mix in mixes]
            figures[f"{kind} share"] = sum(shares) / len(shares)
        figures["instructions"] = sum(sum(mix.values()) for mix in mixes) / len(mixes)
        return Outcome(seconds=time.perf_counter() - began, result={"figures": figures})

    return Work(
        name=f"instructions, {name}",
        amount=1.0,
        unit="kernels/s",
        contenders=[Contender(system=OURS, run=run)],
        verify=_verify,
    )


def _verify(results: dict[str, Any]) -> None:
    """Find nothing to compare with: counts are the compiler's."""
