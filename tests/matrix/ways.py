"""The ways to run on a store: implementations, places of rows and states, threads."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, get_args
from unittest.mock import patch

from graphsys.core.errors import BudgetError, GraphsysError
from graphsys.engine.algorithms import ALGORITHMS
from graphsys.engine.memory_plan import Mode
from graphsys.engine.result import Result
from tests.matrix.stores import LAYOUTS

MODES: Final[tuple[Mode, ...]] = get_args(Mode)
PLACES: Final = [
    *((layout, 1 + place % 2) for place, layout in enumerate(LAYOUTS)),
    ("appended and deleted", 2),
]
"""Every layout, with one thread or with two; that of the most parts with either."""
IMPLEMENTATIONS: Final = ("native", "program")


@contextmanager
def forced(mode: Mode) -> Iterator[None]:
    """Have runs take a mode that they have; small pieces, so that there are several."""

    def fitting(needs: Any, budget: Any) -> Any:
        return mode if mode in needs else None

    with (
        patch("graphsys.engine.execute.program_memory.fitting", fitting),
        patch("graphsys.engine.native_plan.fitting", fitting),
        patch("graphsys.engine.execute.stream.PIECE_BYTES", 256),
    ):
        yield


def run_in(
    mode: Mode, name: str, graph: Any, implementation: str, threads: int, **given: Any
) -> Result | None:
    """Run an algorithm in a mode; return None where its implementation has no such mode."""
    entry = ALGORITHMS[name]
    options = {"implementation": implementation, "num_threads": threads, **given}
    with forced(mode):
        try:
            work = entry.prepare(graph, **options)
        except BudgetError:
            return None
        assert work.choice.mode == mode
        return work.run()


def refusal_of(name: str, graph: Any, **options: Any) -> str:
    """Return why an algorithm is not run so; empty where it is."""
    try:
        ALGORITHMS[name](graph, **options)
    except GraphsysError as err:
        return str(err)
    return ""
