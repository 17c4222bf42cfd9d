"""What cannot be compiled is refused with file, line and construct; the rest is lowered."""

import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import CompileError
from graphsys.engine import program as gs
from graphsys.engine.codegen.plan import ProgramPlan, plan_of
from graphsys.engine.run import run
from graphsys.engine.topology import Topology
from tests.unit.engine.programs.runs import declared


@pytest.fixture
def user_function(tmp_path: Path) -> Callable[[str], Any]:
    """Make a function of a text that stands in a file of the user's."""

    def made(text: str) -> Any:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        file = folder / "user.py"
        file.write_text(text)
        names: dict[str, Any] = {"math": math, "np": np}
        exec(compile(text, str(file), "exec"), names)
        return next(names[it] for it in ("update", "message") if it in names)

    return made


LIMIT = 4.5
LARGE = 2**62
NAMES = ["a", "b"]


def planned(**attributes: Any) -> ProgramPlan:
    """Plan a program of one state, of given functions."""
    return plan_of(declared(**attributes), {})


def source_of(what: str, function: Callable[..., Any], **attributes: Any) -> str:
    """Lower one function of a program and return its text."""
    lowered = planned(**{what: function}, **attributes).phases[0].functions[what]
    assert lowered is not None
    return lowered.source


# ---- refused: the line with the construct ends in "# here"


def a_with(self, src, edge):  # type: ignore[no-untyped-def]
    with open("x"):  # here
        return 1.0


def a_try(self, src, edge):  # type: ignore[no-untyped-def]
    try:  # here
        return src.value
    finally:
        pass


def a_dict(self, src, edge):  # type: ignore[no-untyped-def]
    lengths = {1: 2.0}  # here
    return lengths[1]


def a_list(self, src, edge):  # type: ignore[no-untyped-def]
    return max([src.value, 1.0])  # here


def a_comprehension(self, src, edge):  # type: ignore[no-untyped-def]
    total = 0.0
    total += sum(x for x in range(3))  # here
    return total


def a_lambda(self, src, edge):  # type: ignore[no-untyped-def]
    twice: Any = lambda x: 2 * x  # noqa: E731  # here
    return twice(src.value)


def an_inner_function(self, src, edge):  # type: ignore[no-untyped-def]
    def twice(x: Any) -> Any:  # here
        return 2 * x

    return twice(src.value)


def a_string(self, src, edge):  # type: ignore[no-untyped-def]
    kind = "x"  # here
    return len(kind)


def an_f_string(self, src, edge):  # type: ignore[no-untyped-def]
    return len(f"{src.value}")  # here


def an_assertion(self, src, edge):  # type: ignore[no-untyped-def]
    assert src.value > 0  # here
    return src.value


def an_exception(self, src, edge):  # type: ignore[no-untyped-def]
    raise ValueError  # here


def an_import(self, src, edge):  # type: ignore[no-untyped-def]
    import os  # here

    return os.getpid()


def a_loop_over_a_list(self, src, edge):  # type: ignore[no-untyped-def]
    for _ in NAMES:  # here
        pass
    return src.value


def a_print(self, src, edge):  # type: ignore[no-untyped-def]
    print(src.value)  # noqa: T201  # here
    return src.value


def a_keyword(self, src, edge):  # type: ignore[no-untyped-def]
    return round(src.value, ndigits=2)  # here


def a_global_list(self, src, edge):  # type: ignore[no-untyped-def]
    return NAMES[0]  # here


def an_unknown_name(self, src, edge):  # type: ignore[no-untyped-def]
    return src.value + nowhere  # type: ignore[name-defined]  # noqa: F821  # here


def an_undeclared_state(self, src, edge):  # type: ignore[no-untyped-def]
    return src.vaule  # here


def an_undeclared_column(self, src, edge):  # type: ignore[no-untyped-def]
    return edge.length  # here


def an_undeclared_parameter(self, src, edge):  # type: ignore[no-untyped-def]
    return src.value * self.damping  # here


def an_undeclared_total(self, src, edge):  # type: ignore[no-untyped-def]
    return self.total("mass")  # here


def a_total_without_a_name(self, src, edge):  # type: ignore[no-untyped-def]
    return self.total()  # here


def a_total_of_two(self, src, edge):  # type: ignore[no-untyped-def]
    return self.total("a", "b")  # here


def a_total_by_number(self, src, edge):  # type: ignore[no-untyped-def]
    return self.total(1)  # here


def a_star(self, src, edge):  # type: ignore[no-untyped-def]
    return max(src.value, *NAMES)  # here


def an_at_of_an_edge(self, src, edge):  # type: ignore[no-untyped-def]
    return edge.at(src.id).value  # here


def an_at_of_two_nodes(self, src, edge):  # type: ignore[no-untyped-def]
    return src.at(src.id, 1).value  # here


def a_way_back_of_a_node(self, src, edge):  # type: ignore[no-untyped-def]
    return src.reverse.forward  # here


def an_undeclared_way_back(self, src, edge):  # type: ignore[no-untyped-def]
    return edge.reverse.length  # here


def a_node_alone(self, src, edge):  # type: ignore[no-untyped-def]
    other = src  # here
    return other.value


def an_assigned_state(self, src, edge):  # type: ignore[no-untyped-def]
    src.value = 3.0  # here
    return src.value


def an_assigned_parameter(self, src, edge):  # type: ignore[no-untyped-def]
    self.count = 3.0  # here
    return src.value


def a_large_power(self, src, edge):  # type: ignore[no-untyped-def]
    return src.value * 2**70  # here


def a_large_shift(self, src, edge):  # type: ignore[no-untyped-def]
    return src.value * -(1 << 40 << 40)  # here


def a_large_product(self, src, edge):  # type: ignore[no-untyped-def]
    return src.value * (LARGE * 8 + 1)  # here


def a_method(self, src, edge):  # type: ignore[no-untyped-def]
    return self.doubled(src.value)  # here


def a_method_of_a_node(self, src, edge):  # type: ignore[no-untyped-def]
    return src.vote_to_halt()  # here


def an_at_alone(self, src, edge):  # type: ignore[no-untyped-def]
    return src.at(src.id)  # here


def a_method_of_a_value(self, src, edge):  # type: ignore[no-untyped-def]
    return src.value.sum()  # here


def a_division_by_zero(self, src, edge):  # type: ignore[no-untyped-def]
    return src.value // 0  # here


def a_remainder_by_nothing(self, src, edge):  # type: ignore[no-untyped-def]
    return src.id % (4 - 2 * 2)  # here


REFUSED = [
    (a_division_by_zero, "src.value // 0 divides by 0, which gives 0 for every value; div"),
    (a_remainder_by_nothing, r"% (4 - 2 * 2) divides by 0"),
    (a_method, "self.doubled cannot be called; write def doubled(...) outside of the"),
    (a_method_of_a_node, "src.vote_to_halt cannot be called; a program changes state by"),
    (an_at_alone, "src.at cannot be called; write src.at(src.id).name"),
    (a_method_of_a_value, "src.value.sum cannot be called; write np.sum(src.value)"),
    (a_large_power, "2 ** 70 is beyond the integers of 64 bits that programs have; write"),
    (a_large_shift, "1 << 40 << 40 is beyond the integers of 64 bits"),
    (a_large_product, "4611686018427387904 * 8 is beyond the integers of 64 bits"),
    (a_with, "with cannot be compiled"),
    (a_try, "try cannot be compiled"),
    (a_dict, "dict cannot be compiled"),
    (a_list, "list cannot be compiled"),
    (a_comprehension, "generator exp cannot be compiled"),
    (a_lambda, "lambda cannot be compiled"),
    (an_inner_function, "function def cannot be compiled"),
    (a_string, "the value 'x' cannot be compiled"),
    (an_f_string, "joined str cannot be compiled"),
    (an_assertion, "assert cannot be compiled"),
    (an_exception, "raise cannot be compiled"),
    (an_import, "import cannot be compiled"),
    (a_loop_over_a_list, "for works over range(...) only"),
    (a_print, "the builtin print cannot be compiled"),
    (a_keyword, "calls take plain arguments only"),
    (a_global_list, "NAMES is a list, not a number"),
    (an_unknown_name, "the name 'nowhere' is not defined"),
    (an_undeclared_state, "src.vaule is not declared; there are value, id, out_degree"),
    (an_undeclared_column, "edge.length is not declared; there are weight, time"),
    (an_undeclared_parameter, "a parameter is declared in the class, as damping: float"),
    (an_undeclared_total, "self.total('mass') is not declared; there are none"),
    (a_total_without_a_name, "self.total takes one name in quotes"),
    (a_total_of_two, "self.total takes one name in quotes"),
    (a_total_by_number, "self.total takes one name in quotes"),
    (a_star, "calls take plain arguments only"),
    (an_at_of_an_edge, "edge.at(src.id).value cannot be compiled"),
    (an_at_of_two_nodes, "src.at(src.id, 1).value cannot be compiled"),
    (a_way_back_of_a_node, "src.reverse.forward cannot be compiled"),
    (an_undeclared_way_back, "edge.reverse.length is not declared; there are forward"),
    (a_node_alone, "'src' alone means nothing; write src.name"),
    (an_assigned_state, "src.value cannot be assigned to"),
    (an_assigned_parameter, "self.count cannot be assigned to"),
]


@pytest.mark.parametrize(
    ("function", "what"), REFUSED, ids=[f.__name__ for f, _ in REFUSED]
)
def test_what_cannot_be_compiled_is_refused_where_it_stands(
    function: Callable[..., Any], what: str
) -> None:
    lines, first = inspect.getsourcelines(function)
    line = first + next(n for n, text in enumerate(lines) if text.endswith("# here\n"))
    with pytest.raises(CompileError) as caught:
        planned(message=function)
    message = str(caught.value)
    assert message.startswith(f"{__file__}:{line}: {function.__name__}: ")
    assert what in message
    assert "\n" not in message


def test_a_wrong_number_of_values_is_refused() -> None:
    def update(self: Any, node: Any, message: Any) -> Any:
        return message, 1.0

    with pytest.raises(CompileError, match="returns 2 values, expected 1; one value per"):
        planned(update=update)

    def aggregate(self: Any, before: Any, node: Any) -> Any:
        return node.value

    totals = {"a": gs.aggregator(gs.sum_), "b": gs.aggregator(gs.maximum)}
    with pytest.raises(CompileError, match="returns 1 values, expected 2"):
        planned(aggregate=aggregate, **totals)


def test_only_a_message_may_be_none() -> None:
    def update(self: Any, node: Any, message: Any) -> Any:
        if message > 3:
            return None
        return message

    with pytest.raises(CompileError, match="only message may return None"):
        planned(update=update)


def test_wrong_arguments_are_named() -> None:
    def message(self: Any, src: Any, edge: Any, dst: Any, time: Any) -> Any:
        return src.value

    with pytest.raises(CompileError, match=r"message takes \(self, src, edge, dst\), got"):
        planned(message=message)

    def update(self: Any, node: Any) -> Any:
        return node.value

    with pytest.raises(CompileError, match=r"update takes \(self, node, message\)"):
        planned(update=update)


def test_what_numba_cannot_type_names_the_line_and_what_it_takes() -> None:
    def message(self: Any, src: Any, edge: Any) -> Any:
        doubled = 2 * src.value
        return math.hypot(doubled, 1, 2)

    line = inspect.getsourcelines(message)[1] + 2
    said = rf"test_lower.py:{line}: numba cannot type hypot\(float64, 1, 2\); .* take and"
    with pytest.raises(CompileError, match=said):
        planned(message=message)


def two(self, src, edge):  # type: ignore[no-untyped-def]
    return src.value, 2 * src.value


@pytest.mark.parametrize(
    ("text", "message", "said"),
    [
        ("message[0]", None, r"message\[0\] .*message is one number; write message alone"),
        ("message[2]", two, r"has 2 values; expected one of message\[0\] to message\[1\]"),
        ("message[-3]", two, "has 2 values; expected"),
        ("node.value[0]", None, "node.value is one number; write node.value alone"),
        ("self.factor[0]", None, "self.factor is a number and has no places"),
        ("message.x", None, "message.x does not exist: .*write message, or message"),
    ],
)
def test_places_in_what_has_none_are_refused(
    text: str, message: Any, said: str, user_function: Any
) -> None:
    update = user_function(f"def update(self, node, message):\n    return {text}\n")
    given = {} if message is None else {"message": message, "combine": gs.sum_}
    with pytest.raises(CompileError, match=rf"user.py:2: .*{said}"):
        planned(update=update, factor=3, max_supersteps=2, **given)


def test_places_of_messages_of_several_values_are_read(user_function: Any) -> None:
    update = user_function("def update(self, node, message):\n    return message[-1]\n")
    plan = planned(update=update, message=two, combine=gs.sum_, max_supersteps=2)
    assert plan.phases[0].message_dtypes == (np.dtype(np.float64),) * 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("message & 1", r"numba cannot type & of \(float64, 1\)"),
        ("math.isclose(message, 1.0)", "Unknown attribute 'isclose' of type Module"),
        ("np.heaviside(message, 0.5)", "unsupported NumPy function 'numpy.heaviside'"),
        ("math.frexp(message)", r"it gives Tuple\(float64, int32\), expected numbers"),
    ],
)
def test_what_only_the_compiler_refuses_names_the_users_line(
    text: str, said: str, user_function: Any
) -> None:
    update = user_function(f"def update(self, node, message):\n    return {text}\n")
    program = type(
        "Given",
        (gs.VertexProgram,),
        {
            "value": gs.state("float64"),
            "combine": gs.sum_,
            "message": user_function("def message(self, src):\n    return src.value\n"),
            "update": update,
        },
    )
    graph = Topology.from_edges([0, 1], [1, 2], 3)
    with pytest.raises(CompileError, match=rf"user.py:\d: .*{said}") as caught:
        run(program, graph, max_supersteps=2)
    assert "\x1b" not in str(caught.value)
    assert " from " not in str(caught.value)


# ---- lowered


def scaled(value: Any) -> Any:
    """Double, and limit."""
    return min(2 * halved(4 * value), LIMIT)


def halved(value: Any) -> Any:
    return value / 2


def test_names_become_arguments_and_constants_numbers() -> None:
    step = 0.25

    def message(self: Any, src: Any, edge: Any) -> Any:
        """Docstrings go."""
        return src.value * LIMIT + edge.weight * step + math.pi * np.sqrt(src.out_degree)

    text = source_of("message", message)
    assert "src__value * 4.5 + edge__weight * 0.25 + 3.14159" in text
    assert "numpy.sqrt(src__out_degree)" in text
    assert "Docstrings" not in text


def test_helpers_are_compiled_too_in_the_order_of_their_calls() -> None:
    def message(self: Any, src: Any, edge: Any) -> Any:
        return scaled(src.value)

    lowered = planned(message=message).phases[0].functions["message"]
    assert lowered is not None
    assert list(lowered.helpers) == ["helper__halved", "helper__scaled"]
    assert "4.5" in lowered.helpers["helper__scaled"]


def drawn(value: Any) -> Any:
    return value * gs.random(1, 2, 3)


def test_what_a_helper_imports_its_callers_do() -> None:
    def message(self: Any, src: Any, edge: Any) -> Any:
        return drawn(src.value)

    lowered = planned(message=message).phases[0].functions["message"]
    assert lowered is not None
    [name] = lowered.helpers
    assert name == "helper__drawn"
    assert any(text.startswith("from graphsys.kernels") for text in lowered.imports)


def test_annotations_of_local_names_go() -> None:
    def message(self: Any, src: Any, edge: Any) -> Any:
        far: np.float64
        far: np.float64 = src.value  # type: ignore[no-redef]
        return far

    assert "float64" not in source_of("message", message)


def test_infinities_survive_as_constants() -> None:
    def message(self: Any, src: Any, edge: Any) -> Any:
        return min(src.value, np.inf) + max(-math.inf, src.value)

    text = source_of("message", message)
    assert "min(src__value, math.inf) + max(-math.inf, src__value)" in text


def test_a_helper_must_not_read_the_program() -> None:
    def message(self: Any, src: Any, edge: Any) -> Any:
        return peek(src.value)

    with pytest.raises(CompileError, match=r"peek: self\.value is not a parameter"):
        planned(message=message)


def peek(value: Any) -> Any:
    return value + self.value  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("dtype", "combine", "expected"),
    [
        ("float32", gs.minimum, "float32"),
        ("float64", gs.minimum, "float64"),
        ("float32", gs.sum_, "float32"),
        ("int32", gs.minimum, "int32"),
        ("int32", gs.sum_, "int64"),  # sums must not overflow
        ("int64", gs.maximum, "int64"),
        ("bool", gs.sum_, "int64"),
    ],
)
def test_messages_are_as_wide_as_what_they_are_made_of(
    dtype: str, combine: Any, expected: str
) -> None:
    def until(self: Any, totals: Any) -> bool:
        return True

    plan = planned(value=gs.state(dtype), combine=combine, until=until)
    assert [kind.name for kind in plan.phases[0].message_dtypes] == [expected]


def test_a_message_of_its_own_type_is_taken_as_declared() -> None:
    plan = planned(message_type="float32")
    assert plan.phases[0].message_dtypes == (np.dtype(np.float32),)


def small_enough(self, src, edge):  # type: ignore[no-untyped-def]
    return src.value * (2**62 - 1 + (1 << 62) - 2.0**70 + (-1) ** 71 + 2**-1)


def test_integers_within_64_bits_and_numbers_with_fractions_compile() -> None:
    lowered = planned(message=small_enough).phases[0].functions["message"]
    assert lowered is not None
    assert "2.0 ** 70" in lowered.source
