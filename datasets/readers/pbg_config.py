"""PyTorch-BigGraph's config files as dictionaries, read without running them.

A config is a Python file whose ``get_torchbiggraph_config`` returns a dictionary, or JSON
(every checkpoint has its config in ``config.json``). Of Python only what such files are
made of is understood: literals, ``dict(...)``, names assigned before, sums and products,
f-strings, assignments to items, ``update``. Nothing of the file is executed.
"""

import ast
import json
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from graphsys.core.compiling import parse
from graphsys.core.errors import ConfigError

FUNCTION: Final = "get_torchbiggraph_config"
_MOST: Final = 1 << 63
_LONGEST: Final = 1 << 20  # of a text or list: a file of doublings ends here
_SUMS: Final[dict[type, Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


def is_pbg_config(path: str | Path) -> bool:
    """Return whether a file is a config of PyTorch-BigGraph: by its suffix, or content."""
    path = Path(path)
    if path.suffix in (".py", ".json"):
        return True
    if path.suffix == ".toml":
        return False
    try:
        with path.open("rb") as stream:
            head = stream.read(1 << 16)
    except OSError:
        return False
    return head.lstrip().startswith(b"{") or f"def {FUNCTION}".encode() in head


def read_pbg_mapping(path: str | Path) -> dict[str, Any]:
    """Read the dictionary of a config file.

    Raises:
        ConfigError: The file is missing, or is more than a literal; the message names the
            line.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".json" or text.lstrip().startswith("{"):
            found = json.loads(text)
        else:
            found = _Reader(path.name).read(parse(text))
    except FileNotFoundError as err:
        raise ConfigError(f"config file {str(path)!r} does not exist") from err
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError) as err:
        if isinstance(err, ConfigError):
            raise
        what = " ".join(str(err).split())
        raise ConfigError(f"{path}: not a readable config of PBG: {what}") from err
    if not isinstance(found, dict):
        raise ConfigError(
            f"{path.name}: the config is a {type(found).__name__}, expected a dictionary"
        )
    return found


class _Reader:
    """Evaluates the few kinds of statements and expressions that configs are made of."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.names: dict[str, Any] = {}

    def read(self, module: ast.Module) -> Any:
        function = None
        for statement in module.body:
            if isinstance(statement, ast.FunctionDef) and statement.name == FUNCTION:
                function = statement
            elif isinstance(statement, ast.Assign | ast.AnnAssign):
                try:
                    self._assign(statement)
                except ConfigError:  # fails where it is used
                    continue
        if function is None:
            raise ConfigError(
                f"{self.file}: there is no function {FUNCTION}; expected a config of "
                "PyTorch-BigGraph"
            )
        for statement in function.body:
            if isinstance(statement, ast.Return):
                return self._value(statement.value) if statement.value else None
            if isinstance(statement, ast.Assign | ast.AnnAssign):
                self._assign(statement)
            elif isinstance(statement, ast.Expr):
                self._call_or_text(statement.value)
            elif not isinstance(statement, ast.Pass):
                raise self._refused(statement)
        raise ConfigError(f"{self.file}: {FUNCTION} returns nothing")

    def _assign(self, statement: ast.Assign | ast.AnnAssign) -> None:
        if statement.value is None:
            return
        value = self._value(statement.value)
        targets = (
            statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        )
        for target in targets:
            if isinstance(target, ast.Name):
                self.names[target.id] = value
            elif isinstance(target, ast.Subscript):
                held, key = self._value(target.value), self._value(target.slice)
                try:
                    held[key] = value
                except (TypeError, IndexError) as err:
                    raise self._refused(target) from err
            else:
                raise self._refused(target)

    def _call_or_text(self, node: ast.expr) -> None:
        """Take a docstring, or ``config.update(...)``; else refuse."""
        if isinstance(node, ast.Constant):
            return
        is_update = (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "update"
        )
        if not is_update:
            raise self._refused(node)
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Attribute)
        held = self._value(node.func.value)
        if not isinstance(held, dict):
            raise self._refused(node)
        held.update(self._dictionary(node))

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.List | ast.Tuple):
            return [self._value(item) for item in node.elts]
        if isinstance(node, ast.Name):
            if node.id not in self.names:
                raise self._refused(node)
            return self.names[node.id]
        if isinstance(node, ast.JoinedStr):
            text = "".join(self._text(part) for part in node.values)
            if len(text) >= _LONGEST:
                raise self._refused(node)
            return text
        if isinstance(node, ast.UnaryOp | ast.BinOp):
            return self._sum(node)
        if isinstance(node, ast.Subscript):
            return self._item(node)
        if isinstance(node, ast.Dict) or (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "dict"
        ):
            return self._dictionary(node)
        raise self._refused(node)

    def _item(self, node: ast.Subscript) -> Any:
        held, key = self._value(node.value), self._value(node.slice)
        try:
            return held[key]
        except (TypeError, LookupError) as err:
            raise self._refused(node) from err

    def _dictionary(self, node: ast.Dict | ast.Call) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        if isinstance(node, ast.Dict):
            pairs: list[tuple[Any, ast.expr]] = [
                (None if key is None else self._value(key), value)
                for key, value in zip(node.keys, node.values, strict=True)
            ]
        else:
            pairs = [(None, item) for item in node.args]
            pairs += [(word.arg, word.value) for word in node.keywords]
        for key, value in pairs:
            found = self._value(value)
            if key is not None and isinstance(key, str | int | float):
                result[key] = found
            elif key is None and isinstance(found, dict):  # **other, dict(other)
                result.update(found)
            else:
                raise self._refused(node)
        return result

    def _sum(self, node: ast.UnaryOp | ast.BinOp) -> Any:
        if isinstance(node, ast.UnaryOp):
            value = self._value(node.operand)
            if isinstance(node.op, ast.Not):
                return not value
            if isinstance(node.op, ast.USub) and isinstance(value, int | float):
                return -value
            raise self._refused(node)
        left, right = self._value(node.left), self._value(node.right)
        are_numbers = isinstance(left, int | float) and isinstance(right, int | float)
        is_joined = isinstance(node.op, ast.Add) and (
            (isinstance(left, str) and isinstance(right, str))
            or (isinstance(left, list) and isinstance(right, list))
        )
        if type(node.op) not in _SUMS or not (are_numbers or is_joined):
            raise self._refused(node)
        try:
            value = _SUMS[type(node.op)](left, right)
        except (ZeroDivisionError, OverflowError) as err:
            raise self._refused(node) from err
        size, most = (abs(value), _MOST) if are_numbers else (len(value), _LONGEST)
        if size >= most:
            raise self._refused(node)
        return value

    def _text(self, node: ast.expr) -> str:
        if isinstance(node, ast.FormattedValue):
            if node.format_spec is not None or node.conversion != -1:
                raise self._refused(node)
            return str(self._value(node.value))
        return str(self._value(node))

    def _refused(self, node: ast.stmt | ast.expr) -> ConfigError:
        text = " ".join(ast.unparse(node).split())
        short = text if len(text) <= 60 else text[:57] + "..."
        return ConfigError(
            f"{self.file}:{node.lineno}: `{short}` is more than a plain value; configs of "
            "PBG are read, not run: write the value itself"
        )
