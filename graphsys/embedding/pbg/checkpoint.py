"""A checkpoint of PyTorch-BigGraph on disk: where its parts are, and what they hold.

PBG keeps ``embeddings_<type>_<partition>.v<N>.h5`` per partition, ``model.v<N>.h5`` with
the operators, and ``config.json``; ``checkpoint_version.txt`` says which N. Needs h5py
(extra "all").

What ``torch.save`` made of its optimizers lies there as bytes, ``optimizer/state_dict``.
They are read with ``weights_only``, which builds tensors and plain containers and nothing
else. Sums that are not there, or cannot be read so, start at 0, as in a new training.

References:
    torchbiggraph's documentation, "I/O format"; ``checkpoint_storage.py`` of 1.0.0.
"""

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphsys.core.deps import require
from graphsys.core.errors import InputError
from graphsys.datasets.readers.pbg_config import read_pbg_mapping
from graphsys.datasets.readers.pbg_names import PbgNames

Floats = npt.NDArray[np.float32]
_BLOCK: Final = 1 << 16
_DATASET: Final = "optimizer/state_dict"

# operator -> PBG's parameters, in the order of ours; dynamic ones have an s behind some
PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {
    "none": (),
    "diagonal": ("diagonal",),
    "translation": ("translation",),
    "linear": ("linear_transformation",),
    "affine": ("linear_transformation", "translation"),
    "complex_diagonal": ("real", "imag"),
}


@dataclass(frozen=True, kw_only=True)
class PbgCheckpoint:
    """A checkpoint of PBG, found and checked.

    Attributes:
        folder: Where it lies.
        version: Its number N.
        config: Content of its ``config.json``.
        names: Sizes and names of the entities.
    """

    folder: Path
    version: int
    config: dict[str, Any]
    names: PbgNames

    @property
    def is_dynamic(self) -> bool:
        """Whether relations have an operator on either side."""
        return bool(self.config.get("dynamic_relations", False))

    @property
    def relations(self) -> list[str]:
        """Names of the relations, in the order of their numbers."""
        listed = self.config["relations"]
        known = self.names.relations()
        if not self.is_dynamic:
            return [str(relation["name"]) for relation in listed]
        if known is None:
            raise InputError(
                f"{self.names.folder}: dynamic_rel_count.txt is missing, which says how "
                "many relations there are"
            )
        return known

    def dim(self, entity: str) -> int:
        """Return the dimension of a type's rows."""
        own = self.config["entities"][entity].get("dimension")
        return int(own or self.config["dimension"])

    def file(self, name: str) -> Path:
        """Return the path of a part of this version.

        Raises:
            InputError: It is missing.
        """
        path = self.folder / f"{name}.v{self.version}.h5"
        if not path.exists():
            raise InputError(f"{path} is missing from the checkpoint of PBG")
        return path


def open_checkpoint(folder: Path, entity_path: str | Path | None) -> PbgCheckpoint:
    """Find the current version of a checkpoint and the names of its entities.

    Raises:
        InputError: There is none, or its entity_path is not there.
    """
    path = folder / "checkpoint_version.txt"
    try:
        text = path.read_text("utf-8", "replace").strip()
    except OSError as err:
        raise InputError(
            f"{folder} holds no checkpoint of PBG (no {path.name}); give PBG's "
            "checkpoint_path"
        ) from err
    if not text.isdecimal() or len(text) > 12:
        raise InputError(f"{path}: found {text[:40]!r}, expected a version number")
    config = read_pbg_mapping(folder / "config.json")
    if not isinstance(config.get("relations"), list) or not config.get("dimension"):
        raise InputError(f"{folder / 'config.json'}: expected PBG's config")
    stated = Path(str(config.get("entity_path", "")))
    places = [stated, folder.parent / stated]
    if entity_path is not None:
        places = [Path(entity_path)]
    for place in places:
        if any(place.glob("entity_count_*.txt")):
            names = PbgNames(place)
            return PbgCheckpoint(
                folder=folder, version=int(text), config=config, names=names
            )
    raise InputError(
        f"{places[0]} holds no entity_count files; give PBG's entity_path as entity_path="
    )


def rows_of(
    found: PbgCheckpoint, entity: str, part: int, size: int, chosen: npt.NDArray[np.intp]
) -> Iterator[tuple[Floats, npt.NDArray[np.intp]]]:
    """Yield blocks of a partition's rows at chosen places, and the places.

    Args:
        found: The checkpoint.
        entity: The entity type.
        part: PBG's partition.
        size: Rows that it must have.
        chosen: Sorted places in it.

    Raises:
        InputError: The file is damaged, or has rows of another shape.
    """
    path = found.file(f"embeddings_{entity}_{part}")
    with opened(path) as file:
        if "embeddings" not in file:
            raise InputError(f"{path}: has no dataset 'embeddings'")
        table = file["embeddings"]
        if table.shape != (size, found.dim(entity)):
            raise InputError(
                f"{path}: rows of shape {table.shape}, expected {(size, found.dim(entity))}"
            )
        for begin in range(0, size, _BLOCK):
            low, high = np.searchsorted(chosen, [begin, begin + _BLOCK])
            if high > low:
                block = table[begin : begin + _BLOCK].astype(np.float32)
                yield block[chosen[low:high] - begin], chosen[low:high]


def opened(path: Path) -> Any:
    """Open an HDF5 file for reading.

    Raises:
        InputError: It is none.
    """
    h5py = require("h5py", extra="all")
    try:
        return h5py.File(path, "r")
    except OSError as err:
        raise InputError(f"{path}: cannot be read as HDF5: {err}") from err


def global_embedding(found: PbgCheckpoint, entity: str) -> Floats | None:
    """Return what PBG adds to all rows of a type, float32 ``[D]``, or None."""
    with opened(found.file("model")) as file:
        name = f"model/entities/{entity}/global_embedding"
        return np.asarray(file[name], dtype=np.float32) if name in file else None


def parameters_of(
    found: PbgCheckpoint,
    file: Any,
    number: int,
    side: str,
    sums: Mapping[str, Floats] | None,
) -> Floats:
    """Return a relation's operator on one side, or Adagrad's sums of it, flat.

    Args:
        found: The checkpoint.
        file: Its open ``model`` file.
        number: The relation.
        side: "lhs" or "rhs".
        sums: The sums by PBG's name, to return those; None for the parameters.

    Raises:
        InputError: The file lacks a parameter.
    """
    index = 0 if found.is_dynamic else number
    kind = str(found.config["relations"][index].get("operator", "none"))
    parts = [np.empty(0, np.float32)]
    for name in parameter_names(kind, index, side, found.is_dynamic):
        if f"model/{name}" not in file:
            raise InputError(f"{file.filename}: has no parameter {name!r}")
        stored = file[f"model/{name}"]
        chosen = number if found.is_dynamic else ...
        if sums is None:
            parts.append(np.asarray(stored[chosen], dtype=np.float32).reshape(-1))
        elif name in sums:
            parts.append(sums[name][chosen].reshape(-1))
        else:
            parts.append(np.zeros(np.shape(stored[chosen]), np.float32).reshape(-1))
    return np.concatenate(parts)


def parameter_names(kind: str, index: int, side: str, is_dynamic: bool) -> list[str]:
    """Return PBG's names of an operator's parameters, in the order of ours."""
    return [
        f"relations/{index}/operator/{side}/{name}"
        + "s" * (is_dynamic and name not in ("real", "imag"))
        for name in PARAMETERS.get(kind, ())
    ]


def row_sums(path: Path) -> Floats | None:
    """Return the sum of every row of a partition, float32 ``[N]``, or None."""
    values = _states(path).get(0, {}).get("sum")
    return None if values is None else _array(values)


def operator_sums(
    path: Path, relations: list[Mapping[str, Any]], is_dynamic: bool
) -> dict[str, Floats]:
    """Return the sums of all operator parameters, by PBG's name of each.

    Torch numbers parameters in the order of the model: all operators of the left side
    (only with dynamic relations), then those of the right.
    """
    states = _states(path)
    result, number = {}, 0
    for side in ("lhs", "rhs") if is_dynamic else ("rhs",):
        for index, relation in enumerate(relations):
            kind = str(relation.get("operator", "none"))
            for name in parameter_names(kind, index, side, is_dynamic):
                values = states.get(number, {}).get("sum")
                if values is not None:
                    result[name] = _array(values)
                number += 1
    return result


def _states(path: Path) -> dict[int, Any]:
    import torch

    with opened(path) as file:
        if _DATASET not in file:
            return {}
        content = file[_DATASET][...].tobytes()
    try:
        found = torch.load(io.BytesIO(content), weights_only=True)
        states: dict[int, Any] = found["state"]
    except (
        RuntimeError,
        ValueError,
        KeyError,
        TypeError,
        EOFError,
        UnpicklingError,
    ):
        return {}
    return states


def _array(values: Any) -> Floats:
    return np.asarray(values.numpy(), dtype=np.float32)
