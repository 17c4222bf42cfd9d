"""Types of columns as other systems have them."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.types as pt

from graphsys.core.errors import ConfigError

TypeOf = Callable[[pa.DataType], tuple[str, pa.DataType] | None]
"""Returns what a system calls a type, and what its values are cast to; None: has none."""


def fitted(
    table: pa.Table, type_of: TypeOf, where: str, system: str
) -> tuple[pa.Table, dict[str, str]]:
    """Return a table with types that a system has, and what it calls them by column.

    Raises:
        ConfigError: It has no such type, or a value does not fit.
    """
    columns, names = [], {}
    for name, column in zip(table.schema.names, table.columns, strict=True):
        found = type_of(column.type)
        if found is None:
            raise ConfigError(
                f"column {name!r} of {where} holds {column.type}, which {system} has no "
                "type for; give --format csr, which keeps it"
            )
        names[name], kind = found
        try:
            columns.append(column if column.type == kind else column.cast(kind))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as err:
            text = " ".join(str(err).split())
            raise ConfigError(
                f"column {name!r} of {where} does not fit {names[name]} of {system}: "
                f"{text}; give --format csr, which keeps it"
            ) from err
    return pa.table(columns, names=table.schema.names), names


def graphar_type(kind: pa.DataType) -> tuple[str, pa.DataType] | None:
    """Return what GraphAr calls a type; integers become int32 or int64."""
    if _list_value(kind) is not None:
        found = graphar_type(_list_value(kind))
        if found is None or found[0] not in ("int32", "int64", "float", "double", "string"):
            return None
        return f"list<{found[0]}>", pa.list_(found[1])
    if pt.is_integer(kind):
        is_small = pt.is_int32(kind) or kind.bit_width < 32
        return ("int32", pa.int32()) if is_small else ("int64", pa.int64())
    if pt.is_timestamp(kind) or pt.is_date64(kind):
        unit = kind.unit if pt.is_timestamp(kind) else "ms"
        return "timestamp", pa.timestamp("ms" if unit == "s" else unit)
    return _common(kind, ("bool", "float", "double", "string", "date"))


def icebug_type(kind: pa.DataType) -> tuple[str, pa.DataType] | None:
    """Return what a schema in Cypher calls a type; the files keep it, but for a few."""
    if (value := _list_value(kind)) is not None:
        found = icebug_type(value)
        if found is None:
            return None
        if pt.is_fixed_size_list(kind):
            size = kind.list_size
            return f"{found[0]}[{size}]", pa.list_(found[1], size)
        return f"{found[0]}[]", pa.list_(found[1])
    if pt.is_integer(kind):
        return str(kind).upper(), kind
    if pt.is_timestamp(kind) or pt.is_date64(kind):
        unit = kind.unit if pt.is_timestamp(kind) else "ms"
        return "TIMESTAMP", pa.timestamp("ms" if unit == "s" else unit)
    return _common(kind, ("BOOL", "FLOAT", "DOUBLE", "STRING", "DATE"))


def plain_type(kind: pa.DataType) -> tuple[str, pa.DataType]:
    """Return a type with dictionaries as their values: a file has one of each only."""
    return str(kind), kind.value_type if pt.is_dictionary(kind) else kind


def _common(
    kind: pa.DataType, names: tuple[str, str, str, str, str]
) -> tuple[str, pa.DataType] | None:
    if pt.is_boolean(kind):
        return names[0], kind
    if pt.is_float16(kind) or pt.is_float32(kind):
        return names[1], pa.float32()
    if pt.is_float64(kind):
        return names[2], kind
    text = kind.value_type if pt.is_dictionary(kind) else kind
    if pt.is_string(text) or pt.is_large_string(text) or pt.is_null(kind):
        return names[3], pa.string()
    return (names[4], kind) if pt.is_date32(kind) else None


def _list_value(kind: pa.DataType) -> pa.DataType | None:
    is_list = pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind)
    return kind.value_type if is_list else None
