"""What ``graphsys run`` prints of algorithms and of runs."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphsys.cli.console import print_facts, print_json, print_table, visible

if TYPE_CHECKING:
    from graphsys.distributed.run import ClusterRun
    from graphsys.engine.native_plan import NativeRun
    from graphsys.engine.program_run import ProgramRun
    from graphsys.engine.result import Result


def print_explanation(
    work: "NativeRun | ProgramRun | ClusterRun", algorithm: str, *, as_json: bool
) -> None:
    """Print how an algorithm would be run and why."""
    if not as_json:
        sys.stdout.write(visible(work.explanation()) + "\n")
        return
    choice = work.choice
    print_json(
        {
            "algorithm": algorithm,
            "implementation": work.implementation,
            "mode": choice.mode,
            "peak_bytes": choice.needed,
            "budget_bytes": choice.budget,
            "needs": dict(choice.needs),
            "explanation": work.explanation().splitlines(),
        }
    )


def list_algorithms(*, as_json: bool) -> None:
    """Print the names of all algorithms, with what they compute and their parameters."""
    from graphsys.engine.algorithms import ALGORITHMS

    rows = []
    for name, entry in sorted(ALGORITHMS.items()):
        kinds = [kind for kind in ("native", "program") if getattr(entry, kind)]
        parameters = ", ".join(entry.parameters())
        tags = " ".join(entry.tags)
        needs = entry.example.needs
        rows.append((name, entry.summary, " ".join(kinds), parameters, tags, needs))
    columns = ("algorithm", "what", "implementations", "parameters", "tags", "needs")
    if as_json:
        print_json({"algorithms": [dict(zip(columns, row, strict=True)) for row in rows]})
    else:
        print_table(columns, rows)


def print_run(done: "Result", algorithm: str, out: Path | None, *, as_json: bool) -> None:
    """Print how a run went; what it computed is elsewhere."""
    facts: dict[str, Any] = {
        "algorithm": algorithm,
        "supersteps": done.supersteps,
        "seconds": done.seconds,
        "compile_seconds": done.compile_seconds,
        "converged": done.converged,
        "output": None if out is None else str(out),
    }
    if done.result is not None:
        facts["result"] = done.result
    figures = done.figures()
    if as_json:  # a contract: of what a cluster tells besides, the workers alone
        print_json(facts | {name: figures[name] for name in figures if name == "workers"})
    else:
        facts |= figures
        shown = {n.replace("_", " "): v for n, v in facts.items() if v is not None}
        print_facts(shown)
