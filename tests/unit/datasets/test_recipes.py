"""Recipes: cards, files at hand, downloads, published counts."""

import hashlib
import tarfile
import threading
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from graphsys.cli.main import main
from graphsys.core.errors import ConfigError, InputError, UnknownNameError
from graphsys.core.progress import SILENT
from graphsys.datasets import recipes
from graphsys.datasets.base import read_options
from graphsys.datasets.download import fetch
from graphsys.datasets.files import input_file
from graphsys.datasets.readers.triples import open_triples
from graphsys.datasets.recipes.build import CountedSource, _fetch, unpack
from graphsys.datasets.table_spec import TablesCard

CONTENT = bytes(range(256)) * 4096
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serves CONTENT, resumes, and can be told to hang up early."""

    hang_up_after: int | None = None
    resumes = True
    ranges: list[str | None] = []  # noqa: RUF012, one server a test

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.ranges.append(wanted)
        if self.path != "/file":
            self.send_error(404)
            return
        start = int(wanted.split("=")[1][:-1]) if wanted and self.resumes else 0
        if start >= len(CONTENT):
            self.send_error(416)
            return
        body = CONTENT[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: type(self).hang_up_after])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[str, type[Handler]]]:
    kind = type("FreshHandler", (Handler,), {"ranges": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}", kind
        httpd.shutdown()
        thread.join()


def test_cards_are_complete() -> None:
    assert set(recipes.names()) >= {
        "demo",
        "fb15k237",
        "wn18rr",
        "cora",
        "citeseer",
        "rmat",
    }
    for name in recipes.names():
        recipe = recipes.show(name)
        assert recipe.kind in ("files", "generator")
        assert recipe.license
        assert recipe.card()["name"] == name
        assert bool(recipe.files) == (recipe.kind == "files")
        assert recipe.counts or recipe.unverified
        for file in recipe.files:
            assert file.url.startswith("https://") or recipe.unverified
            assert file.url.endswith(file.name) or not file.url
            assert recipe.unverified or len(file.sha256 or "") == 64


def test_every_set_of_the_field_has_a_card() -> None:
    assert set(recipes.names()) >= {
        "pubmed",
        "fb15k",
        "yago3-10",
        "codex-s",
        "codex-m",
        "codex-l",
        "umls",
        "kinships",
        "nations",
        "countries-s1",
        "countries-s2",
        "countries-s3",
        "ogbn-arxiv",
        "ogbn-products",
        "ogbn-mag",
        "livejournal",
        "orkut",
        "twitter-2010",
        "reddit",
        "ppi",
        "flickr",
        "movielens",
        "gowalla",
        "yelp2018",
        "amazon-book",
        "lastfm",
        "blogcatalog",
        "minesweeper",
        "tolokers",
        "gatne-amazon",
        "acm",
        "dblp",
    }
    for name in recipes.names():
        recipe = recipes.show(name)
        if recipe.tables:
            TablesCard.parse(recipe.tables, name)
        assert recipe.card().get("verified", True) == (not recipe.unverified)


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_archives_give_the_files_that_are_named(tmp_path: Path, kind: str) -> None:
    for name in ("a", "b"):
        (tmp_path / "in" / "deep").mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / "deep" / name).write_text(name)
    archive = tmp_path / f"x.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(archive, "w") as packed:
            packed.write(tmp_path / "in/deep/a", "in/deep/a")
            packed.writestr("../evil", "no")
    else:
        with tarfile.open(archive, "w:gz") as packed_tar:
            packed_tar.add(tmp_path / "in", "in")
    out = tmp_path / "out"
    unpack(archive, "in/", ["deep/a"], out)
    assert [it.name for it in out.rglob("*") if it.is_file()] == ["a"]
    assert not (tmp_path / "evil").exists()
    with pytest.raises(InputError, match=r"has no member.*the archive is another version"):
        unpack(archive, "in/", ["deep/c"], out)
    archive.write_bytes(archive.read_bytes()[:40])
    with pytest.raises(InputError, match="cannot be unpacked"):
        unpack(archive, "in/", ["deep/a"], out)


def test_files_that_only_a_user_can_fetch_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHSYS_CACHE", str(tmp_path))
    message = r"adj_full\.npz cannot be fetched by a program; see https:.*pass --from"
    with pytest.raises(InputError, match=message):
        recipes.build("flickr", tmp_path / "g")


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UnknownNameError, match=r"unknown data set 'coar'.*did you mean 'cora'"
    ):
        recipes.build("coar", tmp_path / "g")


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"no such folder; --from names one with train.txt"
    ):
        recipes.build("wn18rr", tmp_path / "g", folder=tmp_path / "nope")
    (tmp_path / "train.txt").write_text("a\tb\tc\n")
    with pytest.raises(InputError, match=r"has no valid\.txt, test\.txt; wn18rr needs"):
        recipes.build("wn18rr", tmp_path / "g", folder=tmp_path)
    assert not (tmp_path / "g").exists()


def test_other_counts_than_published_are_refused(tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.txt").write_text("a\tb\tc\n")
    with pytest.raises(
        InputError,
        match=r"wn18rr: found 2 nodes, expected 40943 as published; 1 train edges, "
        r"expected 86835 as .*; 1 valid edges, .*; 1 test edges, .*; the files are another "
        r"version: fetch them again, or pass --allow-other-counts",
    ):
        recipes.build("wn18rr", tmp_path / "g", folder=tmp_path)
    assert not (tmp_path / "g").exists()
    command = ["dataset", "build", "wn18rr", "-o", str(tmp_path / "g"), "--from"]
    with pytest.warns(UserWarning, match=r"found 2 nodes, expected 40943.*version$"):
        report = recipes.build(
            "wn18rr", tmp_path / "g", folder=tmp_path, allow_other_counts=True
        )
    assert report.graph.num_edges == 1
    assert main([*command, str(tmp_path), "--overwrite"]) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert main([*command, str(tmp_path), "--overwrite", "--allow-other-counts"]) == 0


def test_counts_that_agree_pass(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text("a\tb\tc\nc\tb\td\n")
    card = replace(recipes.show("wn18rr"), counts={"nodes": 3, "train": 2})
    source = CountedSource(open_triples([input_file(path)], read_options()), card)
    assert len(list(source.chunks())) == 1


def test_generators_take_no_folder_and_check_parameters(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="demo is generated, got --from"):
        recipes.build("demo", tmp_path / "g", folder=tmp_path)
    with pytest.raises(ConfigError, match=r"rmat.scale: got '9', expected int"):
        recipes.build("rmat", tmp_path / "g", scale="9")


def test_a_generator_is_built(tmp_path: Path) -> None:
    report = recipes.build("rmat", tmp_path / "g", scale=8, edge_factor=2)
    assert (report.graph.num_nodes, report.graph.num_edges) == (256, 512)
    assert not report.graph.is_directed


def test_a_file_is_fetched_once(tmp_path: Path, server: tuple[str, type[Handler]]) -> None:
    url, handler = server
    path = tmp_path / "deep" / "file"
    for _ in range(2):
        assert fetch(f"{url}/file", path, sha256=DIGEST).read_bytes() == CONTENT
    assert handler.ranges == [None]
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("resumes", [True, False])
def test_an_interrupted_download_goes_on(
    tmp_path: Path, server: tuple[str, type[Handler]], resumes: bool
) -> None:
    url, handler = server
    handler.hang_up_after = 1000
    handler.resumes = resumes
    with pytest.raises(InputError, match="ended after 1000 of 1048576 bytes; run it again"):
        fetch(f"{url}/file", tmp_path / "file", sha256=DIGEST)
    assert not (tmp_path / "file").exists()
    handler.hang_up_after = None
    assert fetch(f"{url}/file", tmp_path / "file", sha256=DIGEST).read_bytes() == CONTENT
    assert handler.ranges == [None, "bytes=1000-"]


def test_a_complete_part_is_taken(
    tmp_path: Path, server: tuple[str, type[Handler]]
) -> None:
    (tmp_path / "file.part").write_bytes(CONTENT)
    fetch(f"{server[0]}/file", tmp_path / "file", sha256=DIGEST)
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_other_content_is_refused(
    tmp_path: Path, server: tuple[str, type[Handler]]
) -> None:
    with pytest.raises(
        InputError, match=r"got a file with sha256 .*, expected aaaaaaaaaaaa"
    ):
        fetch(f"{server[0]}/file", tmp_path / "file", sha256="a" * 64)
    assert list(tmp_path.iterdir()) == []


def test_servers_and_networks_that_fail_are_named(
    tmp_path: Path, server: tuple[str, type[Handler]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="/gone: the server answers 404"):
        fetch(f"{server[0]}/gone", tmp_path / "gone")
    with pytest.raises(InputError, match="expected an address that begins with https"):
        fetch("file:///etc/passwd", tmp_path / "passwd")
    monkeypatch.setenv("GRAPHSYS_CACHE", str(tmp_path / "cache"))
    card = recipes.show("fb15k237")
    closed = replace(card.files[0], url="http://127.0.0.1:9/FB15k-237.tar.gz")
    with pytest.raises(
        InputError,
        match=r"cannot be fetched: .*; or put FB15k-237\.tar\.gz or "
        r"train\.txt, valid\.txt, test\.txt or .* into a folder and pass --from",
    ):
        _fetch(replace(card, files=(closed,)), SILENT)
