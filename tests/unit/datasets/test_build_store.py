"""From data to a store in one call; bad data leaves nothing behind."""

import gzip
from pathlib import Path

import numpy as np
import pytest

import graphsys as gs
from graphsys.core.errors import InputError, UnknownNameError
from graphsys.datasets import ingest


def test_paths_and_objects_become_stores(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_text("1 2\n2 3\n3 1\n")
    for data in (path, [path], np.array([[1, 2], [2, 3], [3, 1]])):
        report = ingest(data, tmp_path / "g", overwrite=True, partitions=2)
        assert (report.graph.num_nodes, report.graph.num_edges) == (3, 3)
    assert gs.open(tmp_path / "g").num_edges == 3


def test_undirected_and_coalesced(tmp_path: Path) -> None:
    edges = np.array([[1, 2], [2, 1], [1, 1]])
    report = ingest(edges, tmp_path / "g", undirected=True, coalesce=True)
    assert not report.graph.is_directed
    assert report.graph.num_edges == 2
    assert (report.duplicates, report.self_loops) == (1, 1)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("directed", "undirected"), ("partitons", "partitions"), ("sepparator", "separator")],
)
def test_an_option_that_is_misspelled_is_told_first(
    tmp_path: Path, name: str, nearest: str
) -> None:
    with pytest.raises(UnknownNameError, match=f"'{name}'.*did you mean '{nearest}'"):
        ingest(tmp_path / "missing.txt", tmp_path / "g", **{name: True})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("late.txt", b"1 2\n" * 300_000 + b"3\n"),
        ("cut.txt.gz", gzip.compress(b"".join(b"%d 7\n" % k for k in range(10**5)))[:-9]),
        ("nan.txt", b"1 2 0.5\n1 2 nan\n"),
        ("empty.txt", b""),
        ("negative.csv", b"src,dst\n1,2\n1,-2\n"),
        ("words.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 x 1\n"),
    ],
)
def test_bad_input_writes_nothing(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=name) as found:
        ingest(path, tmp_path / "g")
    assert "\n" not in str(found.value)
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
