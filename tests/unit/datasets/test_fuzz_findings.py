"""What fuzzing found (scripts/fuzz_readers): each was a crash, a traceback, or unclear."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from graphsys.core.errors import InputError
from graphsys.datasets import ingest, open_source
from graphsys.datasets.files import input_file
from graphsys.datasets.safe_pickle import load_pickle
from graphsys.storage.source import EdgeChunk

HEAD = "%%MatrixMarket matrix "


def read(path: Path | list[Path], **options: Any) -> list[EdgeChunk]:
    chunks = open_source(path, **options).chunks()
    return [chunk for chunk in chunks if isinstance(chunk, EdgeChunk)]


@pytest.mark.parametrize("ending", ["x", "na........", "\x0e"])
def test_a_last_line_of_a_matrix_that_does_not_end(tmp_path: Path, ending: str) -> None:
    # SciPy 1.17 reads beyond the end of such a file, and may crash
    path = tmp_path / "g.mtx"
    path.write_text(HEAD + "coordinate real general\n3 3 1\n1 2 3" + ending)
    (chunk,) = read(path)
    assert (chunk.src.tolist(), chunk.columns["weight"].tolist()) == ([1], [3.0])


def test_bytes_0_in_a_matrix(tmp_path: Path) -> None:
    # SciPy 1.17 crashes
    path = tmp_path / "g.mtx"
    path.write_text(HEAD + "coordinate real general\n3 3 1\n1 2 0.\x005\n")
    with pytest.raises(InputError, match=r"g\.mtx: holds bytes 0"):
        open_source(path)


@pytest.mark.parametrize("body", ["", "1\n"])
def test_an_array_without_rows(tmp_path: Path, body: str) -> None:
    # SciPy 1.17 divides by zero, which ends the process
    path = tmp_path / "g.mtx"
    path.write_text(HEAD + "array real general\n0 2\n" + body)
    with pytest.raises(InputError, match=r"g\.mtx: an array without rows"):
        open_source(path)


def test_a_header_of_csv_with_carriage_returns(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_bytes(b"a\rb,c\r\rd\n1,2\n")
    with pytest.raises(InputError, match=r"^[^\r\n]*no column for src and dst among a b"):
        open_source(path)


def test_names_of_columns_with_carriage_returns(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_bytes(b"src,dst,\rnote\n1,2\n")
    with pytest.raises(InputError, match=r"^[^\r\n]*g\.csv:2: found 2 columns[^\r\n]*$"):
        read(path)


def test_ids_of_two_kinds_name_the_files(tmp_path: Path) -> None:
    (tmp_path / "person_0_0.csv").write_text("id\na\n")
    (tmp_path / "person_knows_person_0_0.csv").write_text("Person.id|Person.id\n1|2\n")
    files = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match=rf"{tmp_path}.*both integer and string ids"):
        ingest(files, tmp_path / "g", format="snb")
    assert not (tmp_path / "g").exists()


@pytest.mark.parametrize("graph", [{}, {0: [1], 1: [-1]}])
def test_citation_graphs_without_papers(
    tmp_path: Path, graph: dict[int, list[int]]
) -> None:
    contents: dict[str, Any] = dict.fromkeys(("x", "tx", "allx"), np.eye(2))
    contents |= dict.fromkeys(("y", "ty", "ally"), np.eye(2))
    for name, it in (contents | {"graph": graph}).items():
        (tmp_path / f"ind.t.{name}").write_bytes(pickle.dumps(it, 3))
    (tmp_path / "ind.t.test.index").write_text("0\n")
    with pytest.raises(InputError, match=r"ind\.t\.(graph|allx): "):
        read(tmp_path / "ind.t.graph")


@pytest.mark.parametrize("name", ["a" * 300, "a/b", ""])
def test_names_of_relations_that_are_no_names(tmp_path: Path, name: str) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/num-node-dict.csv").write_text("a\n2\n")
    (tmp_path / "raw/triplet-type-list.csv").write_text(f"a,{name},a\n")
    with pytest.raises(InputError, match=r"triplet-type-list\.csv:1: found|no such file"):
        open_source(tmp_path)


@pytest.mark.parametrize(
    ("feature", "label", "message"),
    [("1e300", "1", "row 0: 1e.300 at place 0 does not fit"), ("0", "1e300", None)],
)
def test_numbers_beyond_their_columns(
    tmp_path: Path, feature: str, label: str, message: str | None
) -> None:
    (tmp_path / "x.csv").write_text(f"{feature},1\n")
    (tmp_path / "y.csv").write_text(f"{label}\n")
    (tmp_path / "e.txt").write_text("0 0\n")
    (tmp_path / "g.toml").write_text(
        '[[nodes]]\ntype = "a"\ncount = 1\nfeatures = { x = "x.csv" }\n'
        'arrays = { label = "y.csv" }\n'
        '[[edges]]\ntype = ["a", "to", "a"]\nfile = "e.txt"\ncolumns = ["src", "dst"]\n'
    )
    if message is None:
        graph = ingest(tmp_path / "g.toml", tmp_path / "g").graph
        assert graph.nodes("a", 0)["label"].to_pylist() == [1e300]
        return
    with pytest.raises(InputError, match=rf"x\.csv: features, {message}"):
        ingest(tmp_path / "g.toml", tmp_path / "g")


def test_a_matlab_matrix_with_entries_outside(tmp_path: Path) -> None:
    matrix = scipy.sparse.csc_matrix(np.array([[0, 1.0], [1, 0]]))
    matrix.indices = np.array([137, 0], dtype=np.int32)
    scipy.io.savemat(tmp_path / "g.mat", {"network": matrix})
    with pytest.raises(InputError, match=r"g\.mat: a damaged matrix"):
        open_source(tmp_path / "g.mat")


GRAPHBOLT = "graph:\n  nodes:\n    - {num: %s}\n  edges:\n    - {format: %s}\n"


@pytest.mark.parametrize(
    ("num", "edges", "message"),
    [
        ("-1", "numpy, path: e.npy", "found -1 as num, expected 0 to"),
        ("1e30", "numpy, path: e.npy", "found '1e30' as num"),
        ("3", "numpy", "expected path and format"),
        ("3", "numpy, path: e.npy", r"e\.npy: cannot be read as a NumPy file"),
    ],
)
def test_damaged_graphbolt_folders(
    tmp_path: Path, num: str, edges: str, message: str
) -> None:
    pytest.importorskip("yaml", reason="PyYAML comes with the extra all")
    (tmp_path / "metadata.yaml").write_text(GRAPHBOLT % (num, edges))
    # the header's bracket does not close: NumPy's parser raises an error of its own
    np.save(tmp_path / "e.npy", np.zeros((2, 3), dtype=np.int64))
    content = (tmp_path / "e.npy").read_bytes()
    (tmp_path / "e.npy").write_bytes(content.replace(b"(2, 3)", b"((2,3)"))
    with pytest.raises(InputError, match=message):
        read(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02]r\x00\x00\x00\x10.",  # LONG_BINPUT makes room for 2**28 objects
        b"\x80\x05\x96\x01\x00\x00\x00\x00\x00\x00\x00a.",  # BYTEARRAY8
    ],
)
def test_pickles_of_which_python_would_make_too_much(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "p").write_bytes(content)
    with pytest.raises(InputError, match=r"refused pickle: it (names place|has an opcode)"):
        load_pickle(input_file(tmp_path / "p"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("g.graph", "0" * 5000 + "2 1\n2\n1\n", None),
        ("g.graph", "2 1\n" + "9" * 5000 + "\n1\n", "g.graph:2: found .*, expected"),
        ("g.gr", "p sp 2 " + "9" * 5000 + "\na 1 2 3\n", "g.gr:1: found"),
        ("train2id.txt", "9" * 5000 + "\n1 2 0\n", "train2id.txt:1: found"),
    ],
)
def test_digits_beyond_what_python_turns_into_integers(
    tmp_path: Path, name: str, content: str, message: str | None
) -> None:
    path = tmp_path / name
    path.write_text(content)
    if message is None:
        assert read(path)[0].src.tolist() == [1]
        return
    with pytest.raises(InputError, match=message):
        read(path)


def test_a_count_of_entities_beyond_all_bounds(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="h5py comes with the extra all")
    with h5py.File(tmp_path / "edges_0_0.h5", "w") as file:
        for column in ("lhs", "rel", "rhs"):
            file[column] = np.array([0])
    (tmp_path / "entity_count_all_0.txt").write_text("9" * 30)
    (tmp_path / "dictionary.json").write_text(json.dumps({}))
    with pytest.raises(InputError, match=r"entity_count_all_0\.txt: found '9{30}'"):
        read(tmp_path)
