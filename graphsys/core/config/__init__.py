"""Base of the configs: frozen keyword-only dataclasses, read from and written as TOML.

A config class is a frozen dataclass whose fields are made with :func:`option`. Its values
come from a mapping (a TOML file with overrides applied); every value is checked once,
here, against the annotation and the limits of its field. An error starts with the file
and the path of the field: ``train.toml: relations.likes.weight: got -1, expected ...``.

Annotations understood: bool, int, float, str, ``Literal`` of strings, ``T | None``,
``tuple[T, ...]``, ``Mapping[str, T]`` and other config classes.
"""

import contextlib
import copy
import dataclasses
import json
import re
import tomllib
import typing
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from graphsys.core.config.values import REQUIRED as REQUIRED
from graphsys.core.config.values import Checked as Checked
from graphsys.core.config.values import OfPresets as OfPresets
from graphsys.core.config.values import aliases_of as aliases_of
from graphsys.core.config.values import build, plain_lists, renamed
from graphsys.core.config.values import check_settings as check_settings
from graphsys.core.errors import ConfigError
from graphsys.core.plain_files import read_plain

T = TypeVar("T")

_BARE_POINT = re.compile(r"[+-]?(\.\d+|\d+\.)([eE][+-]?\d+)?")
"""A number that Python and C read and TOML does not."""

Mapped = dict[str, Any]


def option(
    default: Any,
    help: str,
    *,
    minimum: float | None = None,
    above: float | None = None,
    maximum: float | None = None,
    choices: Callable[[], Iterable[str]] | None = None,
    plugins: str = "",
    group: str = "",
    applies: str = "",
    aliases: tuple[str, ...] = (),
    resumable: bool = False,
    values_before: Mapping[bool, str] = MappingProxyType({}),
    takes_files: bool = False,
) -> Any:
    """Declare a field: its default, its help text and the limits of its value.

    Args:
        default: The default; a mapping stands for "a fresh copy of it", REQUIRED for none.
        help: A sentence that ``--settings`` and an error about the key show.
        minimum: The smallest value allowed.
        above: A bound that the value must exceed.
        maximum: The largest value allowed.
        choices: Gives the strings allowed, which plug-ins may add to.
        plugins: Entry-point group of packages that add to them.
        group: The heading that ``--settings`` lists it under.
        applies: What it belongs to, where it does not always mean something: models ...
        aliases: Names that it had before; files with them are still read.
        resumable: Whether what goes on may have another value than what was begun.
        values_before: What it says today for the truth values that it had before.
        takes_files: Whether a choice of a user's own may be named by its Python file.
    """
    metadata = {
        "help": help,
        "minimum": minimum,
        "above": above,
        "maximum": maximum,
        "choices": choices,
        "plugins": plugins,
        "group": group,
        "applies": applies,
        "aliases": aliases,
        "resumable": resumable,
        "values_before": values_before,
        "takes_files": takes_files,
    }
    if isinstance(default, dict):
        return dataclasses.field(
            default_factory=lambda: copy.deepcopy(default), metadata=metadata
        )
    return dataclasses.field(default=default, metadata=metadata)


def load_toml(path: Path) -> Mapped:
    """Read a TOML file.

    Raises:
        ConfigError: The file is missing, unreadable or not TOML.
    """
    try:
        return tomllib.loads(read_plain(path).decode())
    except FileNotFoundError as err:
        raise ConfigError(f"config file {str(path)!r} does not exist") from err
    except (OSError, ValueError, RecursionError) as err:  # ValueError: too many digits
        raise ConfigError(f"{path}: not a readable TOML file: {err}") from err


def apply_overrides(mapping: Mapping[str, Any], overrides: Iterable[str]) -> Mapped:
    """Return a copy of ``mapping`` with ``a.b=c`` settings applied, the last one winning.

    The right side is a TOML value, or a number such as ``.5`` or ``5.``; what is neither
    is taken as a string. Quote the part of a key that has dots:
    ``relations."x.y".weight=2``.

    Raises:
        ConfigError: A setting without ``=``, or one that goes below a plain value.

    Examples:
        >>> apply_overrides({"dim": 10}, ["dim=20", "loss=softmax", "relations.a.weight=2"])
        {'dim': 20, 'loss': 'softmax', 'relations': {'a': {'weight': 2}}}
    """
    result: Mapped = copy.deepcopy(dict(mapping))
    for setting in overrides:
        _merge(result, _parse_setting(setting), setting)
    return result


def with_whole_lists(cls: type, overrides: Iterable[str]) -> list[str]:
    """Write the lists among overrides of a config class as TOML has them.

    On a command line a list of plain values needs no brackets, and the shell takes quotes
    away: ``fanouts=5,5`` is ``fanouts=[5, 5]``, and so is ``features=[a,b]`` one of texts.
    What is no list after that stays as it is, for the check of its value to refuse.

    Args:
        cls: The class.
        overrides: ``key=value`` settings.

    Examples:
        >>> @dataclasses.dataclass(frozen=True, kw_only=True)
        ... class Trainer:
        ...     fanouts: tuple[int, ...] = option((), "neighbors by hop")
        ...     features: tuple[str, ...] = option((), "what is read")
        >>> with_whole_lists(Trainer, ["fanouts=5,5", "fanouts=[7]", "features=a,b"])
        ['fanouts=[5,5]', 'fanouts=[7]', 'features=["a", "b"]']
    """
    kinds = plain_lists(cls)
    found = []
    for setting in overrides:
        key, equals, value = setting.partition("=")
        kind = kinds.get(key.strip())
        found.append(
            f"{key}={_as_list(value.strip(), kind)}" if equals and kind else setting
        )
    return found


def from_mapping(cls: type[T], mapping: Mapping[str, Any], *, where: str = "") -> T:
    """Build a config from a mapping, checking every value.

    Args:
        cls: The config class.
        mapping: The values; fields left out keep their defaults.
        where: What the mapping was read from, for errors.

    Raises:
        ConfigError: An unknown key, a wrong type or a value out of range.

    Examples:
        >>> @dataclasses.dataclass(frozen=True, kw_only=True)
        ... class Trainer:
        ...     epochs: int = option(1, "passes over the edges", minimum=1)
        >>> from_mapping(Trainer, {"epochs": 3})
        Trainer(epochs=3)
        >>> from_mapping(Trainer, {"epochs": 0}, where="train.toml")
        Traceback (most recent call last):
        graphsys.core.errors.ConfigError: train.toml: epochs: got 0, expected an int >= 1
    """
    return typing.cast("T", build(cls, mapping, f"{where}: " if where else ""))


def with_todays_names(
    cls: type, mapping: Mapping[str, Any], overrides: Iterable[str], where: str
) -> tuple[Mapped, list[str], list[str]]:
    """Give settings of a config class the names of today, before they are merged.

    Args:
        cls: The class.
        mapping: What a file says.
        overrides: ``key=value`` settings.
        where: What the file is called, for errors.

    Returns:
        Both, renamed, and a note for every old name.

    Raises:
        ConfigError: The file gives a setting by both of its names.
    """
    todays = aliases_of(cls)
    used = [old for old in todays if old in mapping]
    given = dict(renamed(cls, mapping, where))
    settings = []
    for setting in overrides:
        key, equals, value = setting.partition("=")
        if key.strip() in todays:
            used.append(key.strip())
            key = todays[key.strip()]
        settings.append(f"{key}{equals}{value}")
    notes = [f"{old} is called {todays[old]} now" for old in dict.fromkeys(used)]
    return given, settings, notes


def to_mapping(config: Any) -> Mapped:
    """Return the values of a config, without those that are None."""
    return typing.cast("Mapped", _plain(config))


def to_toml(config: Any) -> str:
    """Write a config as TOML that :func:`from_mapping` reads back to an equal one."""
    lines: list[str] = []
    _write_table(to_mapping(config), (), lines)
    return "\n".join(lines).lstrip("\n") + "\n"


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """List where two nested mappings differ, as ``path: old -> new``, sorted by path."""
    flat_old, flat_new = (
        {".".join(at): it for at, it in _flatten(mapping)} for mapping in (old, new)
    )
    lines = []
    for path in sorted(flat_old.keys() | flat_new.keys()):
        before, after = flat_old.get(path, "unset"), flat_new.get(path, "unset")
        if before != after:
            lines.append(f"{path}: {before} -> {after}")
    return lines


def settings_by_key(
    mapping: Mapping[str, Any],
    is_value: Callable[[Mapping[str, Any]], bool] = lambda table: False,
) -> Mapped:
    """Return the settings in nested tables by the keys that overrides have.

    Args:
        mapping: The tables.
        is_value: Tells of a table that it is the value of a setting.

    Examples:
        >>> settings_by_key({"dim": 2, "relations": {"*": {"weight": 3}}})
        {'dim': 2, 'relations."*".weight': 3}
    """
    return {".".join(map(_toml_key, at)): it for at, it in _flatten(mapping, (), is_value)}


def as_overrides(settings: Mapping[str, Any]) -> list[str]:
    """Write settings by key as :func:`apply_overrides` takes them.

    Examples:
        >>> as_overrides({"dim": 2, "fanouts": [5, 10], "loss": "softmax"})
        ['dim=2', 'fanouts=[5, 10]', 'loss="softmax"']
    """
    return [f"{key}={_toml_value(value)}" for key, value in settings.items()]


def _parse_setting(setting: str) -> Mapped:
    key, equals, value = setting.partition("=")
    while equals and key.count('"') % 2:  # a quoted key may hold an equals sign
        more, equals, value = value.partition("=")
        key += "=" + more
    if not equals or not key.strip():
        raise ConfigError(f"setting {setting!r} has no key or no '='; write key=value")
    if _BARE_POINT.fullmatch(value.strip()):  # TOML wants a digit on both sides
        value = repr(float(value))
    for text in (value, json.dumps(value.strip(), ensure_ascii=False)):
        try:
            return tomllib.loads(f"{key} = {text}\n")
        except (ValueError, RecursionError):  # ValueError: too many digits
            continue
    raise ConfigError(f"setting {setting!r}: {key!r} is not a key; write a.b=value")


def _as_list(text: str, kind: type) -> str:
    """Return the TOML of a list of one kind of values, or the text where it is none."""
    inner = text[1:-1] if text[:1] == "[" and text[-1:] == "]" else text
    pieces = [piece.strip() for piece in inner.split(",")]
    quoted = ", ".join(json.dumps(piece, ensure_ascii=False) for piece in pieces)
    for candidate in (text, f"[{inner}]", f"[{quoted}]" if all(pieces) else ""):
        with contextlib.suppress(ValueError, RecursionError):
            values = tomllib.loads(f"x = {candidate}\n")["x"]
            if isinstance(values, list) and all(type(value) is kind for value in values):
                return candidate
    return text


def _merge(target: Mapped, source: Mapping[str, Any], setting: str) -> None:
    for key, value in source.items():
        if isinstance(value, dict) and value:
            inner = target.setdefault(key, {})
            if not isinstance(inner, dict):
                raise ConfigError(f"setting {setting!r}: {key} is a value, not a table")
            _merge(inner, value, setting)
        else:
            target[key] = value


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        pairs = {name: _plain(getattr(value, name)) for name in names}
        return {name: item for name, item in pairs.items() if item is not None}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _flatten(
    mapping: Mapping[str, Any],
    path: tuple[str, ...] = (),
    is_value: Callable[[Mapping[str, Any]], bool] = lambda table: False,
) -> Iterable[tuple[tuple[str, ...], Any]]:
    for key, value in mapping.items():
        if isinstance(value, Mapping) and not is_value(value):
            yield from _flatten(value, (*path, key), is_value)
        else:
            yield (*path, key), value


def _write_table(table: Mapped, path: tuple[str, ...], lines: list[str]) -> None:
    for key, value in table.items():
        if not isinstance(value, Mapping):
            lines.append(f"{_toml_key(key)} = {_toml_value(value)}")
    for key, value in table.items():
        if isinstance(value, Mapping):
            inner = (*path, key)
            lines.extend(["", f"[{'.'.join(_toml_key(part) for part in inner)}]"])
            _write_table(dict(value), inner, lines)


def _toml_key(key: str) -> str:
    return (
        key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)
    )


def _toml_value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_toml_value(item) for item in value)}]"
    if isinstance(value, Mapping):
        pairs = [f"{_toml_key(key)} = {_toml_value(item)}" for key, item in value.items()]
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, float):
        return repr(value) if value == value and abs(value) != float("inf") else str(value)
    return json.dumps(value, ensure_ascii=False)
