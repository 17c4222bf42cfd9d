"""Keys of edges that decide which are held out, and which edges nodes cannot spare."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.jit import jit

Keys = npt.NDArray[np.uint64]


@jit
def edge_keys(
    src: npt.NDArray[Any],
    dst: npt.NDArray[Any],
    src_hashes: Keys,
    dst_hashes: Keys,
    relation: npt.NDArray[Any],
    relation_hashes: Keys,
    keys: Keys,
) -> None:
    """Hash ends and relation of edges; both directions of an edge have one key.

    Args:
        src: Numbers of the sources among ``src_hashes`` ``[n]``.
        dst: Numbers of the destinations among ``dst_hashes`` ``[n]``.
        src_hashes: Hash of every node of a partition.
        dst_hashes: Hash of every node of a partition.
        relation: Codes of the relations ``[n]``, or empty: all are the first.
        relation_hashes: Hash of every relation.
        keys: Receives the keys ``[n]``.
    """
    has_relation = len(relation) > 0
    for k in range(len(src)):
        a, b = src_hashes[src[k]], dst_hashes[dst[k]]
        key = mix64(mix64(min(a, b)) ^ max(a, b))
        keys[k] = mix64(key ^ relation_hashes[relation[k] if has_relation else 0])


@jit
def lower_least(places: npt.NDArray[Any], keys: Keys, least: Keys) -> None:
    """Note the least key at each place.

    Args:
        places: Places in ``least`` ``[n]``, or empty: all are the first.
        keys: Keys ``[n]``.
        least: The least keys so far; updated.
    """
    has_places = len(places) > 0
    for k in range(len(keys)):
        place = places[k] if has_places else 0
        if keys[k] < least[place]:
            least[place] = keys[k]


@jit
def find_spare(
    src: npt.NDArray[Any],
    dst: npt.NDArray[Any],
    relation: npt.NDArray[Any],
    keys: Keys,
    src_least: Keys,
    dst_least: Keys,
    relation_least: Keys,
    is_spare: npt.NDArray[np.bool_],
) -> None:
    """Tell which edges are not the one with the least key of an end or a relation.

    Args:
        src: See :func:`edge_keys`.
        dst: See :func:`edge_keys`.
        relation: See :func:`edge_keys`.
        keys: Keys of the edges ``[n]``.
        src_least: Least key of every node of the sources' partition.
        dst_least: Least key of every node of the destinations' partition.
        relation_least: Least key of every relation.
        is_spare: Receives the answers ``[n]``.
    """
    has_relation = len(relation) > 0
    for k in range(len(keys)):
        key = keys[k]
        other = relation_least[relation[k] if has_relation else 0]
        is_needed = key == src_least[src[k]] or key == dst_least[dst[k]] or key == other
        is_spare[k] = not is_needed
