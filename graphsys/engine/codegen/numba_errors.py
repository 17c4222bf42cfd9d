"""What numba says of a function, in one line and at the user's own."""

import re
from typing import Final

from graphsys.core.errors import CompileError
from graphsys.engine.codegen.lowered import Lowered

_COLORS: Final = re.compile(r"\x1b\[\d*m")
_LITERAL: Final = re.compile(r"Literal\[\w+\]\(([^)]*)\)")
_OPERATORS: Final = {"getitem": "x[k]", "and_": "&", "or_": "|", "xor": "^"}
_LONGEST: Final = 160
TAKEN: Final = (
    "functions of programs take and give numbers: arithmetic, min, max, abs, int, float, "
    "math.* and NumPy's functions of single numbers"
)


def refused(function: Lowered, text: str, err: Exception) -> CompileError:
    """Return the error of a function that numba cannot type.

    Args:
        function: The function, lowered.
        text: What numba was given; it may hold more than the function.
        err: What numba raised; its ``loc`` is a line of the text.
    """
    number = getattr(getattr(err, "loc", None), "line", 0)
    lines = text.splitlines()
    written = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    places = function.user_lines()
    own = [
        places[k]
        for k, line in enumerate(function.source.splitlines(), 1)
        if line.strip() == written and k in places
    ]
    return CompileError(f"{own[0] if own else function.where}: {said(err)}; {TAKEN}")


def said(err: Exception) -> str:
    r"""Return what numba says in one line, without colors, literals' types and places.

    Examples:
        >>> said(TypeError("No implementation\n >>> len(Literal[int](3))\nThere are"))
        'numba cannot type len(3)'
    """
    text = _LITERAL.sub(r"\1", _COLORS.sub("", str(err)))
    calls = re.findall(r"^\s*>>> (\w+)(\(.*)$", text, re.MULTILINE)
    if calls:
        name, arguments = calls[0]
        shown = f"{_OPERATORS.get(name, name)} of " if name in _OPERATORS else name
        return f"numba cannot type {shown}{arguments.strip()[:_LONGEST]}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith("Failed in")] or ["nothing"]
    first = re.sub(r" from '[^']*'|, defined at .*", "", told[0])
    return f"numba cannot type it: {first[:_LONGEST]}".rstrip(".")
