"""Functions that specs name: kernels of ours by their names, others' compiled by numba."""

import functools
import importlib
from collections.abc import Callable
from typing import Any

from graphsys.core.errors import ConfigError

Function = Callable[..., Any]


def kernel_at(name: str) -> Function:
    """Import a kernel of ours by ``module:name``, the module within the kernels' folder."""
    module, _, found = name.partition(":")
    folder = importlib.import_module(f"graphsys.kernels.cpu.embedding.{module}")
    kernel: Function = getattr(folder, found)
    return kernel


def address_in(owner: str, role: str, function: Function, call: Any) -> int:
    """Compile a function of another package for what calls it; return its address.

    Args:
        owner: What brings it, for messages: ``comparator 'l1'``.
        role: What it is there.
        function: In Python, which numba compiles, or compiled by it.
        call: What calls it, of ``kernels/cpu/embedding/calls.py``.

    Raises:
        ConfigError: It does not compile for these arguments.
    """
    from numba.core.errors import NumbaError

    from graphsys.kernels.pointers import address_of

    try:
        return address_of(_compiled(function), call)
    except (NumbaError, TypeError) as err:
        wanted = call.signature
        text = " ".join(line.strip() for line in str(err).splitlines() if line.strip())
        raise ConfigError(
            f"{owner}: its function {role} does not compile for {wanted}: {text[:300]}"
        ) from err


@functools.cache
def _compiled(function: Function) -> Function:
    from graphsys.kernels.jit import jit

    return function if hasattr(function, "get_compile_result") else jit(function)
