"""Sources by address: pyarrow's filesystems, tried on local files."""

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphsys.core.errors import InputError
from graphsys.datasets import ingest, open_source


def test_text_by_address(tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text("1 2\n2 3\n")
    (tmp_path / "g.txt.gz").write_bytes(gzip.compress(b"1 2\n2 3\n"))
    for name in ("g.txt", "g.txt.gz"):
        for address in (f"file://{tmp_path}/{name}", Path(f"file:{tmp_path}/{name}")):
            source = open_source(address)
            chunk = next(iter(source.chunks()))
            assert chunk.src.tolist() == [1, 2]  # type: ignore[union-attr] # edges
            assert source.name == f"file://{tmp_path}/{name}"
            assert source.total_bytes == (tmp_path / name).stat().st_size
    graph = ingest(f"file://{tmp_path}/g.txt", tmp_path / "g").graph
    assert graph.num_edges == 2


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_tables_and_matrices_by_address(tmp_path: Path, ending: str) -> None:
    pq.write_table(pa.table({"src": [1], "dst": [2]}), tmp_path / "g.parquet")
    (tmp_path / "g.mtx").write_text(
        "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n"
    )
    (tmp_path / "g.graph").write_text("2 1\n2\n1\n")
    for name in ("g.parquet", "g.mtx", "g.graph"):
        path = tmp_path / name
        if ending:
            path = tmp_path / f"{name}.gz"
            path.write_bytes(gzip.compress((tmp_path / name).read_bytes()))
        graph = ingest(f"file://{path}", tmp_path / "g", overwrite=True).graph
        assert graph.num_edges == 1


def test_addresses_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"file:///.*/no\.txt: no such file; check the"):
        open_source(f"file://{tmp_path}/no.txt")
    (tmp_path / "g.e").write_text("1 2\n")
    with pytest.raises(InputError, match="format ldbc reads several files beside"):
        open_source(f"file://{tmp_path}/g.e")
    (tmp_path / "g.tar").write_text("x")
    with pytest.raises(InputError, match="an archive, expected a local one"):
        open_source(f"file://{tmp_path}/g.tar", format="triples")
    (tmp_path / "g.txt").write_text("1 2\nx\n")
    with pytest.raises(InputError, match=r"file:///.*/g\.txt:2: found 1 column"):
        list(open_source(f"file://{tmp_path}/g.txt").chunks())
