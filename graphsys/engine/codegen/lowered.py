"""What lowering makes of a function, and how a function's source is read."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from graphsys.core.compiling import parse
from graphsys.core.errors import CompileError

NODE_COLUMNS = ("id", "out_degree", "in_degree", "degree")
EDGE_COLUMNS = ("weight", "time", "relation")
FORWARD = "forward"
"""``edge.forward``: whether a message travels as its edge points."""
RUN_VALUES = ("num_nodes", "num_edges", "superstep")


@dataclass(frozen=True, slots=True, order=True)
class Input:
    """One value that a lowered function reads.

    Attributes:
        kind: ``src``, ``dst``, ``node``, ``before``, ``at`` (an array of a state),
            ``edge``, ``reverse``, ``param``, ``total``, ``run``, ``vector`` (the number
            of the component) or ``reduced`` (what a reduction gave).
        name: The state, column, parameter ...
    """

    kind: str
    name: str

    @property
    def argument(self) -> str:
        """Its name in the lowered source."""
        return f"{self.kind}__{self.name}"


COMPONENT = Input("vector", "component")
"""The number of the component that a function computes."""


@dataclass(frozen=True, slots=True)
class Reduction:
    """A number made of all components of a vector, before a function computes any.

    Attributes:
        operation: ``sum``, ``mean``, ``max``, ``min``, ``argmax`` or ``argmin``.
        of: What gives a component of the vector.
        result: What the function reads.
    """

    operation: str
    of: "Lowered"
    result: Input


@dataclass(slots=True)
class Lowered:
    """A function on scalars; of vectors it computes one component.

    Attributes:
        name: Its name in the generated module.
        source: Its text, without decorator.
        values: Arguments that stay as the user named them (messages), first in order.
        inputs: What it reads besides, in the order of the arguments.
        drops: Whether it may return None: no message. Then the last argument is
            ``nothing``, which it returns instead.
        helpers: Functions that it calls, by name.
        imports: Import lines of its module.
        where: File and line, for messages.
        place: Where its source stands.
        tree: The lowered function definition.
        reductions: What it reads of whole vectors, in the order in which they are made.
    """

    name: str
    source: str
    values: tuple[str, ...]
    inputs: tuple[Input, ...]
    drops: bool
    helpers: dict[str, str]
    imports: set[str]
    where: str
    place: "Where"
    tree: ast.FunctionDef
    reductions: tuple[Reduction, ...] = ()

    @property
    def all_inputs(self) -> set[Input]:
        """What it reads, and what its reductions read."""
        inner = (made.of.all_inputs for made in self.reductions)
        found = set(self.inputs).union(*inner)
        return {given for given in found if given.kind != "reduced"}

    @property
    def arguments(self) -> list[str]:
        """Names of all arguments, in order."""
        names = [*self.values, *(given.argument for given in self.inputs)]
        return [*names, "nothing"] if self.drops else names

    def user_lines(self) -> dict[int, str]:
        """Return the user's file and line of every line of ``source``, from 1.

        The source was written from the tree, so both have the same statements in the same
        order; those of the tree know where they came from.
        """
        written = _statements(parse(self.source).body[0])
        return {
            own.lineno: self.place.at(origin)
            for own, origin in zip(written, _statements(self.tree), strict=True)
        }

    def reads(self, *kinds: str) -> list[str]:
        """Return the names read of some kinds, sorted."""
        return sorted({given.name for given in self.all_inputs if given.kind in kinds})


def _statements(tree: ast.stmt) -> Iterator[ast.stmt]:
    """Yield the statements inside one, in the order of the text."""
    for name in ("body", "orelse"):
        for inner in getattr(tree, name, ()):
            yield inner
            yield from _statements(inner)


@dataclass(slots=True)
class Where:
    """The file and first line of a function."""

    file: str
    first_line: int

    def at(self, node: Any) -> str:
        """Return file and line of a node of its syntax tree."""
        line = self.first_line + getattr(node, "lineno", 1) - 1
        return f"{self.file}:{line}"


def parse_function(function: Callable[..., Any]) -> tuple[ast.FunctionDef, Where]:
    """Return a function's syntax tree and place.

    Raises:
        CompileError: its source cannot be read, or it is no plain function.
    """
    function = getattr(function, "py_func", function)
    name = getattr(function, "__name__", repr(function))
    try:
        lines, first = inspect.getsourcelines(function)
        file = inspect.getsourcefile(function) or "?"
    except (OSError, TypeError) as err:
        raise CompileError(
            f"the source of {name} cannot be read ({err}); write the program in a file or "
            "a notebook cell"
        ) from err
    where = Where(file, first)
    try:
        parsed = parse(textwrap.dedent("".join(lines))).body[0]
    except SyntaxError:  # a lambda in the middle of a line
        parsed = None
    if not isinstance(parsed, ast.FunctionDef):
        raise CompileError(f"{where.at(None)}: {name} must be a function made with def")
    return parsed, where


def definition(
    name: str, arguments: Iterable[str], body: list[ast.stmt]
) -> ast.FunctionDef:
    """Return the syntax tree of a function of plain arguments."""
    return ast.FunctionDef(
        name=name,
        args=ast.arguments(
            posonlyargs=[],
            args=[ast.arg(arg=argument) for argument in arguments],
            kwonlyargs=[],
            kw_defaults=[],
            defaults=[],
        ),
        body=body,
        decorator_list=[],
    )
