"""Learn in minutes what a GPU does with all of graphsys: correct, fast, as predicted.

Each step is a process of its own, killed with all it started when its time is over, and
one that fails does not hide the others. Every row is appended to the result at once, as a
line of JSON: what was reached before a kill is there. A second call with the same --out
does the steps that the first did not finish. --simulate walks the same steps on the CPU,
tiny, in numba's simulator and Triton's interpreter: a step then fails for no reason that
is not the card.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gpu_checking.process import append, run_step
from gpu_checking.record import PAGE, keep, page
from gpu_checking.steps import STEPS, Step
from gpu_checking.summary import latest, summary

ROOT = Path(__file__).resolve().parents[2]
_SPARE_S = 20.0
"""For the summary, and for what a step takes to be killed."""
_SLOWER = 6
"""A step's seconds are a card's: two busy cores take longer to start processes alone."""


def main() -> int:
    """Run steps within the minutes given; return 1 if something failed or was not done."""
    given = arguments()
    if given.references:
        compute_references()
        return 0
    if given.page or given.keep is not None:
        told = latest(read_rows(given.keep)) if given.keep else None
        print(f"written: {write_page() if told is None else keep(told)}")
        return 0
    out = given.out or Path(os.environ.get("OUT", ROOT))
    if out.is_dir():
        out /= "gpu_check.jsonl"
    done = finished(out)
    append(out, beginning())
    began = time.monotonic()
    for step in chosen(given):
        if step.name in done:
            print(f"{step.name}: done by an earlier call")
            continue
        left = 60 * given.minutes - _SPARE_S - (time.monotonic() - began)
        if left < min(step.seconds, 20):
            print(f"{step.name}: left out, {max(left, 0):.0f} s are left")
            continue
        seconds = step.seconds * (_SLOWER if given.simulate else 1)
        run_step(step, out, min(seconds, left), is_simulated=given.simulate)
        if step.name == "smoke" and not is_well(out, "smoke"):
            print("the smoke test failed: nothing else can run")
            break
    rows = read_rows(out)
    print("\n".join(summary(rows, [step.name for step in chosen(given)])[:40]))
    ended = {row["step"]: row["status"] for row in rows if row.get("kind") == "end"}
    return int(any(ended.get(step.name) != "done" for step in chosen(given)))


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/gpu_check",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="steps, with their seconds: "
        + ", ".join(f"{step.name} {step.seconds:.0f}" for step in STEPS),
    )
    parser.add_argument("--out", type=Path, help="file of JSON lines, or its folder ($OUT)")
    parser.add_argument("--minutes", type=float, default=9.0, help="in all (9)")
    parser.add_argument("--only", action="append", metavar="STEP", help="repeatable")
    parser.add_argument("--skip", action="append", metavar="STEP", help="repeatable")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="as a result and a page")
    parser.add_argument("--page", action="store_true", help="write the page alone")
    parser.add_argument(
        "--references", action="store_true", help="compute the CPU's results, to be carried"
    )
    parser.add_argument("--simulate", action="store_true", help="tiny, on the CPU")
    given = parser.parse_args()
    names = {step.name for step in STEPS}
    for name in [*(given.only or []), *(given.skip or [])]:
        if name not in names:
            parser.error(f"no step {name!r}, expected one of {', '.join(sorted(names))}")
    return given


def compute_references() -> None:
    """Write the CPU's results as checksums, each case at once."""
    from gpu_checking import engine, mining, references

    found: dict[str, Any] = {}
    for case, result in itertools.chain(engine.compute(), mining.compute()):
        found[case] = result
        references.FILE.write_text(json.dumps(found, indent=1) + "\n")
        print(case, flush=True)


def write_page() -> Path:
    """Write the page from the results that are there; return it."""
    PAGE.write_text(page())
    return PAGE


def beginning() -> dict[str, Any]:
    """Return the row that says what is run, when, and of which commit.

    A borrowed machine has no history: there $GRAPHSYS_COMMIT tells it.
    """
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return {
        "step": "",
        "kind": "begin",
        "command": " ".join(["scripts/gpu_check", *sys.argv[1:]]),
        "commit": os.environ.get("GRAPHSYS_COMMIT") or found.stdout.strip() or "unknown",
        "date": datetime.now(tz=UTC).strftime("%Y-%m-%d"),
        "load_average": os.getloadavg()[0],
    }


def chosen(given: argparse.Namespace) -> list[Step]:
    """Return the steps that a command line asks for."""
    return [
        step
        for step in STEPS
        if (not given.only or step.name in given.only)
        and step.name not in (given.skip or [])
    ]


def read_rows(out: Path) -> list[dict[str, Any]]:
    """Return the rows of a result; a line that a kill cut is left out."""
    rows = []
    for line in out.read_text().splitlines() if out.exists() else []:
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows


def finished(out: Path) -> set[str]:
    """Return the steps that an earlier call ended in order."""
    return {
        row["step"]
        for row in read_rows(out)
        if row.get("kind") == "end" and row["status"] == "done"
    }


def is_well(out: Path, name: str) -> bool:
    """Whether the last end of a step is in order."""
    ends = [it for it in read_rows(out) if it.get("kind") == "end" and it["step"] == name]
    return bool(ends) and ends[-1]["status"] == "done"


if __name__ == "__main__":
    sys.exit(main())
