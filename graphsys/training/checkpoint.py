"""A run's folder as both trainers read and write it: its checkpoint and its settings."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

from graphsys.core.caller_warnings import note
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
        command: What trains one, as a message says it.
        kind: What the file must say as its ``kind``; "" for anything.

    Raises:
        ConfigError: There is no run, or it is of another kind.
        CorruptStoreError: The file cannot be understood, or is of a newer format.
    """
    advice = f"train one with {command}"
    try:
        content = run_folder.read_content(path)
    except FileNotFoundError as err:
        found = f"holds no {noun} (no {RUN_NAME})" if path.exists() else "does not exist"
        raise ConfigError(f"{path} {found}{err}; {advice}") from err
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


def changed_settings(path: Path, config: Any) -> list[str]:
    """Return what a resume changes of a run's settings, as ``key: old -> new``.

    Raises:
        ConfigError: A setting that no resume may change; the message says which may be.
    """
    own, new = load_toml(path / CONFIG_NAME), to_mapping(config)
    # a user's file that the run names is not executed only to compare its place
    files = [it.name for it in fields(config) if it.metadata.get("takes_files")]
    placed = {name: own[name] for name in files if ".py" in str(own.get(name, ""))}
    own |= {name: new[name] for name in placed}
    built = from_mapping(type(config), own, where=str(path / CONFIG_NAME))
    changes = difference(to_mapping(built) | placed, new)
    free = [it.name for it in fields(config) if it.metadata.get("resumable")]
    free += [name for name in placed if _is_same_class(placed[name], new[name])]
    fixed = [it for it in changes if it.partition(":")[0] not in free]
    if fixed:
        raise ConfigError(
            f"the run {path} has other settings ({'; '.join(fixed)}); resume it with "
            f"its own, or train a new run (a resume may change {', '.join(free)})"
        )
    return changes


def _is_same_class(old: str, new: str) -> bool:
    """Tell whether two places are of files, and of a class of one name in them."""
    return ".py" in new and old.rpartition(":")[2] == new.rpartition(":")[2]


def require_epochs(path: Path, config: Any, epoch: int, step: int) -> None:
    """Check that a resume does not end before what was trained.

    Args:
        path: The run's folder.
        config: The settings to go on with.
        epoch: Epochs completed.
        step: Steps of the next one.

    Raises:
        ConfigError: It does.
    """
    least = epoch + (step > 0)
    if config.epochs < least:
        raise ConfigError(
            f"epochs: got {config.epochs}, but the run {path} was trained for {epoch} "
            f"epochs{' and a part' if step else ''}; expected at least {least}"
        )


def note_rates(config: Any, epochs: int) -> None:
    """Tell who lengthens a training that its rates are not those of one begun as long.

    Args:
        config: The settings to go on with.
        epochs: What it was begun for.
    """
    if config.lr_schedule in ("linear", "cosine") and config.epochs != epochs:
        note(
            f"lr_schedule = {config.lr_schedule} spans all epochs: the rest is trained "
            f"with the rates of a run of {config.epochs} epochs, what is trained had those "
            f"of {epochs}"
        )


def change_settings(path: Path, config: Any, state: Any) -> None:
    """Have a run go on with other settings.

    ``run.json`` and ``config.toml`` cannot be replaced in one step. In between the
    checkpoint lists no checksum of the settings, so that a kill leaves a whole run with
    either; the next resume seals it.

    Args:
        path: The run's folder, which this process writes.
        config: The settings.
        state: Its checkpoint, whose checksums are brought up to date.

    Raises:
        StorageFullError: They cannot be written; the run is whole.
    """
    state.checksums.pop(CONFIG_NAME, None)
    run_folder.write_content(path, asdict(state))
    state.checksums[CONFIG_NAME] = write_config(path, config)
    run_folder.write_content(path, asdict(state))


def is_sealed(state: Any) -> bool:
    """Tell whether a checkpoint lists the checksum of its settings, if it has any."""
    return not state.checksums or CONFIG_NAME in state.checksums


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
        overrides: ``key=value`` settings on top, which the resume may change.
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
