"""Types and sense of what ``graph.json`` says, checked before anything trusts it."""

import dataclasses
import types
import typing
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

if typing.TYPE_CHECKING:
    from graphsys.storage.manifest import Manifest

ID_TYPES = ("int64", "large_string")
MAX_PARTITIONS = 4096
"""Of a node type."""


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
        _expect(isinstance(value, list), path, value, "a list")
        return [build(arguments[0], item, f"{path}[{k}]") for k, item in enumerate(value)]
    if origin is dict:
        _expect(isinstance(value, Mapping), path, value, "an object")
        return {key: build(arguments[1], v, f"{path}.{key}") for key, v in value.items()}
    if dataclasses.is_dataclass(hint):
        return _build_fields(hint, value, path)
    is_bool = isinstance(value, bool)
    _expect(
        isinstance(value, hint) and is_bool is (hint is bool), path, value, hint.__name__
    )
    return value


def _build_fields(cls: Any, value: Any, path: str) -> Any:
    _expect(isinstance(value, Mapping), path, value, "an object")
    hints = typing.get_type_hints(cls)
    unknown = sorted(value.keys() - hints.keys())
    if unknown:
        raise ValueError(f"{path}.{unknown[0]} is not a known field".lstrip("."))
    for field in dataclasses.fields(cls):
        has_default = field.default is not dataclasses.MISSING
        has_default |= field.default_factory is not dataclasses.MISSING
        if field.name not in value and not has_default:
            raise ValueError(f"{path}.{field.name} is missing".lstrip("."))
    return cls(**{key: build(hints[key], v, f"{path}.{key}") for key, v in value.items()})


def _expect(holds: bool, path: str, value: Any, wanted: str) -> None:
    if not holds:
        shown = repr(value)
        shown = shown if len(shown) <= 40 else shown[:37] + "..."
        raise ValueError(f"{path.lstrip('.')} is {shown}, expected {wanted}")


def check_sense(manifest: "Manifest") -> None:
    """Check what types alone do not say: counts, references, repeated files.

    Raises:
        ValueError: something cannot be; the message starts with the place.
    """
    _expect(manifest.generation >= 1, "generation", manifest.generation, "1 or more")
    for name, node in manifest.node_types.items():
        where = f"node_types.{name}"
        _expect(node.id_type in ID_TYPES, f"{where}.id_type", node.id_type, str(ID_TYPES))
        offsets = node.offsets
        ascends = len(offsets) > 1 and all(a <= b for a, b in pairwise(offsets))
        is_right = ascends and offsets[0] == 0 and offsets[-1] < 2**63
        _expect(is_right, f"{where}.offsets", offsets, "ascending numbers from 0")
        most, found = MAX_PARTITIONS, len(offsets) - 1
        _expect(found <= most, f"{where}.offsets", f"{found} partitions", f"at most {most}")
        for feature, entry in node.features.items():
            good = isinstance(entry.get("dim"), int) and isinstance(entry.get("dtype"), str)
            _expect(good, f"{where}.features.{feature}", entry, "dim and dtype")
    for name, edge in manifest.edge_types.items():
        for end in (edge.src_type, edge.dst_type):
            _expect(end in manifest.node_types, f"edge_types.{name}", end, "a node type")
        for split, count in edge.num_edges.items():
            _expect(count >= 0, f"edge_types.{name}.num_edges.{split}", count, "0 or more")
    paths = [entry.path for entry in manifest.files]
    repeated = sorted(paths)
    for path, following in pairwise(repeated):
        _expect(path != following, "files", path, "every file once")
    for file in manifest.files:
        where = f"files.{file.path}"
        for size in (file.bytes, file.rows):
            _expect(0 <= size < 2**63, where, size, "bytes and rows from 0 to 2**63 - 1")
