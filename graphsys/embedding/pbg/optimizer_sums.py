"""Adagrad's sums in a checkpoint of PyTorch-BigGraph.

PBG keeps what ``torch.save`` made of its optimizers as bytes in ``optimizer/state_dict``.
They are read with ``weights_only``, which builds tensors and plain containers and nothing
else. Sums that are not there, or cannot be read so, start at 0, as in a new training.
"""

import io
from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphsys.embedding.pbg.checkpoint import opened, parameter_names

Floats = npt.NDArray[np.float32]
_DATASET: Final = "optimizer/state_dict"


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
