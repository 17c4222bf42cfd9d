"""Formulas: survey propagation fixes variables by turns, local search the ones left."""

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Unpack

import numpy as np
import numpy.typing as npt

from graphsys.core.arrays import distinct
from graphsys.core.rng import generator
from graphsys.engine.algorithms.algorithm import (
    Example,
    GraphLike,
    ProgramOptions,
    listed,
)
from graphsys.engine.algorithms.arguments import (
    require,
    require_count,
    rows_by_rank,
    weight_of,
)
from graphsys.engine.edge_weights import refuse_no_formula
from graphsys.engine.execute.executor import Executor
from graphsys.engine.execute.prepared import compile_program
from graphsys.engine.execute.rows import MemoryBlocks
from graphsys.engine.memory_plan import BY_ID, Facts, Need
from graphsys.engine.programs.survey_propagation import SurveyPropagation
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.kernels.cpu.algorithms.satisfiability import propagate, walk_sat

Ints = npt.NDArray[np.int64]
Truth = npt.NDArray[np.int8]
_SUPERSTEPS = 2000
_NOISE = 0.5
_UNBIASED = 0.01


@dataclass(frozen=True)
class Formula:
    """Clauses as rows of literals: ``2 v`` is variable ``v``, ``2 v + 1`` its negation.

    Attributes:
        clauses: Where each clause begins and the last ends, ``[C + 1]``.
        literals: In order of clauses, int32 ``[E]``.
        num_variables: V.
    """

    clauses: Ints
    literals: npt.NDArray[np.int32]
    num_variables: int

    @property
    def num_clauses(self) -> int:
        """C."""
        return len(self.clauses) - 1

    @cached_property
    def clause_of(self) -> npt.NDArray[np.int32]:
        """The clause of each literal ``[E]``."""
        numbers = np.arange(self.num_clauses, dtype=np.int32)
        return np.repeat(numbers, np.diff(self.clauses))

    @cached_property
    def by_literal(self) -> tuple[Ints, npt.NDArray[np.int32]]:
        """Where each literal's clauses begin ``[2 V + 1]``, and the clauses ``[E]``."""
        counts = np.bincount(self.literals, minlength=2 * self.num_variables)
        places = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return places, self.clause_of[np.argsort(self.literals, kind="stable")]

    def unsatisfied(self, is_true: Truth) -> npt.NDArray[np.bool_]:
        """Return which clauses no literal satisfies ``[C]``, given truths ``[V]``."""
        holds = is_true[self.literals >> 1] == 1 - (self.literals & 1)
        counts = np.bincount(self.clause_of[holds], minlength=self.num_clauses)
        return np.equal(counts, 0)

    def without(
        self, is_satisfied: npt.NDArray[np.bool_], is_true: Truth
    ) -> "tuple[Formula, Ints]":
        """Return the clauses and literals that are open, and the old numbers of variables.

        Args:
            is_satisfied: Clauses to leave out ``[C]``.
            is_true: Variables to leave out: those not -1 ``[V]``.
        """
        kept = ~is_satisfied[self.clause_of] & (is_true[self.literals >> 1] < 0)
        literals, clause_of = self.literals[kept], self.clause_of[kept]
        variables, numbers = np.unique(literals >> 1, return_inverse=True)
        lengths = np.bincount(clause_of, minlength=self.num_clauses)
        clauses = np.concatenate([[0], np.cumsum(lengths[lengths > 0])]).astype(np.int64)
        new = (2 * numbers + (literals & 1)).astype(np.int32)
        return Formula(clauses, new, len(variables)), variables.astype(np.int64)

    def topology(self) -> Topology:
        """Return the factor graph: variables, then clauses."""
        signs = 1.0 - 2.0 * (self.literals & 1)
        num = self.num_variables
        return Topology.from_edges(
            num + self.clause_of.astype(np.int64),
            self.literals.astype(np.int64) >> 1,
            num + self.num_clauses,
            weight=signs,
        )


class _Decimation:
    """Fixes variables of a formula, a few after each run of the program."""

    def __init__(self, formula: Formula, seed: int, num_threads: int | None) -> None:
        self.formula, self.seed, self.num_threads = formula, seed, num_threads
        self.supersteps, self.compile_seconds = 0, 0.0

    def solve(self, fraction: float, tolerance: float, most_flips: int) -> Truth:
        """Return truths of all variables, those that satisfy all clauses if found."""
        formula, draws = self.formula, generator(self.seed, "survey propagation")
        is_true = np.full(formula.num_variables, -1, dtype=np.int8)
        is_satisfied = np.zeros(formula.num_clauses, dtype=bool)
        num_left = np.diff(formula.clauses).astype(np.int32)
        # A clause queues a literal once, when one is left; several may queue the same.
        queue = np.empty(formula.num_variables + formula.num_clauses, dtype=np.int32)
        # Clauses of one literal leave no choice, before any survey.
        alone = formula.literals[formula.clauses[:-1][num_left == 1]]
        chosen = distinct(alone)
        while True:
            queue[: len(chosen)] = chosen
            failed = propagate(
                formula.clauses,
                formula.literals,
                *formula.by_literal,
                is_true,
                is_satisfied,
                num_left,
                queue,
                len(chosen),
            )
            if failed >= 0 or is_satisfied.all():
                break
            rest, variables = formula.without(is_satisfied, is_true)
            bias = self._biases(rest, tolerance)
            # The surveys say nothing more: what is left is easy for a local search, or
            # hopeless.
            if bias is None or np.abs(bias).max() < _UNBIASED:
                break
            count = max(int(fraction * len(bias)), 1)
            # Stable, so that ties go by variable and a rerun decides alike.
            most = np.argsort(-np.abs(bias), kind="stable")[:count]
            chosen = (2 * variables[most] + (bias[most] < 0)).astype(np.int32)
        guess = draws.integers(0, 2, len(is_true), dtype=np.int8)
        # Drawn for all and then cut: draws of the others do not depend on who is in no
        # clause.
        guess[~np.isin(np.arange(len(is_true)), formula.literals >> 1)] = 0  # in no clause
        found = np.where(is_true >= 0, is_true, guess)
        # Decimation has contradicted itself: the search begins at its truths, but may
        # change all.
        if failed >= 0:
            rest, variables = formula, np.arange(len(is_true))
        else:
            rest, variables = formula.without(is_satisfied, is_true)
        part = found[variables]
        walk_sat(
            rest.clauses,
            rest.literals,
            *rest.by_literal,
            part,
            _NOISE,
            most_flips,
            np.uint64(draws.integers(1 << 62)),
        )
        found[variables] = part
        return found

    def _biases(self, formula: Formula, tolerance: float) -> npt.NDArray[np.float64] | None:
        """Return the variables' biases; None where the surveys do not settle."""
        topology = formula.topology()
        program = SurveyPropagation(seed=self.seed, tolerance=tolerance)
        plan, kernels, compiling = compile_program(program, topology, _SUPERSTEPS)
        rows = MemoryBlocks(topology)
        executor = Executor(
            program, plan, kernels, topology, rows, num_threads=self.num_threads
        )
        try:
            self.supersteps += sum(1 for _ in executor.run())
        finally:
            executor.close()
        self.compile_seconds += compiling + executor.compile_seconds
        if not executor.at.converged:
            return None
        found = executor.arrays.states["value"][: formula.num_variables]
        return np.asarray(found, dtype=np.float64)


def _survey_propagation(facts: Facts) -> Need:
    # the formula and its rows by literal; the graph of what is open, states of its edges
    total = 120 * facts.nodes + 150 * facts.edges
    return Need(rows=("out",), bytes=total, copies=BY_ID)


@listed(
    needs=_survey_propagation,
    program="survey_propagation:SurveyPropagation",
    answers=True,
    tags=("SP",),
    example=Example(
        dataset="ksat",
        settings={"num_variables": 60},
        needs="a formula: edges from clauses to variables",
    ),
)
def survey_propagation(
    graph: GraphLike,
    *,
    seed: int = 0,
    tolerance: float = 0.001,
    fraction: float = 0.02,
    flips: int = 10_000_000,
    tries: int = 3,
    **options: Unpack[ProgramOptions],
) -> Result:
    """Truths of variables that satisfy a formula, by survey propagation and decimation.

    The graph is a formula in conjunctive normal form (``graphsys ingest formula.cnf``):
    edges lead from clauses to variables, with a negative ``weight`` where the variable is
    negated. The vertex program computes how strongly the clauses bind each variable; the
    most biased are fixed, what follows from them by unit clauses too, and so on until no
    variable is bound or the surveys do not settle; local search (WalkSAT) finds the rest.
    Solves most random 3-SAT formulas up to about 4.2 clauses a variable.

    Args:
        graph: An open graph, its path, or edges in memory.
        seed: Chooses the first messages and the walks.
        tolerance: Surveys have settled when no message moves by more than this.
        fraction: Share of the variables that are fixed at a time.
        flips: Steps of the local search, at most.
        tries: How often to begin anew where clauses are left.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``;
            ``implementation="program"`` computes the biases alone (a float64 from -1,
            false in all solutions nearby, to 1; 0 for clauses).

    Returns:
        ``value``: of a variable 1 (true) or 0, of a clause whether it is satisfied.
        ``result``: the clauses that are not; ``converged`` is whether there are none.

    Raises:
        ConfigError: a parameter out of range.
        InvalidGraphError: a node has edges both ways, or a weight is 0 or NaN.

    Complexity:
        O(E) messages per superstep; about log(N) / fraction runs of tens to hundreds of
        supersteps. A formula without solutions takes all tries.

    References:
        Braunstein, Mezard, Zecchina, "Survey propagation: an algorithm for satisfiability",
        Random Structures & Algorithms 27, 2005. Selman, Kautz, Cohen, "Noise strategies for
        improving local search", AAAI 1994.

    Example:
        >>> import graphsys as gs
        >>> # (x or y) and (not x or y) and (not y or z): nodes 0 to 2, clauses 3 to 5
        >>> clause, variable = [3, 3, 4, 4, 5, 5], [0, 1, 0, 1, 1, 2]
        >>> sign = [1, 1, -1, 1, -1, 1]
        >>> graph = gs.Topology.from_edges(clause, variable, num_nodes=6, weight=sign)
        >>> done = gs.algorithms.survey_propagation(graph)
        >>> done.result, done.table["value"].to_pylist()[1:3]
        (0, [1, 1])
    """
    topology = Topology.of(graph)
    began = time.perf_counter()
    require_count("seed", seed, least=0)
    require(tolerance > 0, "tolerance", tolerance, "a number > 0")
    require(0 < fraction <= 1, "fraction", fraction, "a number above 0, up to 1")
    require_count("flips", flips, least=0)
    require_count("tries", tries)
    formula, clauses, variables = formula_of(topology)
    best, left = np.zeros(len(variables), dtype=np.int8), formula.num_clauses + 1
    supersteps, compiling = 0, 0.0
    for attempt in range(tries):
        search = _Decimation(formula, seed + attempt, options.get("num_threads"))
        found = search.solve(fraction, tolerance, flips)
        supersteps, compiling = (
            supersteps + search.supersteps,
            compiling + search.compile_seconds,
        )
        failed = int(formula.unsatisfied(found).sum())
        if failed < left:
            best, left = found, failed
        if not left:
            break
    value = np.zeros(topology.num_nodes, dtype=np.int8)
    value[variables] = best
    value[clauses] = ~formula.unsatisfied(best)
    if topology.rank is not None:
        value = value[topology.rank]
    return Result(
        source=lambda: topology.table({"value": value}),
        algorithm="survey_propagation",
        supersteps=supersteps,
        seconds=time.perf_counter() - began - compiling,
        compile_seconds=compiling,
        converged=not left,
        result=left,
        shortfall=f"survey_propagation leaves {left} clauses unsatisfied, and there may be "
        f"no better answer; allow it more with tries={10 * tries} (--param "
        f"tries={10 * tries})",
    )


def formula_of(topology: Topology) -> tuple[Formula, Ints, Ints]:
    """Return the formula of a factor graph, whose nodes are taken in order of their ids.

    Returns:
        The formula, and the ranks of its clauses and of its variables.

    Raises:
        InvalidGraphError: a node has edges both ways, or a weight is no sign.
    """
    refuse_no_formula(topology)
    csr = rows_by_rank(topology, topology.csr("out"))
    degrees, weight = csr.degrees(), weight_of(csr)
    is_clause = degrees > 0
    clauses, variables = np.flatnonzero(is_clause), np.flatnonzero(~is_clause)
    number = np.cumsum(~is_clause) - 1
    literals = (2 * number[csr.indices] + (weight < 0)).astype(np.int32)
    begins = np.concatenate([[0], np.cumsum(degrees[clauses])]).astype(np.int64)
    return Formula(begins, literals, len(variables)), clauses, variables
