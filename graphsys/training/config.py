"""Settings of a training: from a preset or a file, with overrides; those nothing reads.

Most settings say what they are for where they are declared: ``applies`` lists it, separated
by commas, and one of them has to be there. It is the name of a model or a task, ``key =
value``, ``key = value or value``, ``key > number``, or an option of the command line, of
which settings know nothing. What is not at its default and for nothing that is there is
told, not refused.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from graphsys.core.caller_warnings import note
from graphsys.core.config import (
    apply_overrides,
    from_mapping,
    load_toml,
    with_todays_names,
    with_whole_lists,
)
from graphsys.core.errors import ConfigError, unknown_name
from graphsys.storage.runs.run_folder import RUN_NAME

T = TypeVar("T")

Parts = Mapping[str, Collection[str]]
"""By the setting that chooses one, such as ``model``, the names of ours."""

Reason = tuple[str, bool, str]
"""A setting, whether nothing reads it, and why."""


def require_evaluations(config: Any) -> None:
    """Check that a target can be reached: that something is evaluated, and compared.

    Args:
        config: The settings of either trainer.

    Raises:
        ConfigError: It cannot.
    """
    if config.target is not None and not config.eval_every:
        raise ConfigError(
            f"target: got {config.target} and eval_every 0, expected evaluations while "
            "training; set eval_every"
        )
    if config.stop_at_target and config.target is None:
        raise ConfigError(
            "stop_at_target: got true without target, expected a value to reach; set target"
        )


def require_config(config: object, cls: type, trainer: str) -> None:
    """Check that a program gives the trainer its own settings.

    Raises:
        ConfigError: It gives something else.
    """
    if not isinstance(config, cls):
        raise ConfigError(
            f"config: got {type(config).__name__}, expected {cls.__name__} for training "
            f"{trainer}; make one with {cls.__name__}(epochs=10), or leave it None"
        )


class ConfigLoader(Generic[T]):
    """Builds configs of a class from presets and files.

    Args:
        cls: The config class.
        folder: Folder of its presets.
        replaces: By key, others that an override of it replaces: what the preset or file
            says of those is dropped, then.
        check_run: Called with a run's folder and those of its settings that are not
            overridden; raises where they are not to be taken over.
    """

    def __init__(
        self,
        cls: type[T],
        folder: Path,
        replaces: Mapping[str, Iterable[str]] | None = None,
        check_run: Callable[[Path, Mapping[str, Any]], None] | None = None,
    ) -> None:
        self._cls, self._folder, self._replaces = cls, folder, dict(replaces or {})
        self._check_run = check_run

    def preset_names(self) -> list[str]:
        """Return the names of the presets, sorted."""
        return sorted(path.stem for path in self._folder.glob("*.toml"))

    def load(
        self,
        *,
        preset: str | None = None,
        file: str | Path | None = None,
        overrides: Iterable[str] = (),
    ) -> T:
        """Build a config from a preset or a file, with ``key=value`` overrides on top.

        Old names of keys are taken, with a note for each, but for those that a run of
        their day wrote itself.

        Args:
            preset: Name of a preset, or None.
            file: A TOML file, or None.
            overrides: Settings that replace those of either.

        Raises:
            ConfigError: Both are given, or a setting is wrong.
            UnknownNameError: There is no such preset.
        """
        given, where = self._read(preset, file)
        is_of_a_run = file is not None and (Path(file).parent / RUN_NAME).exists()
        given, _, old = with_todays_names(self._cls, given, (), f"{where}: ")
        _, settings, notes = with_todays_names(self._cls, {}, overrides, "")
        settings = with_whole_lists(self._cls, settings)
        for text in notes if is_of_a_run else [*old, *notes]:
            note(f"{where}: {text}; the old name is still read")
        merged = apply_overrides(given, settings)
        if is_of_a_run and self._check_run is not None:
            own = apply_overrides({}, settings)
            kept = {key: value for key, value in given.items() if key not in own}
            self._check_run(Path(str(file)).parent, kept)
        for key, replaced in self._replaces.items():
            if merged.get(key) and not given.get(key):
                for name in replaced:
                    if name in given and merged[name] == given[name]:
                        del merged[name]
        config = from_mapping(self._cls, merged, where=where)
        if preset is not None:
            chosen = sorted(given.keys() - apply_overrides({}, settings).keys())
            of_preset = tuple((name, getattr(config, name)) for name in chosen)
            object.__setattr__(config, "of_preset", of_preset)
        return config

    def _read(
        self, preset: str | None, file: str | Path | None
    ) -> tuple[dict[str, Any], str]:
        """Return the settings of a preset or a file, and what to call it in errors."""
        if preset is not None and file is not None:
            raise ConfigError(
                f"got preset {preset!r} and config file {file}; give one of them"
            )
        if preset is not None:
            if preset not in self.preset_names():
                raise unknown_name("preset", preset, self.preset_names())
            return load_toml(self._folder / f"{preset}.toml"), f"preset {preset}"
        if file is not None:
            return load_toml(Path(file)), Path(file).name
        return {}, "settings"


def unread(config: Any, reasons: Iterable[Reason], parts: Parts, where: str) -> list[str]:
    """Return a line for each setting that has no effect.

    What a preset chose is not told: nobody asked for it. What a user put in its place is.

    Args:
        config: The settings.
        reasons: What is not known from ``applies`` alone.
        parts: What settings are for by name.
        where: What the settings are beside, for the line.
    """
    found = {name: reason for name, is_unread, reason in reasons if is_unread}
    for field in dataclasses.fields(config):
        if field.name not in found and not is_read(config, field.name, parts):
            found[field.name] = f"it is for {field.metadata['applies']}"
    usual = type(config)()
    return [
        f"{name}={shown(value)} has no effect with {where}: {reason}"
        for name, reason in found.items()
        if (value := getattr(config, name)) != getattr(usual, name)
        and (name, value) not in config.of_preset
    ]


def is_read(config: Any, name: str, parts: Parts) -> bool:
    """Tell whether what a setting says that it is for is there.

    A part of others, such as a model, may read what it likes: of it nothing is known.

    Args:
        config: The settings.
        name: Of the setting.
        parts: What settings are for by name.

    Raises:
        ConfigError: The setting is for something that is none of ``parts`` and no ``key =
            value``: its declaration is wrong.
    """
    scopes = type(config).__dataclass_fields__[name].metadata["applies"]
    return not scopes or any(_is_there(config, it, parts) for it in scopes.split(", "))


def shown(value: object) -> str:
    """Return a value as messages have it: lists without their brackets."""
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value)


def _is_there(config: Any, scope: str, parts: Parts) -> bool:
    if scope == "torchrun" or scope.startswith("-"):  # settings do not say
        return True
    key, mark, value = scope.partition(" ")
    if mark:
        sign, _, wanted = value.partition(" ")
        chosen = getattr(config, key)
        if sign == ">":
            return bool(chosen > float(wanted)) and is_read(config, key, parts)
        if key in parts and chosen not in parts[key]:
            return True
        if isinstance(chosen, bool):
            chosen = str(chosen).lower()  # as a config has it
        given = chosen if isinstance(chosen, Mapping) else (str(chosen),)
        has = any(it in given for it in wanted.split(" or "))
        return has and is_read(config, key, parts)
    for setting, ours in parts.items():
        if scope in ours:
            chosen = getattr(config, setting)
            return scope == chosen or chosen not in ours
    raise ConfigError(f"setting for {scope!r}, expected a part or key = value")
