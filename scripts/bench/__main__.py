"""``scripts/bench/run CASE``: measure one case."""

import argparse
import importlib
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import cases, output
from bench.child import ChildFailedError
from bench.harness import Row, Runs, WrongResultError, measure, missing_peers
from bench.limits import GEMM_SHAPES, measure_limits
from bench.load import QUIET_LOAD, LoadMeter
from graphsys.core.machine import describe_machine


def case_names() -> Iterator[str]:
    """Yield the modules of ``cases`` that are cases: the others are parts of them."""
    for folder in map(Path, cases.__path__):
        for file in sorted(folder.glob("*.py")):
            if re.search(r"^(PEERS|def main)\b", file.read_text(), re.MULTILINE):
                yield file.stem


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    known = list(case_names())
    parser = argparse.ArgumentParser(prog="scripts/bench/run", description=__doc__)
    parser.add_argument("case", choices=known)
    parser.add_argument("--quick", action="store_true", help="small sizes, under 3 minutes")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--save", action="store_true", help="write a file into results/")
    parser.add_argument("--rounds", type=int, help="timed rounds (default 5, quick 3)")
    parser.add_argument("--only", metavar="TEXT", help="only works whose name has TEXT")
    parser.add_argument(
        "--inputs", metavar="NAMES", help="inputs by name, where a case has several: a,b"
    )
    parser.add_argument("--peers", metavar="NAMES", help="leave the other peers out: a,b")
    parser.add_argument("--folder", type=Path, help="where the temporary files go")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Run one case; 0 if its results were right."""
    if "--save" in arguments:
        output.refuse_dirty_tree()  # before a case's imports, which may take seconds
    if arguments and arguments[0] in case_names():
        module = importlib.import_module(f"bench.cases.{arguments[0]}")
        if hasattr(module, "main"):  # no works in rounds: it measures, or prints, by itself
            return int(module.main(arguments[1:]))
    options = parse(arguments)
    case = importlib.import_module(f"bench.cases.{options.case}")
    known = getattr(case, "KNOWN_INPUTS", getattr(case, "INPUTS", ()))
    inputs = chosen(options.inputs, known, "inputs")
    peers = chosen(options.peers, case.PEERS, "peers")
    missing = missing_peers(case.PEERS)
    if missing:
        note(
            f"missing peers: {', '.join(missing)}; pip install 'graphsys[bench]', and "
            "scripts/bench/peer_environments for those with an environment of their own"
        )
    left_out = [name for name in case.PEERS if peers and name not in peers]
    if left_out:
        note(f"peers left out: {', '.join(left_out)}")
        missing += [name for name in left_out if name not in missing]
    rows: list[Row] = []
    runs: list[Runs] = []
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="graphsys-bench-") as name:
        folder = Path(name)
        note("measuring the machine's limits")
        counts_only = getattr(case, "COUNTS_ONLY", False)  # nothing is judged by a clock
        limits = measure_limits(
            folder,
            quick=options.quick or counts_only,
            gemm_shapes=getattr(case, "GEMM_SHAPES", GEMM_SHAPES),
        )
        rounds = options.rounds or (1 if counts_only else 3 if options.quick else 5)
        works = case.works(
            quick=options.quick,
            folder=folder,
            limits=limits,
            missing=missing,
            **({"inputs": inputs} if inputs else {}),
        )
        failed: list[str] = []
        with LoadMeter() as load:
            for work in works:
                if options.only and options.only not in work.name:
                    continue
                try:
                    new_rows, new_runs = measure(work, rounds=rounds, report=note)
                except (WrongResultError, ChildFailedError) as err:
                    # hours of other works are not thrown away for it
                    print(f"error: {work.name}: {err}", file=sys.stderr)
                    failed.append(work.name)
                    continue
                rows += new_rows
                runs += new_runs
        machine = describe_machine(folder)
    machine = describe_run(machine, arguments)
    conditions = {
        "load_average": load.load_average,
        "other_cpu_share": load.other_cpu_share,
        "is_quiet": load.is_quiet,
    }
    stamp = {name: machine[name] for name in ("command", "commit", "date", "hardware")}
    machine |= {
        "limits": limits.as_mapping(),
        **conditions,
        "missing_peers": missing,
        "runs": [{**kept.as_mapping(), **stamp, **conditions} for kept in runs],
    }
    result = output.as_json(options.case, machine, rows)
    if options.json:
        print(json.dumps(result))
    else:
        output.print_rows(rows, runs)
        note("load average {:.2f} to {:.2f}".format(*load.load_average))
        if not load.is_quiet:
            note(f"not quiet: the load was above {QUIET_LOAD}, and is saved as such")
        note(f"other processes used {load.other_cpu_share:.0%} of the processors")
    if options.save and rows:
        is_part = bool(options.only or inputs or failed)
        path = output.save(result, keep_other_works=is_part)
        note(f"wrote {path}")
    return int(bool(failed))


def chosen(given: str | None, known: Iterable[str], what: str) -> tuple[str, ...]:
    """Return the names given as ``a,b``; end with an error where one is not known."""
    names = tuple(name.strip() for name in (given or "").split(",") if name.strip())
    unknown = [name for name in names if name not in known]
    if unknown:
        found = ", ".join(known) or "none"
        sys.exit(f"error: --{what}: got {', '.join(unknown)}; the case has {found}")
    return names


def describe_run(machine: dict[str, Any], arguments: list[str]) -> dict[str, Any]:
    """Return the machine with what a result must state: command, commit, date."""
    machine["disk"].pop("folder")  # a temporary folder's name says nothing
    machine.pop("numba_cache")
    return machine | {
        "hardware": output.hardware_name(machine),
        "command": " ".join(["scripts/bench/run", *arguments]),
        "commit": output.commit(),
        "date": datetime.now(tz=UTC).strftime("%Y-%m-%d"),
    }


def note(text: str) -> None:
    """Tell how far it is."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
