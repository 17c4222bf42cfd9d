"""Full disks: small file systems, and limits of a file's size, where commands write."""

import contextlib
import os
import random
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from torturing.judge import Verdict, ending, tree
from torturing.kills import Scene, scenes
from torturing.processes import Outcome, forked
from torturing.world import World, content


def case(world: World, draw: random.Random, verdict: Verdict) -> str:
    """Run a command that writes where there is too little room; the old output stays."""
    scene = draw.choice(scenes())
    inputs = tree(world.case)
    out = world.out / f"new{scene.suffix}"
    for line in scene.before:
        made = forked(_filled(line, world, out))
        if made.code:
            raise SystemExit(f"{made.arguments} fails: {made.err[-2000:]}")
    old = content(out) if scene.before else None
    used = sum(path.stat().st_size for path in world.out.rglob("*") if path.is_file())
    size = draw.choice((0, 4096, 1 << 14, 1 << 16, 1 << 18, draw.randrange(1 << 19)))
    is_mounted = draw.random() < 0.5
    what = f"disk: {scene.name}, {size} bytes {'free' if is_mounted else 'a file'}"
    with _small(world, used + size) if is_mounted else contextlib.nullcontext():
        setup = None if is_mounted else _limit(size)
        outcome = forked(_filled(scene.line, world, out), setup)
        _judge(verdict, world, outcome, out, old, what, scene)
    if tree(world.case) != inputs:
        verdict.fault("lost", f"{what}: an input was changed")
    verdict.count("cases")
    return what


def _judge(
    verdict: Verdict,
    world: World,
    outcome: Outcome,
    out: Path,
    old: object,
    what: str,
    scene: Scene,
) -> None:
    verdict.count("commands")
    kind = ending(outcome)
    if kind is not None:
        said = f"exit {outcome.code}: {outcome.err[-900:]}"
        verdict.fault(kind, f"{what}; {outcome.arguments!a:.200}: {said}")
        return
    verdict.count("refused" if outcome.code else "right")
    if outcome.code and old is not None and content(out) != old:
        verdict.fault(
            "lost", f"{what}: the old output is gone: {sorted(tree(world.out))[:30]}"
        )
    is_store = (out / "graph.json").exists()
    if is_store and forked(["verify", str(out)]).code:
        verdict.fault("lost", f"{what}: the store is damaged")
    left = [name for name in tree(world.out) if name.endswith((".new", ".tmp", ".part"))]
    if left:
        verdict.fault("litter", f"{what}: {left[:10]}")
    is_new = not scene.before and scene.name in ("ingest", "partition")
    if outcome.code and is_new and out.exists():
        verdict.fault("litter", f"{what}: {sorted(tree(world.out))[:10]} is left")


def _filled(line: tuple[str, ...], world: World, out: Path) -> list[str]:
    return [it.format(case=world.case, out=out) for it in line]


def _limit(size: int) -> Callable[[], None]:
    """Let no file grow beyond a size, in the child."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@contextlib.contextmanager
def _small(world: World, size: int):  # type: ignore[no-untyped-def]
    """Put the outputs on a file system of their own, of about a size."""
    kept = world.folder / "kept"
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(world.out, kept)
    pages = -(-size // 4096) + 2 * sum(1 for _ in world.out.rglob("*")) + 2
    command = [
        "mount",
        "-t",
        "tmpfs",
        "-o",
        f"size={pages * 4096}",
        "tmpfs",
        str(world.out),
    ]
    if os.getuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        yield
        return
    try:
        shutil.copytree(kept, world.out, dirs_exist_ok=True)
        yield
    finally:
        subprocess.run(["umount", "-l", str(world.out)], check=True)
