"""Sources by address: pyarrow's filesystems, tried on local files."""

import gzip
import io
import lzma
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphsys.core.errors import InputError
from graphsys.datasets import ingest, open_source
from graphsys.datasets.files import InputFile


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


@pytest.mark.parametrize("ending", ["gz", "zst", "bz2", "xz", "zip"])
def test_what_is_compressed_is_asked_for_in_large_pieces(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request of an object store takes its time, and who decompresses asks for little."""
    rng = np.random.default_rng(0)
    edges = rng.integers(0, 10**9, (60_000, 2))
    text = "".join(f"{a} {b}\n" for a, b in edges.tolist()).encode()
    path = tmp_path / f"g.txt.{ending}"
    if ending == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("g.txt", text)
    elif ending == "xz":
        path.write_bytes(lzma.compress(text, preset=0))
    else:
        name = {"gz": "gzip", "zst": "zstd", "bz2": "bz2"}[ending]
        with (
            pa.OSFile(str(path), "wb") as file,
            pa.CompressedOutputStream(file, name) as to,
        ):
            to.write(text)
    asked: list[int] = []
    remote = InputFile.remote

    def noting(self: InputFile) -> Any:
        class Noting(io.RawIOBase):
            file = remote(self)
            seek, tell = file.seek, file.tell

            def readable(self) -> bool:
                return True

            def seekable(self) -> bool:
                return True

            def readinto(self, into: Any) -> int:
                found = self.file.read(len(into))
                asked.append(len(found))
                into[: len(found)] = found
                return len(found)

        return Noting()

    monkeypatch.setattr(InputFile, "remote", noting)
    source = open_source(f"file://{path}")
    asked.clear()
    chunks: Any = source.chunks()
    found = np.concatenate([chunk.src for chunk in chunks])
    assert found.tolist() == edges[:, 0].tolist()
    assert (
        sum(size > 0 for size in asked) <= 6
    )  # the file is 700 kB, and read once or twice


def test_an_archive_by_address_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "g.txt.zip").write_bytes(b"PK of another kind")
    with pytest.raises(InputError, match=r"file:///.*zip: cannot be read as a zip archive"):
        open_source(f"file://{tmp_path}/g.txt.zip")


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
