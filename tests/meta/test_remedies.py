"""Every remedy that a message of ours names is followed by a test, or listed as not yet."""

import ast
import functools
import re
from pathlib import Path

from tests.advice.case import REMEDY, followed, taken_up
from tests.advice.messages import texts
from tests.conftest import ROOT

LISTED = Path(__file__).with_name("remedies_not_followed.txt")
"""Lines of a file of ours and a remedy, below the reasons; it is to become shorter."""
FOLLOWED = followed()

NO_ADVICE = re.compile(
    r"(?:goe?s? with|got|without|needs?) --[a-z-]+(?=[ ;,:]|$)"
    r"|--[a-z-]+ (?=keeps all|gives a number)|a graphsys command|this graphsys reads"
    r"|graphsys has no such setting|a run of graphsys is expected"
)
"""What a message says of options that do not go together, or are there."""


def test_every_remedy_is_followed_or_listed() -> None:
    found, listed = inventory(), not_yet()
    new = sorted(found - FOLLOWED - listed)
    lines = "\n".join(" ".join(it) for it in new)
    assert new == [], f"follow these in tests/advice, or list them:\n{lines}"


def test_the_list_has_nothing_that_is_gone_or_followed() -> None:
    assert sorted(not_yet() - inventory()) == [], "no message names these any more"
    assert sorted(not_yet() & FOLLOWED) == [], "these are followed now"


def test_what_is_followed_is_named_by_a_message() -> None:
    assert sorted(FOLLOWED - inventory()) == []


def test_a_call_counts_where_the_test_does_something_with_it() -> None:
    module = ast.parse(
        'HERE = "a.py"\n'
        'advised(said, HERE, "go on with --resume")\n'
        'found = advised(said, HERE, f"see (graphsys {verb}); --set {key}")\n'
        'run(advised(said, "b.py", "pass (--overwrite)")[1])\n'
    )
    assert list(taken_up(module)) == [("a.py", "--set"), ("b.py", "--overwrite")]


@functools.cache
def inventory() -> set[tuple[str, str]]:
    """Return each file of ours with each remedy that a text of it names."""
    return {
        (str(path.relative_to(ROOT)), remedy)
        for folder in ("graphsys", "datasets", "partitioners")
        for path in (ROOT / folder).rglob("*.py")
        if not any(it.is_symlink() for it in (path, *path.parents))
        for text, _ in texts(ast.parse(path.read_text()))
        for remedy in REMEDY.findall(NO_ADVICE.sub("", text))
    }


def not_yet() -> set[tuple[str, str]]:
    """Return what is listed as not followed; lines that begin with # are reasons."""
    lines = [it for it in LISTED.read_text().splitlines() if it and it[0] != "#"]
    return {(name, remedy) for name, _, remedy in (it.partition(" ") for it in lines)}
