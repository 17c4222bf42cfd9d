"""Parameters written as text: ``source=3``, ``damping=0.9``, ``sources=3,7``."""

import collections.abc
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import numpy as np

from graphsys.core.errors import ConfigError, unknown_name
from graphsys.engine.program import NodeId

_MADE = (tuple, list, set, frozenset)
"""What a program may say of its own parameters, and gets."""
_SEQUENCES = (collections.abc.Iterable, collections.abc.Sequence, *_MADE)
_NAMES = {bool: "true or false", int: "a whole number", float: "a number"}
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def parse_parameters(
    pairs: Sequence[str], known: Mapping[str, Any], owner: str
) -> dict[str, Any]:
    """Read ``name=value`` pairs by the types of an algorithm's parameters.

    Several nodes are written ``3,7``; a number for each ``3=0.5,7=2`` (1 where it is left
    out), pairs ``3=7,3=9``. ``@FILE`` takes them from the lines of a file, where a number
    or the other node follows a tab.

    Args:
        pairs: The pairs.
        known: Types by name.
        owner: The algorithm, for messages.

    Raises:
        ConfigError: no pair, given twice, a value of the wrong type, or a file that cannot
            be read.
        UnknownNameError: there is no such parameter; the message suggests the nearest.

    Examples:
        >>> known = {"source": NodeId, "damping": float, "sources": Sequence[Any] | None}
        >>> parse_parameters(["source=7", "damping=0.9"], known, "x")
        {'source': '7', 'damping': 0.9}
        >>> parse_parameters(["sources=7,12"], known, "x")
        {'sources': ['7', '12']}
    """
    values: dict[str, Any] = {}
    for pair in pairs:
        name, separator, text = pair.partition("=")
        name = name.strip()
        if not separator or not name:
            raise ConfigError(f"--param takes name=value, got {pair!r}")
        if name not in known:
            raise unknown_name(f"parameter of {owner}", name, known)
        if name in values:
            raise ConfigError(f"parameter {name!r} of {owner} is given twice")
        values[name] = _value(text, known[name], f"parameter {name!r} of {owner}")
    return values


def fitted(value: Any, kind: Any, what: str) -> Any:
    """Return the value of a parameter as its type has it, or refuse it.

    Several nodes are a list after that, which may be gone through more than once.

    Args:
        value: What a program gives.
        kind: Type of the parameter.
        what: The parameter, for messages.

    Raises:
        ConfigError: It is of another type; the message shows the form.

    Examples:
        >>> fitted((n for n in (3, 7)), Sequence[Any] | None, "sources of x")
        [3, 7]
        >>> fitted("no", bool, "weighted of x")
        Traceback (most recent call last):
        graphsys.core.errors.ConfigError: weighted of x: got 'no', expected True or False
    """
    choices = [choice for choice in _choices(kind) if choice is not type(None)]
    if (value is None and type(None) in _choices(kind)) or len(choices) > 1:
        return value  # of several types: whoever reads it looks
    for choice in choices:
        origin, arguments = get_origin(choice) or choice, get_args(choice)
        if origin in (collections.abc.Mapping, dict):
            if not hasattr(value, "items"):
                raise _misfit(value, "numbers by id, such as {3: 0.5, 7: 2}", what)
        elif origin in _SEQUENCES:
            is_of_pairs = bool(arguments) and get_origin(arguments[0]) is tuple
            return _pairs_of(value, what) if is_of_pairs else _nodes_of(value, what)
        elif choice is bool and not _is_truth(value):
            raise _misfit(value, "True or False", what)
        elif choice in (int, float) and not isinstance(value, (int, float, np.number)):
            wanted = "a number or None" if type(None) in _choices(kind) else "a number"
            raise _misfit(value, wanted, what)
    return value


def _nodes_of(value: Any, what: str) -> list[Any]:
    if isinstance(value, str | bytes) or not isinstance(value, collections.abc.Iterable):
        raise _misfit(value, "a list of ids, such as [3, 7]", what)
    return list(value)


def _pairs_of(value: Any, what: str) -> list[tuple[Any, Any]]:
    wanted = "pairs of ids, such as [(3, 7), (3, 9)]"
    if isinstance(value, str | bytes) or not isinstance(value, collections.abc.Iterable):
        raise _misfit(value, wanted, what)
    found = []
    for pair in value:
        if isinstance(pair, str | bytes) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise _misfit(pair, wanted, what)
        found.append((pair[0], pair[1]))
    return found


def _is_truth(value: Any) -> bool:
    """Tell whether a value is True or False, or 1 or 0; "false" would be true."""
    return isinstance(value, bool | int | np.bool_ | np.integer) and value in (0, 1)


def _misfit(value: Any, wanted: str, what: str) -> ConfigError:
    return ConfigError(f"{what}: got {value!r:.60}, expected {wanted}")


def _value(text: str, kind: Any, what: str) -> Any:
    choices = _choices(kind)
    if type(None) in choices and text.lower() in ("none", "null", ""):
        return None
    for choice in choices:
        origin = get_origin(choice) or choice
        arguments = get_args(choice)
        if origin in (collections.abc.Mapping, dict):
            return _numbers_by_node(text, arguments[1] if arguments else float, what)
        if origin in _SEQUENCES:
            kind = arguments[0] if arguments else Any
            if get_origin(kind) is tuple:
                return _pairs(text, what)
            made = origin if origin in _MADE else list
            return made(_scalar(it, _choices(kind), what) for it in _pieces(text, what))
    return _scalar(text, choices, what)


def _scalar(text: str, choices: tuple[Any, ...], what: str) -> Any:
    for choice, read in ((bool, _truth), (int, int), (float, float)):
        if choice in choices:
            try:
                return read(text)
            except ValueError:
                continue
    numbers = {bool, int, float, type(None)}
    if choices and set(choices) <= numbers:
        names = " or ".join(_NAMES[c] for c in choices if c is not type(None))
        raise ConfigError(f"{what}: got {text!r}, expected {names}")
    return text


def _numbers_by_node(text: str, kind: Any, what: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for node, number in _halves(text, what):
        if node in found:
            raise ConfigError(f"{what} names node {node!r} twice")
        found[node] = 1 if not number else _scalar(number, (kind,), f"{what}, {node!r}")
    return found


def _pairs(text: str, what: str) -> list[tuple[str, str]]:
    found = _halves(text, what)
    for node, other in found:
        if not other:
            raise ConfigError(
                f"{what} takes pairs of nodes, got {node!r} alone; write 3=7,3=9, or a "
                "pair per line of a file, with a tab between: @FILE"
            )
    return found


def _halves(text: str, what: str) -> list[tuple[str, str]]:
    """Split every piece where its second half begins, which may be missing."""
    mark = "\t" if text.startswith("@") else "="
    halves = (piece.partition(mark) for piece in _pieces(text, what))
    return [(node.strip(), other.strip()) for node, _, other in halves]


def _pieces(text: str, what: str) -> list[str]:
    """Return what stands between commas, or in the lines of a file."""
    if text.startswith("@"):
        return _lines(Path(text[1:]), what)
    pieces = [piece.strip() for piece in text.split(",")]
    if not all(pieces):
        raise ConfigError(
            f"{what} has an empty node in {text!r}; write ids with a comma between, or "
            "name a file of one id per line: @FILE"
        )
    return pieces


def _lines(file: Path, what: str) -> list[str]:
    if not file.is_file():
        raise ConfigError(f"{what} names {file}, which is no file; after @ comes a file")
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as err:
        raise ConfigError(f"{file} is no text in UTF-8: {err.reason}") from err
    found = [line.strip() for line in lines if line.strip()]
    if not found:
        raise ConfigError(f"{file} names no node; write one id per line")
    return found


def _choices(kind: Any) -> tuple[Any, ...]:
    if get_origin(kind) in (Union, types.UnionType):
        return get_args(kind)
    return () if kind in (Any, NodeId) else (kind,)


def _truth(text: str) -> bool:
    if text.lower() not in _TRUTH:
        raise ValueError(text)
    return _TRUTH[text.lower()]
