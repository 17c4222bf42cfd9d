"""Verify names generations that nobody uses; those in use are nobody's fault."""

import shutil
from pathlib import Path

from graphsys.storage import Graph
from graphsys.storage.locks import Pin, WriterLock
from graphsys.storage.verify.verify import verify


def test_a_generation_that_nobody_uses_is_a_problem(store: Path) -> None:
    shutil.copytree(store / "gen-1", store / "gen-9")
    (problem,) = verify(store).problems
    assert problem.file == "gen-9"
    assert "is not the generation that graph.json names" in problem.what
    pin = Pin(store / "gen-9")
    assert verify(store).ok
    pin.release()
    lock = WriterLock(store)
    assert verify(store).ok
    lock.release()
    assert not verify(store).ok
    with Graph(store) as graph:  # it is in nobody's way
        assert graph.generation == 1
