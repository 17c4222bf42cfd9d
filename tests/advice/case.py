"""One message, what it advises, and how that is done."""

import ast
import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.advice.messages import is_told
from tests.conftest import ROOT

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


def advised(said: str, told_in: str, advice: str) -> re.Match[str]:
    """Return what a message advises, for the caller to follow.

    Calls of this function, wherever they are in the tests, are what ``tests/meta`` counts
    as followed: ``told_in`` and ``advice`` are written where it is called, or are constants
    of that module.

    Args:
        said: What was printed or raised.
        told_in: Our file that has the message.
        advice: What the message says, a regular expression with a group of what is to be
            done; remedies in it are those that are followed.
    """
    said = " ".join(said.split())
    found = re.search(advice, said)
    assert found is not None, said
    source = (ROOT / told_in).read_text()
    for remedy in REMEDY.findall(advice):
        assert is_told(said, remedy, source), f"{told_in} says no {remedy}"
    return found


def followed() -> set[tuple[str, str]]:
    """Return each file of ours with each remedy that a test follows.

    Of this folder these are the cases and what stands in ``FOLLOWED``; anywhere, what
    :func:`advised` returns, where the test does something with it.
    """
    found: set[tuple[str, str]] = set()
    for path in sorted(HERE.glob("test_*.py")):
        module = importlib.import_module(f"tests.advice.{path.stem}")
        cases = getattr(module, "CASES", {}).values()
        found |= {(case.told_in, it) for case in cases for it in case.remedies}
        found |= set(getattr(module, "FOLLOWED", ()))
    for path in sorted(HERE.parent.rglob("test_*.py")):
        if "advised(" in (text := path.read_text()):
            found |= set(taken_up(ast.parse(text)))
    return found


def taken_up(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield files and remedies of calls of :func:`advised` whose result is used."""
    known: dict[str, str] = {}
    for made in module.body:
        if isinstance(made, ast.Assign):
            pairs = zip(_parts(made.targets[0]), _parts(made.value), strict=False)
            for name, value in pairs:
                if isinstance(name, ast.Name) and (text := _text(value, {})) is not None:
                    known[name.id] = text
    unused = {id(it.value) for it in ast.walk(module) if isinstance(it, ast.Expr)}
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "advised":
            told_in, advice = (_text(it, known) for it in node.args[1:3])
            assert told_in is not None, f"line {node.lineno}: a file's name is expected"
            assert advice is not None, f"line {node.lineno}: a pattern is expected"
            if id(node) not in unused:
                yield from ((told_in, it.strip()) for it in REMEDY.findall(advice))


def _parts(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _text(node: ast.expr, known: Mapping[str, str]) -> str | None:
    """Return a constant text; of one with values in it, what stands between them."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        words = [it.value for it in node.values if isinstance(it, ast.Constant)]
        return "".join(str(it) for it in words)
    return None
