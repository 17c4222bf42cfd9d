"""Settings that are not at their defaults and that nothing reads: told, not refused.

Most say what they are for where they are declared: ``applies`` lists it, separated by
commas, and one of them has to be there. It is the name of a model or a task, ``key =
value``, ``key = value or value``, ``key > number``, or an option of the command line, of
which settings know nothing.
"""

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from graphsys.core.errors import ConfigError

Parts = Mapping[str, Collection[str]]
"""By the setting that chooses one, such as ``model``, the names of ours."""

Reason = tuple[str, bool, str]
"""A setting, whether nothing reads it, and why."""


def unread(config: Any, reasons: Iterable[Reason], parts: Parts, where: str) -> list[str]:
    """Return a line for each setting that has no effect.

    What a preset chose is not told: nobody asked for it.

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
        if name not in config.of_preset
        and (value := getattr(config, name)) != getattr(usual, name)
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
        given = chosen if isinstance(chosen, Mapping) else (str(chosen),)
        has = any(it in given for it in wanted.split(" or "))
        return has and is_read(config, key, parts)
    for setting, ours in parts.items():
        if scope in ours:
            chosen = getattr(config, setting)
            return scope == chosen or chosen not in ours
    raise ConfigError(f"setting for {scope!r}, expected a part or key = value")
