"""Programs of one's own give one answer in every store and mode, as listed ones do."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import BudgetError
from graphsys.engine.program_run import prepare_program
from graphsys.engine.topology import Topology
from tests.matrix.graphs import mixed
from tests.matrix.programs import PROGRAMS
from tests.matrix.ways import MODES, PLACES, forced
from tests.unit.engine.algorithms.small_graphs import SmallGraph, values

Stores = Callable[[SmallGraph], dict[str, Path]]


@pytest.mark.parametrize("is_directed", [True, False])
@pytest.mark.parametrize("names", ["integers", "texts"])
@pytest.mark.parametrize("what", PROGRAMS)
def test_a_program_gives_what_trying_by_hand_gives(
    what: str, names: str, is_directed: bool, stores: Stores
) -> None:
    program, expected = PROGRAMS[what]
    graph = mixed(is_directed, names, "quarters")
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


def is_same(found: dict[Any, Any], wanted: dict[Any, Any]) -> bool:
    first = next(iter(wanted.values()))
    if isinstance(first, list):
        numbers, expected = ([map_[node] for node in wanted] for map_ in (found, wanted))
        return np.allclose(numbers, expected, rtol=1e-12, atol=1e-15)
    if isinstance(first, float):
        return bool(found == pytest.approx(wanted, rel=1e-12))
    return found == wanted
