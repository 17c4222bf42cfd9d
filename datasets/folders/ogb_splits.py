"""Edges of OGB's link prediction, which torch saved by split: ``split/KIND/train.pt`` ...

A file holds tensors, or NumPy's arrays, by name: ``head``, ``relation`` and ``tail``,
``source_node`` and ``target_node``, or ``edge`` with ``weight`` and ``year``. They are read
with torch's ``weights_only``, so that nothing in a file is run. Negatives are left out.

References:
    Hu et al., "Open graph benchmark: datasets for machine learning on graphs", NeurIPS
    2020; ogb.stanford.edu.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import InputError, cut_list
from graphsys.core.types import EDGE, NODE, EdgeType
from graphsys.datasets.columns import check_ids, check_weights, integer_names
from graphsys.datasets.files import describe
from graphsys.datasets.folders.ogb_binary import CHUNK_ROWS, SPLITS, refuse_unknown
from graphsys.datasets.readers.triples import TRIPLE
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

_ENDS: Final = (("head", "tail"), ("source_node", "target_node"))


class OgbSplitSource(Source):
    """The nodes, and the edges that are saved by split.

    Args:
        root: The folder.
        files: The files of torch, by split.
        num_nodes: Numbers of nodes are below this.
        is_directed: Whether edges are.
    """

    def __init__(
        self, root: Path, files: dict[str, Path], num_nodes: int, is_directed: bool
    ) -> None:
        self.name = str(root)
        self.is_directed = is_directed
        self._files = files
        self._num_nodes = num_nodes

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield the nodes, then the edges of every split."""
        for first in range(0, self._num_nodes, CHUNK_ROWS):
            last = min(first + CHUNK_ROWS, self._num_nodes)
            yield NodeChunk(ids=np.arange(first, last, dtype=np.int64))
        yield from split_edges(self._files, self._num_nodes)


def split_files(root: Path) -> dict[str, Path]:
    """Return the splits that are saved by torch."""
    found = {path.stem: path for path in sorted(root.glob("split/*/*.pt"))}
    return {name: found[name] for name in SPLITS if name in found}


def split_edges(files: Mapping[str, Path], num_nodes: int) -> Iterator[EdgeChunk]:
    """Yield the edges of splits that torch saved.

    Args:
        files: The files by split.
        num_nodes: Nodes, for the check of ids.

    Raises:
        InputError: a file is no such split, or an edge names an unknown node.
    """
    for split, path in files.items():
        content = _load(path)
        pair = next((it for it in _ENDS if set(it) <= set(content)), None)
        if pair is not None:
            src, dst = (content[name] for name in pair)
        elif "edge" in content and content["edge"].shape[1:] == (2,):
            src, dst = content["edge"][:, 0], content["edge"][:, 1]
        else:
            raise InputError(
                f"{path}: holds {cut_list(content)}, expected head and tail, source_node "
                "and target_node, or edge"
            )
        src, dst = (check_ids(np.ascontiguousarray(it), str(path)) for it in (src, dst))
        columns: dict[str, Any] = {}
        if "relation" in content:
            columns["relation"] = check_ids(content["relation"], f"{path}: relation")
        if "weight" in content:
            columns["weight"] = check_weights(content["weight"], f"{path}: weight")
        if "year" in content:
            columns["time"] = content["year"].astype(np.int64)
        for name, values in columns.items():
            if values.shape != src.shape:
                raise InputError(f"{path}: {name} has {len(values)} rows, not {len(src)}")
        if len(src) != len(dst):
            raise InputError(f"{path}: {len(src)} sources, but {len(dst)} destinations")
        for ids in (src, dst):
            refuse_unknown(str(path), ids, num_nodes)
        edge_type = _edge_type(content)
        for first in range(0, len(src), CHUNK_ROWS):
            part = slice(first, first + CHUNK_ROWS)
            kept = {name: values[part] for name, values in columns.items()}
            if "relation" in kept:
                kept["relation"] = integer_names(kept["relation"])
            yield EdgeChunk(
                src=src[part], dst=dst[part], edge_type=edge_type, split=split, columns=kept
            )


def _edge_type(content: Mapping[str, Any]) -> EdgeType:
    if "relation" not in content:
        return EDGE
    return EdgeType(NODE, TRIPLE.relation, NODE)


def _load(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a file of torch; nothing in it is run.

    Raises:
        InputError: it holds anything but tensors and numpy's arrays by name.
    """
    import torch
    from torch.serialization import safe_globals

    # what an array's own pickle names first, under both of its names
    rebuild = np.empty(0).__reduce__()[0]
    plain: list[Any] = [rebuild, np.ndarray, np.dtype]
    plain += [(rebuild, f"numpy.{it}.multiarray._reconstruct") for it in ("core", "_core")]
    plain += [
        type(np.dtype(code)) for code in ("i1", "u1", "i2", "i4", "i8", "f4", "f8", "?")
    ]
    try:
        with safe_globals(plain):
            loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as err:  # what a damaged or a foreign file leads to
        text = describe(err).split(". ")[0]
        raise InputError(
            f"{path}: not read by torch.load with weights_only: {text:.200}"
        ) from err
    if not isinstance(loaded, dict):
        raise InputError(f"{path}: holds {type(loaded).__name__}, expected arrays by name")
    found: dict[str, npt.NDArray[Any]] = {}
    for name, values in loaded.items():
        values = values.numpy() if isinstance(values, torch.Tensor) else values
        if isinstance(values, np.ndarray):
            found[str(name)] = values
    return found
