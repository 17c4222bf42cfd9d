"""From a program's Python functions to functions on scalars.

``src.distance`` becomes an argument ``src__distance``, ``self.damping`` an argument
``param__damping``, and so on: what is left is arithmetic that numba compiles for the CPU
and numba-cuda for the GPU, and a list of what each function reads, so that kernels fetch
nothing else. What cannot be compiled is refused with file, line and construct.
"""

import ast
import builtins
import math
import operator
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphsys.core.compiling import parse
from graphsys.core.errors import CompileError, cut_list
from graphsys.engine.codegen.lowered import (
    COMPONENT,
    EDGE_COLUMNS,
    FORWARD,
    NODE_COLUMNS,
    RUN_VALUES,
    Input,
    Lowered,
    Where,
    definition,
    parse_function,
)
from graphsys.engine.codegen.reductions import Reducer, reduction_of
from graphsys.engine.codegen.spec import ProgramSpec
from graphsys.engine.codegen.vectors import NO_PLACES, component_of, is_vector
from graphsys.engine.program import component

_BUILTINS = ("min", "max", "abs", "int", "float", "bool", "range", "round", "len")
_STATEMENTS = (
    ast.Assign,
    ast.AugAssign,
    ast.AnnAssign,
    ast.Return,
    ast.If,
    ast.For,
    ast.While,
    ast.Expr,
    ast.Pass,
    ast.Break,
    ast.Continue,
)
_EXPRESSIONS = (
    ast.BoolOp,
    ast.BinOp,
    ast.UnaryOp,
    ast.IfExp,
    ast.Compare,
    ast.Call,
    ast.Constant,
    ast.Attribute,
    ast.Subscript,
    ast.Name,
    ast.Tuple,
    ast.expr_context,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
)


def lower(
    spec: ProgramSpec,
    function: Callable[..., Any],
    roles: tuple[str, ...],
    name: str,
    num_returned: int | None = None,
) -> Lowered:
    """Lower one function of a program.

    Args:
        spec: The program.
        function: The function; its first argument is ``self``.
        roles: What its further arguments are: ``src``, ``dst``, ``edge``, ``node``,
            ``before`` or ``value``; trailing ones may be left out by the user.
        name: Name of the lowered function.
        num_returned: How many values every ``return`` gives; None: any.

    Raises:
        CompileError: a construct that cannot be compiled, an undeclared name; the message
            has file, line and what to do.
    """
    tree, where = parse_function(function)
    given = [argument.arg for argument in tree.args.args]
    if given and given[0] == "self":
        given = given[1:]
    elif len(given) > len(roles):
        raise CompileError(f"{where.at(tree)}: {tree.name} must take self first")
    if len(given) > len(roles) or len(given) < 1:
        expected = ", ".join(("self", *roles))
        raise CompileError(
            f"{where.at(tree)}: {tree.name} takes ({expected}), got "
            f"({', '.join(('self', *given))})"
        )
    values = tuple(a for a, role in zip(given, roles, strict=False) if role == "value")
    rewriter = _Rewriter(
        spec,
        function,
        where,
        dict(zip(given, roles, strict=False)),
        num_returned,
        reducer=Reducer(name, values, where),
    )
    body = rewriter.body(tree)
    # Sorted, so that one program gives one text, which the cache of kernels is keyed by.
    inputs = tuple(sorted(rewriter.inputs))
    lowered = Lowered(
        name=name,
        source="",
        values=values,
        inputs=inputs,
        drops=rewriter.drops,
        helpers=rewriter.helpers,
        imports=rewriter.imports,
        where=where.at(tree),
        place=where,
        tree=tree,
        reductions=tuple(rewriter.reducer.made),
    )
    lowered.tree = definition(name, lowered.arguments, body)
    lowered.source = ast.unparse(ast.fix_missing_locations(lowered.tree))
    return lowered


@dataclass
class _Rewriter(ast.NodeTransformer):
    spec: ProgramSpec
    function: Callable[..., Any]
    where: Where
    roles: dict[str, str]
    num_returned: int | None
    reducer: Reducer
    inputs: set[Input] = field(default_factory=set)
    helpers: dict[str, str] = field(default_factory=dict)
    imports: set[str] = field(default_factory=set)
    drops: bool = False
    assigned: set[str] = field(default_factory=set)

    # ---- the whole

    def body(self, tree: ast.FunctionDef) -> list[ast.stmt]:
        statements = tree.body
        if isinstance(statements[0], ast.Expr) and isinstance(
            statements[0].value, ast.Constant
        ):
            statements = statements[1:]  # the docstring
        names = (n for s in statements for n in ast.walk(s) if isinstance(n, ast.Name))
        stores = [n.id for n in names if isinstance(n.ctx, ast.Store)]
        once = {name for name in stores if stores.count(name) == 1}
        self.assigned = set(stores)
        if not statements:
            raise self.refuse(tree, "an empty function")
        done: list[ast.stmt] = []
        for statement in statements:
            done.append(self.visit(statement))
            self.reducer.note(done[-1], once)
        return done

    def refuse(self, node: ast.AST, what: str, do: str = "") -> CompileError:
        hint = f"; {do}" if do else ""
        name = getattr(self.function, "__qualname__", "function")
        return CompileError(f"{self.where.at(node)}: {name}: {what}{hint}")

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.stmt) and not isinstance(node, _STATEMENTS):
            raise self.refuse(node, f"{_words(node)} cannot be compiled")
        if isinstance(node, ast.expr) and not isinstance(node, _EXPRESSIONS):
            raise self.refuse(node, f"{_words(node)} cannot be compiled")
        return super().generic_visit(node)

    # ---- statements

    def visit_Return(self, node: ast.Return) -> ast.AST:
        value = node.value
        if isinstance(value, ast.IfExp) and (
            _is_none(value.body) or _is_none(value.orelse)
        ):
            body: list[ast.stmt] = [ast.copy_location(ast.Return(value.body), value)]
            rest: list[ast.stmt] = [ast.copy_location(ast.Return(value.orelse), value)]
            either = ast.copy_location(ast.If(value.test, body, rest), value)
            return self.visit(either)  # type: ignore[no-any-return]
        if value is None or _is_none(value):
            if "src" not in self.roles.values():
                raise self.refuse(node, "only message may return None (no message)")
            self.drops = True
            nothing = ast.Return(value=ast.Name(id="nothing", ctx=ast.Load()))
            return ast.copy_location(nothing, node)
        if self.num_returned is not None:
            count = len(value.elts) if isinstance(value, ast.Tuple) else 1
            if count != self.num_returned:
                raise self.refuse(
                    node,
                    f"returns {count} values, expected {self.num_returned}",
                    "one value per state or aggregator, in the order of their declaration",
                )
            if self.num_returned == 1 and isinstance(value, ast.Tuple):
                node.value = value.elts[0]
        return self.generic_visit(node)

    def visit_For(self, node: ast.For) -> ast.AST:
        call = node.iter
        is_range = isinstance(call, ast.Call) and getattr(call.func, "id", "") == "range"
        if not is_range or node.orelse:
            raise self.refuse(node, "for works over range(...) only, without else")
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        assign = ast.Assign(targets=[node.target], value=node.value)
        return self.visit(ast.copy_location(assign, node))  # type: ignore[no-any-return]

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if isinstance(node.value, ast.Constant):
            return ast.copy_location(ast.Pass(), node)
        return self.generic_visit(node)

    # ---- expressions

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, bool | int | float):
            return node
        raise self.refuse(node, f"the value {node.value!r} cannot be compiled")

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        written = ast.unparse(node)
        found = self.generic_visit(node)
        value = _integer_of(found)
        if value is not None and not -(2**63) <= value < 2**63:
            raise self.refuse(
                node,
                f"{ast.unparse(node)} is beyond the integers of 64 bits that programs have",
                "write it with a fraction, as 2.0**70",
            )
        is_whole = isinstance(node.op, ast.FloorDiv | ast.Mod)
        if is_whole and isinstance(found, ast.BinOp) and _integer_of(found.right) == 0:
            raise self.refuse(
                node,
                f"{written} divides by 0, which gives 0 for every value",
                "divide by another number",
            )
        return found

    def visit_Name(self, node: ast.Name) -> ast.AST:
        role = self.roles.get(node.id)
        if role == "value" or node.id in self.assigned:
            if role not in (None, "value"):
                raise self.refuse(node, f"{node.id!r} cannot be assigned to")
            return node
        if role is not None or node.id == "self":
            raise self.refuse(
                node, f"{node.id!r} alone means nothing", f"write {node.id}.name"
            )
        if node.id in _BUILTINS:
            return node
        return self.constant(node, self.global_value(node))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if not isinstance(node.ctx, ast.Load):
            raise self.refuse(
                node,
                f"{ast.unparse(node)} cannot be assigned to",
                "a program changes state by what update returns",
            )
        owner = node.value
        if isinstance(owner, ast.Call) and getattr(owner.func, "attr", "") == "at":
            return self.read_at(node, owner)
        if isinstance(owner, ast.Attribute) and owner.attr == "reverse":
            self.check_role(owner.value, "edge", node)
            return self.read(node, "reverse", node.attr, [*self.spec.edge_states, FORWARD])
        if isinstance(owner, ast.Name) and owner.id == "self":
            return self.read_self(node)
        role = self.roles.get(owner.id) if isinstance(owner, ast.Name) else None
        if role == "value":
            raise self.refuse(
                node,
                f"{ast.unparse(node)} does not exist: a message has values, no names",
                f"write {ast.unparse(owner)}, or {ast.unparse(owner)}[0] where a message "
                "has several values",
            )
        if role in ("src", "dst", "node", "before"):
            known = [*self.spec.states, *NODE_COLUMNS, *self.spec.node_columns]
            return self.read(node, role, node.attr, known)
        if role == "edge":
            known = [*EDGE_COLUMNS, FORWARD, *self.spec.edge_states]
            return self.read(node, "edge", node.attr, known)
        return self.constant(node, self.global_value(node))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            raise self.refuse(node, "calls take plain arguments only")
        function = node.func
        if ast.unparse(function) == "self.total":
            return self.read_total(node)
        self.refuse_method(node, function)
        node.args = [self.visit(argument) for argument in node.args]
        is_builtin = isinstance(function, ast.Name) and function.id in _BUILTINS
        target = None if is_builtin else self.global_value(function)
        operation = reduction_of(node, target)
        if operation and self.spec.num_components:
            return self.reduced(node, operation)
        if is_builtin:
            return node
        node.func = ast.Name(id=self.callee(function, target), ctx=ast.Load())
        return node

    def refuse_method(self, node: ast.Call, function: ast.AST) -> None:
        """Refuse a call of something that a node, an edge or the program has."""
        root = function
        while isinstance(root, ast.Attribute):
            root = root.value
        if root is function or not isinstance(root, ast.Name):
            return
        if root.id != "self" and root.id not in self.roles:
            return
        assert isinstance(function, ast.Attribute)
        owner, name = ast.unparse(function.value), function.attr
        if owner != root.id:
            remedy = f"write np.{name}({owner}), if NumPy has it"
        elif owner == "self":
            remedy = f"write def {name}(...) outside of the class, which may be called"
        elif name == "at":
            remedy = f"write {ast.unparse(node)}.name, the value of that node"
        else:
            remedy = "a program changes state by what update returns"
        raise self.refuse(node, f"{ast.unparse(function)} cannot be called", remedy)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        base = self.visit(node.value)
        if isinstance(base, ast.Constant):
            raise self.refuse(
                node, f"{ast.unparse(node.value)} is a number and has no places"
            )
        name = getattr(base, "id", "")
        given = next((it for it in self.inputs if it.argument == name), None)
        if given is not None and not is_vector(self.spec, given):
            of = ast.unparse(node.value)
            raise self.refuse(node, f"{of} is one number", f"write {of} alone")
        if self.spec.num_components and self.roles.get(name) != "value":
            what = f"{ast.unparse(node)} does not compile: {NO_PLACES}"
            raise self.refuse(node, what, component_of(node))
        node.value = base
        node.slice = self.visit(node.slice)
        return node

    def reduced(self, node: ast.Call, operation: str) -> ast.AST:
        """Have a whole vector reduced before the function, which reads what it gives."""
        found = self.reducer.reduced(node, operation, self)
        self.inputs.add(found)
        return ast.copy_location(ast.Name(id=found.argument, ctx=ast.Load()), node)

    # ---- what is read

    def check_role(self, node: ast.AST, role: str, at: ast.AST) -> None:
        if not isinstance(node, ast.Name) or self.roles.get(node.id) != role:
            raise self.refuse(at, f"{ast.unparse(at)} cannot be compiled")

    def read(self, node: ast.AST, kind: str, name: str, known: Iterable[str]) -> ast.AST:
        if name not in known:
            raise self.refuse(
                node,
                f"{ast.unparse(node)} is not declared",
                f"there are {cut_list(known, 12) or 'none'}",
            )
        found = Input(kind, name)
        self.inputs.add(found)
        return ast.Name(id=found.argument, ctx=ast.Load())

    def read_at(self, node: ast.Attribute, call: ast.Call) -> ast.AST:
        owner = call.func.value if isinstance(call.func, ast.Attribute) else call
        self.check_role(owner, "node", node)
        if len(call.args) != 1:
            raise self.refuse(node, "node.at(id) takes one node id")
        array = self.read(node, "at", node.attr, self.spec.states)
        if self.spec.states[node.attr].num_components:
            raise self.refuse(
                node,
                f"{ast.unparse(node)} is a vector; node.at reads numbers",
                "send it in message",
            )
        self.inputs.add(Input("at", "by_rank"))
        number = ast.Subscript(
            value=ast.Name(id="at__by_rank", ctx=ast.Load()),
            slice=self.visit(call.args[0]),
            ctx=ast.Load(),
        )
        return ast.Subscript(value=array, slice=number, ctx=ast.Load())  # type: ignore[arg-type]

    def read_self(self, node: ast.Attribute) -> ast.AST:
        if node.attr in RUN_VALUES:
            return self.read(node, "run", node.attr, RUN_VALUES)
        if node.attr in self.spec.parameters:
            return self.read(node, "param", node.attr, self.spec.parameters)
        value = getattr(self.spec.program, node.attr, None)
        if isinstance(value, bool | int | float | np.number):
            return self.constant(node, value)
        known = [*self.spec.parameters, *RUN_VALUES, "total(name)"]
        raise self.refuse(
            node,
            f"self.{node.attr} is not a parameter or number",
            f"there are {cut_list(known, 12)}; a parameter is declared in the class, as "
            f"{node.attr}: float = 1.0",
        )

    def read_total(self, node: ast.Call) -> ast.AST:
        match node.args:
            case [ast.Constant(value=str(name))]:
                return self.read(node, "total", name, self.spec.aggregators)
        raise self.refuse(node, 'self.total takes one name in quotes: self.total("x")')

    # ---- what lies outside of the function

    def global_value(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Name):
            code = getattr(self.function, "__code__", None)
            closure = getattr(self.function, "__closure__", None) or ()
            cells = dict(zip(code.co_freevars if code else (), closure, strict=False))
            if node.id in cells:
                return cells[node.id].cell_contents
            names = getattr(self.function, "__globals__", {})
            if node.id in names:
                return names[node.id]
            if hasattr(builtins, node.id):
                raise self.refuse(node, f"the builtin {node.id} cannot be compiled")
            raise self.refuse(node, f"the name {node.id!r} is not defined")
        if isinstance(node, ast.Attribute):
            owner = self.global_value(node.value)
            if not isinstance(owner, types.ModuleType) and not isinstance(owner, type):
                raise self.refuse(node, f"{ast.unparse(node)} cannot be compiled")
            if not hasattr(owner, node.attr):
                raise self.refuse(node, f"{ast.unparse(node)} does not exist")
            return getattr(owner, node.attr)
        raise self.refuse(node, f"{ast.unparse(node)} cannot be compiled")

    def constant(self, node: ast.AST, value: Any) -> ast.AST:
        if value is component:
            if not self.spec.num_components:
                raise self.refuse(
                    node,
                    "gs.component is the number of a vector's component, and there is none",
                    'declare a vector: x = gs.state("float32", shape=(16,))',
                )
            self.inputs.add(COMPONENT)
            return ast.Name(id=COMPONENT.argument, ctx=ast.Load())
        if isinstance(value, np.number | np.bool_):
            value = value.item()
        if not isinstance(value, bool | int | float):
            raise self.refuse(
                node,
                f"{ast.unparse(node)} is a {type(value).__name__}, not a number",
                "make it a parameter or compute it outside",
            )
        if isinstance(value, float) and not math.isfinite(value):
            self.imports.add("import math")
            text = "math.nan" if value != value else "math.inf"
            [written] = parse(f"-{text}" if value == -math.inf else text).body
            assert isinstance(written, ast.Expr)
            return written.value
        return ast.Constant(value=value)

    def callee(self, node: ast.AST, target: Any) -> str:
        """Return the name under which the generated module calls ``target``."""
        for module in (math, np):
            name = getattr(target, "__name__", "")
            if getattr(module, name, None) is target:
                self.imports.add(f"import {module.__name__}")
                return f"{module.__name__}.{name}"
        kernel = getattr(target, "graphsys_kernel", None)
        if kernel is not None:
            module_name, name = kernel
            self.imports.add(f"from {module_name} import {name}")
            return str(name)
        python = getattr(target, "py_func", target)
        if not isinstance(python, types.FunctionType):
            raise self.refuse(node, f"{ast.unparse(node)} cannot be called in a program")
        return self.helper(python)

    def helper(self, function: types.FunctionType) -> str:
        name = f"helper__{function.__name__}"
        if name not in self.helpers:
            tree, where = parse_function(function)
            arguments = [argument.arg for argument in tree.args.args]
            roles = dict.fromkeys(arguments, "value")
            self.helpers[name] = ""  # a recursive call finds its name
            inner = _Rewriter(
                self.spec,
                function,
                where,
                roles,
                None,
                Reducer(name, tuple(arguments), where),
                helpers=self.helpers,
            )
            body = inner.body(tree)
            if inner.inputs:
                raise self.refuse(tree, f"{function.__name__} reads the program's state")
            self.imports |= inner.imports
            tree = definition(name, arguments, body)
            del self.helpers[name]  # what it calls comes before it
            self.helpers[name] = ast.unparse(ast.fix_missing_locations(tree))
        return name


_INTEGERS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
}


def _integer_of(node: ast.AST) -> int | None:
    """Return what an expression of integers written out is in Python, without a limit."""
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            negated = _integer_of(inner)
            return None if negated is None else -negated
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _INTEGERS:
            one, other = _integer_of(left), _integer_of(right)
            if one is None or other is None:
                return None
            if isinstance(op, ast.Pow | ast.LShift):
                if other < 0:
                    return None
                other = min(other, 66 - other % 2)  # beyond 64 bits, of the same sign
            return _INTEGERS[type(op)](one, other)
    return None


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _words(node: ast.AST) -> str:
    """Name a construct as Python's users do: ``ListComp`` is "list comp"."""
    name = type(node).__name__
    return "".join(f" {c.lower()}" if c.isupper() else c for c in name).strip()
