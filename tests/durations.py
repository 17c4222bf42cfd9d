"""How long the tests of each file take, kept so that a quick check can choose among them.

``pytest --save-durations`` writes :data:`FILE`. ``pytest --within SECONDS`` leaves out
whole files, those with the most seconds a test first, until the rest took no longer than
that; files that nobody has timed are kept.
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).with_name("durations.json")
_LEAST_S = 0.05
"""Files below are not listed: what is not listed is kept."""


def add_options(parser: pytest.Parser) -> None:
    """Add the options to pytest's."""
    parser.addoption("--within", type=float, help="seconds of tests, added up over workers")
    parser.addoption("--save-durations", action="store_true", help=f"write {FILE.name}")


def left_out(counts: dict[str, int], known: dict[str, float], within: float) -> set[str]:
    """Return the files to leave out.

    Args:
        counts: Number of tests by file.
        known: Seconds by file.
        within: Seconds for all.
    """
    total, chosen = 0.0, set[str]()
    for file in sorted(counts, key=lambda it: (known.get(it, 0.0) / counts[it], it)):
        total += known.get(file, 0.0)
        if total > within:
            chosen.add(file)
    return chosen


def choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what ``--within`` has no time for."""
    within = config.getoption("--within")
    if within is None:
        return
    counts: dict[str, int] = defaultdict(int)
    for item in items:
        counts[file_of(item.nodeid)] += 1
    gone = left_out(counts, known(), within)
    config.hook.pytest_deselected(items=[it for it in items if file_of(it.nodeid) in gone])
    items[:] = [item for item in items if file_of(item.nodeid) not in gone]


def known() -> dict[str, float]:
    """Return the seconds of each file that was timed."""
    found: dict[str, float] = json.loads(FILE.read_text())
    return found


def file_of(nodeid: str) -> str:
    """Return the file of a test."""
    return nodeid.partition("::")[0]


def save(reporter: Any) -> None:
    """Write what was measured, where that was asked for; the file's other rows stay."""
    if not reporter.config.getoption("--save-durations"):
        return
    seconds: dict[str, float] = defaultdict(float)
    for reports in reporter.stats.values():
        for report in reports:
            if hasattr(report, "duration"):
                seconds[file_of(report.nodeid)] += report.duration
    root = FILE.parent.parent
    before = known() if FILE.exists() else {}
    rows = {file: took for file, took in before.items() if (root / file).exists()}
    rows |= {file: round(took, 2) for file, took in seconds.items() if took >= _LEAST_S}
    FILE.write_text(json.dumps(dict(sorted(rows.items())), indent=0) + "\n")
