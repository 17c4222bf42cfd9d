"""Workers of a Ray cluster killed or stopped at random moments, or the command itself.

Each work is done once undisturbed. Then it is begun again on 2 to 4 local workers, and at a
random moment a worker is killed (SIGKILL), or the driver (whose command is typed again,
with ``--resume`` where it keeps checkpoints), or a worker is stopped for 20 seconds. Every
command must end by itself with the same result: tables to 1e-9, counts exactly; of
trainings, whose workers draw otherwise after a restart, a run that is whole and as good
within a tenth. ``gnn`` needs the Planetoid files of ../shared/data.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow.parquet as pq

from torturing.judge import FaultError, Verdict
from torturing.processes import installed
from torturing.world import World

WORKS: Final = ("run", "triangles", "mine", "embedding", "gnn")
HITS: Final = ("worker", "worker", "worker", "driver", "driver", "stop")
"""What is done, as often as it is named."""
STOPPED_S: Final = 20.0
LIMIT_S: Final = 900.0
"""How long a command may take after it was hit."""
TOLERANCE: Final = 0.1
"""How much worse or better a training may end, as a share."""
TRAININGS: Final = ("embedding", "gnn")
SETTINGS: Final = {
    "embedding": ["--preset", "demo-complex", "--set", "epochs=4", "--set", "dim=32"],
    "gnn": ["--set", "epochs=20", "--set", "batch_size=64", "--set", "dim=16"],
}
_undisturbed: dict[str, tuple[Any, float]] = {}
"""By work: its result without a hit, and the seconds that it took."""


def scene_names() -> list[str]:
    """Return the works that can be done here."""
    works = [it for it in WORKS if it != "gnn" or _planetoid().is_dir()]
    return [f"cluster {work}" for work in works]


def case(
    world: World, draw: random.Random, verdict: Verdict, only: Sequence[str] = ()
) -> str:
    """Hit a work once, and see that it ends well."""
    name = draw.choice(list(only) or scene_names()).removeprefix("cluster ")
    hit, workers = draw.choice(HITS), draw.randint(2, 4)
    what = f"cluster: {name} by {workers} workers, {hit}"
    try:
        what += _disturb(Work(name, world.folder / "cluster"), hit, workers, draw, verdict)
    except FaultError as err:
        verdict.fault(err.kind, f"{what}: {err}")
    verdict.count("cases")
    return what


class Work:
    """One command that is disturbed.

    Args:
        name: Of the work.
        folder: Where graphs are.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.graph = folder / ("cora" if name == "gnn" else "demo")
        if not self.graph.exists():
            source = ("--from", str(_planetoid())) if name == "gnn" else ()
            build = ("dataset", "build", self.graph.name, "-o", str(self.graph), *source)
            _require(installed([*build, "--partitions", "8"]))

    def words(self, out: Path, workers: int, *, resume: bool) -> list[str]:
        """Return the command line."""
        graph, where = str(self.graph), ["--cluster", f"local:{workers}"]
        if self.name == "run":
            words = ["run", "pagerank", graph, "-o", str(out / "ranks.parquet"), *where]
            words += ["--param", "iterations=300", "--param", "tolerance=1e-300"]
            words += ["--checkpoint", str(out / "kept"), "--checkpoint-every", "20"]
            words += ["--overwrite"]
        elif self.name == "triangles":
            out = out / "triangles.parquet"
            words = ["run", "triangle_count", graph, "-o", str(out), "--overwrite", *where]
        elif self.name == "mine":
            return ["mine", "motifs", graph, "4", "--json", *where]
        else:
            words = ["train", self.name, graph, "-o", str(out / "vectors"), *where]
            words += [] if resume else SETTINGS[self.name]
            words += [] if resume else ["--set", "checkpoint_seconds=0"]
        return [*words, *(["--resume"] if resume else [])]

    def can_resume(self, out: Path) -> bool:
        """Return whether a killed driver left something to go on from."""
        if self.name in ("triangles", "mine"):
            return False
        kept = "kept/checkpoint.json" if self.name == "run" else "vectors/run.json"
        return (out / kept).exists()

    def result(self, out: Path, printed: str) -> Any:
        """Return what a command has left, as numbers that can be compared."""
        if self.name == "mine":
            return json.loads(printed)["counts"]
        if self.name not in TRAININGS:
            name = "ranks" if self.name == "run" else "triangles"
            return pq.read_table(out / f"{name}.parquet").column("value").to_pylist()
        run = str(out / "vectors")
        _require(installed(["verify", run], limit_s=LIMIT_S))
        done = _require(installed(["evaluate", run, "--json"], limit_s=LIMIT_S))
        metrics = json.loads(done)["metrics"]
        return metrics["mrr" if self.name == "embedding" else "accuracy"]

    def require_equal(self, result: Any, expected: Any) -> None:
        """Refuse a result that is not the undisturbed one."""
        if self.name == "mine":
            found = 0.0 if result == expected else float("inf")
        else:
            ours, theirs = np.atleast_1d(result), np.atleast_1d(expected)
            if len(ours) != len(theirs):
                raise FaultError("silently_wrong", f"{len(ours)} values, not {len(theirs)}")
            scale = np.maximum(np.abs(theirs), 1e-300)
            found = float(np.max(np.abs(ours - theirs) / scale, initial=0.0))
        limit = TOLERANCE if self.name in TRAININGS else 1e-9
        if not found <= limit:
            raise FaultError("silently_wrong", f"differs by {found:.3g}, at most {limit}")

    def undisturbed(self) -> tuple[Any, float]:
        """Return the result without a hit, and how long it took, made once."""
        if self.name not in _undisturbed:
            out = self.folder / f"{self.name}.whole"
            for _ in range(2):  # the first run compiles
                shutil.rmtree(out, ignore_errors=True)
                out.mkdir()
                done = installed(self.words(out, 2, resume=False), limit_s=LIMIT_S)
                _require(done)
            _undisturbed[self.name] = self.result(out, done.out), done.seconds
        return _undisturbed[self.name]


def _disturb(
    work: Work, hit: str, workers: int, draw: random.Random, verdict: Verdict
) -> str:
    """Do a work, hit it once, and compare what it leaves; return what happened."""
    expected, length = work.undisturbed()
    out, begin = work.folder / "disturbed", time.monotonic()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    printed, said = out / "printed", out / "said"
    with printed.open("w") as output, said.open("w") as errors:
        program = [str(Path(sys.executable).parent / "graphsys")]
        driver = subprocess.Popen(
            [*program, *work.words(out, workers, resume=False)],
            stdout=output,
            stderr=errors,
        )
    below = _wait_for_workers(driver)
    time.sleep(draw.uniform(0, max(length - (time.monotonic() - begin), 1.0)))
    below = _workers_below(driver.pid) or below
    was_hit = _hit_one(driver, hit, below, draw)
    try:
        code = driver.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        driver.kill()
        raise FaultError("hangs", f"runs {LIMIT_S:.0f} s after it was hit") from None
    if not was_hit:
        verdict.count("ended_before_the_hit")
    else:
        verdict.count("stops" if hit == "stop" else "kills")
        verdict.count(f"{work.name}: {hit}")
    is_resumed = False
    if hit == "driver" and was_hit:
        _require_gone(below)
        is_resumed = work.can_resume(out)
        verdict.count("resumed", int(is_resumed))
        done = installed(work.words(out, workers, resume=is_resumed), limit_s=LIMIT_S)
        code = done.code
        printed.write_text(done.out)
        said.write_text(done.err)
    if code:
        raise FaultError("lost", f"ended with {code}: {said.read_text().strip()[-500:]}")
    work.require_equal(work.result(out, printed.read_text()), expected)
    return ", resumed" * is_resumed + ", over before" * (not was_hit)


def _workers_below(process: int) -> list[int]:
    """Return the Ray workers that a driver has started."""
    listed = subprocess.run(
        ["ps", "-e", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    )
    parents, names = {}, {}
    for line in listed.stdout.splitlines():
        pid, parent, *words = line.split(None, 2)
        parents[int(pid)], names[int(pid)] = int(parent), " ".join(words)

    def is_below(pid: int) -> bool:
        while pid in parents and pid != process:
            pid = parents[pid]
        return pid == process

    return [pid for pid, name in names.items() if "ray::Remote" in name and is_below(pid)]


def _wait_for_workers(driver: "subprocess.Popen[bytes]") -> list[int]:
    """Return the workers as soon as there are any; none where the command ended before."""
    end = time.monotonic() + LIMIT_S
    while driver.poll() is None and time.monotonic() < end:
        found = _workers_below(driver.pid)
        if found:
            return found
        time.sleep(0.1)
    return []


def _hit_one(
    driver: "subprocess.Popen[bytes]", hit: str, below: list[int], draw: random.Random
) -> bool:
    """Kill or stop a process; return whether it was still there."""
    if driver.poll() is not None or not below:
        return False
    target = driver.pid if hit == "driver" else draw.choice(sorted(below))
    try:
        os.kill(target, signal.SIGSTOP if hit == "stop" else signal.SIGKILL)
        if hit == "stop":
            time.sleep(STOPPED_S)
            os.kill(target, signal.SIGCONT)
    except ProcessLookupError:
        return False
    return True


def _require_gone(pids: list[int]) -> None:
    """Wait for the workers of a killed driver to end by themselves."""
    end = time.monotonic() + 60
    while any(_is_running(pid) for pid in pids):
        if time.monotonic() > end:
            raise FaultError(
                "litter", "workers of a killed driver were there after a minute"
            )
        time.sleep(0.1)


def _is_running(pid: int) -> bool:
    """Return whether a process is there and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _require(done: Any) -> str:
    """Return what a command printed; it must have ended well."""
    if done.code:
        said = f"{done.out}{done.err}".strip()[-500:]
        raise FaultError("lost", f"{' '.join(done.arguments)}: exit {done.code}: {said}")
    return str(done.out)


def _planetoid() -> Path:
    root = Path(__file__).resolve().parents[2]
    shared = Path(os.environ.get("GRAPHSYS_SHARED", root.parent / "shared"))
    return shared / "data" / "planetoid"
