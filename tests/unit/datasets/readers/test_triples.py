"""Knowledge graphs: splits by file, folders, archives."""

import io
import tarfile
from pathlib import Path

import pytest

from graphsys.core.errors import ConfigError, InputError
from graphsys.core.types import EdgeType
from graphsys.datasets import open_source
from graphsys.storage.source import EdgeChunk

FILES = {
    "train.txt": "a\tlikes\tb c\nb c\tknows\ta\n",
    "valid.txt": "a\tknows\tb c\n",
    "test.txt": "007\tlikes\ta\n",
}


def fill(folder: Path) -> Path:
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def read(source: object, **options: object) -> dict[str, list[tuple[str, str, str]]]:
    found = {}
    for chunk in open_source(source, **options).chunks():  # type: ignore[arg-type] # any option
        assert isinstance(chunk, EdgeChunk)
        assert chunk.edge_type == EdgeType("entity", "triple", "entity")
        relation = chunk.columns["relation"].to_pylist()
        found[chunk.split] = list(
            zip(chunk.src.to_pylist(), relation, chunk.dst.to_pylist(), strict=True)
        )
    return found


EXPECTED = {
    "train": [("a", "likes", "b c"), ("b c", "knows", "a")],
    "valid": [("a", "knows", "b c")],
    "test": [("007", "likes", "a")],
}


def test_a_folder_gives_splits(tmp_path: Path) -> None:
    (fill(tmp_path) / "valid_negatives.txt").write_text("x\ty\tz\n")
    assert read(tmp_path) == EXPECTED
    assert read(tmp_path, format="triples") == EXPECTED


def test_files_give_splits_in_order(tmp_path: Path) -> None:
    paths = [fill(tmp_path) / name for name in ("test.txt", "valid.txt", "train.txt")]
    found = read(paths, format="triples")
    assert found == EXPECTED
    assert list(found) == ["train", "valid", "test"]


def test_an_archive_is_read_in_place(tmp_path: Path) -> None:
    path = tmp_path / "kg.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, text in FILES.items():
            member = tarfile.TarInfo(f"../../kg/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
        link = tarfile.TarInfo("train.lnk")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    assert read(path) == EXPECTED
    assert [entry.name for entry in tmp_path.iterdir()] == ["kg.tar.gz"]


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    path = tmp_path / "kg.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        text = b"a\tb\tc\n" * 50_000
        member = tarfile.TarInfo("train.txt")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match=r"kg\.tar\.gz.*(fetch it again)"):
        read(path)
    with tarfile.open(path, "w:gz"):
        pass
    with pytest.raises(
        InputError, match=r"kg\.tar\.gz: holds no train, valid or test file"
    ):
        read(path)


def test_blanks_separate_where_there_is_no_tab(tmp_path: Path) -> None:
    path = tmp_path / "kg.txt"
    path.write_text("a likes b\n#c likes d\n")
    assert read(path, format="triples")["train"] == [
        ("a", "likes", "b"),
        ("#c", "likes", "d"),
    ]


def test_columns_can_be_reordered(tmp_path: Path) -> None:
    path = tmp_path / "kg.txt"
    path.write_text("a b likes\n")
    found = read(path, format="triples", columns="head,tail,relation")
    assert found["train"] == [("a", "likes", "b")]
    with pytest.raises(ConfigError, match="triples need src, relation and dst"):
        read(path, format="triples", columns="src,dst")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\n", r"kg\.txt:1: found 2 columns, expected 3 \(src relation dst\)"),
        ("a\tb\tc\na\tb\n", r"kg\.txt:2: found 2 columns, expected 3"),
        ("a\tb\tc\na\t\tc\n", r"kg\.txt:2: column relation is empty, expected a name"),
        ("", r"kg\.txt: the file is empty"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "kg.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read(path, format="triples")


def test_two_files_of_one_split_are_refused(tmp_path: Path) -> None:
    (fill(tmp_path) / "train.tsv").write_text("x\ty\tz\n")
    with pytest.raises(InputError, match="a second train file beside"):
        read(tmp_path)
