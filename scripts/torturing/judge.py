"""What an outcome is worth: a refusal in one line, the right answer, or a fault of ours."""

import hashlib
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from torturing.processes import Outcome

FAULTS: Final = (
    "lost",
    "crashes",
    "tracebacks",
    "silently_wrong",
    "hangs",
    "unclear",
    "litter",
)
_TIMES: Final = (
    "seconds",
    "bytes",
    "overlap",
    "alpha",
    "compute",
    "seconds_per_epoch",
    "swaps",
    "edges_per_second",
    "run",
    "output",
    "path",
    "supersteps",
)
"""Ends of the names of figures that no two runs share."""


@dataclass
class Verdict:
    """What a case found.

    Attributes:
        counts: What happened, by name.
        faults: Kind and description of each fault.
    """

    counts: dict[str, int] = field(default_factory=dict)
    faults: list[tuple[str, str]] = field(default_factory=list)

    def count(self, name: str, number: int = 1) -> None:
        """Count something."""
        self.counts[name] = self.counts.get(name, 0) + number

    def fault(self, kind: str, what: str) -> None:
        """Note a fault of ours."""
        self.count(kind)
        self.faults.append((kind, " ".join(what.split())[:1500]))


class FaultError(Exception):
    """Ends a case whose commands did what they may not do.

    Attributes:
        kind: One of :data:`FAULTS`.
    """

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(what)
        self.kind = kind


def ending(outcome: Outcome) -> str | None:
    """Return what is wrong with how a command ended, or None.

    It has to end by itself with 0, or with 1 or 2 and one line that says ``error:``.
    """
    if outcome.is_late:
        return "hangs"
    if outcome.code < 0:
        return "crashes"
    if "Traceback (most recent call last)" in outcome.err:
        return "tracebacks"
    if outcome.code == 0:
        return None
    lines = [line for line in outcome.err.splitlines() if line.startswith("error: ")]
    is_report = outcome.code == 1 and outcome.arguments[0] == "verify"
    if outcome.code not in (1, 2) or (len(lines) != 1 and not is_report):
        return "unclear"
    return None


def judge(verdict: Verdict, outcome: Outcome, answer: Any, wanted: Any, what: str) -> None:
    """Judge a command on something damaged: refused, or answered as if it were whole.

    Args:
        verdict: Receives what was found.
        outcome: How it ended.
        answer: What it answered, where it ended with 0.
        wanted: The answer to the whole thing.
        what: What was done before, for people.
    """
    verdict.count("commands")
    kind = ending(outcome)
    said = f"{what}; graphsys {' '.join(outcome.arguments)}: exit {outcome.code}"
    if kind is not None:
        verdict.fault(kind, f"{said}: {outcome.err[-900:]}")
    elif outcome.code:
        verdict.count("refused")
    elif answer == wanted:
        verdict.count("right")
    else:
        verdict.fault(
            "silently_wrong", f"{said}, answers {answer!s:.300}, not {wanted!s:.300}"
        )


def facts(text: str) -> Any:
    """Return what a command printed as JSON, without times and sizes of memory."""
    try:
        return _kept(json.loads(text))
    except ValueError:
        return text


def _kept(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _kept(v) for k, v in value.items() if not k.endswith(_TIMES)}
    if isinstance(value, list):
        return [_kept(item) for item in value]
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.9g}")
    return value


def digest(path: Path) -> Any:
    """Return what an output file or folder holds: equal content gives equal answers."""
    if path.is_dir():
        return tree(path)
    if path.suffix == ".parquet":
        import pyarrow.parquet

        table = pyarrow.parquet.read_table(path)
        columns = {name: _kept(table[name].to_pylist()) for name in table.column_names}
        return hashlib.sha256(repr(sorted(columns.items())).encode()).hexdigest()
    return hashlib.sha256(path.read_bytes()).hexdigest()


def tree(folder: Path) -> dict[str, str]:
    """Return the kinds and hashes of everything below a folder, by relative path."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"link {path.readlink()}"
        elif path.is_dir():
            found[name] = "folder"
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            found[name] = "other"
    return found
