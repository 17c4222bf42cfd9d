"""Case ``billion``: one large graph through every verb, each a command of its own.

    scripts/bench/run billion [--scale 26] [--memory 8GB] [--folder FOLDER]
        [--steps build,verify,...] [--save]

An R-MAT graph of 2**scale nodes and 16 edges a node is made, verified, ranked, searched,
counted, embedded, sampled, asked and profiled; with --memory each command has this budget,
and a peak beyond it (and 32 MB, of a training 300 MB) is an error. Of every step: seconds,
edges/s, peak of RssAnon + RssShmem, bytes read from and written to the disk, and which
share of its time the rate that bounds it would take: disk, gathers from a table of 512 MB,
GEMM. What no later step needs is removed; free space is looked at first.

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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.child import tree_bytes
from bench.limits import Limits, measure_limits
from bench.output import commit, keep_record, refuse_dirty_tree, result_path, stamp
from graphsys.core.memory import format_bytes, parse_bytes
from graphsys.planning.task import Task, store_bytes

PEERS: Final[dict[str, str]] = {}
EDGE_FACTOR: Final = 16
ITERATIONS: Final = 5
DIM: Final = 64
SEEDS: Final = 1 << 16
SLACK: Final = 32 * 10**6
TORCH_SLACK: Final = 300 * 10**6
GEMM: Final = (500, DIM, 1000)
_TRAINING: Final = (
    f"dim={DIM}", "epochs=1", "num_batch_negatives=50", "num_uniform_negatives=50",
    "checkpoint_seconds=600",
)  # fmt: skip
_COMMAND: Final = (sys.executable, "-m", "graphsys")
_WATCH_S: Final = 0.02

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a run is of.

    Attributes:
        folder: Where its files are.
        scale: Logarithm of the nodes.
        memory: Budget of every command, empty for none.
    """

    folder: Path
    scale: int
    memory: str

    @property
    def num_edges(self) -> int:
        """Edges, directed."""
        return EDGE_FACTOR << self.scale

    @property
    def partitions(self) -> int:
        """Partitions of the store: four pairs of tables fit the budget."""
        tables = (DIM * 4 + 4) << self.scale
        budget = parse_bytes(self.memory) if self.memory else 8 * 10**9
        partitions = 4
        while 6 * tables // partitions > budget // 2:
            partitions *= 2
        return partitions

    @property
    def limit(self) -> list[str]:
        """The option that gives the budget."""
        return ["--memory", self.memory] if self.memory else []

    def work(self, name: str) -> str:
        """Return the name of a step's row."""
        return f"{name}, scale {self.scale}, {self.memory or 'no budget'}"

    def at(self, name: str) -> str:
        """Return the path of a file of the run."""
        return str(self.folder / name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command.

    Attributes:
        words: What is typed, of a setting.
        makes: What it leaves, by which it is known to be done.
        bound: Seconds that the rate which bounds it would take, of a setting, the limits
            and the row.
        after: What it needs is made by these steps.
        removes: What nobody needs after it.
        amount: Edges that it goes over, times how often.
        is_training: Whether torch may come on top of the budget.
    """

    words: Callable[[Setting], list[str]]
    makes: str
    bound: Callable[[Setting, Limits, Row], tuple[str, float]]
    after: tuple[str, ...] = ("build",)
    removes: tuple[str, ...] = ()
    amount: int = 1
    is_training: bool = False


def _disk(setting: Setting, limits: Limits, row: Row) -> tuple[str, float]:
    """Reading and writing what was read and written."""
    written = row["written_bytes"] / limits.disk_write_bandwidth
    return "disk", row["read_bytes"] / limits.disk_read_bandwidth + written


def _mapped(setting: Setting, limits: Limits, row: Row) -> tuple[str, float]:
    """Reading the whole store, from the page cache where it is there."""
    size = sum(it.stat().st_size for it in Path(setting.at("graph")).rglob("*.arrow"))
    return "cached read", size / limits.cached_read_bandwidth


def _gathers(times: float) -> Callable[[Setting, Limits, Row], tuple[str, float]]:
    def bound(setting: Setting, limits: Limits, row: Row) -> tuple[str, float]:
        return "gather", times * setting.num_edges / limits.gather_rate_large

    return bound


def _gemm(setting: Setting, limits: Limits, row: Row) -> tuple[str, float]:
    """Scores and gradients of an edge against 100 negatives, both sides."""
    flops = setting.num_edges * 2 * 3 * 2 * 100 * DIM
    return "GEMM", flops / limits.gemm_rate["x".join(map(str, GEMM))]


def _run(name: str, *params: str) -> Callable[[Setting], list[str]]:
    def words(setting: Setting) -> list[str]:
        given = [word for param in params for word in ("--param", param)]
        if name == "bfs":
            given = ["--param", f"source={_hub(setting)}"]
        out = ["-o", setting.at(f"{name}.parquet"), "--overwrite", "--json"]
        return ["run", name, setting.at("graph"), *given, *out, *setting.limit]

    return words


def _hub(setting: Setting) -> int:
    """Return the node with the largest rank."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    best, node = -1.0, 0
    with pq.ParquetFile(setting.at("pagerank.parquet")) as file:
        for batch in file.iter_batches(1 << 20):
            place = pc.index(batch["value"], pc.max(batch["value"])).as_py()
            if batch["value"][place].as_py() > best:
                best, node = batch["value"][place].as_py(), batch["id"][place].as_py()
    return int(node)


def _build(setting: Setting) -> list[str]:
    params = [f"scale={setting.scale}", f"edge_factor={EDGE_FACTOR}", "directed=true"]
    given = [word for param in params for word in ("--param", param)]
    more = ["--partitions", str(setting.partitions), "--overwrite", "--json"]
    return ["dataset", "build", "rmat", *given, "-o", setting.at("graph"), *more,
            *setting.limit]  # fmt: skip


def _train(setting: Setting) -> list[str]:
    given = [word for pair in _TRAINING for word in ("--set", pair)]
    out = ["-o", setting.at("run"), "--overwrite", "--json"]
    return ["train", "embedding", setting.at("graph"), *given, *out, *setting.limit]


def _nearest(setting: Setting) -> list[str]:
    return ["nearest", setting.at("run"), str(_hub(setting)), "-k", "10", "--json"]


def _profile(setting: Setting) -> list[str]:
    run = ["run", "wcc", setting.at("graph"), "-o", setting.at("again.parquet")]
    page = ["profile", "-o", setting.at("report.html"), "--overwrite", "--"]
    return [*page, *run, "--overwrite", *setting.limit]


def _sample(kind: str) -> Callable[[Setting], list[str]]:
    def words(setting: Setting) -> list[str]:
        out = setting.at(f"{kind}.json")
        return ["-m", "bench.billion_sampling", kind, setting.at("graph"), str(SEEDS), out]

    return words


STEPS: Final[Mapping[str, Step]] = {
    "build": Step(words=_build, makes="graph", bound=_disk, after=()),
    "verify": Step(
        words=lambda it: ["verify", it.at("graph"), "--json"], makes="", bound=_mapped
    ),
    "pagerank": Step(
        words=_run("pagerank", f"iterations={ITERATIONS}"), makes="pagerank.parquet",
        bound=_gathers(ITERATIONS), amount=ITERATIONS,
    ),
    "bfs": Step(
        words=_run("bfs"), makes="bfs.parquet", bound=_gathers(1),
        after=("build", "pagerank"), removes=("bfs.parquet",),
    ),
    "wcc": Step(
        words=_run("wcc"), makes="wcc.parquet", bound=_gathers(1),
        removes=("wcc.parquet",),
    ),
    "triangle_count": Step(
        words=_run("triangle_count"), makes="triangle_count.parquet", bound=_mapped,
        removes=("triangle_count.parquet",),
    ),
    "sage": Step(words=_sample("sage"), makes="sage.json", bound=_mapped),
    "pinsage": Step(words=_sample("pinsage"), makes="pinsage.json", bound=_mapped),
    "profile": Step(
        words=_profile, makes="report.html", bound=_gathers(1),
        removes=("again.parquet",),
    ),
    "embedding": Step(
        words=_train, makes="run", bound=_gemm, is_training=True
    ),
    "nearest": Step(
        words=_nearest, makes="", bound=_disk, after=("pagerank", "embedding")
    ),
}  # fmt: skip
"""In the order in which they run."""


def main(arguments: list[str]) -> int:
    """Run the steps; 0 if all were done within the budget."""
    options = _parse(arguments)
    if options.save:
        refuse_dirty_tree()
    names = options.steps.split(",") if options.steps else list(STEPS)
    for name in names:
        if name not in STEPS:
            sys.exit(f"error: --steps: got {name}; the case has {', '.join(STEPS)}")
    folder = options.folder or Path(tempfile.mkdtemp(prefix="graphsys-billion-"))
    setting = Setting(folder=folder, scale=options.scale, memory=options.memory)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _require_room(setting)
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
    parser.add_argument("--save", action="store_true", help="keep rows in results/")
    return parser.parse_args(arguments)


def _require_room(setting: Setting) -> None:
    """End with an error where the disk would not do."""
    nodes = 1 << setting.scale
    task = Task(
        num_nodes=nodes, num_edges=setting.num_edges, machines=1, memory=0,
        partitions=setting.partitions, dim=DIM, supersteps=ITERATIONS,
    )  # fmt: skip
    # scratch of the build, two checkpoints of the tables, two outputs of algorithms
    needed = store_bytes(task) + 16 * setting.num_edges + nodes * (2 * (4 * DIM + 4) + 32)
    there = sum(it.stat().st_size for it in setting.folder.rglob("*") if it.is_file())
    free = shutil.disk_usage(setting.folder).free + there
    if needed > free:
        sys.exit(
            f"error: scale {setting.scale} takes {format_bytes(needed)} in the folder, and "
            f"{format_bytes(free)} is free; give a smaller --scale or another --folder"
        )


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
    own = _seconds_of(printed)
    edges = setting.num_edges * step.amount
    budget = parse_bytes(setting.memory) if setting.memory else None
    slack = TORCH_SLACK if step.is_training else SLACK
    is_kept = budget is None or peak <= budget + slack or words[0] == "-m"
    row: Row = {
        "work": setting.work(name),
        "step": name, "scale": setting.scale, "memory": setting.memory,
        "seconds": round(seconds, 2), "own_seconds": own,
        "edges_per_s": round(edges / seconds), "peak_bytes": peak,
        "read_bytes": moved[0], "written_bytes": moved[1],
        "bytes_per_edge": round(peak / setting.num_edges, 3),
        "io_per_edge": round(sum(moved) / setting.num_edges, 3),
        "exit_code": process.returncode,
        "verdict": "kept" if is_kept and not process.returncode else "BROKEN",
    }  # fmt: skip
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


def _seconds_of(printed: str) -> float | None:
    """Return the seconds that a command says of its own work."""
    try:
        told = json.loads(printed)
    except ValueError:
        return None
    seconds = told.get("seconds") if isinstance(told, dict) else None
    return None if seconds is None else round(float(seconds), 2)


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
