"""Results: a table for people, one JSON object for machines, a file for the record."""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphsys.core.machine import describe_machine
from graphsys.core.memory import format_bytes

if TYPE_CHECKING:
    from bench.harness import Row, Runs

_PLACE = re.compile(r"([ =,])/[^ ,]+")
ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).resolve().parent / "results"
STAMP = ("command", "commit", "date", "hardware", "load_average")
"""What every row of a result states, or all of them together in ``machine``."""


def refuse_dirty_tree() -> None:
    """End with an error where a result would state a commit that was not measured."""
    changed = git("status", "--porcelain", "--", ":/", ":!/scripts/bench/results")
    if changed:
        first = changed.splitlines()[0].split(maxsplit=1)[-1]
        sys.exit(
            f"error: the tree has changes that are not committed ({first}), and a result "
            "states the commit that was measured; commit them, or leave out --save"
        )


def parser_of(docstring: str | None) -> argparse.ArgumentParser:
    """Return a parser that describes a case by the first line of its docstring."""
    return argparse.ArgumentParser(description=(docstring or "").splitlines()[0])


def parsed(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Return a case's options, ``--save`` among them, which a dirty tree refuses."""
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args(arguments)
    if options.save:
        refuse_dirty_tree()
    return options


def stamp(command: str) -> dict[str, Any]:
    """Return what a row states of how, when and where it was measured, as of now.

    Args:
        command: As it was typed; folders of this machine are left out.

    Returns:
        ``command``, ``commit``, ``date``, ``hardware``, and ``load_average`` of the last
        minute.
    """
    return {
        "command": _PLACE.sub(r"\1FOLDER", command),
        "commit": commit(),
        "date": datetime.now(tz=UTC).strftime("%Y-%m-%d"),
        "hardware": hardware_name(describe_machine()),
        "load_average": os.getloadavg()[0],
    }


def result_path(case: str, hardware: str) -> Path:
    """Return ``results/<case>_<hardware>_<yyyymm>.json``."""
    return RESULTS / f"{case}_{hardware}_{datetime.now(tz=UTC):%Y%m}.json"


def newest(stem: str) -> Path:
    """Return the newest result whose name begins so, before its month."""
    return max(RESULTS.glob(f"{stem}_[0-9]*.json"))


def keep_record(case: str, rows: Sequence[Mapping[str, Any]], **facts: Any) -> Path:
    """Write stamped rows as a result, whole or not at all; return its file.

    Args:
        case: The first part of the file's name.
        rows: Each with what :func:`stamp` returned.
        facts: What else there is to say.
    """
    path = result_path(case, rows[0]["hardware"])
    RESULTS.mkdir(exist_ok=True)
    _write(path, {"case": case, **facts, "rows": rows})
    return path


def _write(path: Path, result: Mapping[str, Any]) -> None:
    """Write a result, whole or not at all; folders of this machine stay out of it."""
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(_without_folders(result), indent=1) + "\n")
    fresh.replace(path)


def _without_folders(found: Any) -> Any:
    """Return a result that names no places of this machine; files keep their names."""
    if isinstance(found, Mapping):
        return {
            name: _PLACE.sub(r"\1FOLDER", value)
            if name == "command" and isinstance(value, str)
            else _without_folders(value)
            for name, value in found.items()
        }
    if isinstance(found, str) and found.startswith("/"):
        return Path(found).name
    if isinstance(found, list | tuple):
        return [_without_folders(value) for value in found]
    return found


def known_rows(case: str) -> dict[str, dict[str, Any]]:
    """Return the rows that :func:`keep_record` wrote on such a machine, by their work.

    Args:
        case: The first part of the file's name.
    """
    path = result_path(case, hardware_name(describe_machine()))
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    return {row["work"]: row for row in rows}


def commit() -> str:
    """Return the commit that was measured, marked if more than results differs from it."""
    found = git("rev-parse", "--short=12", "HEAD")
    is_dirty = git("status", "--porcelain", "--", ":/", ":!/scripts/bench/results")
    return f"{found}-dirty" if found and is_dirty else found or "unknown"


def git(*arguments: str) -> str:
    """Return what git prints; nothing outside of a clone."""
    done = subprocess.run(
        ["git", *arguments],
        capture_output=True,
        text=True,
        cwd=Path(__file__).resolve().parent,
        check=False,
    )
    return done.stdout.strip()


def as_json(case: str, machine: dict[str, Any], rows: "Sequence[Row]") -> dict[str, Any]:
    """Return a result; its keys are a contract."""
    return {"case": case, "machine": machine, "rows": [asdict(row) for row in rows]}


def print_rows(rows: "Sequence[Row]", runs: "Sequence[Runs]") -> None:
    """Print one aligned line per row, with the spread of its runs."""
    table = [
        [
            "work",
            "system",
            "median s",
            "min-max",
            "rate",
            "peak",
            "vs best peer",
            "of limit",
        ]
    ]
    for row, kept in zip(rows, runs, strict=True):
        table.append(
            [
                row.work,
                row.system,
                f"{row.median_s:.3g}",
                f"{min(kept.seconds):.3g}-{max(kept.seconds):.3g}",
                f"{row.rate / 1e6:.3g} M {row.unit}",
                format_bytes(row.peak_bytes) if row.peak_bytes is not None else "-",
                f"{row.ratio_to_best_peer:.2f}x" if row.ratio_to_best_peer else "-",
                f"{row.fraction_of_limit:.0%}" if row.fraction_of_limit else "-",
            ]
        )
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join(cells).rstrip())
    for kept in runs:
        if kept.figures:
            told = ", ".join(f"{name} {value:.4g}" for name, value in kept.figures.items())
            print(f"{kept.work}, {kept.system}: {told}")
        for name, times in (("load", kept.load_s), ("compile", kept.compile_s)):
            if times and statistics.median(times) >= 0.01:
                print(
                    f"{kept.work}, {kept.system}: {name} {statistics.median(times):.2f} s"
                )


def save(result: dict[str, Any], *, keep_other_works: bool) -> Path:
    """Write a result to ``results/<case>_<hardware>_<yyyymm>.json``.

    Args:
        result: What :func:`as_json` returned.
        keep_other_works: Keep what the file says of works that were not run now; each
            run tells when and on which commit it was made.
    """
    path = result_path(result["case"], result["machine"]["hardware"])
    RESULTS.mkdir(exist_ok=True)
    if keep_other_works and path.exists():
        old = json.loads(path.read_text())
        done = {row["work"] for row in result["rows"]}
        for found, kept in (
            (result["rows"], old["rows"]),
            (result["machine"]["runs"], old["machine"]["runs"]),
        ):
            found[:0] = [item for item in kept if item["work"] not in done]
    _write(path, result)
    return path


def hardware_name(machine: dict[str, Any]) -> str:
    """Return a short name of the machine for file names.

    Examples:
        >>> cpu = {"model": "AMD EPYC-Milan Processor", "usable_cores": 2}
        >>> hardware_name({"cpu": cpu, "gpu": {"devices": []}})
        'amd-epyc-milan-2c'
    """
    model = re.sub(r"\(.*?\)|@.*|processor|cpu", " ", machine["cpu"]["model"].lower())
    name = "-".join(re.findall(r"[a-z0-9]+", model))
    name += f"-{machine['cpu']['usable_cores']}c"
    for device in machine["gpu"]["devices"][:1]:
        name += "-" + "-".join(re.findall(r"[a-z0-9]+", device["name"].lower()))
    return name
