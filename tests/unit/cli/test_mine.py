"""The four commands of ``mine`` say what its options of before say."""

import json
from pathlib import Path
from typing import Any

import pytest

from graphsys.cli import main as cli
from tests.stores import edge_chunk, make_store

PAIRS = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 2)]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mine") / "g"
    make_store(folder, edge_chunk(PAIRS))
    return folder


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert cli.main(["mine", *map(str, arguments), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return {key: it for key, it in found.items() if not key.endswith("seconds")}


SAME = {
    "count": (
        ("count", "G", "triangle", "a-b b-c"),
        ("G", "--pattern", "triangle", "--pattern", "a-b b-c"),
    ),
    "count induced": (
        ("count", "G", "3-path", "--induced", "vertex"),
        ("--pattern", "3-path", "G", "--induced", "vertex"),
    ),
    "explain": (
        ("count", "G", "house", "--explain"),
        ("G", "--pattern", "house", "--explain"),
    ),
    "motifs": (("motifs", "G", 4), ("G", "--motifs", 4)),
    "frequent": (("frequent", "G", "--support", 2), ("G", "--frequent", "--support", 2)),
}


@pytest.mark.parametrize("name", SAME)
def test_a_command_says_what_the_options_say(
    name: str, graph: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new, old = ([graph if it == "G" else it for it in form] for form in SAME[name])
    assert said(capsys, *new) == said(capsys, *old) != {}


def test_a_graph_may_have_the_name_of_a_command(
    graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    (tmp_path / "count").symlink_to(graph)
    monkeypatch.chdir(tmp_path)
    # two triangles that share a node: an end of each, and that node, are an induced path
    whole = {"3-path": 4, "triangle": 2}
    for form in (("count", "--motifs", 3), ("count", "--motifs=3"), ("motifs", "count", 3)):
        assert said(capsys, *form)["counts"] == whole


FILES = {
    "list": (("list", "G", "triangle"), ("G", "--pattern", "triangle", "--list")),
    "orbits": (("motifs", "G", 4, "--per-node"), ("G", "--motifs", 4, "--per-node")),
    "edges": (("motifs", "G", 4, "--per-edge"), ("G", "--motifs", 4, "--per-edge")),
}


@pytest.mark.parametrize("name", FILES)
def test_a_command_writes_what_the_options_write(
    name: str, graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts: list[bytes] = []
    for form in FILES[name]:
        kind = "parquet" if name == "list" else "csv"
        out = tmp_path / f"{len(texts)}.{kind}"
        said(capsys, *(graph if it == "G" else it for it in form), "-o", out)
        texts.append(out.read_bytes())
    assert texts[0] == texts[1] != b""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("count", "G"), "missing argument 'PATTERN...'"),
        (("count", "G", "triangle", "--support", 1), "no such option: --support"),
        (("motifs", "G", 6), "6 nodes are not counted"),
        (("motifs", "G", 4, "--per-node", "--cluster", "local:1"), "run without it"),
        (("list", "G", "triangle"), "missing option '--out'"),
        (("frequent", "G"), "missing option '--support'"),
        (("G",), "ask for one thing"),
        ((), "missing command"),
    ],
)
def test_what_is_wrong_is_one_line(
    arguments: tuple[object, ...],
    expected: str,
    graph: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = [str(graph if it == "G" else it) for it in arguments]
    assert cli.main(["mine", *given]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert expected in error


def test_help_shows_four_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["mine", "--help"]) == 0
    said = capsys.readouterr().out
    assert all(f"\n  {name} " in said for name in ("count", "motifs", "list", "frequent"))
    assert "by-options" not in said
