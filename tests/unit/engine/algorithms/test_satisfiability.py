"""Truths that satisfy formulas: against all assignments, and where walks alone fail."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphsys as gs
from graphsys.core.errors import ConfigError, InvalidGraphError
from graphsys.datasets import generators
from graphsys.engine.algorithms.satisfiability import formula_of, survey_propagation
from graphsys.engine.topology import Topology
from graphsys.kernels.cpu.algorithms.satisfiability import walk_sat
from graphsys.storage.source import EdgeChunk

Clauses = list[list[int]]


def topology_of(clauses: Clauses, num_variables: int) -> Topology:
    """Return the graph of clauses of literals (1, -1, ...): variables first."""
    pairs = [(num_variables + k, it) for k, row in enumerate(clauses) for it in row]
    src, literals = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Topology.from_edges(
        src, np.abs(literals) - 1, num_variables + len(clauses), weight=np.sign(literals)
    )


def drawn(num_variables: int, ratio: float, seed: int) -> Topology:
    source = generators.ksat(num_variables, ratio, seed=seed)
    chunks = [it for it in source.chunks() if isinstance(it, EdgeChunk)]
    src, dst = (np.concatenate([getattr(c, end) for c in chunks]) for end in ("src", "dst"))
    weight = np.concatenate([np.asarray(c.columns["weight"]) for c in chunks])
    num_nodes = num_variables + int(num_variables * ratio)
    return Topology.from_edges(src, dst, num_nodes, weight=weight)


def failed(clauses: Clauses, truth: Any) -> int:
    return sum(not any(truth[abs(it) - 1] == (it > 0) for it in row) for row in clauses)


@st.composite
def formulas(draw: st.DrawFn) -> tuple[Clauses, int]:
    num = draw(st.integers(1, 6))
    literal = st.integers(1, num).flatmap(lambda v: st.sampled_from([v, -v]))
    clause = st.lists(literal, min_size=1, max_size=3, unique_by=abs)
    return draw(st.lists(clause, min_size=1, max_size=24)), num


def test_what_many_clauses_force_leaves_room_for_what_one_forces() -> None:
    clauses = [[1], *[[-1, 2]] * 9, [-1, 3], [-3, 4], [-4, -5, 6], [5]]
    found = survey_propagation(topology_of(clauses, 6), flips=0, tries=1, num_threads=1)
    assert found.result == 0
    assert found.table["value"].to_pylist()[:6] == [1] * 6
    assert found.supersteps == 0  # no survey was asked


@settings(max_examples=60, deadline=None)
@given(formula=formulas())
def test_a_formula_is_satisfied_where_it_can_be(formula: tuple[Clauses, int]) -> None:
    clauses, num = formula
    found = survey_propagation(topology_of(clauses, num), flips=2000, num_threads=1)
    value = found.table["value"].to_pylist()
    least = min(failed(clauses, it) for it in itertools.product((0, 1), repeat=num))
    assert found.result == failed(clauses, value[:num])  # told as it is
    assert value[num:] == [int(not failed([row], value)) for row in clauses]
    assert (found.result == 0) == (least == 0) == found.converged


def test_random_formulas_of_ratio_4_are_solved() -> None:
    for seed in range(2):
        found = survey_propagation(drawn(500, 4.0, seed), fraction=0.04, flips=2_000_000)
        assert found.converged
        assert found.supersteps > 20


def test_surveys_find_what_walks_do_not() -> None:
    graph, flips = drawn(2000, 4.15, 0), 100_000
    formula, _, _ = formula_of(graph)
    left = []
    for seed in range(3):
        truth = np.random.default_rng(seed).integers(0, 2, 2000, dtype=np.int8)
        walk_sat(
            formula.clauses,
            formula.literals,
            *formula.by_literal,
            truth,
            0.5,
            flips,
            np.uint64(seed),
        )
        left.append(int(formula.unsatisfied(truth).sum()))
    found = survey_propagation(graph, fraction=0.04, flips=flips)
    assert found.result is not None
    assert found.result < min(left)  # 0 and 27


def test_partitions_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "f.cnf"
    rows = np.random.default_rng(0)
    lines = ["p cnf 40 150"]
    for _ in range(150):
        picked = rows.choice(40, 3, replace=False) + 1
        lines.append(" ".join(map(str, picked * rows.choice([-1, 1], 3))) + " 0")
    path.write_text("\n".join(lines))
    values = []
    for partitions in (1, 3):
        gs.ingest(path, tmp_path / f"g{partitions}", partitions=partitions)
        done = gs.algorithms.survey_propagation(tmp_path / f"g{partitions}", flips=100_000)
        order = np.argsort(done.table["id"].to_numpy())
        values.append(done.table["value"].to_numpy()[order])
        assert done.result == 0
    assert np.array_equal(*values)


def test_graphs_that_are_no_formula() -> None:
    path = Topology.from_edges(np.array([0, 1]), np.array([1, 2]), 3)
    with pytest.raises(InvalidGraphError, match="1 edges lead to nodes that have edges"):
        survey_propagation(path)
    for weight in (0.0, np.nan):
        graph = Topology.from_edges(
            np.array([1]), np.array([0]), 2, weight=np.array([weight])
        )
        with pytest.raises(InvalidGraphError, match="weights above or below 0"):
            survey_propagation(graph)
    with pytest.raises(ConfigError, match="fraction is 0"):
        survey_propagation(topology_of([[1]], 1), fraction=0)


def test_a_graph_without_edges_has_nothing_to_satisfy() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    done = survey_propagation(Topology.from_edges(nothing, nothing, 3))
    assert (done.result, done.table["value"].to_pylist()) == (0, [0, 0, 0])


def test_literals_are_rows_of_clauses() -> None:
    formula, clauses, variables = formula_of(topology_of([[1, -2], [2]], 2))
    assert formula.literals.tolist() == [0, 3, 2]
    assert (clauses.tolist(), variables.tolist()) == ([2, 3], [0, 1])
