"""Every remedy that a message of ours names is followed by a test, or listed as not yet."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import ROOT
from tests.e2e.test_advice import FOLLOWED

LISTED = Path(__file__).with_name("remedies_not_followed.txt")
"""Lines of a file of ours and a remedy; it is to become shorter."""
REMEDY = re.compile(
    r"(?<![\w-])(--[a-z][a-z-]+|iconv|pip install|ulimit|graphsys [a-z]+(?= |`|$))"
)

NO_ADVICE = re.compile(r"(?:goe?s? with|got|without|needs?) --[a-z-]+(?=[ ;,:]|$)")
"""What a message says of options that do not go together, or are there."""


def test_every_remedy_is_followed_or_listed() -> None:
    found, listed = inventory(), not_yet()
    new = sorted(found - FOLLOWED - listed)
    lines = "\n".join(" ".join(it) for it in new)
    assert new == [], f"follow these in tests/e2e/test_advice.py, or list them:\n{lines}"


def test_the_list_has_nothing_that_is_gone_or_followed() -> None:
    assert sorted(not_yet() - inventory()) == [], "no message names these any more"
    assert sorted(not_yet() & FOLLOWED) == [], "these are followed now"


def test_what_is_followed_is_named_by_a_message() -> None:
    assert sorted(FOLLOWED - inventory()) == []


def inventory() -> set[tuple[str, str]]:
    """Return each file of ours with each remedy that a text of it names."""
    return {
        (str(path.relative_to(ROOT)), remedy)
        for folder in ("graphsys", "datasets", "partitioners")
        for path in (ROOT / folder).rglob("*.py")
        if not any(it.is_symlink() for it in (path, *path.parents))
        for text in texts(ast.parse(path.read_text()))
        for remedy in REMEDY.findall(text)
    }


def not_yet() -> set[tuple[str, str]]:
    """Return what is listed as not followed."""
    lines = LISTED.read_text().splitlines()
    return {(name, remedy) for name, _, remedy in (it.partition(" ") for it in lines)}


def texts(tree: ast.Module) -> Iterator[str]:
    """Yield texts of sentences: no docstrings, no declarations of options, no help."""
    left_out = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in ("help", "metavar", "epilog"):
            left_out |= {id(it) for it in ast.walk(node.value)}
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            left_out.add(id(node.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            left_out |= {id(it) for it in node.values}
    for node in ast.walk(tree):
        if id(node) in left_out:
            continue
        text = ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        elif isinstance(node, ast.JoinedStr):
            parts = [it.value for it in node.values if isinstance(it, ast.Constant)]
            text = " ".join(map(str, parts))
        if " " in text.strip():
            yield NO_ADVICE.sub("", text)
