"""Which values of a program are vectors, and whether they stand where vectors may."""

import ast
from collections.abc import Iterator, Sequence

from graphsys.core.errors import CompileError, cut_list
from graphsys.engine.codegen.lowered import COMPONENT, Input, Lowered
from graphsys.engine.codegen.spec import PhaseSpec, ProgramSpec

_OF_VECTORS = ("sum", "mean", "minimum", "maximum", "own")


def is_vector(spec: ProgramSpec, given: Input) -> bool:
    """Return whether an input of a function is a vector, or the number of a component."""
    if given == COMPONENT:
        return True
    if given.kind not in ("src", "dst", "node", "before"):
        return False
    return given.name in spec.states and spec.states[given.name].num_components > 0


def check_message(spec: ProgramSpec, phase: PhaseSpec, message: Lowered) -> bool:
    """Return whether a phase's messages are vectors.

    Raises:
        CompileError: what is asked of them works for numbers only.
    """
    if spec.delta and spec.num_components:
        raise CompileError(
            f"{message.where}: delta = True works for numbers, but there are vectors; "
            "leave delta out"
        )
    returned = _returned(spec, message, ())
    _check_reductions(spec, message, ())
    if not any(returned):
        return False
    combine = phase.combine
    assert combine is not None  # spec_of checked
    if len(returned) > 1:
        raise CompileError(
            f"{message.where}: a message is one vector, or numbers; make the message's "
            f"{len(returned)} values components of one vector"
        )
    if combine.name not in _OF_VECTORS:
        known = cut_list([f"gs.{name}" for name in _OF_VECTORS[:-1]] + ["gs.combiner"])
        raise CompileError(
            f"{message.where}: gs.{combine.name} combines numbers, and the message is a "
            f"vector; vectors are combined by {known}"
        )
    if phase.stores is not None:
        raise CompileError(
            f"{message.where}: {phase.name} stores its messages, and they are vectors; a "
            "state of edges is a number"
        )
    return True


def check_vectors(
    spec: ProgramSpec,
    function: Lowered,
    what: str,
    names: Sequence[str],
    *,
    takes_vector: bool = False,
) -> None:
    """Refuse vectors where a function has to give numbers.

    Args:
        spec: The program.
        function: The function, lowered.
        what: Its name, for messages.
        names: The states that it returns, in order; empty where it returns numbers.
        takes_vector: Whether its message is a vector.

    Raises:
        CompileError: it gives a vector for a number, or reduces what is a number.
    """
    vectors = function.values if takes_vector else ()
    if what == "combine" and function.reductions:
        raise CompileError(
            f"{function.where}: combine works on components, and np.{_first(function)} "
            "needs whole vectors; reduce them in update"
        )
    if what == "combine":
        return
    _check_reductions(spec, function, vectors)
    for place, found in enumerate(_returned(spec, function, vectors)):
        name = names[place] if place < len(names) else ""
        if found and not (name and spec.states[name].num_components):
            to = f"the state {name!r}, which is a number" if name else "a number"
            declare = f"; or declare {name} with a shape" if name else ""
            raise CompileError(
                f"{function.where}: {what} gives a vector for {to}; make one of it, by "
                f"np.sum(...) or np.max(...){declare}"
            )


def check_indices(function: Lowered, num_values: int, *, is_vector: bool) -> None:
    """Refuse places in a message where it has none.

    Args:
        function: A lowered ``update``.
        num_values: How many values a message has.
        is_vector: Whether the message is a vector.

    Raises:
        CompileError: ``message[k]`` of a vector, of one number, or behind the last value.
    """
    for node in ast.walk(function.tree):
        name = getattr(getattr(node, "value", None), "id", "")
        if not isinstance(node, ast.Subscript) or name not in function.values:
            continue
        what = f"{function.place.at(node)}: {ast.unparse(node)} does not compile"
        if is_vector:
            raise CompileError(f"{what}: {NO_PLACES}; {component_of(node)}")
        if num_values == 1:
            raise CompileError(f"{what}: {name} is one number; write {name} alone")
        place, sign = node.slice, 1
        if isinstance(place, ast.UnaryOp) and isinstance(place.op, ast.USub):
            place, sign = place.operand, -1
        if not isinstance(place, ast.Constant):  # not known before it runs
            continue
        value = place.value
        if not isinstance(value, int) or not -num_values <= sign * value < num_values:
            raise CompileError(
                f"{what}: {name} has {num_values} values; expected one of {name}[0] to "
                f"{name}[{num_values - 1}]"
            )


NO_PLACES = "functions compute one component"
"""Why a vector has no places."""


def component_of(node: ast.Subscript) -> str:
    """Return what to write instead of a place of a vector."""
    vector, place = ast.unparse(node.value), ast.unparse(node.slice)
    return (
        f"write np.sum({vector} * (gs.component == {place})) for component {place} of "
        f"{vector}"
    )


def _first(function: Lowered) -> str:
    return function.reductions[0].operation


def _check_reductions(spec: ProgramSpec, function: Lowered, vectors: Sequence[str]) -> None:
    for made in function.reductions:
        if not _returned(spec, made.of, vectors)[0]:
            raise CompileError(
                f"{made.of.where}: np.{made.operation} of a program reduces a vector to a "
                "number, and this is a number already"
            )


def _returned(
    spec: ProgramSpec, function: Lowered, vectors: Sequence[str]
) -> tuple[bool, ...]:
    """Return of each value that a function returns whether it is a vector."""
    known = {i.argument for i in function.inputs if is_vector(spec, i)} | set(vectors)
    while True:  # what is made of vectors is one
        more = set(_made_of(function.tree.body, known)) - known
        if not more:
            break
        known |= more
    returns = [node for node in ast.walk(function.tree) if isinstance(node, ast.Return)]
    parts = [_parts(node.value) for node in returns]
    most = max((len(values) for values in parts), default=1)
    if _decides(function.tree.body, known):
        return (True,) * most
    return tuple(
        any(place < len(p) and _reads(p[place], known) for p in parts)
        for place in range(most)
    )


def _parts(value: ast.expr | None) -> list[ast.expr]:
    if value is None:
        return []
    return value.elts if isinstance(value, ast.Tuple) else [value]


def _made_of(body: Sequence[ast.stmt], known: set[str]) -> Iterator[str]:
    """Yield the variables that a vector is assigned to, or where one decides."""
    for node in body:
        inner = [*getattr(node, "body", ()), *getattr(node, "orelse", ())]
        if inner and _is_asked(node, known):
            yield from _stored(node)
        elif inner:
            yield from _made_of(inner, known)
        elif _reads(node, known):
            yield from _stored(node)


def _stored(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            yield inner.id


def _decides(body: Sequence[ast.stmt], known: set[str]) -> bool:
    """Return whether a vector decides which ``return`` is reached."""
    for node in ast.walk(ast.Module(list(body), [])):
        has_return = any(isinstance(inner, ast.Return) for inner in ast.walk(node))
        is_choice = isinstance(node, ast.If | ast.For | ast.While)
        if is_choice and has_return and _is_asked(node, known):
            return True
    return False


def _is_asked(node: ast.AST, known: set[str]) -> bool:
    test = getattr(node, "test", None) or getattr(node, "iter", None)
    return test is not None and _reads(test, known)


def _reads(node: ast.AST, known: set[str]) -> bool:
    return any(isinstance(n, ast.Name) and n.id in known for n in ast.walk(node))
