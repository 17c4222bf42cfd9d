"""What a search advises leads somewhere right."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.advice.case import Case
from tests.advice.conftest import Command, Follow

pytest.importorskip("optuna")
TUNE = "tune ring -o search --config search.toml --trials 1"
SEARCH = """\
trainer = "embedding"
[settings]
dim = 4
epochs = 1
eval_every = 1
[search]
lr = [0.1, 0.2]
"""
FILES: dict[str, bytes | str] = {
    "ring.csv": "src,dst\n" + "".join(f"{k},{(k + 1) % 30}\n" for k in range(30)),
    "search.toml": SEARCH,
}
MADE = "ingest ring.csv --split 0.6,0.2,0.2 -o ring"


def of_search(command: str, advice: str, *then: str, **given: Any) -> Case:
    """Return a case about a search in the graph ``ring``."""
    settings = {"files": FILES, "before": (MADE,), "told_in": "graphsys/tuning/trials.py"}
    return Case(command=command, advice=advice, then=then, **(settings | given))


CASES = {
    "a search is there": of_search(
        TUNE,
        "replace it with (--overwrite)",
        f"{TUNE} {{0}} --json",
        before=(MADE, TUNE),
    ),
    "a search to go on with": of_search(
        TUNE,
        "go on with (--resume) or",
        "tune ring -o search --trials 2 {0} --json",
        before=(MADE, TUNE),
        expected={"trials": 2},
    ),
    "no search to go on with": of_search(
        f"{TUNE} --resume", "search without --resume", f"{TUNE} --json"
    ),
    "nothing to search": of_search(
        "tune ring -o search --trials 1",
        "add (--config) FILE",
        "tune ring -o search --trials 1 {0} search.toml --json",
    ),
}
FOLLOWED = (
    ("graphsys/tuning/journal.py", "graphsys train"),
    ("graphsys/tuning/journal.py", "--config"),
)


@pytest.mark.parametrize("name", CASES)
def test_what_a_search_advises_leads_somewhere_right(name: str, follow: Follow) -> None:
    follow(CASES[name])


def test_the_best_settings_say_which_command_takes_them(
    folder: Path, command: Command
) -> None:
    for name, content in FILES.items():
        (folder / name).write_text(str(content))
    assert command(MADE).code == 0
    assert command(TUNE).code == 0
    head = (folder / "search" / "best.toml").read_text().splitlines()[0]
    advice = re.search(r"for (graphsys train embedding) GRAPH (--config)", head)
    assert advice is not None, head
    done = command(f"{advice[1]} ring -o run {advice[2]} search/best.toml --json")
    assert done.code == 0, done.said
