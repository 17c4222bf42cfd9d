"""What a profile sees of a batch: the arrays that a device would get for it."""

from collections.abc import Iterator
from typing import Any

import torch

from graphsys.core.row_trace import tell_arrays
from graphsys.gnn.data.loader import Batch


def tell_batch(batch: Batch, *, is_first: bool) -> None:
    """Say how many bytes of offsets, indices, weights, features and places a batch has.

    Small arrays share a copy, as ``data/device_transfer`` sends them. A whole graph is sent
    before its first step, and stays.

    Args:
        batch: The batch.
        is_first: Whether none has been trained before.
    """
    places = [_size(it) for it in batch.places.values()]
    if batch.sample is None and not is_first:
        tell_arrays(places, packed=[sum(places)])
        return
    small = [
        size
        for hop in _distinct(batch.hops)
        for rows in hop.values()
        for size in _rows(rows)
    ]
    small += places
    large = [size for x in batch.x.values() for size in _tensors(x)]
    tell_arrays([*large, *small], packed=[*large, sum(small)])


def _distinct(hops: Any) -> list[Any]:
    """Return the layers, each once: those of a whole graph are the same."""
    return list({id(hop): hop for hop in hops}.values())


def _rows(rows: Any) -> Iterator[int]:
    for array in (rows.indptr, rows.indices, rows.weight, rows.self_weight):
        if array is not None:
            yield _size(array)


def _tensors(x: Any) -> Iterator[int]:
    """Yield the bytes of features: a tensor, or several that make up bags or parts."""
    for it in (x,) if isinstance(x, torch.Tensor) else vars(x).values():
        if isinstance(it, torch.Tensor):
            yield _size(it)


def _size(array: Any) -> int:
    if isinstance(array, torch.Tensor):
        return array.numel() * array.element_size()
    return int(array.nbytes)
