"""What a function reads of whole vectors: sums, extremes and their places.

A function of a program with vector states computes one component. ``np.sum(node.x)`` needs
all of them, so it is taken out of the function: what it sums becomes a function of its own,
on one component, and the sum an input. Local variables in it are written out.
"""

import ast
import copy
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from graphsys.core.errors import CompileError
from graphsys.engine.codegen.lowered import Input, Lowered, Reduction, Where, definition

if TYPE_CHECKING:
    from collections.abc import Set

_OPERATIONS = ("sum", "mean", "max", "min", "argmax", "argmin")


class Reader(Protocol):
    """What a reduction needs to know of the function around it."""

    inputs: set[Input]
    assigned: set[str]
    helpers: dict[str, str]
    imports: set[str]

    def refuse(self, node: ast.AST, what: str, do: str = "") -> CompileError:
        """Return the refusal of a construct."""


def reduction_of(call: ast.Call, target: Any) -> str:
    """Return which reduction a call is; empty for any other function.

    Args:
        call: The call, whose arguments are lowered.
        target: The function called; None for ``min``, ``max`` and other builtins.
    """
    name = getattr(call.func, "id", "") if target is None else ""
    if target is np.dot and len(call.args) == 2:
        return "sum"
    if len(call.args) != 1:
        return ""
    if name in ("min", "max"):
        return name
    return next((n for n in _OPERATIONS if getattr(np, n) is target), "")


class Reducer:
    """Takes the reductions out of one function.

    Args:
        name: The function's name once lowered.
        values: Arguments that stay as the user named them.
        where: Where its source stands.

    Attributes:
        made: The reductions so far.
    """

    def __init__(self, name: str, values: tuple[str, ...], where: Where) -> None:
        self.made: list[Reduction] = []
        self._name = name
        self._values = values
        self._where = where
        self._locals: dict[str, ast.expr] = {}

    def note(self, statement: ast.stmt, once: "Set[str]") -> None:
        """Remember what a local variable stands for, if it is one thing everywhere.

        Args:
            statement: A lowered statement of the function itself, not of an ``if`` or loop.
            once: Variables that are assigned once.
        """
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in once:
                reads = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
                if name not in self._values and name not in reads:
                    self._locals[name] = value

    def reduced(self, call: ast.Call, operation: str, reader: Reader) -> Input:
        """Return the input that stands for a reduction of lowered arguments.

        Raises:
            CompileError: it is of a variable that changes.
        """
        of: ast.expr = copy.deepcopy(call.args[0])
        if len(call.args) == 2:
            of = ast.BinOp(of, ast.Mult(), copy.deepcopy(call.args[1]))
        of = _Written(self._locals).visit(of)
        names = {n.id for n in ast.walk(of) if isinstance(n, ast.Name)}
        changing = sorted(names & reader.assigned)
        if changing:
            raise reader.refuse(
                call,
                f"{ast.unparse(call)} reads {changing[0]!r}, which is assigned several "
                "times, in an if or in a loop",
                f"assign {changing[0]} once, before, as in {changing[0]} = a if b else c",
            )
        number = len(self.made)
        result = Input("reduced", f"{self._name}{number}")
        of_inputs = tuple(sorted(i for i in reader.inputs if i.argument in names))
        # a message is the first argument in all calls, whether it is read or not
        arguments = [*self._values, *(given.argument for given in of_inputs)]
        name = f"{self._name}reduced_{number}"
        tree = definition(name, arguments, [ast.Return(value=of)])
        lowered = Lowered(
            name=name,
            source=ast.unparse(ast.fix_missing_locations(tree)),
            values=self._values,
            inputs=of_inputs,
            drops=False,
            helpers=reader.helpers,
            imports=reader.imports,
            where=self._where.at(call),
            place=self._where,
            tree=tree,
        )
        self.made.append(Reduction(operation, lowered, result))
        return result


class _Written(ast.NodeTransformer):
    """Writes out local variables."""

    def __init__(self, known: dict[str, ast.expr]) -> None:
        self._known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._known:
            return node
        return self.visit(copy.deepcopy(self._known[node.id]))  # type: ignore[no-any-return]
