"""What a run is told of its end, and what states can hold."""

import math
from pathlib import Path
from typing import Any, ClassVar

import pytest

from graphsys.core.errors import CompileError, ConfigError, UnknownNameError
from graphsys.engine import program as gs
from graphsys.engine.codegen.spec import spec_of
from graphsys.engine.run import run
from tests.unit.engine.algorithms.small_graphs import values
from tests.unit.engine.programs.runs import random_graph

GRAPH = random_graph(is_directed=False, is_text=False)


class Doubled(gs.VertexProgram):
    """Doubles a number; a program of a fixed number of supersteps."""

    value = gs.state("float64", default=1.0)
    combine = gs.sum_
    max_supersteps = 3

    def message(self, src: Any, edge: Any) -> Any:
        return 0.0 * src.value

    def update(self, node: Any, message: Any) -> Any:
        return 2.0 * node.value + message


class DoubledForEver(Doubled):
    """The same without an end of its own."""

    max_supersteps: Any = None


class DoubledInTurns(gs.VertexProgram):
    """The same as a loop of phases."""

    value = gs.state("float64", default=1.0)
    loop = True
    max_supersteps = 3

    class Turn(gs.Phase):
        """Double."""

        def update(self, node: Any) -> Any:
            return 2.0 * node.value

    phases = (Turn,)


@pytest.mark.parametrize("program", [Doubled, DoubledInTurns])
@pytest.mark.parametrize(("given", "supersteps"), [(None, 3), (2, 2), (5, 5)])
def test_a_limit_of_the_run_replaces_the_program_s(
    program: type[gs.VertexProgram], given: int | None, supersteps: int
) -> None:
    done = run(program, GRAPH.topology(), max_supersteps=given)
    assert done.supersteps == supersteps
    assert set(values(done).values()) == {2.0**supersteps}
    assert done.converged == (given is None and program is Doubled)


def test_a_limit_of_the_run_is_an_end() -> None:
    with pytest.raises(ConfigError, match="or run it with --max-supersteps"):
        run(DoubledForEver, GRAPH.topology())
    done = run(DoubledForEver, GRAPH.topology(), max_supersteps=4)
    assert set(values(done).values()) == {16.0}


class Halved(gs.VertexProgram):
    """Returns an integer here and a float there."""

    count = gs.state("int64", default=7)
    combine = gs.sum_
    max_supersteps = 1

    def message(self, src: Any, edge: Any) -> Any:
        return src.count

    def update(self, node: Any, message: Any) -> Any:
        if message > 3:
            return message
        return message / 2


class HalvedOfTwo(gs.VertexProgram):
    """The second of two states gets a float."""

    share = gs.state("float64")
    count = gs.state("int32")
    schedule = "all"
    max_supersteps = 1

    def update(self, node: Any) -> Any:
        return node.share, node.share + 1


class BegunByHalf(gs.VertexProgram):
    """``init`` gives a float."""

    count = gs.state("int32")
    schedule = "all"
    max_supersteps = 1

    def init(self, node: Any) -> Any:
        return 0.5

    def update(self, node: Any) -> Any:
        return node.count


class StartedByHalf(BegunByHalf):
    """``start`` gives a float."""

    init: ClassVar[Any] = None

    def start(self, graph: Any) -> Any:
        return {GRAPH.ids[0]: {"count": 0.5}}


@pytest.mark.parametrize(
    ("program", "line", "message"),
    [
        (
            Halved,
            "return message / 2",
            "update gives float64 to the state 'count' of int64",
        ),
        (HalvedOfTwo, "return node.share, node.share + 1", "the state 'count' of int32"),
        (BegunByHalf, "return 0.5", "init gives float64 to the state 'count' of int32"),
    ],
)
def test_fractions_are_not_cut_off_in_silence(
    program: type[gs.VertexProgram], line: str, message: str
) -> None:
    lines = Path(__file__).read_text().splitlines()
    number = next(k for k, text in enumerate(lines, 1) if text.strip() == line)
    with pytest.raises(CompileError) as error:
        run(program, GRAPH.topology())
    assert str(error.value).startswith(f"{__file__}:{number}: ")
    assert message in str(error.value)
    assert "write int(...) around it" in str(error.value)


def test_start_may_not_give_fractions_to_integers_either() -> None:
    with pytest.raises(ConfigError, match="gives 'count' of int32 a value that is no"):
        run(StartedByHalf, GRAPH.topology())


class Rounded(Halved):
    """Says that it means integers."""

    def update(self, node: Any, message: Any) -> Any:
        return int(message / 2)


def test_rounded_results_are_fine() -> None:
    done = run(Rounded, GRAPH.topology())
    assert all(value == int(value) for value in values(done).values())


@pytest.mark.parametrize(
    ("dtype", "default", "message"),
    [
        ("flaot64", 0, "unknown dtype of Typed.x: 'flaot64'.*did you mean 'float64'"),
        ("complex128", 0, "unknown dtype of Typed.x: 'complex128'"),
        ("object", 0, "unknown dtype of Typed.x: 'object'"),
        (str, 0, "unknown dtype of Typed.x: 'str'"),
        ("int32", 0.5, "Typed.x is of int32 and cannot hold its default 0.5"),
        ("int64", math.inf, "Typed.x is of int64 and cannot hold its default inf"),
    ],
)
def test_dtypes_that_are_not_there_are_named(
    dtype: Any, default: Any, message: str
) -> None:
    for kind in (gs.state, gs.edge_state):
        body = {"update": lambda self, node: node.x, "schedule": "all", "max_supersteps": 1}
        if kind is gs.edge_state:
            body["y"] = gs.state("int64")
        typed = type("Typed", (gs.VertexProgram,), {"x": kind(dtype, default), **body})
        with pytest.raises((ConfigError, UnknownNameError), match=message):
            spec_of(typed)
