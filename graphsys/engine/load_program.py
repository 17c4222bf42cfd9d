"""A user's vertex program from a file: ``my_program.py:MyProgram``."""

from typing import Any, cast

from graphsys.core.registry import load_from_file
from graphsys.engine.program import VertexProgram


def load_program(place: str) -> type[VertexProgram]:
    """Run a Python file and return a program's class.

    Args:
        place: ``file.py:Class``; the class may be left out where there is only one.

    Raises:
        ConfigError: there is no such file or class.
        CompileError: the file has an error; the message has its line.
    """
    found = load_from_file(place, _is_program, kinds="vertex programs")
    return cast("type[VertexProgram]", found)


def _is_program(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, VertexProgram)
