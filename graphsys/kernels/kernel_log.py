"""Who is told that a kernel is compiled."""

from collections.abc import Callable

_listener: Callable[[], None] | None = None


def tell_when_compiling(listener: Callable[[], None] | None) -> None:
    """Have a function called before each kernel that is compiled, because no cache has it.

    Args:
        listener: The function; None for nobody.
    """
    global _listener
    _listener = listener


def compiles_kernel() -> None:
    """Tell the listener that a kernel is about to be compiled."""
    if _listener is not None:
        _listener()
