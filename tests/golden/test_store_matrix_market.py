"""Every MatrixMarket file that SciPy reads, through the store and back."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.io
import scipy.sparse

import graphsys as gs
from graphsys.storage import Graph


def read_matrix(graph: Graph, shape: tuple[int, int]) -> scipy.sparse.coo_array:
    """Rebuild the matrix from the store: ids are 1-based rows and columns."""
    none = np.empty(0, dtype=np.int64)
    rows, columns = [none], [none]  # a matrix may have no entries
    values: list[npt.NDArray[Any]] = [none]
    for name in graph.manifest.edge_types:
        kind = graph.edge_type(name)
        src = graph.node_ids(kind.src_type).to_numpy()
        dst = graph.node_ids(kind.dst_type).to_numpy()
        bucket = graph.bucket(name, 0, 0)
        weight = np.ones(bucket.num_edges) if bucket.weight is None else bucket.weight
        u, v = src[bucket.src] - 1, dst[bucket.dst] - 1
        rows.append(u)
        columns.append(v)
        values.append(weight)
        if not graph.is_directed:
            mirrored = u != v
            rows.append(v[mirrored])
            columns.append(u[mirrored])
            values.append(weight[mirrored])
    entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
    return scipy.sparse.coo_array(entries, shape=shape)


@pytest.mark.shared
def test_the_store_equals_what_scipy_reads(shared_data: Path, tmp_path: Path) -> None:
    num_equal = 0
    for path in sorted((shared_data / "lagraph-data").glob("*.mtx")):
        try:
            expected = scipy.io.mmread(path)
        except Exception:  # SciPy raises several kinds
            continue
        if np.iscomplexobj(expected.data if scipy.sparse.issparse(expected) else expected):
            continue
        if scipy.io.mminfo(path)[5] == "hermitian":  # of real values: refused
            continue
        with gs.ingest(path, tmp_path / path.stem).graph as graph:
            found = read_matrix(graph, expected.shape)
        np.testing.assert_array_equal(
            found.toarray(),
            np.asarray(expected.toarray() if scipy.sparse.issparse(expected) else expected),
            err_msg=path.name,
        )
        num_equal += 1
    assert num_equal == 70
