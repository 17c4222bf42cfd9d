"""Python is parsed by one thread at a time, wherever this package does it."""

import re
import threading
from pathlib import Path

from graphsys.core.compiling import PARSER, parse
from tests.conftest import ROOT


def test_who_parses_waits_for_its_turn() -> None:
    done = threading.Event()

    def work() -> None:
        assert parse("a = 1\nb = 2").body[1].lineno == 2
        done.set()

    with PARSER:
        thread = threading.Thread(target=work)
        thread.start()
        assert not done.wait(0.05)
    thread.join()
    assert done.is_set()


def test_nothing_parses_besides() -> None:
    own = Path("graphsys/core/compiling.py"), Path("graphsys/core/arrays.py")
    pattern = re.compile(r"\bast\.parse\(|literal_eval\(|\bnp\.load\(|open_memmap\(")
    found = [
        path.relative_to(ROOT)
        for path in (ROOT / "graphsys").rglob("*.py")
        if pattern.search(path.read_text(encoding="utf-8"))
    ]
    assert set(found) == set(own)
