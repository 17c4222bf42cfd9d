"""Steps of the case ``billion`` killed at random moments, or with a disk that is full.

The steps are made once, undisturbed. Then one is begun again and killed (SIGKILL): what was
there before must still verify, and the command, typed again (a training with ``--resume``
where it left a checkpoint), must end with the same result. Or it is run where it may write
only a share of what it needs, by a small file system (as root) or a limit of a file's size:
it must end by itself, well or with one line that begins with ``error:``, and leave what was
there.
"""

import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow.parquet as pq
from bench.billion_steps import STEPS, Setting

from torturing.judge import FaultError, Verdict
from torturing.world import World

_PYTHON: Final = (sys.executable, "-P")
_SHARES: Final = (0.02, 0.3, 0.8)
_LIMIT_S: Final = 600.0
_TRAININGS: Final = ("embedding", "gnn")
_made: dict[str, tuple[float, int]] = {}
"""By step: the seconds that it takes undisturbed, and the bytes of its output."""


def scene_names() -> list[str]:
    """Return the steps."""
    return [f"billion {name}" for name, step in STEPS.items() if not step.peer]


def case(
    world: World,
    draw: random.Random,
    verdict: Verdict,
    only: Sequence[str] = (),
    *,
    scale: int,
    memory: str,
) -> str:
    """Kill a step, or fill its disk, and look at what is left."""
    name = draw.choice(list(only) or scene_names()).removeprefix("billion ")
    whole = Setting(folder=world.folder / "billion" / "whole", scale=scale, memory=memory)
    whole.folder.mkdir(parents=True, exist_ok=True)
    what = f"billion: {name}, scale {scale}, {memory}"
    try:
        seconds, size = _undisturbed(whole, name)
        if size and draw.random() < 0.5:
            room = int(size * draw.choice(_SHARES))
            what += f", room for {room} bytes"
            code = _on_a_full_disk(whole, name, room)
            verdict.count("refused" if code else "had_room")
        else:
            after = draw.uniform(0.1, max(seconds, 0.1))
            what += f", killed after {after:.2f} s"
            _kill(whole, name, after, verdict)
    except FaultError as err:
        verdict.fault(err.kind, f"{what}: {err}")
    verdict.count("cases")
    return what


def _kill(whole: Setting, name: str, after: float, verdict: Verdict) -> None:
    """Kill a step, look at what it left, and run it again."""
    with _Copy(whole, name) as setting:
        code, _ = _run(_command(setting, name), kill_after=after)
        verdict.count("kills", int(code == -signal.SIGKILL))
        _require_before(whole, setting, name)
        left = name in _TRAININGS and (setting.folder / STEPS[name].makes).exists()
        code, said = _run(_command(setting, name, resume=left))
        if code:
            raise FaultError("lost", f"after a kill: exit {code}: {said[-2000:]}")
        verdict.count("resumed", int(left))
        _require_equal(whole, setting, name)


def _command(setting: Setting, name: str, *, resume: bool = False) -> list[str]:
    words = STEPS[name].words(setting)
    if resume:
        words = ["--resume" if word == "--overwrite" else word for word in words]
    return [*_PYTHON, *words] if words[0] == "-m" else [*_PYTHON, "-m", "graphsys", *words]


def _run(
    command: list[str],
    *,
    kill_after: float | None = None,
    before: Callable[[], None] | None = None,
) -> tuple[int, str]:
    """Run a command in a session of its own; return its exit code and its errors."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
            preexec_fn=before,
        )
        try:
            process.wait(timeout=kill_after if kill_after is not None else _LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if kill_after is None:
                raise FaultError("hangs", f"{command} hangs") from None
        errors.seek(0)
        return process.returncode, errors.read()


def _undisturbed(setting: Setting, name: str) -> tuple[float, int]:
    """Make a step's output, once; return its seconds and the bytes it takes."""
    if name in _made:
        return _made[name]
    for needed in STEPS[name].after:
        _undisturbed(setting, needed)
    began = time.monotonic()
    code, said = _run(_command(setting, name))
    if code:
        raise FaultError("lost", f"{name} fails undisturbed: {said[-2000:]}")
    made = setting.folder / STEPS[name].makes
    files = [made, *made.rglob("*")] if STEPS[name].makes else []
    size = sum(file.stat().st_size for file in files if file.is_file())
    _made[name] = time.monotonic() - began, size
    return _made[name]


class _Copy:
    """A folder with what a step needs, and without what it makes."""

    def __init__(self, whole: Setting, name: str, at: Path | None = None) -> None:
        self._whole, self._name, self._at = whole, name, at

    def __enter__(self) -> Setting:
        folder = self._at or Path(tempfile.mkdtemp(dir=self._whole.folder.parent))
        self._folder = folder
        for needed in STEPS[self._name].after:
            made = self._whole.folder / STEPS[needed].makes
            copy = shutil.copytree if made.is_dir() else shutil.copy2
            copy(made, folder / made.name)
        return Setting(folder=folder, scale=self._whole.scale, memory=self._whole.memory)

    def __exit__(self, *_: object) -> None:
        if self._at is None:
            shutil.rmtree(self._folder)


def _on_a_full_disk(whole: Setting, name: str, room: int) -> int:
    """Run a step with little room; return its exit code."""
    disk = Path(tempfile.mkdtemp(dir=whole.folder.parent))
    needed = [whole.folder / STEPS[it].makes for it in STEPS[name].after]
    files = [file for made in needed for file in (made, *made.rglob("*"))]
    used = sum(-(-it.stat().st_size // 4096) * 4096 for it in files if it.is_file())
    mount = ["mount", "-t", "tmpfs", "-o", f"size={used + room + (1 << 16)}", "tmpfs"]
    is_small = (
        not os.getuid()
        and not subprocess.run(
            [*mount, str(disk)], capture_output=True, check=False
        ).returncode
    )

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    try:
        with _Copy(whole, name, disk) as setting:
            code, said = _run(_command(setting, name), before=None if is_small else limit)
            is_told = any(line.startswith("error:") for line in said.splitlines())
            if code and (code < 0 or "Traceback" in said or not is_told):
                raise FaultError("unclear", f"exit {code}: {said}")
            _require_before(whole, setting, name)
            if code and (setting.folder / "graph.json").exists():
                raise FaultError("lost", "leaves half a store")
        return code
    finally:
        if is_small:
            subprocess.run(["umount", "-l", str(disk)], check=True)
        shutil.rmtree(disk)


def _require_before(whole: Setting, setting: Setting, name: str) -> None:
    """Look at what a step needed: it must be as it was; and verify what it left."""
    for needed in STEPS[name].after:
        one, other = (it.folder / STEPS[needed].makes for it in (whole, setting))
        if _bytes_of(one) != _bytes_of(other):
            raise FaultError("lost", f"{name} changed {needed}'s output")
    made = setting.folder / STEPS[name].makes
    is_there = any((made / manifest).exists() for manifest in ("graph.json", "run.json"))
    if STEPS[name].makes and is_there:  # a killed writer leaves files, and no manifest
        _verify(made, name)


def _verify(made: Path, name: str) -> None:
    """Verify an output; files that a kill left unlisted are no fault of it."""
    command = [*_PYTHON, "-m", "graphsys", "verify", str(made)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    problems = [it for it in done.stdout.splitlines() if "what a kill left" not in it]
    if done.returncode and (problems or not done.stdout):
        raise FaultError(
            "lost", f"{name} left what does not verify: {done.stdout}{done.stderr}"
        )


def _bytes_of(path: Path) -> dict[str, int]:
    """Return sums of the files of an output."""
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    return {
        re.sub(r"gen-\d+", "gen", str(it.relative_to(path.parent))): zlib.crc32(
            it.read_bytes()
        )
        for it in files
    }


def _require_equal(whole: Setting, setting: Setting, name: str) -> None:
    """Compare an output with the undisturbed one: numbers of tables, bytes of stores."""
    made = STEPS[name].makes
    if not made:
        return
    one, other = whole.folder / made, setting.folder / made
    if name == "build":
        sums = [
            {file: it for file, it in _bytes_of(store).items() if file.endswith(".arrow")}
            for store in (one, other)
        ]
        if sums[0] != sums[1]:
            raise FaultError("silently_wrong", f"{name} after a kill makes another store")
    elif one.suffix == ".parquet" and name != "predict":
        tables = [pq.read_table(it) for it in (one, other)]
        for column in tables[0].column_names:
            left, right = (np.asarray(table[column]) for table in tables)
            if not np.allclose(left, right, rtol=1e-9, atol=0, equal_nan=True):
                raise FaultError(
                    "silently_wrong", f"{name} after a kill: column {column} differs"
                )
    elif not other.exists():
        raise FaultError("lost", f"{name} after a kill leaves no output")
    elif name in _TRAININGS:
        _verify(other, name)
