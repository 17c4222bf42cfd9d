import os
from pathlib import Path

import pytest

from graphsys.core.errors import CorruptStoreError
from graphsys.embedding.training_log import TrainingLog, read_log


def test_lines_come_back_in_order_and_numbers_stay_numbers(tmp_path: Path) -> None:
    log = TrainingLog(tmp_path, 0)
    log.write("unit", epoch=1, loss=0.5)
    log.write("evaluation", metrics={"mrr": 0.25, "mr": float("nan")})
    log.close()
    assert read_log(tmp_path) == [
        {"event": "unit", "epoch": 1, "loss": 0.5},
        {"event": "evaluation", "metrics": {"mrr": 0.25, "mr": None}},
    ]


def test_a_resume_cuts_what_was_told_after_the_checkpoint(tmp_path: Path) -> None:
    log = TrainingLog(tmp_path, 0)
    log.write("unit", unit=1)
    length = log.sync()
    log.write("unit", unit=2)
    log.close()
    log = TrainingLog(tmp_path, length)
    log.write("unit", unit=2)
    log.close()
    assert [line["unit"] for line in read_log(tmp_path)] == [1, 2]


def test_a_log_that_was_removed_does_not_stop_a_resume(tmp_path: Path) -> None:
    log = TrainingLog(tmp_path, 1000)
    log.write("unit", unit=2)
    log.close()
    assert [line["unit"] for line in read_log(tmp_path)] == [2]
    assert read_log(tmp_path / "elsewhere") == []


def test_a_line_that_is_no_object_is_named(tmp_path: Path) -> None:
    (tmp_path / "training.jsonl").write_text('{"event": "unit"}\n[1]\n')
    with pytest.raises(CorruptStoreError, match=r"jsonl, line 2: expected a JSON object"):
        read_log(tmp_path)


def test_a_pipe_in_the_place_of_the_log_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "training.jsonl")
    with pytest.raises(CorruptStoreError, match="is no plain file; remove it and resume"):
        TrainingLog(tmp_path, 0)
