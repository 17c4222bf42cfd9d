"""The steps of scripts/gpu_check, in their order, and what a step is given."""

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a step is given.

    Attributes:
        deadline: Nothing is begun after this time (monotonic seconds).
        is_simulated: Whether the simulator and the interpreter stand in for a GPU.
        tell: Receives each row, at once.
    """

    deadline: float
    is_simulated: bool
    tell: Callable[[Row], None]

    def leave_out(self, cases: list[str]) -> None:
        """Say what did not fit."""
        for case in cases:
            self.tell({"case": case, "left_out": "no time was left"})

    def has_triton(self) -> bool:
        """Whether Triton is here; says so where it is not."""
        found = importlib.util.find_spec("triton") is not None
        if not found:
            self.tell({"case": "triton", "left_out": "Triton is not installed"})
        return found


@dataclass(frozen=True, kw_only=True)
class Step:
    """A part of the check.

    Attributes:
        name: What ``--only`` and ``--skip`` call it.
        function: ``module:function`` in this package; takes a :class:`Context`.
        seconds: What it may take on a card.
        about: What it tells.
        rows: Function of the same module that returns the names of the rows that a card is
            to give, see :func:`name_of`.
    """

    name: str
    function: str
    seconds: float
    about: str
    rows: str = "planned"

    def planned(self) -> list[str]:
        """Return the names of the rows that a card is to give."""
        module = importlib.import_module(f"gpu_checking.{self.function.partition(':')[0]}")
        return list(getattr(module, self.rows)())


def name_of(row: Mapping[str, Any]) -> str:
    """Return what tells a row from the others of its step."""
    device = row.get("device")
    parts = (
        row.get("case"),
        device if device in ("cpu", "cuda") else "",
        row.get("strategy"),
    )
    return ", ".join(str(part) for part in parts if part)


STEPS = (
    Step(
        name="smoke",
        function="smoke:check",
        seconds=25,
        about="versions; libnvvm, a grid that waits, a Triton kernel",
    ),
    Step(
        name="correctness",
        function="correctness:check",
        seconds=110,
        about="the tests marked gpu",
    ),
    Step(
        name="anchors",
        function="anchors:measure",
        seconds=15,
        about="bandwidth of copies, rate of products",
    ),
    Step(
        name="engine",
        function="engine:measure",
        seconds=115,
        about="six programs by strategy beside the CPU",
    ),
    Step(
        name="embedding",
        function="embedding:measure",
        seconds=60,
        about="edges a second, one and four partitions, float32 and bfloat16",
    ),
    Step(
        name="gnn",
        function="gnn:measure",
        seconds=50,
        about="sums and attention beside torch and PyG, GraphSAGE beside the CPU",
    ),
    Step(
        name="mining",
        function="mining:measure",
        seconds=25,
        about="cliques, 4-cycles and motifs beside the CPU",
    ),
    Step(
        name="sanitizer",
        function="sanitizer:check",
        seconds=30,
        about="memcheck, racecheck, synccheck, initcheck of each family",
    ),
    Step(
        name="counters",
        function="predicted:count",
        rows="planned_counters",
        seconds=35,
        about="ncu beside the model",
    ),
    Step(
        name="clocks",
        function="predicted:measure",
        rows="planned_clocks",
        seconds=55,
        about="clocks in kernels beside the model",
    ),
)
"""Together 520 s, of the nine minutes that a first call has; the first card took 331 s."""
