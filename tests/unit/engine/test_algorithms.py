"""The one list of algorithms: every row can be loaded, and says no where it must."""

import inspect
from pathlib import Path

import pytest

from graphsys.cli.help_pages.algorithms import entries_of, sections_of
from graphsys.cli.main import main
from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.engine import algorithms
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from tests.unit.engine.algorithms.small_graphs import SmallGraph

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
    assert getattr(algorithms, name).__wrapped__ is listed.function
    assert name in dir(algorithms)


@pytest.mark.parametrize("name", algorithms.ALGORITHMS)
def test_signatures_are_those_of_what_is_behind(name: str) -> None:
    listed, wanted = algorithms.get(name), {}
    if listed.program:
        made = listed.program_class()
        for parameter in listed.parameters("program"):
            given = inspect.signature(made).parameters.get(parameter)
            default = getattr(made, parameter, inspect.Parameter.empty)
            wanted[parameter] = given.default if given else default
    if listed.native:
        given_by_name = inspect.signature(listed.native_function()).parameters
        wanted |= {n: given_by_name[n].default for n in listed.parameters("native")}
    signature = inspect.signature(getattr(algorithms, name))
    told = {p.name: p for p in signature.parameters.values()}
    assert list(told) == ["graph", *[n for n in told if n in wanted], "options"]
    assert {n: told[n].default for n in wanted} == wanted
    assert signature.return_annotation is Result


@pytest.mark.parametrize("name", algorithms.ALGORITHMS)
def test_docstrings_tell_every_parameter_what_comes_out_what_it_costs_and_the_source(
    name: str,
) -> None:
    function = getattr(algorithms, name)
    sections, signature = sections_of(function), inspect.signature(function)
    assert entries_of(sections["Args"]).keys() == signature.parameters.keys()
    for heading in ("Returns", "Complexity", "References", "Example"):
        assert sections[heading].strip()
    assert f"gs.algorithms.{name}(graph" in sections["Example"]


def test_a_parameter_of_the_program_alone_asks_for_the_program() -> None:
    negative = SmallGraph([1, 2, 3], [(1, 2, 2.0), (2, 3, -1.0)], True).topology()
    done = algorithms.sssp(negative, source=1, negative_weights=True)
    assert done.table["value"].to_pylist() == [0.0, 2.0, 1.0]


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


@pytest.mark.parametrize("name", algorithms.ALGORITHMS)
def test_the_help_of_the_command_says_what_the_docstring_says(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in (["--help"], ["web", "-o", "x.csv", "-h"]):
        assert main(["run", name, *arguments]) == 0
        page = " ".join(capsys.readouterr().out.split())
        sections = sections_of(getattr(algorithms, name))
        signature = inspect.signature(getattr(algorithms, name))
        for parameter in list(signature.parameters)[1:-1]:
            assert f"{parameter}=" in page
        for part in ("", "Returns", "Complexity", "References"):
            assert " ".join(sections[part].replace("``", "").split()) in page


def test_the_help_of_what_is_no_algorithm_is_that_of_the_verb(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", "my_program.py:Mine", "--help"]) == 0
    assert "A name from --list, or file.py:Class." in capsys.readouterr().out
