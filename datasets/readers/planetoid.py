"""Planetoid's citation graphs: Cora, Citeseer, Pubmed (``ind.NAME.graph`` and so on).

Nodes are papers 0 .. N - 1 with their class as ``label``, bag-of-words features ``x``
(float32) and the standard ``split``: the first (20 of each class) train, the next 500
valid, 1,000 listed ones test, none for the others. The graph is undirected and coalesced,
loops are kept. Test papers without features (15 of Citeseer) get zeros and no label.

References:
    Yang, Cohen, Salakhutdinov, "Revisiting semi-supervised learning with graph
    embeddings", ICML 2016; github.com/kimiyoung/planetoid.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.arrays import distinct
from graphsys.core.errors import ConfigError, InputError
from graphsys.core.types import EdgeType
from graphsys.datasets.array_files import dense_features
from graphsys.datasets.base import Format, ReadOptions, formats
from graphsys.datasets.files import InputFile, input_file
from graphsys.datasets.safe_pickle import load_pickle
from graphsys.datasets.text.layout import as_count
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

NUM_VALID: Final = 500
_MAX_FEATURES: Final = 1 << 31
CITES: Final = EdgeType("paper", "cites", "paper")
_PARTS: Final = ("graph", "x", "y", "tx", "ty", "allx", "ally", "test.index")


class PlanetoidSource(Source):
    """One citation graph.

    Args:
        files: Its eight files by the last part of their names.
    """

    is_directed = False

    def __init__(self, files: dict[str, InputFile]) -> None:
        self._files = files
        self.name = files["graph"].name
        self.total_bytes = sum(file.num_bytes for file in files.values())

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield all papers, then all citations."""
        src, dst, num_nodes = self._edges()
        features, labels, splits = self._nodes(num_nodes)
        told = self._files["graph"].num_bytes
        yield NodeChunk(
            ids=np.arange(num_nodes, dtype=np.int64),
            node_type=CITES.src_type,
            columns={"label": labels, "split": splits},
            features={"x": features},
            bytes_read=(self.total_bytes or 0) - told,
        )
        yield EdgeChunk(src=src, dst=dst, edge_type=CITES, bytes_read=told)

    def _edges(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
        """Return each unordered pair once, sorted, and the number of papers."""
        file = self._files["graph"]
        graph = load_pickle(file)
        try:
            degrees = np.fromiter(
                map(len, graph.values()), dtype=np.int64, count=len(graph)
            )
            keys = np.fromiter(graph, dtype=np.int64, count=len(graph))
            dst = np.fromiter(chain.from_iterable(graph.values()), dtype=np.int64)
        except (TypeError, ValueError, AttributeError, OverflowError) as err:
            raise InputError(
                f"{file.name}: expected a dict of lists of papers ({err})"
            ) from err
        num_nodes = int(max(keys.max(initial=-1), dst.max(initial=-1))) + 1
        if num_nodes != len(graph) or min(keys.min(initial=0), dst.min(initial=0)) < 0:
            raise InputError(
                f"{file.name}: {len(graph)} papers, but ids reach {num_nodes - 1}"
            )
        src = np.repeat(keys, degrees)
        low, high = np.minimum(src, dst), np.maximum(src, dst)
        pairs = distinct(low * num_nodes + high)
        return pairs // num_nodes, pairs % num_nodes, num_nodes

    def _nodes(self, num_nodes: int) -> tuple[npt.NDArray[np.float32], pa.Array, pa.Array]:
        """Return features ``[N, D]``, labels and splits of all papers."""
        known, tested = (_dense(self._files[name]) for name in ("allx", "tx"))
        known_y, tested_y = (self._labels(name) for name in ("ally", "ty"))
        num_train = len(self._labels("y"))
        places = self._test_index(num_nodes)
        if (
            len(known) != len(known_y)
            or not len(tested) == len(tested_y) == len(places)
            or known.shape[1] != tested.shape[1]
            or len(known) + len(places) > num_nodes
            or places.min(initial=num_nodes) < len(known)
        ):
            raise InputError(
                f"{self.name}: {len(known)} + {len(tested)} feature rows, {len(known_y)} + "
                f"{len(tested_y)} labels and {len(places)} test papers of {num_nodes} do "
                "not fit"
            )
        features = np.zeros((num_nodes, known.shape[1]), dtype=np.float32)
        features[: len(known)] = known
        features[places] = tested
        labels = np.full(num_nodes, -1, dtype=np.int64)
        labels[: len(known)] = known_y
        labels[places] = tested_y
        splits = np.zeros(num_nodes, dtype=np.int8)
        splits[:num_train] = 1
        splits[num_train : num_train + NUM_VALID] = 2
        splits[places] = 3
        names = pa.array([None, "train", "valid", "test"], type=pa.string())
        return features, pa.array(labels, mask=labels < 0), names.take(pa.array(splits))

    def _labels(self, part: str) -> npt.NDArray[np.int64]:
        """Return the class of every row of a one-hot matrix."""
        file = self._files[part]
        one_hot = load_pickle(file)
        if not isinstance(one_hot, np.ndarray) or one_hot.ndim != 2:
            raise InputError(f"{file.name}: expected a matrix of classes")
        labels: npt.NDArray[np.int64] = one_hot.argmax(axis=1).astype(np.int64)
        return labels

    def _test_index(self, num_nodes: int) -> npt.NDArray[np.int64]:
        file = self._files["test.index"]
        words = file.read_all().split()
        numbers = [as_count(word) for word in words]
        if not all(it is not None and it < num_nodes for it in numbers):
            raise InputError(f"{file.name}: expected paper numbers below {num_nodes}")
        places = np.array(numbers, dtype=np.int64)
        if len(distinct(places)) != len(places):
            raise InputError(f"{file.name}: a paper is listed twice")
        return places


def _dense(file: InputFile) -> npt.NDArray[np.float32]:
    """Return features as a dense matrix."""
    from scipy.sparse import issparse

    matrix = load_pickle(file)
    if not issparse(matrix):
        raise InputError(f"{file.name}: expected features as a CSR matrix")
    if matrix.shape[0] * matrix.shape[1] > _MAX_FEATURES:
        raise InputError(
            f"{file.name}: features of shape {list(matrix.shape)}, expected a small matrix"
        )
    return dense_features(file.name, matrix.toarray())


def open_planetoid(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of one citation graph; its other files lie beside the one given.

    Raises:
        InputError: a file is missing, or the files belong to several graphs.
    """
    if options.columns or options.roles:
        raise ConfigError("columns: planetoid files have none to name")
    graphs = {(file.path.parent, planetoid_name(file.path)) for file in files}
    if len(graphs) != 1 or None in (name for _, name in graphs):
        raise InputError(
            f"{files[0].name}: expected the files of one graph, called ind.NAME.graph "
            "and so on"
        )
    folder, name = graphs.pop()
    return PlanetoidSource(
        {part: input_file(folder / f"ind.{name}.{part}") for part in _PARTS}
    )


def planetoid_name(path: Path) -> str | None:
    """Return the name of the graph that a file belongs to, or None.

    Examples:
        >>> planetoid_name(Path("data/ind.cora.graph"))
        'cora'
    """
    pieces = path.name.split(".", 2)
    is_part = len(pieces) == 3 and pieces[0] == "ind" and pieces[2] in _PARTS
    return pieces[1] if is_part else None


formats.register("planetoid")(
    Format(open=open_planetoid, about="citation graphs, ind.NAME.graph and its siblings")
)
