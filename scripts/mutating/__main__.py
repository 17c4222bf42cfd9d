"""Mutate files of graphsys and count the mutants that no test notices.

Of each file a seeded sample of mutants is drawn (all, where there are fewer), and each is
tried in a process of its own on a copy of the tree. What was tried is remembered by the
file's text, so a run that was killed goes on, and a changed file begins anew.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any, Final

from mutating.mutants import Mutant, mutants_of
from mutating.targets import TARGETS, WITH_NUMBA

ROOT: Final = Path(__file__).resolve().parents[2]
_LIMIT_S: Final = 900.0
_EQUIVALENT: Final = Path(__file__).with_name("equivalent.toml")


def main() -> int:
    """Try mutants; return 1 if fewer than the wanted share was killed."""
    parser = argparse.ArgumentParser(prog="scripts/mutation", description=__doc__)
    parser.add_argument("--sample", type=int, default=40, help="mutants a file (40)")
    parser.add_argument("--seed", type=int, default=0, help="of the samples (0)")
    parser.add_argument(
        "--only", action="append", metavar="FILE", help="repeatable; all of targets.py"
    )
    parser.add_argument("--least", type=float, default=0.9, help="wanted share (0.9)")
    parser.add_argument("--again", action="store_true", help="forget what was tried")
    parser.add_argument("--survivors", action="store_true", help="try survivors again")
    parser.add_argument("--save", action="store_true", help="write the result's file")
    parser.add_argument("--list", action="store_true", help="only list the sample")
    parser.add_argument(
        "--state", type=Path, metavar="FOLDER", help="what was tried, and the copy"
    )
    options = parser.parse_args()
    if options.save:
        from bench.output import refuse_dirty_tree

        refuse_dirty_tree()
    wanted = [name for name in TARGETS if (ROOT / name).exists()]
    if options.only:
        wanted = [it for it in wanted if any(word in it for word in options.only)]
    digest = hashlib.sha256(str(ROOT).encode()).hexdigest()[:12]
    state = options.state or Path(tempfile.gettempdir()) / f"graphsys-mutation-{digest}"
    state.mkdir(parents=True, exist_ok=True)
    if options.list:
        return show(wanted, options)
    tree = copy_of_tree(state / "tree")
    rows = [try_file(name, tree, state, options) for name in wanted]
    for row in rows:
        print(summary(row))
    if options.save:
        from mutating.record import save_rows

        print(f"written to {save_rows(rows)}")
    return int(any(row["rate"] < options.least for row in rows))


def show(wanted: list[str], options: argparse.Namespace) -> int:
    """Print the sample of every file."""
    for name in wanted:
        chosen, total = sample_of(name, (ROOT / name).read_text(), options)
        print(f"{name}: {len(chosen)} of {total}")
        for mutant in chosen:
            print(f"  {mutant.index:4} line {mutant.line}: {mutant.key}")
    return 0


def sample_of(
    name: str, source: str, options: argparse.Namespace
) -> tuple[list[Mutant], int]:
    """Return the mutants of a file to be tried, and how many there are."""
    every = mutants_of(source)
    if len(every) <= options.sample:
        return every, len(every)
    drawn = random.Random(f"{options.seed}:{name}").sample(every, options.sample)
    return sorted(drawn, key=lambda it: it.index), len(every)


def copy_of_tree(target: Path) -> Path:
    """Copy the tree, without what git ignores, to where mutants are tried."""
    shutil.rmtree(target, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if not name.startswith(("scripts/bench/results/", "docs/")) and (
            path.is_file() or path.is_symlink()
        ):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target / name, follow_symlinks=False)
    return target


def try_file(
    name: str, tree: Path, state: Path, options: argparse.Namespace
) -> dict[str, Any]:
    """Try the sample of a file; return its row."""
    source = (tree / name).read_text(encoding="utf-8")
    chosen, total = sample_of(name, source, options)
    record = state / (name.replace("/", "-") + ".json")
    digest = hashlib.sha256(source.encode()).hexdigest()
    tried: dict[str, Any] = {"source": digest, "outcomes": {}}
    if record.exists() and not options.again:
        found = json.loads(record.read_text())
        tried = found if found["source"] == digest else tried
    outcomes = tried["outcomes"]
    equivalent = equivalents(name)
    again = (None, "survived", "broken") if options.survivors else (None,)
    left = [it for it in chosen if it.key not in equivalent]
    left = [it for it in left if outcomes.get(str(it.index)) in again]
    if left:
        with Worker(tree, state, with_numba=name in WITH_NUMBA) as worker:
            worker.baseline(name)
            for number, mutant in enumerate(left):
                outcome = worker.run(name, mutant.index)
                outcomes[str(mutant.index)] = outcome
                fresh = record.with_suffix(".new")
                fresh.write_text(json.dumps(tried))
                fresh.replace(record)
                said = (
                    f"{number + 1}/{len(left)} {outcome} line {mutant.line}: {mutant.key}"
                )
                print(f"{name} {said}", file=sys.stderr, flush=True)
    return row_of(name, chosen, total, outcomes, equivalent, options.seed)


def row_of(
    name: str,
    chosen: list[Mutant],
    total: int,
    outcomes: dict[str, str],
    equivalent: dict[str, str],
    seed: int,
) -> dict[str, Any]:
    """Return what the record says of a file."""
    same = [it for it in chosen if it.key in equivalent]
    counted = [it for it in chosen if it.key not in equivalent]
    found = [outcomes[str(it.index)] for it in counted]
    timeouts = found.count("timeout")
    killed = found.count("killed") + timeouts
    return {
        "file": name,
        "tests": [word for word in TARGETS[name] if word.startswith("tests/")],
        "seed": seed,
        "possible": total,
        "mutants": len(chosen),
        "killed": killed,
        "timeouts": timeouts,
        "survived": len(counted) - killed,
        "equivalent": [
            {"line": it.line, "mutant": it.key, "reason": equivalent[it.key]} for it in same
        ],
        "survivors": [
            {"line": it.line, "mutant": it.key}
            for it, outcome in zip(counted, found, strict=True)
            if outcome not in ("killed", "timeout")
        ],
        "rate": killed / len(counted) if counted else 1.0,
    }


def equivalents(name: str) -> dict[str, str]:
    """Return the mutants of a file that change nothing a test could see, and why."""
    if not _EQUIVALENT.exists():
        return {}
    told = tomllib.loads(_EQUIVALENT.read_text(encoding="utf-8"))
    return {it["mutant"]: it["reason"] for it in told["mutants"] if it["file"] == name}


def summary(row: dict[str, Any]) -> str:
    """Return one line on a file."""
    same = len(row["equivalent"])
    return (
        f"{row['file']}: {row['killed']} of {row['mutants'] - same} killed "
        f"({row['rate']:.0%}), {row['survived']} survived, {same} equivalent"
    )


class Worker:
    """A process that forks a child for every mutant."""

    def __init__(self, tree: Path, state: Path, *, with_numba: bool) -> None:
        self._with_numba, self._test_limit_s = with_numba, _LIMIT_S
        environment = os.environ | {
            "NUMBA_DISABLE_JIT": "0" if with_numba else "1",
            "NUMBA_CACHE_DIR": str(state / "kernels"),
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "mutating.worker", str(tree)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def baseline(self, name: str) -> None:
        """Run the tests without a mutant, which sets the limits of those with one."""
        for _ in range(1 + self._with_numba):  # the first may compile
            found = self._ask(name, None)
        if found["outcome"] != "survived":
            raise SystemExit(f"error: tests of {name} fail as it is: {found['said']}")
        self._test_limit_s = max(4.0, 5.0 * found["slowest_s"])

    def run(self, name: str, index: int) -> str:
        """Return what became of a mutant."""
        return str(self._ask(name, index)["outcome"])

    def _ask(self, name: str, index: int | None) -> dict[str, Any]:
        job = {"tests": TARGETS[name], "path": name, "index": index}
        job |= {"limit_s": _LIMIT_S, "test_limit_s": self._test_limit_s}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


if __name__ == "__main__":
    sys.exit(main())
