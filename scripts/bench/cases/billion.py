"""Case ``billion``: one large graph through every verb, each a command of its own.

    scripts/bench/run billion [--scale 26] [--memory 8GB] [--folder FOLDER]
        [--steps build,verify,...] [--peers] [--save]

An R-MAT graph of 2**scale nodes and 16 edges a node is made, verified, ranked, searched,
counted, embedded, sampled, asked and profiled; with --memory each command has this budget,
and a peak beyond it (and 32 MB, of a training 300 MB) is an error. Of every step: seconds,
edges/s, peak of RssAnon + RssShmem, bytes read from and written to the disk, and which
share of its time the rate that bounds it would take: disk, gathers from a table of 512 MB,
GEMM. What no later step needs is removed; free space is looked at first.

With --peers DuckDB counts degrees and finds components of the same edges, and
PyTorch-BigGraph trains an epoch (``billion_peers``). Their rows name a ``system``, and
their rates are by ``own_seconds``, of the question alone: ours are to be compared by these.

With --folder the run goes on where it was, on another day too: a step is not repeated whose
row is known of this commit, scale and memory and whose output is there. --save keeps rows
one by one in results/.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bench.billion_steps import DIM, GEMM, ITERATIONS, STEPS, Row, Setting, Step
from bench.child import tree_bytes
from bench.limits import measure_limits
from bench.output import commit, keep_record, refuse_dirty_tree, result_path, stamp
from graphsys.core.memory import format_bytes, parse_bytes
from graphsys.planning.task import Workload, store_bytes

PEERS: Final[dict[str, str]] = {}
SLACK: Final = 32 * 10**6
TORCH_SLACK: Final = 300 * 10**6
_COMMAND: Final = (sys.executable, "-m", "graphsys")
_WATCH_S: Final = 0.02


def main(arguments: list[str]) -> int:
    """Run the steps; 0 if all were done within the budget."""
    options = _parse(arguments)
    if options.save:
        refuse_dirty_tree()
    every = [name for name, step in STEPS.items() if options.peers or not step.peer]
    names = options.steps.split(",") if options.steps else every
    for name in names:
        if name not in STEPS:
            sys.exit(f"error: --steps: got {name}; the case has {', '.join(STEPS)}")
    folder = options.folder or Path(tempfile.mkdtemp(prefix="graphsys-billion-"))
    setting = Setting(folder=folder, scale=options.scale, memory=options.memory)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _require_room(setting, names)
        rows = _Rows(_typed(arguments), folder, options.save)
        return _all_steps(setting, names, rows)
    finally:
        if options.folder is None:
            shutil.rmtree(folder)


def _typed(arguments: list[str]) -> str:
    """Return the command without the folder, which says nothing to others."""
    text = " ".join(["scripts/bench/run billion", *arguments])
    return re.sub(r" --folder[ =]\S+", "", text)


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/bench/run billion", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--scale", type=int, default=26, help="log2 of the nodes")
    parser.add_argument("--memory", default="8GB", help="budget of every command")
    parser.add_argument("--folder", type=Path, help="where the files are, and stay")
    parser.add_argument("--steps", help=f"some of {','.join(STEPS)}")
    parser.add_argument("--peers", action="store_true", help="DuckDB and PBG, too")
    parser.add_argument("--save", action="store_true", help="keep rows in results/")
    return parser.parse_args(arguments)


def _require_room(setting: Setting, names: list[str]) -> None:
    """End with an error where the disk would not do; it names a scale that fits."""
    there = sum(it.stat().st_size for it in setting.folder.rglob("*") if it.is_file())
    free = shutil.disk_usage(setting.folder).free + there
    needed = _room(setting, names)
    if needed > free:
        scales = range(setting.scale - 1, 0, -1)
        fitting = (s for s in scales if _room(replace(setting, scale=s), names) <= free)
        sys.exit(
            f"error: scale {setting.scale} takes {format_bytes(needed)} in the folder, and "
            f"{format_bytes(free)} is free; --scale {next(fitting, 1)} fits, or give "
            "another --folder"
        )


def _room(setting: Setting, names: list[str]) -> int:
    """Return the bytes of the store and of the step that takes most beside it."""
    nodes = 1 << setting.scale
    task = Workload(
        num_nodes=nodes,
        num_edges=setting.num_edges,
        machines=1,
        memory=0,
        partitions=setting.partitions,
        dim=DIM,
        supersteps=ITERATIONS,
    )
    scratch = 16 * setting.num_edges  # of the build, or of the triangles
    tables = 2 * nodes * (4 * DIM + 4) if "embedding" in names else 0  # two checkpoints
    outputs = 48 * nodes  # of three algorithms
    return int(store_bytes(task) + outputs + max(scratch, tables))


def _all_steps(setting: Setting, names: list[str], rows: "_Rows") -> int:
    limits = measure_limits(setting.folder, quick=True, gemm_shapes=(GEMM,))
    broken = 0
    for name in names:
        step = STEPS[name]
        known = rows.known(setting, name)
        made = not step.makes or (setting.folder / step.makes).exists()
        if known and (made or step.makes in step.removes):
            _tell(known, "known")
            continue
        missing = [
            it for it in step.after if not (setting.folder / STEPS[it].makes).exists()
        ]
        if missing:
            sys.exit(f"error: step {name} needs {', '.join(missing)}; run that first")
        row = _measured(setting, name, step)
        row["bound"], seconds = step.bound(setting, limits, row)
        row["fraction_of_bound"] = round(seconds / row["seconds"], 3)
        for made_here in step.removes:
            (setting.folder / made_here).unlink(missing_ok=True)
        rows.keep(row)
        _tell(row, row["verdict"])
        broken += row["verdict"] != "kept"
        if row["exit_code"]:
            sys.exit(f"error: step {name} failed: {row['said']}")
    return int(broken > 0)


def _measured(setting: Setting, name: str, step: Step) -> Row:
    """Run a step, and watch it."""
    words = step.words(setting)
    command = [*_COMMAND, *words] if words[0] != "-m" else [sys.executable, "-P", *words]
    began, peak, moved = time.perf_counter(), 0, (0, 0)
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=said, stderr=errors)
        while process.poll() is None:
            peak = max(peak, tree_bytes(process.pid))
            moved = _moved_bytes(process.pid) or moved
            time.sleep(_WATCH_S)
        seconds = time.perf_counter() - began
        said.seek(0)
        errors.seek(0)
        printed, told = said.read(), errors.read()
    own, sampled = _told(printed) if not step.amount else (_told(printed)[0], 0)
    edges = sampled or setting.num_edges * step.amount
    budget = parse_bytes(setting.memory) if setting.memory else None
    slack = TORCH_SLACK if step.is_training else SLACK
    is_kept = budget is None or peak <= budget + slack or words[0] == "-m"
    is_own_rate = own is not None and (sampled or step.peer)
    row: Row = {
        "work": setting.work(name),
        "step": name,
        "scale": setting.scale,
        "memory": setting.memory,
        "seconds": round(seconds, 2),
        "own_seconds": own,
        "edges_per_s": round(edges / (own if is_own_rate and own else seconds)),
        "peak_bytes": peak,
        "read_bytes": moved[0],
        "written_bytes": moved[1],
        "bytes_per_edge": round(peak / setting.num_edges, 3),
        "io_per_edge": round(sum(moved) / setting.num_edges, 3),
        "exit_code": process.returncode,
        "verdict": "kept" if is_kept and not process.returncode else "BROKEN",
    }
    if step.peer:
        row["system"] = step.peer
    if process.returncode:
        row["said"] = told.strip()[-500:].replace(str(setting.folder), "FOLDER")
    return row


def _moved_bytes(pid: int) -> tuple[int, int] | None:
    """Return the bytes that a process read from and wrote to disks so far."""
    try:
        text = Path(f"/proc/{pid}/io").read_text()
    except OSError:  # it has just ended
        return None
    found = dict(re.findall(r"(\w+): (\d+)", text))
    return int(found["read_bytes"]), int(found["write_bytes"])


def _told(printed: str) -> tuple[float | None, int]:
    """Return the seconds that a command says of its own work, and the edges it sampled."""
    try:
        told = json.loads(printed)
    except ValueError:
        return None, 0
    if not isinstance(told, dict) or "seconds" not in told:
        return None, 0
    seconds = float(told["seconds"])
    edges = told.get("edges", seconds * told.get("edges_per_second", 0))
    return round(seconds, 2), int(edges)


def _tell(row: Row, verdict: str) -> None:
    sizes = {
        name: format_bytes(row[f"{name}_bytes"]) for name in ("peak", "read", "written")
    }
    told = ", ".join(f"{name} {size}" for name, size in sizes.items())
    print(
        f"{row['work']:38} {row['seconds']:8.1f} s, {row['edges_per_s'] / 1e6:.2f} M "
        f"edges/s, {told}, {row['fraction_of_bound']:.0%} of {row['bound']}  {verdict}",
        flush=True,
    )


class _Rows:
    """Rows that are known, and kept: in the folder, and with --save in results/.

    Args:
        command: As it was typed.
        folder: The run's.
        is_saved: Whether rows are kept in results/.
    """

    def __init__(self, command: str, folder: Path, is_saved: bool) -> None:
        self._command, self._is_saved = command, is_saved
        self._path, self._commit = folder / "rows.json", commit()
        self._rows = _read_rows(self._path)

    def known(self, setting: Setting, name: str) -> Row | None:
        """Return the row of a step of this commit."""
        row = self._rows.get(setting.work(name))
        is_good = row is not None and not row["exit_code"]
        return (
            row if row is not None and is_good and row["commit"] == self._commit else None
        )

    def keep(self, row: Row) -> None:
        """Keep a row, at once."""
        self._rows[row["work"]] = {**row, **stamp(self._command)}
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps({"rows": list(self._rows.values())}))
        fresh.replace(self._path)
        if self._is_saved:
            path = result_path("billion", stamp(self._command)["hardware"])
            keep_record("billion", list((_read_rows(path) | self._rows).values()))


def _read_rows(path: Path) -> dict[str, Row]:
    found = json.loads(path.read_text())["rows"] if path.exists() else []
    return {row["work"]: row for row in found}


def works(**_: Any) -> list[Any]:
    """Return nothing: the case has a ``main`` of its own."""
    return []
