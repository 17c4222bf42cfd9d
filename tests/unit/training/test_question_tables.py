"""Files of questions are read, and refused, alike in every format and by both trainers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from graphsys.core.errors import ConfigError
from graphsys.embedding.files.question_files import read_questions
from graphsys.gnn.inference.predict import read_nodes
from graphsys.training.question_tables import SUFFIXES

READERS: dict[str, Callable[[Path], Any]] = {
    "embedding": lambda file: read_questions(file).column("head").to_pylist(),
    "gnn": read_nodes,
}


def write(folder: Path, suffix: str, ids: list[str]) -> Path:
    path = folder / f"asked{suffix}"
    table = pa.table({"id": pa.array(ids, pa.string())})
    if suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
    elif suffix == ".arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    else:
        lines = ids if suffix == ".txt" else ["id", *ids]
        path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.mark.parametrize("trainer", READERS)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_ids_are_text_in_every_format(tmp_path: Path, suffix: str, trainer: str) -> None:
    ids = ["007", "true", "2020-01-02", "NA", "1.0"]
    assert READERS[trainer](write(tmp_path, suffix, ids)) == ids


@pytest.mark.parametrize("trainer", READERS)
def test_a_table_of_nodes_is_a_list_of_them(tmp_path: Path, trainer: str) -> None:
    (tmp_path / "a.csv").write_text("name,id\nx,1\ny,2\n")
    (tmp_path / "b.csv").write_text("node\n1\n2\n")
    for name in ("a.csv", "b.csv"):
        assert READERS[trainer](tmp_path / name) == ["1", "2"]


@pytest.mark.parametrize("trainer", READERS)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_without_questions_is_refused(
    tmp_path: Path, suffix: str, trainer: str
) -> None:
    found = "is empty" if suffix == ".txt" else "has the columns id and no row"
    write_ = "a node per line" if suffix == ".txt" else "a header and a row for each quest"
    with pytest.raises(ConfigError, match=f"{found}: it asks nothing; write {write_}"):
        READERS[trainer](write(tmp_path, suffix, []))


@pytest.mark.parametrize("trainer", READERS)
@pytest.mark.parametrize("suffix", [".txt", ".csv", ".tsv"])
@pytest.mark.parametrize("content", ["", "\n", "\ufeff", " \r\n"])
def test_blank_text_asks_nothing(
    tmp_path: Path, suffix: str, trainer: str, content: str
) -> None:
    path = tmp_path / f"asked{suffix}"
    path.write_text(content)
    with pytest.raises(ConfigError, match="is empty: it asks nothing; write a"):
        READERS[trainer](path)


@pytest.mark.parametrize("trainer", READERS)
@pytest.mark.parametrize("suffix", [".txt", ".csv", ".tsv"])
def test_marks_and_line_ends_of_windows_are_no_part_of_ids(
    tmp_path: Path, suffix: str, trainer: str
) -> None:
    path = write(tmp_path, suffix, ["a b", "\u00e9"])
    path.write_bytes("\ufeff".encode() + path.read_bytes().replace(b"\n", b"\r\n"))
    assert READERS[trainer](path) == ["a b", "\u00e9"]


@pytest.mark.parametrize("trainer", READERS)
def test_what_cannot_be_read_is_refused(tmp_path: Path, trainer: str) -> None:
    read = READERS[trainer]
    for name, content, message in (
        ("a.xls", b"x", r"cannot read questions from 'a.xls': .* \.txt"),
        ("a.parquet", b"x", r"a\.parquet cannot be read as parquet: "),
        ("a.csv", b"id,n\n1,2,3\n", r"a\.csv cannot be read as csv: .*Expected 2 columns"),
        ("a.txt", b"\xff\xfe", r"a\.txt cannot be read as txt: 'utf-8' codec"),
        ("b.csv", b"id,id\n1,2\n", r"b\.csv has two columns 'id', expected one; rename"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ConfigError, match=message):
            read(tmp_path / name)
    with pytest.raises(ConfigError, match=r"none\.csv is no file; give a list of nodes"):
        read(tmp_path / "none.csv")


def test_a_row_that_names_no_node_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,n\na,1\n,2\n")
    with pytest.raises(ConfigError, match=r"a\.csv: row 1 of column id is None, expected"):
        read_nodes(tmp_path / "a.csv")
    pyarrow.parquet.write_table(pa.table({"id": [1.0, 2.0]}), tmp_path / "a.parquet")
    with pytest.raises(ConfigError, match=r"row 0 of column id is 1\.0, expected text or"):
        read_nodes(tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("node,n\na,1\n")
    with pytest.raises(ConfigError, match="has columns node, n, expected a column id"):
        read_nodes(tmp_path / "b.csv")
