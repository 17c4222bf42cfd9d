"""What the model predicts beside clocks in kernels, and beside counters of ``ncu``.

Every program is run by every strategy at level L3: its kernels have clocks in them, and the
rows of each superstep are told to the model. What differs stands in the record with the
reasons that are known.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpu_checking.steps import Context

_CLOSE = 0.05
"""Of a predicted value: counters that differ by more need a reason."""
STRATEGIES = ("thread", "warp", "block", "twc", "edge")
QUANTITIES = (
    "predicted_launches",
    "lane_utilization",
    "ctas_per_sm",
    "sm_imbalance",
    "cta_variance",
    "warp_variance",
)


_CLOCKED_SCALE = 16


def planned_clocks() -> list[str]:
    """Return the rows of clocks that a card is to give."""
    from gpu_checking.engine import programs

    name = f"kron{_CLOCKED_SCALE}"
    works = programs(0, is_simulated=False)
    return [f"{what}, {name}, {strategy}" for what in works for strategy in STRATEGIES]


def planned_counters() -> list[str]:
    """Return the rows of counters that a card is to give."""
    from graphsys.analysis.side_by_side import COUNTED

    return [f"ncu, {name}" for name in COUNTED]


def measure(context: Context) -> None:
    """Run programs with clocks in them by every strategy."""
    from gpu_checking.engine import programs, source_of
    from gpu_checking.graphs import kronecker

    left_out: list[str] = []
    scale = 3 if context.is_simulated else _CLOCKED_SCALE
    strategies = ("warp",) if context.is_simulated else STRATEGIES
    graph = kronecker(scale)
    chosen = programs(source_of(graph), context.is_simulated)
    bench(f"kron{scale}", graph, chosen, context.deadline, left_out, strategies)
    context.leave_out(left_out)


def count(context: Context) -> None:
    """Tell what ``ncu`` counts of PageRank beside what the model predicts.

    Where it counts nothing, fewer counters are asked for, and each try says why.
    """
    for level in ("L4-stalls", "L4"):
        found = counted(level, context.deadline, is_simulated=context.is_simulated)
        for each in found.get("comparison", ()):
            row = {"case": f"ncu, {each['name']}", **each}
            predicted, value = each.get("predicted"), each.get("ncu")
            if predicted and value and abs(value / predicted - 1) > _CLOSE:
                row |= {"differs": value / predicted - 1, "explained": each["note"]}
            context.tell(row)
        if found.get("comparison") or time.monotonic() > context.deadline:
            return
        context.tell({"case": f"ncu at {level}", **found})


def bench(
    name: str,
    graph: Any,
    programs: Mapping[str, Any],
    deadline: float,
    left_out: list[str],
    strategies: Sequence[str] = STRATEGIES,
    **options: Any,
) -> list[dict[str, Any]]:
    """Run programs with clocks in them; return a row per program and strategy.

    Args:
        name: Of the graph.
        graph: It.
        programs: By name.
        deadline: Nothing is begun after this time (monotonic).
        left_out: Receives the cases that did not fit.
        strategies: Who visits a row.
        options: Of ``run_on_device``.
    """
    from graphsys.analysis.profile import profile
    from graphsys.core.progress import SILENT
    from graphsys.engine.cuda.run import run_on_device

    rows = []
    for what, program in programs.items():
        for strategy in strategies:
            if time.monotonic() > deadline:
                left_out.append(f"{what}, {name}, {strategy}")
                continue
            row: dict[str, Any] = {"case": f"{what}, {name}", "strategy": strategy}
            try:
                with profile(level="L3", gpu_model=model_of()) as recorded:
                    run_on_device(
                        program,
                        graph,
                        strategy=strategy,
                        device_memory=None,
                        max_supersteps=None,
                        require_convergence=False,
                        progress=SILENT,
                        **options,
                    )
                row["comparison"] = recorded.report["comparison"]
            except Exception as err:  # one that fails must not hide the others
                row["error"] = f"{type(err).__name__}: {err}"[:300]
            rows.append(row)
            print(json.dumps(row), flush=True)
    return rows


def model_of() -> str:
    """Return the name of the GPU here as the model knows it; h100 where it does not."""
    from numba import cuda

    from graphsys.analysis.model.devices import GPUS

    device = getattr(cuda.get_current_device(), "name", "")
    text = device.decode() if isinstance(device, bytes) else str(device)
    return next((name for name in GPUS if name in text.lower()), "h100")


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return predicted and measured values as a Markdown table, and why they differ."""
    heads = ["run", *(name.replace("_", " ") for name in QUANTITIES)]
    lines = [heads, ["---"] * len(heads)]
    notes: dict[str, str] = {}
    for row in rows:
        known = {it["name"]: it for it in row.get("comparison", ())}
        notes |= {name: it["note"] for name, it in known.items()}
        cells = [_cell(known.get(name)) for name in QUANTITIES]
        lines.append([f"{row['case']}, {row['strategy']}", *cells])
    text = [f"| {' | '.join(line)} |" for line in lines]
    text += ["", "Predicted / measured by clocks in the kernels. Why they may differ:", ""]
    text += [
        f"- {name.replace('_', ' ')}: {notes[name]}" for name in QUANTITIES if name in notes
    ]
    return "\n".join(text)


def _cell(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "-"
    values = (found["predicted"], found["clock"])
    return " / ".join("-" if value is None else f"{value:.3g}" for value in values)


def counted(level: str, deadline: float, *, is_simulated: bool) -> dict[str, Any]:
    """Run PageRank on a small store inside ``ncu``, where there is one.

    Args:
        level: Of the profile: which counters.
        deadline: It is killed then (monotonic seconds).
        is_simulated: Whether it is a walk without a card.

    Returns:
        The report's ``comparison``; or ``error``, why there is none, or ``left_out``.

    Simulated, a stand-in takes the place of ``ncu``, and the CPU that of the card: what is
    walked is the way of the counters into rows.
    """
    from graphsys.analysis.ncu_run import find_ncu
    from graphsys.core.errors import MissingDependencyError
    from graphsys.datasets import recipes

    if is_simulated:
        os.environ["NCU"] = str(Path(__file__).with_name("stand_in_ncu"))
    try:
        find_ncu()
    except MissingDependencyError as err:
        return {"left_out": str(err)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scale = 4 if is_simulated else 14
        recipes.build("rmat", folder / "graph", scale=scale, edge_factor=16, partitions=1)
        words = [
            "run",
            "pagerank",
            folder / "graph",
            "-o",
            folder / "ranks.csv",
            "--device",
            "cpu" if is_simulated else "cuda",
            "--param",
            "iterations=2",
        ]
        command = [
            sys.executable,
            "-P",
            "-m",
            "graphsys.cli.main",
            "profile",
            "-o",
            folder / "r.html",
            "--level",
            level,
            "--schedulers",
            "--",
            *words,
        ]
        limit = max(deadline - time.monotonic(), 1.0)
        try:
            done = subprocess.run(
                [str(word) for word in command],
                capture_output=True,
                text=True,
                check=False,
                timeout=limit,
            )
        except subprocess.TimeoutExpired:
            return {"left_out": f"it took more than {limit:.0f} s"}
        if not (folder / "r.json").exists():
            return {"error": done.stderr[-500:]}
        report = json.loads((folder / "r.json").read_text())
    if report["comparison"]:
        return {"comparison": report["comparison"]}
    lanes = [it for it in report["metrics"] if it["name"] == "lane_utilization.ncu"]
    reason = lanes[0]["reason"] if lanes else "the report has no counters"
    return {"error": f"{report['status']}: {reason}; {done.stderr[-300:]}"}
