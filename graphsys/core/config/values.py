"""Values of a config class: built from a mapping, checked against their fields."""

import contextlib
import dataclasses
import difflib
import math
import numbers
import types
import typing
from collections.abc import Mapping
from typing import Any

from graphsys.core.errors import ConfigError

REQUIRED: Any = dataclasses.MISSING


class Checked:
    """A config class whose values are checked however it is made, in Python as in TOML."""

    def __post_init__(self) -> None:
        """Check every field; a whole number for a float is one, a list for a tuple, too.

        Raises:
            ConfigError: A value of the wrong type, out of range or not among the choices.
        """
        config: Any = self
        hints = typing.get_type_hints(type(self))
        for field in dataclasses.fields(config):
            value = getattr(self, field.name)
            found = _convert(value, hints[field.name], field.metadata, "", (field.name,))
            if found is not value:
                object.__setattr__(self, field.name, found)


@dataclasses.dataclass(frozen=True, kw_only=True)
class OfPresets(Checked):
    """A config class that knows what of it a preset chose, not its user.

    Attributes:
        of_preset: These settings with their values. No field, so that files, comparisons
            and lists of settings are without it; ``dataclasses.replace`` hands it on.
    """

    of_preset: dataclasses.InitVar[tuple[tuple[str, Any], ...]] = ()

    def __post_init__(self, of_preset: tuple[tuple[str, Any], ...]) -> None:
        """Keep it, and check every field.

        Raises:
            ConfigError: A value of the wrong type, out of range or not among the choices.
        """
        object.__setattr__(self, "of_preset", of_preset)
        super().__post_init__()


def aliases_of(cls: type) -> dict[str, str]:
    """Return the names of today by the names that fields of a config class once had."""
    return {
        alias: field.name
        for field in dataclasses.fields(cls)
        for alias in field.metadata.get("aliases", ())
    }


def plain_lists(cls: type) -> dict[str, type]:
    """Return the fields of a config class that are lists of texts or ints, and of what."""
    hints = typing.get_type_hints(cls)
    kinds = {
        field.name: typing.get_args(hints[field.name])[0]
        for field in dataclasses.fields(cls)
        if typing.get_origin(hints[field.name]) is tuple
    }
    return {name: kind for name, kind in kinds.items() if kind in (str, int)}


def build(cls: type, mapping: Any, where: str, path: tuple[str, ...] = ()) -> Any:
    """Build a config from a mapping.

    Args:
        cls: The config class.
        mapping: The values; fields left out keep their defaults.
        where: What to begin errors with.
        path: Keys of the tables around it.

    Raises:
        ConfigError: An unknown key, a wrong type or a value out of range.
    """
    if not isinstance(mapping, Mapping):
        raise _mismatch(mapping, f"a table such as {_table_like(cls)}", where, path)
    hints = typing.get_type_hints(cls)
    fields = {field.name: field for field in dataclasses.fields(cls)}
    mapping = renamed(cls, mapping, where)
    for key in mapping:
        if key not in fields:
            place = ".".join((*path, str(key)))
            raise ConfigError(f"{where}unknown key {place!r}; {_nearest(cls, str(key))}")
    values = {
        name: _convert(mapping[name], hints[name], field.metadata, where, (*path, name))
        for name, field in fields.items()
        if name in mapping
    }
    for name, field in fields.items():
        if name not in values and field.default is field.default_factory is REQUIRED:
            wanted = _wanted(hints[name], field.metadata)
            place = ".".join((*path, name))
            raise ConfigError(f"{where}{place} is missing, expected {wanted}")
    return cls(**values)


def check_settings(cls: type, mapping: Mapping[str, Any], where: str) -> None:
    """Check some settings of a config class one by one, not whether they go together.

    Args:
        cls: The config class.
        mapping: The settings.
        where: What to begin errors with.

    Raises:
        ConfigError: An unknown key, a wrong type or a value out of range.
    """
    hints = typing.get_type_hints(cls)
    fields = {field.name: field for field in dataclasses.fields(cls)}
    for key, value in mapping.items():
        if key not in fields:
            raise ConfigError(f"{where}unknown key {key!r}; {_nearest(cls, key)}")
        _convert(value, hints[key], fields[key].metadata, where, (key,))


def _nearest(cls: type, key: str) -> str:
    """Say which key may be meant, also by a name it once had, and what it is for."""
    fields = {field.name: field for field in dataclasses.fields(cls)}
    todays = {name: name for name in fields} | aliases_of(cls)
    close = difflib.get_close_matches(key, todays, n=1)
    if not close:
        return f"known: {', '.join(fields)}"
    name = todays[close[0]]
    help = fields[name].metadata.get("help", "")
    return f"did you mean {name!r}?{f' ({help})' if help else ''}"


def renamed(cls: type, mapping: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Return a mapping whose keys have their names of today.

    Raises:
        ConfigError: A setting is there by both of its names.
    """
    todays = dict(mapping)
    for old, new in aliases_of(cls).items():
        if old in todays:
            if new in todays:
                raise ConfigError(f"{where}{old}: got it beside {new}, its name; remove it")
            todays[new] = todays.pop(old)
    return todays


def _convert(
    value: Any, hint: Any, limits: Mapping[str, Any], where: str, path: tuple[str, ...]
) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        inner = next(argument for argument in arguments if argument is not type(None))
        return None if value is None else _convert(value, inner, limits, where, path)
    listed = limits.get("choices")
    if origin is typing.Literal or listed:
        known = tuple(listed()) if listed else arguments
        if isinstance(value, bool):
            value = limits.get("values_before", {}).get(value, value)
        if limits.get("takes_files") and isinstance(value, str) and ".py" in value:
            return value
        if value not in known:
            close = difflib.get_close_matches(str(value), known, n=1)
            more = f"; did you mean {close[0]!r}?" if close else ""
            if not close and limits.get("plugins"):
                more = (
                    "; install the package that brings it (entry point of "
                    f"{limits['plugins']})"
                )
            raise _mismatch(value, f"one of {', '.join(known)}{more}", where, path)
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise _mismatch(value, f"a list such as {_like(hint, {})}", where, path)
        places = [(*path[:-1], f"{path[-1]}[{k}]") for k in range(len(value))]
        return tuple(
            _convert(item, arguments[0], limits, where, place)
            for item, place in zip(value, places, strict=True)
        )
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            like = _like(hint, limits)
            raise _mismatch(value, f"a table by name such as {like}", where, path)
        return {
            key: _convert(v, arguments[1], limits, where, (*path, key))
            for key, v in value.items()
        }
    if dataclasses.is_dataclass(hint):
        if isinstance(value, typing.cast("type", hint)):
            return value
        return build(typing.cast("type", hint), value, where, path)
    return _scalar(value, hint, limits, where, path)


def _scalar(
    value: Any, hint: Any, limits: Mapping[str, Any], where: str, path: tuple[str, ...]
) -> Any:
    kind = {int: numbers.Integral, float: numbers.Real}.get(hint)
    if kind and isinstance(value, kind) and not isinstance(value, bool | hint):
        with contextlib.suppress(OverflowError):
            value = hint(value)
    wanted = _wanted(hint, limits)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise _mismatch(value, wanted, where, path)
    if hint in (int, float):
        low, above, high = (limits.get(name) for name in ("minimum", "above", "maximum"))
        is_low = (low is not None and value < low) or (above is not None and value <= above)
        is_finite = hint is int or math.isfinite(value)
        if not is_finite or is_low or (high is not None and value > high):
            raise _mismatch(value, wanted, where, path)
    return value


def _like(hint: Any, limits: Mapping[str, Any]) -> str:
    """Return a value of an annotation as TOML has it, for a message to show the form."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _like(arguments[0], limits)
    if origin is tuple and arguments[0] in (int, str):
        return "[5, 10]" if arguments[0] is int else '["a", "b"]'
    if origin is tuple:
        return f"[{_like(arguments[0], {})}]"
    if origin is not None and origin is not typing.Literal:
        return f"{{NAME = {_like(arguments[1], limits)}}}"
    if dataclasses.is_dataclass(hint):
        return _table_like(typing.cast("type", hint))
    if origin is typing.Literal or limits.get("choices"):
        return f'"{next(iter(arguments or limits["choices"]()))}"'
    return {bool: "true", int: "5", float: "0.5"}.get(hint, '"a"')


def _table_like(cls: type) -> str:
    """Return a table of a config class with what it must have, or else its first key."""
    fields, hints = dataclasses.fields(cls), typing.get_type_hints(cls)
    needed = [it for it in fields if it.default is it.default_factory is REQUIRED]
    pairs = [
        f"{it.name} = {_like(hints[it.name], it.metadata)}" for it in needed or fields[:1]
    ]
    return f"{{{', '.join(pairs)}}}"


def _wanted(hint: Any, limits: Mapping[str, Any]) -> str:
    if typing.get_origin(hint) is typing.Literal:
        return f"one of {', '.join(typing.get_args(hint))}"
    if hint is bool:
        return "a bool, true or false"
    bounds = [("minimum", ">="), ("above", ">"), ("maximum", "<=")]
    name = getattr(hint, "__name__", "value")
    return f"{'an' if hint is int else 'a'} {name}" + "".join(
        f" {sign} {limits[name]}" for name, sign in bounds if limits.get(name) is not None
    )


def _mismatch(value: Any, wanted: str, where: str, path: tuple[str, ...]) -> ConfigError:
    return ConfigError(f"{where}{'.'.join(path)}: got {_shown(value)}, expected {wanted}")


def _shown(value: Any) -> str:
    """Write a value for a message, cut where it is long."""
    try:
        text = repr(value)
    except ValueError:  # 0xff... may have more digits than Python writes
        return "an integer of thousands of digits"
    return text if len(text) <= 200 else f"{text[:197]}..."
