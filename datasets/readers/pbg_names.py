"""What PyTorch-BigGraph's ``entity_path`` says: sizes and names of entities, relations.

References:
    torchbiggraph's documentation, "I/O format".
"""

import json
import re
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import InputError
from graphsys.datasets.files import describe

_COUNT: Final = re.compile(r"^entity_count_(.+)_(\d+)\.txt$")


class PbgNames:
    """Sizes and names beside PBG's edges; without names, entities are known by number.

    Args:
        folder: PBG's ``entity_path``.

    Raises:
        InputError: A file is damaged or does not fit the others.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sizes: dict[str, list[int]] = {}
        found: dict[str, dict[int, int]] = {}
        for path in sorted(folder.glob("entity_count_*.txt")):
            match = _COUNT.match(path.name)
            if match is None:
                raise InputError(f"{path}: expected entity_count_TYPE_PARTITION.txt")
            found.setdefault(match[1], {})[int(match[2])] = _count(path)
        for name, parts in found.items():
            if set(parts) != set(range(len(parts))):
                raise InputError(
                    f"{folder}: partitions of {name!r} are not 0 to {len(parts) - 1}"
                )
            self.sizes[name] = [parts[k] for k in range(len(parts))]
        self._dictionary: dict[str, Any] | None = None
        if (folder / "dictionary.json").exists():
            self._dictionary = self._read_dictionary(folder / "dictionary.json")

    def ids(self, entity: str, part: int) -> Any:
        """Return the names of a partition's entities in order, or their numbers.

        Returns:
            An Arrow array of strings, or int64: the offset in the partition plus the
            sizes of the partitions before, as the reader of the edges numbers them.
        """
        sizes = self.sizes[entity]
        begin = sum(sizes[:part])
        path = self.folder / f"entity_names_{entity}_{part}.json"
        if path.exists():
            return _texts(_json(path, list), sizes[part], path)
        if self._dictionary is None:
            return np.arange(begin, begin + sizes[part], dtype=np.int64)
        path = self.folder / "dictionary.json"
        listed = self._dictionary["entities"].get(entity, [])
        if len(listed) != sum(sizes):
            raise InputError(
                f"{path}: names {len(listed)} of {entity!r}, expected {sum(sizes)} as the "
                "entity_count files say"
            )
        return _texts(listed[begin : begin + sizes[part]], sizes[part], path)

    def relations(self) -> list[str] | None:
        """Return the names of the relations of the data, where there are some."""
        path = self.folder / "dynamic_rel_names.json"
        if path.exists():
            listed = _json(path, list)
            return [str(name) for name in _texts(listed, len(listed), path).to_pylist()]
        if self._dictionary is not None:
            return [str(name) for name in self._dictionary["relations"]]
        path = self.folder / "dynamic_rel_count.txt"
        return [str(k) for k in range(_count(path))] if path.exists() else None

    def _read_dictionary(self, path: Path) -> dict[str, Any]:
        content: dict[str, Any] = _json(path, dict)
        entities, relations = content.get("entities"), content.get("relations")
        if (
            not isinstance(entities, dict)
            or not all(isinstance(names, list) for names in entities.values())
            or not isinstance(relations, list)
        ):
            raise InputError(
                f"{path}: expected PBG's dictionary with lists of entities and relations"
            )
        return content


class PbgEntities:
    """The entities of one type: from a partition's offsets to ids.

    Raises:
        InputError: Names do not fit the sizes.
    """

    def __init__(self, names: PbgNames, entity: str) -> None:
        sizes = names.sizes[entity]
        self.offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        ids = [names.ids(entity, part) for part in range(len(sizes))]
        self._names = None if isinstance(ids[0], np.ndarray) else pa.concat_arrays(ids)

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def take(self, numbers: npt.NDArray[np.int64]) -> Any:
        """Return ids: names where there are some, else the numbers."""
        if self._names is None:
            return numbers
        return self._names.take(pa.array(numbers)).dictionary_encode()

    def numbers(
        self, file: str, local: npt.NDArray[Any], part: int
    ) -> npt.NDArray[np.int64]:
        """Return the numbers of entities given by their offsets in a partition.

        Raises:
            InputError: There is no such partition, or an offset is outside of it.
        """
        last = len(self.offsets) - 2
        if part > last:
            raise InputError(
                f"{file}: partition {part}, expected 0 to {last} as there are "
                "entity_count files"
            )
        size = int(self.offsets[part + 1] - self.offsets[part])
        if local.dtype.kind not in "iu" or (
            len(local) and (int(local.min()) < 0 or int(local.max()) >= size)
        ):
            raise InputError(
                f"{file}: an offset outside 0 to {size - 1} of partition {part}"
            )
        numbers: npt.NDArray[np.int64] = local.astype(np.int64) + self.offsets[part]
        return numbers


def _count(path: Path) -> int:
    text = path.read_text("utf-8", "replace").strip()
    if not text.isdecimal() or len(text) > 12:
        raise InputError(f"{path}: found {text[:40]!r}, expected a number of entities")
    return int(text)


def _json(path: Path, kind: type) -> Any:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as err:
        raise InputError(f"{path}: cannot be read as JSON: {describe(err)}") from err
    if not isinstance(content, kind):
        raise InputError(f"{path}: expected a JSON {kind.__name__} of names")
    return content


def _texts(names: list[Any], size: int, path: Path) -> pa.Array:
    if len(names) != size:
        raise InputError(f"{path}: {len(names)} names, expected {size}")
    try:
        return pa.array(names, type=pa.large_string())
    except (pa.ArrowException, TypeError) as err:
        raise InputError(f"{path}: expected a list of names: {describe(err)}") from err
