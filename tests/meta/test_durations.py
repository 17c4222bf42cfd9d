"""A quick check chooses files by what their tests took."""

import json

from tests.conftest import ROOT
from tests.durations import FILE, left_out


def test_files_with_the_most_seconds_a_test_are_left_out() -> None:
    counts, known = {"a": 10, "b": 1, "c": 2, "new": 1}, {"a": 5.0, "b": 2.0, "c": 2.0}
    assert left_out(counts, known, 9.0) == set()
    assert left_out(counts, known, 7.0) == {"b"}
    assert left_out(counts, known, 5.0) == {"b", "c"}
    assert left_out(counts, known, 0.0) == {"a", "b", "c"}  # nobody timed the fourth


def test_timed_files_exist() -> None:
    gone = [file for file in json.loads(FILE.read_text()) if not (ROOT / file).is_file()]
    assert not gone, "run pytest --save-durations"
