"""What listed programs and those of one's own give in numba's CUDA simulator."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from graphsys.engine.algorithms import ALGORITHMS
from graphsys.engine.result import Result
from tests.matrix.cells import difference, given_to
from tests.matrix.graphs import mixed
from tests.matrix.oracles import BY_WORKERS, GRAPHS
from tests.matrix.programs import PROGRAMS
from tests.matrix.test_programs import is_same
from tests.processes import SIMULATED, printed_by
from tests.unit.engine.algorithms.small_graphs import values

pytest.importorskip("numba_cuda", reason="the gpu extra (numba-cuda) is not installed")


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run all in one process of its own, which lowers each program once."""
    folder = tmp_path_factory.mktemp("simulated")
    words = "-m", "tests.matrix.on_simulator", folder
    printed_by(*words, environment=SIMULATED, timeout=1200)
    return folder


@pytest.mark.parametrize("is_directed", [True, False])
@pytest.mark.parametrize("name", [n for n, entry in ALGORITHMS.items() if entry.program])
def test_the_answer_is_the_oracles(name: str, is_directed: bool, simulated: Path) -> None:
    graph = GRAPHS[name](is_directed, "integers", "quarters")
    table = pq.read_table(simulated / f"{name}-{is_directed}.parquet")
    done = Result(source=table, algorithm=BY_WORKERS, supersteps=0, seconds=0.0)
    assert difference(name, graph, done, given_to(name, graph), "simulator") == []


@pytest.mark.parametrize("is_directed", [True, False])
@pytest.mark.parametrize("what", PROGRAMS)
def test_a_program_of_ones_own_gives_what_trying_by_hand_gives(
    what: str, is_directed: bool, simulated: Path
) -> None:
    table = pq.read_table(simulated / f"{what}-{is_directed}.parquet")
    done = Result(source=table, algorithm=what, supersteps=0, seconds=0.0)
    wanted = PROGRAMS[what][1](mixed(is_directed, "texts", "quarters"))
    assert is_same(values(done, table.column_names[1]), wanted)
