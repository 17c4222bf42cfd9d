"""Torch's operators one by one, for whoever asks: kind, time, bytes and FLOP."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from graphsys.core.events import is_asked

OPERATORS = "operators"
"""The observation that a recorder asks for to have operators watched."""


def watch_operators() -> AbstractContextManager[Any]:
    """Return a block in which every operator is emitted; one ``if`` where nobody asks."""
    if not is_asked(OPERATORS):
        return nullcontext()
    from graphsys.core.torch_operators import OperatorWatch

    watch: AbstractContextManager[Any] = OperatorWatch()  # type: ignore[no-untyped-call]
    return watch
