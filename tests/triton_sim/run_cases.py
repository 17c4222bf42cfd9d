"""Cases that a process runs one by one, and processes side by side on a card."""

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from graphsys.core.errors import ConfigError, MissingDependencyError
from graphsys.core.triton.device import is_interpreted, require_device
from tests.triton_sim import quick_interpreter

ROOT = Path(__file__).parents[2]


def main(runners: Mapping[str, Callable[[str], dict[str, Any]]]) -> int:
    """Run the cases named on the command line; print a line of JSON each.

    Args:
        runners: What runs a case, by the word before its first colon.

    Returns:
        1 if a case raised: its line has an ``error``, and the others are run all the same.
    """
    if is_interpreted():
        quick_interpreter.install()
    has_failed = False
    for case in sys.argv[1:]:
        kind, _, rest = case.partition(":")
        try:
            row = runners[kind](rest)
        except Exception as err:  # one that fails must not hide the others
            traceback.print_exc()
            row, has_failed = {"error": f"{type(err).__name__}: {err}"[:300]}, True
        sys.stdout.write(json.dumps({"case": case, **row}) + "\n")
        sys.stdout.flush()
    return int(has_failed)


def on_card(module: str, cases: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Run cases on a card, in as many processes as the cores can compile for.

    Skips the test where there is none.

    Returns:
        The row of each case; a process that died has ``error`` in those it did not reach.
    """
    import pytest  # the processes that run cases need none

    try:
        require_device()
    except (ConfigError, MissingDependencyError) as err:
        pytest.skip(str(err))
    if is_interpreted():
        pytest.skip("TRITON_INTERPRET=1: not a GPU")
    count = max(1, min((os.cpu_count() or 1) // 3, 5))
    parts = [cases[i::count] for i in range(count)]

    def run(part: tuple[str, ...]) -> dict[str, dict[str, Any]]:
        done = subprocess.run(
            [sys.executable, "-m", module, *part],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        sys.stderr.write(done.stderr)
        lost = {"error": f"not reached: {done.stderr[-300:]}"}
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        return dict.fromkeys(part, lost) | {row["case"]: row for row in rows}

    found: dict[str, dict[str, Any]] = {}
    with ThreadPoolExecutor(count) as pool:
        for rows in pool.map(run, parts):
            found |= rows
    return found
