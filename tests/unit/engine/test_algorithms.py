"""The one list of algorithms: every row can be loaded, and says no where it must."""

import inspect
from pathlib import Path

import pytest

from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.engine import algorithms
from graphsys.engine.topology import Topology
from tests.unit.engine.native.small_graphs import SmallGraph

HERE = Path(__file__).resolve().parent
TRIANGLE = SmallGraph([1, 2, 3], [(1, 2, 1.0), (2, 3, 1.0), (3, 1, 1.0)], True)


@pytest.fixture
def topology() -> Topology:
    return TRIANGLE.topology()


@pytest.mark.parametrize("name", algorithms.ALGORITHMS)
def test_every_row_loads_and_its_parameters_have_types(name: str) -> None:
    listed = algorithms.get(name)
    assert listed.native or listed.program
    assert listed.summary
    assert not listed.summary.endswith(".")
    if listed.native:
        assert callable(listed.native_function())
        assert inspect.Parameter.empty not in listed.parameters("native").values()
    if listed.program:
        assert callable(listed.program_class())
        assert inspect.Parameter.empty not in listed.parameters("program").values()
    assert getattr(algorithms, name) is listed
    assert name in dir(algorithms)


def test_every_program_has_tests_of_its_own() -> None:
    modules = {row.program.partition(":")[0] for row in algorithms.ALGORITHMS.values()}
    tested = {path.stem.removeprefix("test_") for path in (HERE / "programs").glob("*.py")}
    assert modules - {""} <= tested


@pytest.mark.parametrize("name", ["bfs", "sssp", "k_core", "wcc", "pagerank"])
def test_both_implementations_take_the_same_main_parameters(name: str) -> None:
    listed = algorithms.get(name)
    main = {"source", "damping", "tolerance", "iterations", "seed", "parents"}
    native, program = set(listed.parameters("native")), set(listed.parameters("program"))
    assert native & main == program & main


def test_an_unknown_algorithm_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"'pagrank'.*did you mean"):
        algorithms.get("pagrank")
    with pytest.raises(AttributeError, match="has no algorithm 'pagrank'"):
        _ = algorithms.pagrank


def test_an_implementation_that_there_is_not_is_refused(topology: Topology) -> None:
    with pytest.raises(ConfigError, match="hits has no native implementation"):
        algorithms.get("hits")(topology, implementation="native")
    with pytest.raises(ConfigError, match="lcc has no program implementation"):
        algorithms.get("lcc")(topology, implementation="program")
    with pytest.raises(ConfigError, match="'native' or 'program', got 'fast'"):
        algorithms.get("bfs")(topology, implementation="fast")


@pytest.mark.parametrize("implementation", ["native", "program"])
def test_options_are_checked_alike(topology: Topology, implementation: str) -> None:
    bfs = algorithms.get("bfs")
    with pytest.raises(ConfigError, match="bfs needs the parameter 'source'"):
        bfs(topology, implementation=implementation)
    with pytest.raises(UnknownNameError, match="did you mean 'source'"):
        bfs(topology, implementation=implementation, sourc=1)


def test_the_answer_is_announced() -> None:
    assert algorithms.get("wcc").has_answer
    assert algorithms.get("mis").has_answer
    assert not algorithms.get("bfs").has_answer
    assert not algorithms.get("hits").has_answer


def test_results_carry_the_name_in_the_list(topology: Topology) -> None:
    result = algorithms.get("wcc")(topology, implementation="program")
    assert result.algorithm == "wcc"
