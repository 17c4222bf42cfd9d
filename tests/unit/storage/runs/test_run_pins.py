"""Files of a checkpoint that was replaced go once, whoever removes them."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from graphsys.storage.runs import run_pins


def test_threads_that_remove_at_once_are_in_nobodys_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run.json").write_text('{"files": []}')
    for _ in range(4):
        with run_pins.replacing(tmp_path):
            pass
    is_read = run_pins._is_read

    def slowly(head: int) -> bool:
        found = is_read(head)
        time.sleep(0.01)  # others come to the same checkpoint meanwhile
        return found

    monkeypatch.setattr(run_pins, "_is_read", slowly)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: run_pins.remove_replaced(tmp_path, ()), range(4)))
    assert not run_pins.is_read(tmp_path)
    run_pins.forget(tmp_path)
    assert (tmp_path / "run.json").exists()
