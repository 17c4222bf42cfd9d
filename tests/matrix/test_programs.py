"""Programs of one's own give one answer in every store and mode, as listed ones do."""

import inspect
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import BudgetError, ConfigError
from graphsys.distributed.run import refuse_work
from graphsys.engine.program_run import prepare_program
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from tests.clusters import run_by_workers
from tests.matrix.graphs import NAMES, WEIGHTS, mixed
from tests.matrix.programs import PROGRAMS
from tests.matrix.ways import MODES, PLACES, forced
from tests.unit.engine.algorithms.small_graphs import SmallGraph, values

OTHERS = ("integers", True)
Stores = Callable[[SmallGraph], dict[str, Path]]


CELLS = [
    (what, names, weights)
    for what, (program, _) in PROGRAMS.items()
    for names, weights in itertools.product(NAMES, WEIGHTS)
    if weights == "quarters" or (names, "weight" in inspect.getsource(program)) == OTHERS
    if (what, weights) != ("vectors", "huge")  # whose norms float64 does not hold
]
"""Other weights for those programs alone that read them, of one kind of names."""


@pytest.mark.parametrize("is_directed", [True, False])
@pytest.mark.parametrize(("what", "names", "weights"), CELLS)
def test_a_program_gives_what_trying_by_hand_gives(
    what: str, names: str, weights: str, is_directed: bool, stores: Stores
) -> None:
    program, expected = PROGRAMS[what]
    graph = mixed(is_directed, names, weights)
    wanted, made, wrong, absent = expected(graph), stores(graph), [], set()
    for (layout, threads), mode in itertools.product(PLACES, MODES):
        topology = Topology.of(str(made[layout]))
        with forced(mode):
            try:
                done = prepare_program(program(), topology, num_threads=threads).run()
            except BudgetError:
                absent.add(mode)
                continue
        if not is_same(values(done, done.table.column_names[1]), wanted):
            wrong.append(f"{mode}, {layout}, {threads} threads")
    assert wrong == []
    # rows whose entries have values of their own are united
    is_united = what in ("edge states", "further edge columns")
    assert absent == ({"paged"} if is_united else set())


@pytest.mark.parametrize("is_directed", [True, False])
@pytest.mark.parametrize("what", PROGRAMS)
def test_two_workers_give_the_same_or_refuse(
    what: str, is_directed: bool, stores: Stores
) -> None:
    program, expected = PROGRAMS[what]
    graph = mixed(is_directed, "texts", "quarters")
    path = stores(graph)["four partitions"]
    if what == "further edge columns":
        with pytest.raises(ConfigError, match="of edges, which workers do not hold"):
            refuse_work(what, prepare_program(program(), Topology.of(str(path))).work)
        return
    name = f"{inspect.getfile(program)}:{program.__name__}"
    table, _ = run_by_workers(name, path, {}, 2)
    done = Result(source=table, algorithm=what, supersteps=0, seconds=0.0)
    assert is_same(values(done, table.column_names[1]), expected(graph))


def is_same(found: dict[Any, Any], wanted: dict[Any, Any]) -> bool:
    first = next(iter(wanted.values()))
    if isinstance(first, list):
        numbers, expected = ([map_[node] for node in wanted] for map_ in (found, wanted))
        return np.allclose(numbers, expected, rtol=1e-12, atol=1e-15)
    if isinstance(first, float):
        return bool(found == pytest.approx(wanted, rel=1e-12))
    return found == wanted
