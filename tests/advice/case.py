"""One message, what it advises, and how that is done."""

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
REMEDY = re.compile(
    r"(?<![\w-])(--[a-z][a-z-]+|iconv|pip install|ulimit|graphsys [a-z]+(?=[ `)]|$))"
)
"""What counts as a remedy in a message."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A message, and how what it advises is done.

    Attributes:
        files: Content of files by their names.
        uses: Graphs and runs that are made once, see ``conftest.py``.
        before: Commands before.
        command: What is refused, or warned of.
        told_in: Our file that has the message.
        advice: What the message says, a regular expression whose groups become ``{0}``,
            ``{1}`` of ``then``. Remedies in it are those that are followed.
        then: Commands that follow the advice, in the order in which they are given; those
            that begin with ``$`` are for the shell.
        expected: Of the JSON that the last command prints, where it is to be looked at.
        code: Exit code of what is refused; 0 where it is warned of.
        program: What the shell needs; without it the case is skipped.
        quiet: Whether the last command no longer says what is advised.
    """

    command: str
    told_in: str
    advice: str
    then: tuple[str, ...]
    files: dict[str, bytes | str] = field(default_factory=dict)
    uses: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    expected: Mapping[str, object] = field(default_factory=dict)
    code: int = 2
    program: str = "bash"
    quiet: bool = True

    @property
    def remedies(self) -> list[str]:
        """What is followed, as the list of all remedies names it."""
        return [it.strip() for it in REMEDY.findall(self.advice)]


def followed() -> set[tuple[str, str]]:
    """Return each file of ours with each remedy that a test of this folder follows."""
    found: set[tuple[str, str]] = set()
    for path in sorted(HERE.glob("test_*.py")):
        module = importlib.import_module(f"tests.advice.{path.stem}")
        cases = getattr(module, "CASES", {}).values()
        found |= {(case.told_in, it) for case in cases for it in case.remedies}
        found |= set(getattr(module, "FOLLOWED", ()))
    return found
