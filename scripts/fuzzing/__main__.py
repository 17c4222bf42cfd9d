"""Fuzz the readers: mutated small files through a real ingest into a temporary store.

Each case must end as a sound store or as an error of one line that names a file, with
nothing left behind; no other exception, no hang, no crash, no runaway memory. The record
is rewritten while it runs, and a reader whose minutes are not complete goes on.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bench.output import RESULTS, hardware_name, refuse_dirty_tree, stamp

from fuzzing.corpus import BINARY, TEXT

CASE_LIMIT_S: Final = 20.0
WARM_UP_LIMIT_S: Final = 600.0
_POLL_S: Final = 0.5


def main() -> int:
    """Fuzz, and return 1 if something failed."""
    parser = argparse.ArgumentParser(
        prog="scripts/fuzz_readers",
        description="Fuzz the readers of graph files; results go to "
        "scripts/bench/results/fuzz_readers_<hardware>_<yyyymm>.json.",
    )
    known = [*TEXT, *BINARY]
    parser.add_argument("--minutes", type=float, default=10, help="a reader (10)")
    parser.add_argument(
        "--reader", action="append", choices=known, help="repeatable; all text readers"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the mutations (0)")
    parser.add_argument("--again", action="store_true", help="forget earlier results")
    parser.add_argument("--no-save", action="store_true", help="write no result")
    parser.add_argument(
        "--case", type=int, help="try one case of --reader, and keep its files"
    )
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    readers = options.reader or list(TEXT)
    if options.child:
        from fuzzing.worker import work

        first, seconds = int(options.child[0]), float(options.child[1])
        state = Path(os.environ["FUZZ_STATE"])
        work(readers[0], options.seed, first, seconds, state)
        return 0
    if options.case is not None:
        return show_case(readers[0], options.seed, options.case)
    if not options.no_save:
        refuse_dirty_tree()
    machine = machine_of_record()
    month = datetime.now(tz=UTC).strftime("%Y%m")
    path = RESULTS / f"fuzz_readers_{machine['hardware']}_{month}.json"
    record: dict[str, Any] = {"case": "fuzz_readers", "machine": machine, "rows": []}
    if path.exists():
        record["rows"] = json.loads(path.read_text())["rows"]
    failed = False
    for reader in readers:
        row = earlier(record, reader, options)
        while row["seconds"] < 60 * options.minutes:
            run_child(row, options.seed, 60 * options.minutes - row["seconds"])
            print(summary(row), file=sys.stderr, flush=True)
            if not options.no_save:
                keep(record, row, path)
        failed |= bool(row["failures"])
    return int(failed)


def machine_of_record() -> dict[str, Any]:
    """Return what a result states about the machine."""
    from graphsys.core.machine import describe_machine

    machine = describe_machine()
    return {
        "hardware": hardware_name(machine),
        "cpu": machine["cpu"]["model"],
        "python": machine["python"],
    }


def earlier(record: dict[str, Any], reader: str, options: Any) -> dict[str, Any]:
    """Return the row of a reader to go on with; an empty one if it failed before."""
    for row in record["rows"]:
        is_sound = row["seed"] == options.seed and not row["failures"]
        if row["reader"] == reader and is_sound and not options.again:
            return dict(row)
    return {
        "reader": reader,
        "seed": options.seed,
        "seconds": 0.0,
        "cases": 0,
        "accepted": 0,
        "refused": 0,
        "cut": 0,
        "failures": [],
        "commit": "",
        "date": "",
    }


def keep(record: dict[str, Any], row: dict[str, Any], path: Path) -> None:
    """Put a row into the record and write it, whole or not at all."""
    others = [it for it in record["rows"] if it["reader"] != row["reader"]]
    place = [*TEXT, *BINARY].index
    record["rows"] = sorted([*others, row], key=lambda it: place(it["reader"]))
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(record, indent=1) + "\n")
    fresh.replace(path)


def run_child(row: dict[str, Any], seed: int, seconds: float) -> None:
    """Run one child until its time is over, or it crashes or hangs; add to the row."""
    base = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="fuzz-readers-", dir=base) as folder:
        state = Path(folder) / "state"
        (Path(folder) / "tmp").mkdir()
        environment = os.environ | {
            "FUZZ_STATE": str(state),
            "TMPDIR": str(Path(folder) / "tmp"),
            "ARROW_DEFAULT_MEMORY_POOL": "system",
            "NUMBA_BOUNDSCHECK": "1",
            "NUMBA_CACHE_DIR": str(Path(tempfile.gettempdir()) / "graphsys-fuzz-kernels"),
        }
        command = [sys.executable, "-P", "-m", "fuzzing", "--reader", row["reader"]]
        command += ["--seed", str(seed), "--child", str(row["cases"]), str(seconds)]
        row |= stamp(" ".join(["scripts/fuzz_readers", *sys.argv[1:]]))
        child = subprocess.Popen(command, env=environment)
        try:
            ending = watch(child, state)
        finally:
            child.kill()
            child.wait()
        number, _, spent, *counts = read_state(state) or [-1, 0, seconds, 0, 0, 0]
        path = state.with_suffix(".jsonl")
        lines = path.read_text().splitlines() if path.exists() else []
    for name, count in zip(("accepted", "refused", "cut"), counts, strict=True):
        row[name] += count
    failures = [json.loads(line) for line in lines]
    if ending is not None:
        failures.append({"kind": ending, "what": "", "place": "", "case": number})
        number += 1
    for failure in failures:
        add_failure(row["failures"], failure)
    row["cases"] = max(number, row["cases"])
    row["seconds"] = round(row["seconds"] + max(spent, 1.0), 1)


def watch(child: "subprocess.Popen[bytes]", state: Path) -> str | None:
    """Wait for a child; return None, "hang" or how it ended."""
    began = time.monotonic()
    while child.poll() is None:
        time.sleep(_POLL_S)
        found = read_state(state)
        is_warm = found is not None and found[0] >= 0
        limit = CASE_LIMIT_S if is_warm else WARM_UP_LIMIT_S
        since = found[1] if is_warm and found is not None else began
        if since and time.monotonic() - since > limit:
            return "hang"
    if child.returncode == 0:
        return None
    if child.returncode < 0:
        return f"crash by {signal.Signals(-child.returncode).name}"
    return f"exit {child.returncode}"


def read_state(state: Path) -> list[Any] | None:
    """Return what a child wrote last: case, its start, seconds, counts."""
    try:
        found: list[Any] = json.loads(state.read_text())
    except (OSError, ValueError):
        return None
    return found


def add_failure(kept: list[dict[str, Any]], failure: dict[str, Any]) -> None:
    """Count a failure like an earlier one, or add it."""
    for it in kept:
        if (it["kind"], it["place"]) == (failure["kind"], failure["place"]):
            it["count"] += 1
            return
    kept.append(failure | {"count": 1})


def summary(row: dict[str, Any]) -> str:
    """Return one line about a reader."""
    return (
        f"{row['reader']}: {row['seconds']:.0f} s, {row['cases']} cases, "
        f"{row['accepted']} accepted, {row['refused']} refused, {row['cut']} cut, "
        f"{len(row['failures'])} kinds of failures"
        + "".join(f"\n  {json.dumps(it)}" for it in row["failures"])
    )


def show_case(reader: str, seed: int, number: int) -> int:
    """Try one case, print what happens, keep its files."""
    from fuzzing.worker import make_case, try_case

    folder = Path(tempfile.mkdtemp(prefix="fuzz-case-"))
    case, draw = make_case(reader, seed, number)
    try:
        print(try_case(case, draw, folder))
    finally:
        shutil.rmtree(folder / "out", ignore_errors=True)
        print(f"files: {folder / 'in'}, options: {case.options}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
