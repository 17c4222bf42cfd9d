"""A run's folder as both trainers read and write it: its checkpoint and its settings."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from graphsys.core.checksums import digest
from graphsys.core.config import difference, from_mapping, load_toml, to_mapping, to_toml
from graphsys.core.errors import ConfigError, CorruptStoreError, StorageFullError
from graphsys.core.memory import format_bytes
from graphsys.storage.manifest_check import build
from graphsys.storage.runs import run_folder
from graphsys.storage.runs.run_folder import CONFIG_NAME, RUN_NAME

State = TypeVar("State")
Config = TypeVar("Config")


def read_state(
    path: Path, cls: type[State], noun: str, command: str, *, kind: str = ""
) -> State:
    """Read ``run.json``.

    Args:
        path: The run's folder.
        cls: The dataclass of the trainer's states.
        noun: What its runs are called, for messages.
        command: The command that trains one.
        kind: What the file must say as its ``kind``; "" for anything.

    Raises:
        ConfigError: There is no run, or it is of another kind.
        CorruptStoreError: The file cannot be understood, or is of a newer format.
    """
    advice = f"train one with `{command} GRAPH -o RUN`"
    try:
        content = run_folder.read_content(path)
    except FileNotFoundError as err:
        raise ConfigError(f"{path} holds no {noun} (no {RUN_NAME}){err}; {advice}") from err
    if kind and content.get("kind") != kind:
        raise ConfigError(f"{path} is no run of a graph neural network; {advice}")
    try:
        state: State = build(cls, content)
    except (ValueError, TypeError) as err:
        raise CorruptStoreError(
            f"{path / RUN_NAME} cannot be read: {err}; train again or install a newer "
            "graphsys"
        ) from err
    return state


def read_config(path: Path, cls: type[Config]) -> Config:
    """Return the settings that a run was trained with."""
    mapping = load_toml(path / CONFIG_NAME)
    return from_mapping(cls, mapping, where=str(path / CONFIG_NAME))


def write_config(path: Path, config: Any) -> str:
    """Write the settings into a run's folder; return the file's checksum.

    Raises:
        StorageFullError: They cannot be written.
    """
    text = to_toml(config).encode()
    run_folder.write_durably(path / CONFIG_NAME, text)
    return digest(text)


def require_same_config(path: Path, config: Any) -> None:
    """Check that a run is resumed with its own settings.

    Raises:
        ConfigError: They differ; the message says where.
    """
    own = to_mapping(read_config(path, type(config)))
    changes = difference(own, to_mapping(config))
    if changes:
        raise ConfigError(
            f"the run {path} has other settings ({'; '.join(changes)}); resume it with "
            "its own, or train a new run"
        )


def run_config(
    out: str | Path,
    overrides: Iterable[str],
    load_config: Callable[..., Config],
    *,
    check: Callable[[Path], object] | None = None,
) -> Config:
    """Return the settings of the run that a resume goes on with.

    Args:
        out: Folder of the run.
        overrides: ``key=value`` settings on top, which a resume compares with the run's.
        load_config: The trainer's.
        check: Refuses a folder that is no run of the trainer's.

    Raises:
        ConfigError: There is no run, or a setting is wrong.
    """
    out = Path(out)
    run_folder.require_free(out, resume=True, overwrite=False)
    folder = run_folder.folder_to_train(out, resume=True, overwrite=False)
    if check is not None:
        check(folder)
    return load_config(file=folder / CONFIG_NAME, overrides=overrides)


def require_disk(out: Path, needed: int) -> None:
    """Check that two checkpoints fit on the disk before a run is begun.

    Raises:
        StorageFullError: They do not.
    """
    folder = next(p for p in (out.absolute(), *out.absolute().parents) if p.exists())
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise StorageFullError(
            f"the run takes {format_bytes(needed)} at {out} (two checkpoints) and "
            f"{format_bytes(free)} is free; free some space or choose another output"
        )


@contextmanager
def explained_full_disk(path: Path | None) -> Iterator[None]:
    """Say what a full disk leaves behind.

    Args:
        path: The run's folder; None where this process writes none.
    """
    try:
        yield
    except StorageFullError as err:
        if path is None:
            raise
        raise StorageFullError(
            f"{err}; the last checkpoint of {path} is whole: go on with --resume"
        ) from err
