"""Case ``satisfiability``: survey propagation and local search on random 3-SAT.

Formulas are drawn at a ratio of clauses to variables of 4.0 and, nearer the threshold of
4.27, of 4.2. Ours is ``graphsys.algorithms.survey_propagation``: surveys fix variables by
turns, local search those that are left. WalkSAT is the same local search from a random
assignment, with as many flips as ours may take in all. Every assignment is checked clause
by clause; the figures say which share of the formulas was solved.

python-sat, where installed, is Glucose 4 with a limit of conflicts: complete, and slow
where a random formula can be satisfied at all.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bench.cases.bottlenecks import drawn_formula
from bench.harness import OURS, Contender, Outcome, Work, WrongResultError
from bench.limits import Limits

PEERS = {"python-sat": "pysat"}
RATIOS = (4.0, 4.2)
EASY = 4.0
"""Up to here none solved is a fault; above, small formulas often have no solution."""
SIZE, QUICK_SIZE = 10_000, 500
"""Variables of a formula."""
FORMULAS, QUICK_FORMULAS = 10, 2
FLIPS, TRIES = 2_000_000, 3
CONFLICTS = 20_000
_NOISE = 0.5


def works(
    *, quick: bool, folder: Path, limits: Limits, missing: list[str]
) -> Iterator[Work]:
    """Yield a work for each ratio."""
    size, count = (QUICK_SIZE, QUICK_FORMULAS) if quick else (SIZE, FORMULAS)
    for ratio in RATIOS:
        graphs = [drawn_formula(size, ratio, seed) for seed in range(1, count + 1)]
        contenders = [
            Contender(system=OURS, run=lambda g=graphs: solved(g, by_surveys)),  # type: ignore[misc]
            Contender(
                system="WalkSAT, the same kernel",
                run=lambda g=graphs: solved(g, by_walks),  # type: ignore[misc]
                is_reference=True,
            ),
        ]
        if "python-sat" not in missing:
            contenders.append(
                Contender(
                    system=f"python-sat, {CONFLICTS:,} conflicts",
                    run=lambda g=graphs: solved(g, by_glucose),  # type: ignore[misc]
                    is_reference=True,
                )
            )
        yield Work(
            name=f"{count} formulas of {size:,} variables, ratio {ratio}",
            amount=count,
            unit="formulas/s",
            contenders=contenders,
            verify=verify if ratio <= EASY else lambda results: None,
        )


def solved(graphs: list[Any], solve: Callable[[Any, Any, int], Any]) -> Outcome:
    """Solve formulas; tell how many, and the seconds of each."""
    from graphsys.engine.algorithms.satisfiability import formula_of

    times, count, compiling = [], 0, 0.0
    for seed, graph in enumerate(graphs):
        formula, _, _ = formula_of(graph)
        began = time.perf_counter()
        truth, compile_s = solve(graph, formula, seed)
        times.append(time.perf_counter() - began - compile_s)
        compiling += compile_s
        if truth is not None:
            count += not formula.unsatisfied(np.asarray(truth, dtype=np.int8)).any()
    figures = {
        "solved_share": count / len(graphs),
        "median_formula_seconds": float(np.median(times)),
        "longest_formula_seconds": max(times),
    }
    return Outcome(seconds=sum(times), result={"figures": figures}, compile_s=compiling)


def by_surveys(graph: Any, formula: Any, seed: int) -> tuple[Any, float]:
    """Return truths by survey propagation, and the time that compiling took."""
    from graphsys.engine.algorithms.satisfiability import formula_of, survey_propagation

    found = survey_propagation(graph, seed=seed, flips=FLIPS, tries=TRIES)
    _, _, variables = formula_of(graph)
    value = found.table["value"].to_numpy()
    return value[variables], found.compile_seconds


def by_walks(graph: Any, formula: Any, seed: int) -> tuple[Any, float]:
    """Return truths by local search alone, from a random assignment."""
    from graphsys.kernels.cpu.algorithms.satisfiability import walk_sat

    truth = np.random.default_rng(seed).integers(0, 2, formula.num_variables, dtype=np.int8)
    walk_sat(
        formula.clauses,
        formula.literals,
        *formula.by_literal,
        truth,
        _NOISE,
        FLIPS * TRIES,
        np.uint64(seed + 1),
    )
    return truth, 0.0


def by_glucose(graph: Any, formula: Any, seed: int) -> tuple[Any, float]:
    """Return truths by Glucose; None where it gives up."""
    from pysat.solvers import Solver

    signed = (formula.literals >> 1) + 1
    signed = np.where(formula.literals & 1, -signed, signed).tolist()
    begins = formula.clauses.tolist()
    rows = [signed[a:b] for a, b in pairwise(begins)]
    with Solver(name="glucose4", bootstrap_with=rows) as solver:
        solver.conf_budget(CONFLICTS)
        if not solver.solve_limited():
            return None, 0.0
        truth = np.zeros(formula.num_variables, dtype=np.int8)
        for literal in solver.get_model() or ():
            if 0 < literal <= len(truth):
                truth[literal - 1] = 1
        return truth, 0.0


def verify(results: Mapping[str, Any]) -> None:
    """Look whether ours solved something at all; assignments were checked one by one."""
    if not results[OURS]["figures"]["solved_share"]:
        raise WrongResultError("survey propagation solved no formula")
