"""Results are plain where nobody looks, and JSON is one strict object."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.cli import console


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
