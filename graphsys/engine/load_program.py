"""A user's vertex program from a file: ``my_program.py:MyProgram``."""

import hashlib
import importlib.util
import sys
from pathlib import Path

from graphsys.core.errors import (
    MODULE_PREFIX,
    CompileError,
    ConfigError,
    cut_list,
    told_with_place,
    user_place,
)
from graphsys.engine.program import VertexProgram


def load_program(place: str) -> type[VertexProgram]:
    """Run a Python file and return a program's class.

    Args:
        place: ``file.py:Class``; the class may be left out where there is only one.

    Raises:
        ConfigError: there is no such file or class.
        CompileError: the file has an error; the message has its line.
    """
    name, _, wanted = place.partition(".py:")
    path = Path(name + ".py" if wanted else place.removesuffix(":"))
    if not path.is_file():
        raise ConfigError(f"{path}: there is no such file")
    module_name = MODULE_PREFIX + hashlib.sha256(str(path.resolve()).encode()).hexdigest()
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as err:
        raise CompileError(f"{path}:{err.lineno}: {err.msg}") from err
    except Exception as err:
        place = user_place(err) or str(path)
        raise CompileError(told_with_place(err, place)) from err
    own = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, VertexProgram)
        and value.__module__ == module_name
    }
    if not wanted and len(own) == 1:
        return next(iter(own.values()))
    if wanted not in own:
        found = cut_list(sorted(own)) or "none"
        problem = f"has no class {wanted!r}" if wanted else "needs a class: file.py:Class"
        raise ConfigError(f"{path} {problem}; its vertex programs are: {found}")
    return own[wanted]
