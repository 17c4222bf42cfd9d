"""Verify a training run: is every file what ``run.json`` says, and is no other there?

Both trainers' runs are alike in this: ``run.json`` has a checksum of itself and one for
every file of the checkpoint and for ``config.toml``. Preserved checkpoints inside a run
are runs themselves. Everything is hashed, whatever was looked at before.
"""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphsys.core.arrays import load_array
from graphsys.core.checksums import file_digest
from graphsys.core.config import load_toml
from graphsys.core.errors import ConfigError, CorruptStoreError, InvalidGraphError
from graphsys.core.ownership import CLAIM, is_claimed
from graphsys.core.plain_files import OUT_OF_FILES, parse_json, read_plain
from graphsys.core.progress import SILENT, Progress
from graphsys.core.threads import map_in_order
from graphsys.storage.folder_kinds import CONFIG_NAME, RUN_NAME, is_run_part
from graphsys.storage.locks import LOCK_NAME, is_locked
from graphsys.storage.runs.run_folder import read_content
from graphsys.storage.runs.run_pins import RunPin, pinned
from graphsys.storage.runs.run_replacement import STAGED_NAME
from graphsys.storage.verify.verify import VerifyReport, what_is_damaged

_LOG = "training.jsonl"
_OTHERS = ("checkpoints", "indexes", "tensorboard")  # folders that are no checkpoint's


def verify_run(path: Path, progress: Progress = SILENT) -> VerifyReport:
    """Read a whole run and report everything that is wrong with it.

    Raises:
        InvalidGraphError: There is no run.
    """
    was_busy = is_locked(path)
    problems = dict(_problems(path, progress, has_log=True, was_busy=was_busy))
    checkpoints = path / "checkpoints"
    for kept in sorted(checkpoints.iterdir()) if checkpoints.is_dir() else []:
        inner = kept.relative_to(path).as_posix()
        if not (kept / RUN_NAME).exists():
            if not (was_busy or is_locked(path)):  # else it is made, or goes, right now
                problems[inner] = "is no whole checkpoint; remove it"
            continue
        problems |= {f"{inner}/{name}": what for name, what in _problems(kept, progress)}
    return VerifyReport.of(problems)


def _problems(
    path: Path, progress: Progress, *, has_log: bool = False, was_busy: bool = False
) -> Iterator[tuple[str, str]]:
    pin: RunPin | None = None
    try:
        content, pin = pinned(path, lambda: read_content(path))
        yield from _problems_of(path, content, progress, has_log=has_log)
        is_busy = was_busy or is_locked(path) or not pin.is_current()
        if not is_busy:  # a training writes files before it lists them
            yield from _unlisted(path, dict(content["files"]))
    except FileNotFoundError as err:
        raise InvalidGraphError(f"{path} holds no graph and no run; expected one") from err
    except (CorruptStoreError, LookupError, ValueError, TypeError) as err:
        yield RUN_NAME, _without_path(err, path / RUN_NAME)
    finally:
        if pin is not None:
            pin.release()


def _problems_of(
    path: Path, content: dict[str, Any], progress: Progress, *, has_log: bool
) -> Iterator[tuple[str, str]]:
    files, checksums = dict(content["files"]), dict(content.get("checksums") or {})
    text = read_plain(path / RUN_NAME)
    canonical = json.dumps(parse_json(text), indent=1) + "\n"
    if "checksum" in parse_json(text) and text != canonical.encode():
        yield RUN_NAME, "is not byte for byte what its checksum stands for"
    yield from _config_problems(path)
    progress.stage("check", len(files), "files")
    names = list(dict.fromkeys((*files, *checksums)))

    def look(name: str) -> tuple[str, str | None]:
        return name, _what_is_wrong(path, name, files.get(name), checksums.get(name))

    for name, what in map_in_order(look, names):
        progress.advance(1)
        if what is not None:
            yield name, what
    if has_log:  # checkpoints inside of a run have none of their own
        yield from _log_problems(path, content)


def _what_is_wrong(path: Path, name: str, size: int | None, stated: Any) -> str | None:
    try:
        found = what_is_damaged(path.resolve(), name, size, RUN_NAME)
        if found is None and isinstance(stated, str) and file_digest(path / name) != stated:
            found = "does not match its checksum"
        if found is None and name.endswith(".npy"):
            load_array(path / name)
    except OSError as err:
        if err.errno in OUT_OF_FILES:
            raise
        return f"cannot be read: {(err.strerror or str(err)).lower()}"
    except (ValueError, EOFError) as err:
        return f"is no array: {' '.join(str(err).split())}"
    return found


def _config_problems(path: Path) -> Iterator[tuple[str, str]]:
    try:
        load_toml(path / CONFIG_NAME)
    except (ConfigError, OSError) as err:
        yield CONFIG_NAME, _without_path(err, path / CONFIG_NAME)


def _log_problems(path: Path, content: dict[str, Any]) -> Iterator[tuple[str, str]]:
    size, stated = content.get("log_bytes"), content.get("log_checksum")
    if not size or not stated:
        return
    with contextlib.suppress(OSError):
        found = (path / _LOG).stat().st_size
        if content.get("is_complete") and found > size:
            yield _LOG, f"has {found} bytes, {RUN_NAME} says {size}"
            return
        if file_digest(path / _LOG, num_bytes=size) == stated:
            return
    yield _LOG, f"does not begin with the {size} bytes that the checkpoint saw"


def _unlisted(path: Path, files: dict[str, int]) -> Iterator[tuple[str, str]]:
    known = {RUN_NAME, CONFIG_NAME, LOCK_NAME, STAGED_NAME, _LOG, *files}
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path).as_posix()
        is_plain = file.is_symlink() or not file.is_dir()
        if CLAIM.fullmatch(name) and is_claimed(path):
            continue  # a training was killed as it had committed
        if is_plain and name not in known and name.split("/")[0] not in _OTHERS:
            ours = "--resume removes what a kill left"
            foreign = "it is no file of a run, and stays until you move it away"
            yield (
                name,
                f"is not listed in {RUN_NAME}; {ours if is_run_part(name) else foreign}",
            )


def _without_path(err: Exception, path: Path) -> str:
    return " ".join(str(err).removeprefix(str(path)).lstrip(": ").split())
