"""Every listed algorithm gives one answer, whatever the graph, its store and its mode.

The cells are made of the registry of algorithms and of the engine's modes: a new one is
covered without a line here, but for its oracle, without which a test fails.
"""

import itertools
import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from graphsys.core.errors import GraphsysError, InputError, InvalidGraphError
from graphsys.engine.algorithms import ALGORITHMS
from graphsys.engine.algorithms.algorithm import followed
from graphsys.engine.result import Result
from tests.clusters import run_by_workers
from tests.matrix.cells import difference, given_to, taken_by
from tests.matrix.graphs import NAMES, WEIGHTS
from tests.matrix.oracles import BY_WORKERS, GRAPHS, ORACLES, SETTINGS
from tests.matrix.stores import LAYOUTS, build_changed
from tests.matrix.ways import IMPLEMENTATIONS, MODES, PLACES, refusal_of, run_in
from tests.unit.engine.algorithms.small_graphs import SmallGraph

KINDS = [
    (is_directed, names, weights)
    for is_directed in (True, False)
    for names in NAMES
    for weights in WEIGHTS
    if names == "integers" or (is_directed and weights == "quarters")
]
REFUSED = {("betweenness", "zeros"), ("katz", "huge"), ("eigenvector", "huge")}
"""What has no answer where edges have no length, or sums beyond float64."""
CELLS = [
    (name, *kind, weighted)
    for name, entry in sorted(ALGORITHMS.items())
    for kind in KINDS
    for weighted in ((False, True) if "weighted" in entry.parameters() else (False,))
    if not (weighted and (name, kind[-1]) in REFUSED)
    if GRAPHS[name](*kind) not in [GRAPHS[name](*it) for it in KINDS[: KINDS.index(kind)]]
    and (kind[-1] == "quarters" or "weight" in (entry.function.__doc__ or ""))
]
"""Other weights for those algorithms alone that say something of weights."""
HUGE = 2.0**1019
"""What the graphs' weights, up to 4, are scaled by: sums are beyond float64."""
READ_WEIGHTS = [
    name
    for name, entry in sorted(ALGORITHMS.items())
    if "weighted" in entry.parameters() or "weight" in (entry.function.__doc__ or "")
    if name != "belief_propagation"  # whose weights are couplings: another model
]
Stores = Callable[[SmallGraph], dict[str, Path]]


def test_every_algorithm_has_an_oracle() -> None:
    assert ORACLES.keys() == ALGORITHMS.keys()
    assert SETTINGS.keys() <= ALGORITHMS.keys()


@pytest.mark.parametrize(("name", "is_directed", "names", "weights", "weighted"), CELLS)
def test_the_answer_is_the_oracles_in_every_store_and_mode(
    name: str, is_directed: bool, names: str, weights: str, weighted: bool, stores: Stores
) -> None:
    graph = GRAPHS[name](is_directed, names, weights)
    given = given_to(name, graph) | ({"weighted": True} if weighted else {})
    entry, absent, wrong = ALGORITHMS[name], set(), []
    for implementation in IMPLEMENTATIONS:
        if not getattr(entry, implementation):
            why = refusal_of(name, graph.topology(), implementation=implementation)
            assert f"{name} has no {implementation} implementation" in why
            continue
        own = taken_by(name, implementation, given)
        if weighted and "weighted" not in own:
            continue
        made = stores(graph)
        for (layout, threads), mode in itertools.product(PLACES, MODES):
            path = str(made[layout])
            done = run_in(mode, name, path, implementation, threads, **own)
            if done is None:
                absent.add((implementation, mode))
                continue
            cell = f"{implementation}, {mode}, {layout}, {threads} threads"
            wrong += difference(name, graph, done, given, cell)
        if (implementation, "paged") in absent and implementation == "program":
            assert entry.prepare(path, implementation="program", **own).choice.unites
    assert wrong == []
    # native algorithms hold what they compute in memory, and are refused beyond it; so do
    # programs whose rows are united, as those with states of edges
    assert {mode for _, mode in absent} <= {"paged"}


@pytest.mark.parametrize("number", [math.nan, math.inf])
@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_a_weight_that_is_no_number_is_refused_by_what_reads_it(
    name: str, number: float
) -> None:
    graph = GRAPHS[name](True, "integers", "quarters")
    (src, dst, _), *others = graph.edges
    wrong = replace(graph, edges=[(src, dst, number), *others])
    given = given_to(name, graph)
    for implementation in filter(partial(getattr, ALGORITHMS[name]), IMPLEMENTATIONS):
        own = taken_by(name, implementation, given)
        try:
            done = ALGORITHMS[name](wrong.topology(), implementation=implementation, **own)
        except InvalidGraphError as err:
            problems = [] if re.search("nan|inf", str(err)) else [str(err)]
        else:
            problems = difference(name, wrong, done, given, implementation)
        assert problems == []


@pytest.mark.parametrize("is_directed", [True, False])
@pytest.mark.parametrize("name", READ_WEIGHTS)
def test_sums_of_weights_beyond_float64_are_refused_or_change_nothing(
    name: str, is_directed: bool
) -> None:
    graph = GRAPHS[name](is_directed, "integers", "quarters")
    huge = [(src, dst, weight * HUGE) for src, dst, weight in graph.edges]
    given = given_to(name, graph) | {"weighted": True}
    for implementation in filter(partial(getattr, ALGORITHMS[name]), IMPLEMENTATIONS):
        own = {"implementation": implementation, **taken_by(name, implementation, given)}
        if why := refusal_of(name, graph.topology(), **own):
            assert "directed" in why  # no graph for it, whatever the weights
            continue
        scaled = replace(graph, edges=huge).topology()
        if why := refusal_of(name, scaled, **own):
            assert re.search(r"than float64 holds|1e\+150 at most|without bound", why)
            continue
        found, expected = (ALGORITHMS[name](it, **own) for it in (scaled, graph.topology()))
        assert is_same_but_for_scale(found, expected)


def is_same_but_for_scale(found: Result, expected: Result) -> bool:
    """Tell whether each column and the answer are equal, or weights times ``HUGE``."""
    pairs = [([found.result], [expected.result])]
    for name in expected.table.column_names:
        pairs.append(tuple(it.table[name].to_pylist() for it in (found, expected)))
    for one, other in pairs:
        if one != other:
            is_weight = max(abs(x or 0) for x in one) > HUGE / 4
            scale = HUGE if is_weight else 1.0
            numbers = [math.nan if x is None else x for x in one]
            wanted = [math.nan if x is None else x * scale for x in other]
            if numbers != pytest.approx(wanted, rel=1e-9, nan_ok=True):
                return False
    return True


def test_a_store_has_no_weight_that_is_no_number(tmp_path: Path) -> None:
    graph = GRAPHS["sssp"](True, "integers", "quarters")
    (src, dst, _), *others = graph.edges
    wrong = replace(graph, edges=[(src, dst, math.nan), *others])
    with pytest.raises(InputError, match=r"'weight' .* not finite"):
        LAYOUTS["four partitions"](tmp_path / "graph", wrong)


@pytest.mark.parametrize("is_directed", [True, False])
@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_a_last_result_is_followed_or_refused(
    name: str, is_directed: bool, tmp_path: Path
) -> None:
    graph = GRAPHS[name](is_directed, "integers", "quarters")
    first = name if name in followed() else "wcc"
    own = taken_by(first, "native", given_to(first, graph))
    last: list[Result] = []

    def keep(path: Path) -> None:
        last.append(ALGORITHMS[first](str(path), **own))

    build_changed(tmp_path / "graph", graph, between=keep)
    if name not in followed():
        why = refusal_of(name, str(tmp_path / "graph"), last=last[0])
        assert "does not go on from a last result" in why
        return
    done = ALGORITHMS[name](str(tmp_path / "graph"), last=last[0], **own)
    assert difference(name, graph, done, own, "--from") == []


@pytest.mark.parametrize("is_directed", [True, False])
@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_two_workers_give_the_answer_or_refuse(
    name: str, is_directed: bool, stores: Stores
) -> None:
    graph = GRAPHS[name](is_directed, "texts", "quarters")
    entry, given = ALGORITHMS[name], given_to(name, graph)
    path = stores(graph)["four partitions"]
    if not entry.program:
        with pytest.raises(GraphsysError, match="has no program implementation"):
            entry.prepare(str(path), implementation="program", **given)
        return
    own = taken_by(name, "program", given)
    table, _ = run_by_workers(name, path, own, 2)
    done = Result(source=table, algorithm=BY_WORKERS, supersteps=0, seconds=0.0)
    assert difference(name, graph, done, given, "two workers") == []
