"""Parameters written as text: ``source=3``, ``damping=0.9``, ``parents=true``."""

import types
from collections.abc import Mapping, Sequence
from typing import Any, Union, get_args, get_origin

from graphsys.core.errors import ConfigError, unknown_name
from graphsys.engine.program import NodeId

_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def parse_parameters(
    pairs: Sequence[str], known: Mapping[str, Any], owner: str
) -> dict[str, Any]:
    """Read ``name=value`` pairs by the types of an algorithm's parameters.

    Args:
        pairs: The pairs.
        known: Types by name.
        owner: The algorithm, for messages.

    Raises:
        ConfigError: no pair, given twice, or a value of the wrong type.
        UnknownNameError: there is no such parameter; the message suggests the nearest.

    Examples:
        >>> known = {"source": NodeId, "damping": float}
        >>> parse_parameters(["source=7", "damping=0.9"], known, "x")
        {'source': '7', 'damping': 0.9}
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
        values[name] = _value(text, known[name], name, owner)
    return values


def _value(text: str, kind: Any, name: str, owner: str) -> Any:
    choices = _choices(kind)
    if type(None) in choices and text.lower() in ("none", "null", ""):
        return None
    for choice, read in ((bool, _truth), (int, int), (float, float)):
        if choice in choices:
            try:
                return read(text)
            except ValueError:
                continue
    numbers = {bool, int, float, type(None)}
    if choices and set(choices) <= numbers:
        names = " or ".join(c.__name__ for c in choices if c is not type(None))
        raise ConfigError(f"parameter {name!r} of {owner} is {names}, got {text!r}")
    return text


def _choices(kind: Any) -> tuple[Any, ...]:
    if get_origin(kind) in (Union, types.UnionType):
        return get_args(kind)
    return () if kind in (Any, NodeId) else (kind,)


def _truth(text: str) -> bool:
    if text.lower() not in _TRUTH:
        raise ValueError(text)
    return _TRUTH[text.lower()]
