"""Files called train, valid and test are splits in every format of lines and tables."""

from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import graphsys as gs
from graphsys.core.errors import InputError


def write(folder: Path, stem: str, suffix: str, size: int) -> Path:
    path = folder / f"{stem}{suffix}"
    table = pa.table({"src": list(range(size)), "dst": list(range(1, size + 1))})
    pairs = zip(*table.to_pydict().values(), strict=True)
    if suffix == ".parquet":
        pq.write_table(table, path)
    elif suffix == ".arrow":
        pyarrow.feather.write_feather(table, path)
    else:
        mark, head = {".csv": (",", "src,dst\n"), ".tsv": ("\t", "")}.get(suffix, (" ", ""))
        path.write_text(head + "".join(f"{u}{mark}{v}\n" for u, v in pairs))
    return path


@pytest.mark.parametrize("suffix", [".txt", ".tsv", ".edges", ".csv", ".parquet", ".arrow"])
def test_they_are_splits_in_every_format(tmp_path: Path, suffix: str) -> None:
    sizes = {"test": 2, "train": 5, "valid": 3}
    paths = [write(tmp_path, stem, suffix, size) for stem, size in sizes.items()]
    report = gs.ingest(paths, tmp_path / "g")
    (kind,) = report.graph.edge_types
    found = {it: report.graph.num_edges_of(kind, it) for it in report.graph.splits(kind)}
    assert found == {"train": 5, "valid": 3, "test": 2}


def test_names_with_2id_and_other_words_for_valid_do_as_well(tmp_path: Path) -> None:
    for stem, split in (("val", "valid"), ("dev", "valid"), ("test2id", "test")):
        paths = [write(tmp_path, it, ".csv", 3) for it in ("train2id", stem)]
        graph = gs.ingest(paths, tmp_path / f"g-{stem}").graph
        assert sorted(graph.splits(graph.edge_types[0])) == sorted(["train", split])


@pytest.mark.parametrize("suffix", [".txt", ".csv", ".parquet"])
def test_only_some_files_named_so_are_refused(tmp_path: Path, suffix: str) -> None:
    paths = [write(tmp_path, stem, suffix, 3) for stem in ("train", "test", "more")]
    with pytest.raises(
        InputError,
        match=rf"train{suffix}.*named like splits, but not .*more{suffix}; call every file",
    ):
        gs.ingest(paths, tmp_path / "g")
    other = tmp_path / "other"
    other.mkdir()
    paths = [*paths[:2], write(other, "test", suffix, 3)]
    with pytest.raises(InputError, match=r"a second test file beside .*; name the one"):
        gs.ingest(paths, tmp_path / "g")


def test_one_file_alone_is_the_graph_whatever_its_name(tmp_path: Path) -> None:
    graph = gs.ingest(write(tmp_path, "test", ".txt", 3), tmp_path / "g").graph
    assert graph.splits(graph.edge_types[0]) == ["train"]
