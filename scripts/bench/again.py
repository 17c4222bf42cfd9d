"""Measure again what is stale, by the commands that the results themselves state.

A result names its command, so nothing here lists benchmarks. Results that the first page
links come first. What is done is no longer stale, on whatever machine: a call that was
stopped goes on where it was.
"""

import argparse
import functools
import json
import math
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.__main__ import case_names
from bench.output import refuse_dirty_tree
from bench.staleness import MEASURED, RESULTS, ROOT, SHARE, case_of, changed_since, runs_of

_RENAMED = {
    "scripts/cuda_registers_embedding": "scripts/cuda_registers embedding",
    "scripts/cuda_registers_gnn": "scripts/cuda_registers gnn",
    **{f"scripts/bench/{it}": f"scripts/bench/run {it}" for it in case_names()},
    "scripts/bench/run": "scripts/bench/run",
}
"""What programs that older results state are called now."""
_FOLDERS = ("--folder", "--state")
"""Options whose folder a result does not state, since it was one of that machine."""


def main() -> int:
    """Run commands of stale results; return 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="scripts/measure_again", description=__doc__)
    parser.add_argument("--only", action="append", metavar="TEXT", help="of a command")
    parser.add_argument("--list", action="store_true", help="print commands, run none")
    parser.add_argument(
        "--minutes", type=float, default=30.0, help="begin none after these (30)"
    )
    parser.add_argument(
        "--work",
        type=Path,
        metavar="FOLDER",
        help="inputs and logs, kept for the next call",
    )
    options = parser.parse_args()
    commands = [
        it
        for it in dict.fromkeys(stale_commands())
        if not options.only or any(text in it for text in options.only)
    ]
    if options.list:
        print("\n".join(commands))
        return 0
    refuse_dirty_tree()
    work = (options.work or Path(tempfile.mkdtemp(prefix="graphsys-measure-"))).resolve()
    print(f"logs and inputs are in {work}")
    ends = time.monotonic() + 60 * options.minutes
    failed = 0
    for number, command in enumerate(commands):
        if time.monotonic() > ends:
            print(f"time is up: {len(commands) - number} of {len(commands)} are left")
            break
        failed += not measure(command, work)
    return int(failed > 0)


def stale_commands() -> Iterator[str]:
    """Yield the commands of stale rows, those of results on the first page first."""
    page = (ROOT / "README.md").read_text()
    cases: dict[str, dict[str, float]] = {}
    for path in sorted(RESULTS.glob("*.json")):
        of_case = cases.setdefault(case_of(path.stem), {})
        for command, share in _commands(path):
            of_case[command] = min(share, of_case.get(command, share))
    for case in sorted(cases, key=lambda it: (f"/{it}_" not in page, it)):
        for command, share in cases[case].items():
            if share > SHARE:
                yield command


def measure(command: str, work: Path) -> bool:
    """Run a command, its output in a log of its own; return whether it succeeded."""
    name = re.sub(r"[^a-z0-9]+", "-", command.lower())[:80].strip("-")
    words = runnable(command, work / "inputs")
    (work / "logs").mkdir(parents=True, exist_ok=True)
    log = work / "logs" / f"{name}.log"
    began = time.monotonic()
    with log.open("w") as file:
        done = subprocess.run(
            words, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, check=False
        )
    minutes = (time.monotonic() - began) / 60
    outcome = "done" if done.returncode == 0 else f"FAILED, see {log.name}"
    print(f"{minutes:5.1f} min  {command}: {outcome}")
    sys.stdout.flush()
    return done.returncode == 0


def runnable(command: str, inputs: Path) -> list[str]:
    """Return the words of a command that a result states, with folders of this machine.

    Args:
        command: As stated; folders were left out or became ``FOLDER`` and ``PATH``.
        inputs: Where folders are to lie.
    """
    name, *rest = shlex.split(command)
    folder = str(inputs / Path(name).name)
    made = [name]
    for word in rest:
        is_option = word.startswith("--")
        if is_option and made[-1] in _FOLDERS:
            made.append(folder)
        if not is_option and len(made) > 1 and made[-2] == "--only":
            made[-1] += f" {word}"  # results state words without quotes
        else:
            made.append(folder if word in ("FOLDER", "PATH") else word)
    return made + [folder] * (made[-1] in _FOLDERS)


def _commands(path: Path) -> Iterator[tuple[str, float]]:
    """Yield each command of a result, with the share that changed since."""
    measured = MEASURED[case_of(path.stem)]
    for run in runs_of(json.loads(path.read_text())):
        program, _, rest = run.get("command", "").partition(" ")
        command = f"{_RENAMED.get(program, program)} {rest}".strip()
        if command.startswith("memory_rule"):
            command = f"scripts/{command}"
        # programs that are gone are not run again: their results are history
        is_there = (ROOT / command.partition(" ")[0]).is_file()
        is_whole = command.startswith("scripts/") and is_there and " OLD" not in command
        if is_whole and command != "scripts/bench/run":
            saves = command if "--save" in command else f"{command} --save"
            share = _changed(run["commit"], measured)
            yield saves, math.inf if share is None else share


_changed = functools.cache(changed_since)


if __name__ == "__main__":
    sys.exit(main())
