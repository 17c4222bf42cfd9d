"""Damage: any file of a store or a run altered, then every verb."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from torturing.judge import Verdict, ending, judge, tree
from torturing.processes import installed
from torturing.world import RUNS, STORES, World, verbs_of

_TRAINED_ON: Final = {"words": "erun", "groups": "nrun"}


def flipped(path: Path, draw: random.Random) -> None:
    """Flip one to eight bits."""
    data = bytearray(path.read_bytes())
    for _ in range(draw.choice((1, 1, 1, 2, 8)) if data else 0):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    path.write_bytes(data)


def overwritten(path: Path, draw: random.Random) -> None:
    """Write other bytes over some, where they lie."""
    data = bytearray(path.read_bytes())
    if data:
        at = draw.randrange(len(data))
        size = min(draw.choice((1, 4, 8, 64)), len(data) - at)
        fill = draw.choice((b"\0", b"\xff", b"\x7f"))
        data[at : at + size] = fill * size if draw.random() < 0.5 else draw.randbytes(size)
    path.write_bytes(data)


def cut(path: Path, draw: random.Random) -> None:
    """Cut the end off."""
    size = path.stat().st_size
    os.truncate(path, draw.choice((size - 1, size // 2, draw.randrange(size + 1))))


def emptied(path: Path, draw: random.Random) -> None:
    """Leave nothing in it."""
    path.write_bytes(b"")


def removed(path: Path, draw: random.Random) -> None:
    """Remove it."""
    path.unlink()


def grown(path: Path, draw: random.Random) -> None:
    """Append bytes."""
    with path.open("ab") as file:
        file.write(draw.choice((b"\0", b"\n", path.read_bytes(), draw.randbytes(100))))


def zeroed(path: Path, draw: random.Random) -> None:
    """Zero a page, or what there is of it."""
    data = bytearray(path.read_bytes())
    begin = 4096 * draw.randrange(len(data) // 4096 + 1)
    data[begin : begin + 4096] = bytes(len(data[begin : begin + 4096]))
    path.write_bytes(data)


def made_folder(path: Path, draw: random.Random) -> None:
    """Put a folder in its place."""
    path.unlink()
    path.mkdir()


def made_pipe(path: Path, draw: random.Random) -> None:
    """Put a pipe in its place."""
    path.unlink()
    os.mkfifo(path)


def made_link(path: Path, draw: random.Random) -> None:
    """Put a link in its place: to nowhere, to itself, out of the folder."""
    path.unlink()
    path.symlink_to(draw.choice(("nowhere", path.name, "/etc/passwd", "/dev/zero")))


def swapped(path: Path, draw: random.Random) -> None:
    """Exchange it with another file of the same folder tree."""
    others = sorted(it for it in path.parents[1].rglob("*") if it.is_file() and it != path)
    if not others:
        return flipped(path, draw)
    other, held = draw.choice(others), path.with_name("held")
    path.rename(held)
    other.rename(path)
    held.rename(other)
    return None


def unreadable(path: Path, draw: random.Random) -> None:
    """Put in its place what Arrow or JSON begins like."""
    path.write_bytes(draw.choice((b"ARROW1\0\0", b"{", b"[" * 50_000, b"{}", b"null")))


KINDS: Final[tuple[Callable[[Path, random.Random], None], ...]] = (
    flipped,
    flipped,
    flipped,
    flipped,
    overwritten,
    overwritten,
    cut,
    emptied,
    removed,
    grown,
    zeroed,
    made_folder,
    made_pipe,
    made_link,
    swapped,
    unreadable,
)


def case(world: World, draw: random.Random, verdict: Verdict) -> str:
    """Damage one file, or two, and run every verb."""
    name = draw.choice((*STORES, *RUNS))
    root = world.case / name
    before = tree(root)
    what = "damage"
    for _ in range(draw.choice((1, 1, 1, 1, 2))):
        files = sorted(path for path in root.rglob("*") if path.is_file())
        path, kind = draw.choice(files), draw.choice(KINDS)
        kind(path, draw)
        what += f", {name}/{path.relative_to(root)} {kind.__name__}"
    if tree(root) == before:
        return what
    verdict.count("states")
    of = [name] + ([_TRAINED_ON[name]] if name in _TRAINED_ON else [])
    repeated = draw.random() < 0.1
    for each in of:
        verbs = verbs_of(each)
        chosen = draw.randrange(len(verbs)) if repeated else -1
        for place, verb in enumerate(verbs):
            wanted = world.answers[each, verb.name]
            if verb.name == "verify" and each == name:
                wanted = "a problem"
            outcome, answer = world.ask(each, verb)
            judge(verdict, outcome, answer, wanted, what)
            if place == chosen and ending(outcome) is None:
                _clean(world)
                plain = installed(world.line(verb, each))
                again = world.answer(verb, plain, world.output(verb))
                verdict.count("by_the_installed_command")
                judge(verdict, plain, again, wanted, f"{what} (installed)")
                if (plain.code == 0) != (outcome.code == 0):
                    said = f"{outcome.code} in a fork, {plain.code} by itself"
                    verdict.fault("unclear", f"{what}: {verb.name}: {said}: {plain.err}")
            _clean(world)
    verdict.count("cases")
    return what


def _clean(world: World) -> None:
    shutil.rmtree(world.out)
    world.out.mkdir()
