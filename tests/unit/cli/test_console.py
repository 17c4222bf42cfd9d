"""Results are plain where nobody looks, and JSON is one strict object."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.cli import console
from graphsys.cli import main as cli


def test_json_has_plain_numbers_and_null_for_nan(
    capsys: pytest.CaptureFixture[str],
) -> None:
    console.print_json(
        {
            "count": np.int64(3),
            "share": np.float32(0.5),
            "missing": float("nan"),
            "path": Path("a"),
            "is_on": np.bool_(True),
            "sizes": np.array([1, 2]),
            "kind": "text",
        }
    )
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    found = json.loads(out)
    assert found == {
        "count": 3,
        "share": 0.5,
        "missing": None,
        "path": "a",
        "is_on": True,
        "sizes": [1, 2],
        "kind": "text",
    }
    assert type(found["count"]) is int


def test_piped_table_is_tab_separated(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_table(["id", "score"], [["a b", 0.5], ["c", 1]])
    assert capsys.readouterr().out == "id\tscore\na b\t0.5\nc\t1\n"


def test_facts_stand_in_two_columns(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_facts({"nodes": 1234, "directed": True, "by": {"train": 5}})
    assert capsys.readouterr().out == "nodes     1,234\ndirected  yes\nby        train 5\n"


def test_lists_are_shown_as_people_write_them() -> None:
    assert console.format_value(["a", 1234, 0.51239]) == "a, 1,234, 0.5124"
    assert console.format_value([(1, 0.5), (2, 0.75)]) == "1 0.5, 2 0.75"
    assert console.format_value({"hits": [1, 2], "no": []}) == "hits 1, 2, no none"


def test_error_is_one_line_whatever_the_message(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_error("x.txt:3: got 1 column,\n  expected 2")
    assert capsys.readouterr().err == "error: x.txt:3: got 1 column, expected 2\n"


class FakeTerminal:
    """A stream that says it is a terminal."""

    closed = False

    def isatty(self) -> bool:
        return True


def test_closed_and_missing_streams_are_no_terminals() -> None:
    stream: Any = FakeTerminal()
    assert console.is_terminal(stream)
    stream.closed = True
    assert not console.is_terminal(stream)
    assert not console.is_terminal(None)


EVIL = "a\x1b]0;owned\x07\x1b[2J\x9b31mb\x7f\u202ec"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_no_terminal_obeys_what_the_data_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    monkeypatch.setattr(console, "is_terminal", lambda _: is_terminal)
    console.print_facts({EVIL: EVIL, "neighbors": [EVIL]})
    console.print_table([EVIL, "score"], [[EVIL, 0.5]])
    console.print_note(EVIL)
    console.print_error(EVIL)
    console.print_json({"id": EVIL})
    out, err = capsys.readouterr()
    assert not set("\x1b\x07\x9b\x7f\u202e") & set(out + err)
    assert out.count(r"\x1b]0;owned\x07\x1b[2J\x9b31mb\x7f\u202ec") >= 3
    assert json.loads(out.splitlines()[-1]) == {"id": EVIL}  # the same value


@pytest.mark.filterwarnings("always:.*letters that are not seen")
def test_ids_and_relations_with_escapes_reach_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{EVIL}{k}\tr{EVIL}\tb{k}\n" for k in range(9))
    Path("edges.tsv").write_text(rows, encoding="utf-8")
    assert cli.main(["ingest", "edges.tsv", "--format", "triples", "-o", "graph"]) == 0
    small = ["--set", "epochs=1", "--set", "dim=4"]
    assert cli.main(["train", "embedding", "graph", "-o", "run", *small]) == 0
    for words in (
        ["info", "graph"],
        ["nearest", "run", "b1", "-k", "3"],
        ["verify", "graph"],
    ):
        assert cli.main(words) == 0
    assert cli.main(["nearest", "run", EVIL, "-k", "3"]) == 2  # an id that is not there
    out, err = capsys.readouterr()
    assert not set("\x1b\x07\x9b\x7f\u202e") & set(out + err)
    assert r"\x1b]0;owned" in out
    assert "letters that are not seen" in " ".join(err.split())
