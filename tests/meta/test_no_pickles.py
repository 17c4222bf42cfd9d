"""Nothing that a user, a disk or the network hands over is unpickled."""

import re

from tests.conftest import ROOT

RESTRICTED = "datasets/safe_pickle.py"  # of a few names, for Planetoid's old files


def test_only_the_restricted_unpickler_reads_pickles() -> None:
    pattern = re.compile(r"^\s*import pickle\b|allow_pickle=True", re.MULTILINE)
    found = [
        path.relative_to(ROOT).as_posix()
        for folder in ("graphsys", "datasets", "partitioners")
        for path in (ROOT / folder).rglob("*.py")
        if pattern.search(path.read_text(encoding="utf-8"))
    ]
    assert found == [RESTRICTED]
