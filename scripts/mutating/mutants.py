"""Small changes of a module's syntax tree, each of which some test should notice."""

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

_COMPARISONS: Final[dict[type, type]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: Final[dict[type, type]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
_NAMES: Final = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "argmin": "argmax",
    "argmax": "argmin",
    "any": "all",
    "all": "any",
    "floor": "ceil",
    "ceil": "floor",
    "exp": "log1p",
    "log1p": "exp",
}
_SKIPPED: Final = (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Assert)


@dataclass(frozen=True)
class Mutant:
    """One change.

    Attributes:
        index: Its number among all of the file, in the order of the tree.
        line: Where.
        name: Function, or class and method, that it is in; empty at the module's level.
        before: The expression or statement that is changed.
        after: What stands there instead.
        place: Which one of those alike in the function, from 1.
    """

    index: int
    line: int
    name: str
    before: str
    after: str
    place: int = 1

    @property
    def key(self) -> str:
        """What names it when lines have moved."""
        again = f" #{self.place}" if self.place > 1 else ""
        return f"{self.name}: {self.before} -> {self.after}{again}"


def mutants_of(source: str) -> list[Mutant]:
    """Return all mutants of a module, in the order of its tree.

    Examples:
        >>> [it.key for it in mutants_of("def f(a): return a < 1")]
        ['f: a < 1 -> a <= 1', 'f: 1 -> 2']
    """
    found: list[Mutant] = []
    seen: Counter[str] = Counter()
    for index, (line, name, node, changed) in enumerate(_changes(ast.parse(source))):
        before, after = ast.unparse(node), ast.unparse(changed)
        mutant = Mutant(index, line, name, _short(before), _short(after))
        seen[mutant.key] += 1
        found.append(replace(mutant, place=seen[mutant.key]))
    return found


def mutated(source: str, index: int) -> ast.Module:
    """Return a module's tree with one mutant in it."""
    tree = ast.parse(source)
    for number, (_, _, node, changed) in enumerate(_changes(tree)):
        if number == index:
            return ast.fix_missing_locations(_Replace(node, changed).visit(tree))
    raise ValueError(f"the module has no mutant {index}")


class _Replace(ast.NodeTransformer):
    def __init__(self, node: ast.AST, changed: ast.AST) -> None:
        self._node, self._changed = node, changed

    def visit(self, node: ast.AST) -> Any:
        if node is self._node:
            return ast.copy_location(self._changed, node)
        return self.generic_visit(node)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 90 else line[:87] + "..."


def _changes(tree: ast.Module) -> Iterator[tuple[int, str, ast.AST, ast.AST]]:
    """Yield line, name, node and what replaces it, for every mutant."""
    yield from _walk(tree, "")


def _walk(node: ast.AST, name: str) -> Iterator[tuple[int, str, ast.AST, ast.AST]]:
    if isinstance(node, _SKIPPED) or _is_for_types(node):
        return
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        name = f"{name}.{node.name}" if name else node.name
    for changed in _variants(node):
        yield node.lineno, name, node, changed
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_docstring(node, child):
                yield from _walk(child, name)


def _is_docstring(parent: ast.AST, node: ast.AST) -> bool:
    return (
        isinstance(parent, ast.Module | ast.FunctionDef | ast.ClassDef)
        and isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
    )


def _is_for_types(node: ast.AST) -> bool:
    """Tell whether a statement is for a type checker alone."""
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    if isinstance(node, ast.Assign):
        return "npt." in ast.unparse(node.value) or "Callable[" in ast.unparse(node.value)
    return False


def _variants(node: ast.AST) -> Iterator[Any]:
    """Yield what could stand in a node's place."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
        yield _with(node, ops=[_COMPARISONS[type(node.ops[0])](), *node.ops[1:]])
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _ARITHMETIC:
        if not _is_text(node):
            yield _with(node, op=_ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield copy.copy(node.operand)
    elif isinstance(node, ast.Constant) and type(node.value) in (bool, int, float):
        value: Any = node.value
        yield _with(node, value=not value if isinstance(value, bool) else value + 1)
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        if isinstance(node.test, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
            yield _with(node, test=ast.UnaryOp(ast.Not(), copy.copy(node.test)))
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.Pass()
    elif isinstance(node, ast.Break | ast.Continue):
        yield ast.Continue() if isinstance(node, ast.Break) else ast.Break()
    elif isinstance(node, ast.Name) and node.id in _NAMES:
        yield _with(node, id=_NAMES[node.id])
    elif isinstance(node, ast.Attribute) and node.attr in _NAMES:
        yield _with(node, attr=_NAMES[node.attr])


def _is_text(node: ast.BinOp | ast.AugAssign) -> bool:
    """Tell whether text is put together, or paths."""
    sides = [node.value] if isinstance(node, ast.AugAssign) else [node.left, node.right]
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        or (isinstance(side, ast.Name) and side.id.endswith(("NAME", "name")))
        for side in sides
    )


def _with(node: Any, **changes: Any) -> Any:
    fresh = copy.copy(node)
    for name, value in changes.items():
        setattr(fresh, name, value)
    return fresh
