"""As much of JSON Schema as the report's needs, checked by hand."""

from typing import Any

_TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "number": (int, float),
    "integer": int,
}
_KNOWN = {
    "$schema",
    "title",
    "description",
    "type",
    "required",
    "properties",
    "items",
    "enum",
    "minimum",
    "maximum",
    "additionalProperties",
}


def violations(schema: dict[str, Any], value: Any, path: str = "report") -> list[str]:
    """Return what of a value a schema forbids."""
    assert set(schema) <= _KNOWN, f"{path}: extend this checker by {set(schema) - _KNOWN}"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        return [f"{path}: {value!r} is no {' or '.join(kinds)}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{path}: {value!r} is not among {schema['enum']}")
    if "minimum" in schema and value is not None and value < schema["minimum"]:
        found.append(f"{path}: {value!r} is too small")
    if "maximum" in schema and value is not None and value > schema["maximum"]:
        found.append(f"{path}: {value!r} is too large")
    if isinstance(value, dict):
        known = schema.get("properties", {})
        found += [f"{path} lacks {k}" for k in schema.get("required", []) if k not in value]
        for key, inner in value.items():
            rule = known.get(key, schema.get("additionalProperties", {}))
            if known and key not in known and "additionalProperties" not in schema:
                found.append(f"{path}: {key} is not described")
            found += violations(rule, inner, f"{path}.{key}")
    if isinstance(value, list):
        for k, item in enumerate(value):
            found += violations(schema.get("items", {}), item, f"{path}[{k}]")
    return found


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool) and kind != "boolean":
        return False
    expected: Any = _TYPES[kind]
    return isinstance(value, expected)
