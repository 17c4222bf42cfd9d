"""Pickles may name arrays and dicts, nothing that runs."""

import pickle
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from graphsys.core.errors import InputError
from graphsys.datasets import open_source
from graphsys.datasets.files import input_file
from graphsys.datasets.safe_pickle import load_pickle


def load(path: Path, content: bytes) -> object:
    path.write_bytes(content)
    return load_pickle(input_file(path))


class Malicious:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return eval, (f"open({str(self.path)!r}, 'w').close()",)


def test_arrays_matrices_and_dicts_are_read(tmp_path: Path) -> None:
    array = np.arange(6, dtype=">i4").reshape(2, 3)
    read = load(tmp_path / "a", pickle.dumps(np.asfortranarray(array), protocol=3))
    assert isinstance(read, np.ndarray)
    assert read.tolist() == array.tolist()
    matrix = scipy.sparse.csr_matrix(np.eye(3, dtype=np.float32))
    found = load(tmp_path / "m", pickle.dumps(matrix, protocol=3))
    assert scipy.sparse.issparse(found)
    assert (found != matrix).nnz == 0
    graph = defaultdict(list, {0: [1, 2]})
    assert load(tmp_path / "d", pickle.dumps(graph, protocol=2)) == {0: [1, 2]}


def test_a_malicious_pickle_is_refused_and_does_nothing(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    for protocol in range(6):
        with pytest.raises(
            InputError, match=r"evil: refused pickle: it (names \w+\.eval|has an opcode)"
        ):
            load(tmp_path / "evil", pickle.dumps(Malicious(trace), protocol=protocol))
    assert not trace.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"cos\nsystem\n(S'true'\ntR.",
        b"cnumpy\nload\n(S'/etc/passwd'\ntR.",
        b"cnumpy.core.multiarray\nfromfile\n.",
        b"cscipy.sparse\nload_npz\n.",
        b"c__builtin__\ngetattr\n.",
        b"cgraphsys.datasets.unpickling\n_ALLOWED\n.",
        pickle.dumps(np.array([object], dtype=object)),
        pickle.dumps(np.array([1]))[:-8],
        b"not a pickle",
        b"\x80\x02}q\x00",
    ],
)
def test_other_names_and_damage_are_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InputError, match="refused pickle"):
        load(tmp_path / "evil", content)


def test_a_malicious_graph_file_is_refused(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    for part in ("graph", "x", "y", "tx", "ty", "allx", "ally", "test.index"):
        (tmp_path / f"ind.evil.{part}").write_bytes(pickle.dumps(Malicious(trace)))
    with pytest.raises(InputError, match=r"ind\.evil\.graph: refused pickle"):
        list(open_source(tmp_path / "ind.evil.graph").chunks())
    assert not trace.exists()
    (tmp_path / "ind.evil.tx").unlink()
    with pytest.raises(InputError, match=r"ind\.evil\.tx: no such file"):
        open_source(tmp_path / "ind.evil.graph")


def test_row_offsets_of_a_matrix_without_entries_are_checked(tmp_path: Path) -> None:
    matrix = scipy.sparse.csr_matrix((2, 3), dtype=np.float32)
    matrix.indptr[:] = [0, 1, -1442840574]  # toarray() would write far outside
    with pytest.raises(InputError, match=r"m: refused pickle: the row offsets of a matrix"):
        load(tmp_path / "m", pickle.dumps(matrix, protocol=3))
