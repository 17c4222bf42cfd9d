"""Results of the CPU as checksums, computed beforehand and carried to the card.

``scripts/gpu_check --references`` computes them here. On a card a result is compared with
its checksums, and none of its minutes goes to a CPU that computes what is known.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

FILE = Path(__file__).with_name("references.json")
_CLOSE = 1e-5
"""Of floats, relative to the sum of absolute values: their sums are added in any order."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""What splitmix64's state grows by."""

Checksum = dict[str, Any]


def known() -> dict[str, Any]:
    """Return what was computed beforehand: checksums of columns, or counts, by case."""
    found: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {}
    return found


def checksums(table: Any) -> dict[str, Checksum]:
    """Return what tells the columns of an Arrow table from others, by their names.

    Integers have a hash of each value with its place; floats a sum, a sum with weights of
    -1 to 1 by place, and one of absolute values; all have the numbers of nulls and rows.
    """
    return {name: _checksum(table.column(name)) for name in table.column_names}


def differences(expected: dict[str, Checksum], found: dict[str, Checksum]) -> list[str]:
    """Return what differs between two results, a line a column; none if they are equal."""
    lines = []
    if sorted(expected) != sorted(found):
        lines.append(f"columns {sorted(found)} are not {sorted(expected)}")
    for name in sorted(set(expected) & set(found)):
        one, other = expected[name], found[name]
        for key in sorted(one.keys() | other.keys()):
            wanted, value = one.get(key), other.get(key)
            is_close = wanted == value
            if isinstance(wanted, float) and isinstance(value, float):
                is_close |= abs(wanted - value) <= _CLOSE * one["absolute"]
            if not is_close:
                lines.append(f"{name}: {key} {value} is not {wanted}")
    return lines


def flat(column: Any) -> npt.NDArray[Any]:
    """Return the values of a column that are there; of vectors, all components."""
    whole = column.drop_null().combine_chunks()
    values: npt.NDArray[Any] = whole.to_numpy(zero_copy_only=False)
    if width_of(column) > 1:
        values = whole.flatten().to_numpy()
    return values


def width_of(column: Any) -> int:
    """Return how many values each row of a column has."""
    return int(getattr(column.type, "list_size", 1))


def _checksum(column: Any) -> Checksum:
    is_null = column.is_null().to_numpy()
    values = flat(column)
    width = width_of(column)
    places = _bits(len(column) * width)[np.repeat(~is_null, width)]
    told: Checksum = {"rows": len(column), "nulls": int(is_null.sum())}
    if values.dtype.kind != "f":
        with np.errstate(over="ignore"):
            mixed = (values.astype(np.uint64) + np.uint64(1)) * (places | np.uint64(1))
            return told | {"hash": f"{int(mixed.sum(dtype=np.uint64)):016x}"}
    wide = values.astype(np.float64)
    weights = places.astype(np.float64) / 2.0**63 - 1.0
    return told | {
        "sum": float(wide.sum()),
        "weighted": float(wide @ weights),
        "absolute": float(np.abs(wide).sum()),
    }


def _bits(count: int) -> npt.NDArray[np.uint64]:
    """Return random bits of the places 0 to ``count - 1`` (splitmix64 of seed 0)."""
    from graphsys.kernels.cpu.hashing import hash_integers

    bits = np.empty(count, dtype=np.uint64)
    with np.errstate(over="ignore"):
        hash_integers(np.arange(count, dtype=np.uint64) * _GOLDEN, bits)
    return bits
