"""Results with a fraction are refused for states of integers, and no others are."""

import math
from pathlib import Path
from typing import Any

import pytest

from graphsys.core.errors import CompileError
from graphsys.engine import program as gs
from graphsys.engine.codegen import narrowing
from graphsys.engine.codegen.plan import plan_of
from graphsys.engine.codegen.spec import spec_of

HALF = 0.5


def whole(self: Any, src: Any, edge: Any) -> Any:
    return src.value


def broken(self: Any, src: Any, edge: Any) -> Any:
    return 1.5


def plan(update: Any, message: Any = whole, **attributes: Any) -> None:
    """Plan a program of one state of integers, and what else is given."""
    known = {"value": gs.state("int64"), "combine": gs.minimum}
    known |= {"message": message, "update": update}
    kind: type[gs.VertexProgram] = type("Given", (gs.VertexProgram,), known | attributes)
    plan_of(spec_of(kind), {})


# ---- refused: the line with the result ends in "# here"


def a_quotient(self, node, message):  # type: ignore[no-untyped-def]
    return message / 2  # here


def a_literal(self, node, message):  # type: ignore[no-untyped-def]
    return message + 1.0  # here


def a_global(self, node, message):  # type: ignore[no-untyped-def]
    return message * HALF  # here


def a_root(self, node, message):  # type: ignore[no-untyped-def]
    return math.sqrt(message)  # here


def the_second_result(self, node, message):  # type: ignore[no-untyped-def]
    if message > 3:
        return message
    if message > 2:
        return message + 1
    return message / 4  # here


def beside_what_has_no_type(self, node, message):  # type: ignore[no-untyped-def]
    if message > 3:
        return message / 2  # here
    return math.sqrt(message)[0]  # type: ignore[index] # the compiler says what is wrong


REFUSED = [
    a_quotient,
    a_literal,
    a_global,
    a_root,
    the_second_result,
    beside_what_has_no_type,
]


def line_of(function: Any) -> int:
    first = function.__code__.co_firstlineno
    lines = Path(__file__).read_text().splitlines()
    return next(k for k in range(first, len(lines)) if lines[k - 1].endswith("# here"))


@pytest.mark.parametrize("update", REFUSED, ids=lambda it: it.__name__)
@pytest.mark.parametrize("dtype", ["int64", "uint32", "bool"])
def test_fractions_for_integers_are_refused_where_they_are_returned(
    update: Any, dtype: str
) -> None:
    with pytest.raises(CompileError) as refused:
        plan(update, value=gs.state(dtype))
    assert str(refused.value).startswith(
        f"{__file__}:{line_of(update)}: update gives float"
    )
    assert f"to the state 'value' of {dtype}, which would cut" in str(refused.value)


def test_a_message_with_a_fraction_is_one() -> None:
    def update(self: Any, node: Any, message: Any) -> Any:
        return message

    with pytest.raises(CompileError, match="update gives float64 to the state 'value'"):
        plan(update, broken)


def test_another_state_with_a_fraction_is_one() -> None:
    def update(self: Any, node: Any, message: Any) -> Any:
        return node.share, node.share

    with pytest.raises(CompileError, match=r"gives float\d\d to the state 'value'"):
        plan(update, share=gs.state("float64"))


# ---- let through


def a_sum(self, node, message):  # type: ignore[no-untyped-def]
    return abs(max(node.value, message)) - min(message, 2)


def a_whole_quotient(self, node, message):  # type: ignore[no-untyped-def]
    return node.value // 2 + message % 3


def a_rounded_root(self, node, message):  # type: ignore[no-untyped-def]
    return int(math.sqrt(message))


def a_power(self, node, message):  # type: ignore[no-untyped-def]
    return message**2


@pytest.mark.parametrize("update", [a_sum, a_whole_quotient, a_rounded_root, a_power])
def test_whole_results_are_let_through(update: Any) -> None:
    plan(update)


def test_fractions_for_floats_are_let_through() -> None:
    plan(a_quotient, value=gs.state("float64"))
    plan(a_root, value=gs.state("float32"))


def test_types_are_not_inferred_where_nothing_can_have_a_fraction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def forbidden(*_: Any, **__: Any) -> Any:
        raise AssertionError("inferring takes a while")

    monkeypatch.setattr(narrowing, "inferred_types", forbidden)
    plan(a_whole_quotient)
    plan(a_sum)
    plan(a_quotient, value=gs.state("float64"))
    with pytest.raises(AssertionError, match="takes a while"):
        plan(a_rounded_root)
