"""Settings of a training from a preset or a file, with overrides on top."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from graphsys.core.config import apply_overrides, load_toml, with_todays_names
from graphsys.core.errors import ConfigError, unknown_name
from graphsys.core.notes import note
from graphsys.storage.runs.run_folder import RUN_NAME


def preset_names(folder: Path) -> list[str]:
    """Return the names of the presets in a folder, sorted."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def merge_settings(
    cls: type,
    presets: Path,
    *,
    preset: str | None,
    file: str | Path | None,
    overrides: Iterable[str],
) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Read settings of a config class; old names of keys are taken.

    There is a note for each, but for those that a run of their day wrote itself.

    Args:
        cls: The class.
        presets: Folder of its presets.
        preset: Name of a preset, or None.
        file: A TOML file, or None.
        overrides: ``key=value`` settings that replace those of either.

    Returns:
        The settings, those without overrides, and what to call their source in errors.

    Raises:
        ConfigError: Both sources are given, or one cannot be read.
        UnknownNameError: There is no such preset.
    """
    given: dict[str, Any] = {}
    where = "settings"
    if preset is not None and file is not None:
        raise ConfigError(f"got preset {preset!r} and config file {file}; give one of them")
    if preset is not None:
        if preset not in preset_names(presets):
            raise unknown_name("preset", preset, preset_names(presets))
        given, where = load_toml(presets / f"{preset}.toml"), f"preset {preset}"
    elif file is not None:
        given, where = load_toml(Path(file)), Path(file).name
    is_of_a_run = file is not None and (Path(file).parent / RUN_NAME).exists()
    given, _, old = with_todays_names(cls, given, (), f"{where}: ")
    _, overrides, notes = with_todays_names(cls, {}, overrides, "")
    for text in notes if is_of_a_run else [*old, *notes]:
        note(f"{where}: {text}; the old name is still read")
    return apply_overrides(given, overrides), given, where
