"""Types of what JSON says, checked before anything trusts it."""

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from typing import Any


def build(hint: Any, value: Any, path: str = "") -> Any:
    """Turn parsed JSON into dataclasses, lists and dictionaries of the annotated types.

    Args:
        hint: A dataclass, ``int``, ``str``, ``bool``, ``float``, ``Any``, ``T | None``,
            ``list[T]`` or ``dict[str, T]``.
        value: What JSON holds there.
        path: Its place, for errors.

    Raises:
        ValueError: a value of another type, an unknown field, or one that is missing; the
            message starts with the place.
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if origin in (typing.Union, types.UnionType):
        return None if value is None else build(arguments[0], value, path)
    if origin is list:
        expect(isinstance(value, list), path, value, "a list")
        return [build(arguments[0], item, f"{path}[{k}]") for k, item in enumerate(value)]
    if origin is dict:
        expect(isinstance(value, Mapping), path, value, "an object")
        return {key: build(arguments[1], v, f"{path}.{key}") for key, v in value.items()}
    if dataclasses.is_dataclass(hint):
        return _build_fields(hint, value, path)
    is_bool = isinstance(value, bool)
    expect(
        isinstance(value, hint) and is_bool is (hint is bool), path, value, hint.__name__
    )
    return value


@functools.cache
def _hints_of(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls)


@functools.cache
def _plain_types_of(cls: Any) -> dict[str, type] | None:
    """Return the fields of a class that has nothing but integers and texts, or None."""
    hints = _hints_of(cls)
    return hints if set(hints.values()) <= {int, str} else None


def _build_fields(cls: Any, value: Any, path: str) -> Any:
    plain = _plain_types_of(cls)  # as files are, of which there may be thousands
    is_full = plain and isinstance(value, dict) and value.keys() == plain.keys()
    if plain and is_full and all(type(v) is plain[key] for key, v in value.items()):
        return cls(**value)
    expect(isinstance(value, Mapping), path, value, "an object")
    hints = _hints_of(cls)
    unknown = sorted(value.keys() - hints.keys())
    if unknown:
        raise ValueError(f"{path}.{unknown[0]} is not a known field".lstrip("."))
    for field in dataclasses.fields(cls):
        has_default = field.default is not dataclasses.MISSING
        has_default |= field.default_factory is not dataclasses.MISSING
        if field.name not in value and not has_default:
            raise ValueError(f"{path}.{field.name} is missing".lstrip("."))
    return cls(**{key: build(hints[key], v, f"{path}.{key}") for key, v in value.items()})


def expect(holds: bool, path: str, value: Any, wanted: str) -> None:
    """Raise what :func:`build` raises, unless something holds."""
    if not holds:
        shown = repr(value)
        shown = shown if len(shown) <= 40 else shown[:37] + "..."
        raise ValueError(f"{path.lstrip('.')} is {shown}, expected {wanted}")
