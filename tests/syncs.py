"""What reached the disk before what: fsync, and renames that make it count."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest


@dataclass
class Disk:
    """What would be left after a power cut at any moment.

    Attributes:
        files: Content of every file as it was synced last, by its path at that time.
        folders: Names in every folder as it was synced last.
        renames: Called with source and target before every rename.
        order: Paths synced, and targets of renames, in order.
    """

    files: dict[Path, bytes] = field(default_factory=dict)
    folders: dict[Path, set[str]] = field(default_factory=dict)
    renames: list[Callable[[Path, Path], None]] = field(default_factory=list)
    order: list[tuple[str, Path]] = field(default_factory=list)

    def holds(self, path: Path) -> bool:
        """Tell whether a file is durable as it is, under its name."""
        is_listed = path.name in self.folders.get(path.parent, ())
        return is_listed and self.files.get(path) == path.read_bytes()


def watch_disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Have fsync and renames of this process told to what is returned."""
    disk = Disk()
    fsync, replace, rename = os.fsync, os.replace, os.rename

    def seen_fsync(descriptor: int) -> None:
        fsync(descriptor)
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        disk.order.append(("sync", path))
        if path.is_dir():
            disk.folders[path] = set(os.listdir(path))
        else:
            disk.files[path] = path.read_bytes()

    def seen(move: Callable[..., None]) -> Callable[..., None]:
        def moved(source: Any, target: Any, **options: Any) -> None:
            old, new = Path(source), Path(target)
            for tell in disk.renames:
                tell(old, new)
            move(source, target, **options)
            disk.order.append(("rename", new))
            if old in disk.files:
                disk.files[new] = disk.files.pop(old)

        return moved

    monkeypatch.setattr(os, "fsync", seen_fsync)
    monkeypatch.setattr(os, "replace", seen(replace))
    monkeypatch.setattr(os, "rename", seen(rename))
    return disk


def require_durable_commits(disk: Disk) -> list[Path]:
    """Have every commit of a training run require that what it lists is on the disk.

    Returns:
        The ``run.json`` of the commits so far, as they come.
    """
    seen: list[Path] = []

    def look(source: Path, target: Path) -> None:
        if target.name == "run.json":
            stated = json.loads(disk.files[source])  # the draft, as it is on the disk
            missing = [
                name for name in stated["files"] if not disk.holds(target.parent / name)
            ]
            assert missing == []
            seen.append(target)

    disk.renames.append(look)
    return seen
