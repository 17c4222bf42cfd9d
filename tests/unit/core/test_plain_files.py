import os
from pathlib import Path

import pytest

from graphsys.core.plain_files import parse_json, read_json, read_plain


@pytest.mark.parametrize("depth", [101, 5000, 200_000])
def test_deep_json_is_no_json(depth: int) -> None:
    assert parse_json("[" * 100 + "]" * 100)
    with pytest.raises(ValueError, match="nested deeper than 100 levels"):
        parse_json("[" * depth + "]" * depth)
    with pytest.raises(ValueError, match="nested deeper than 100 levels"):
        parse_json('{"a":' * depth + "1" + "}" * depth)


def test_a_pipe_or_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text('{"a": [1]}')
    assert read_json(tmp_path / "file") == {"a": [1]}
    with pytest.raises(OSError, match="not a plain file"):
        read_plain(tmp_path / "pipe")
    with pytest.raises(IsADirectoryError):
        read_plain(tmp_path)


def test_bytes_that_are_no_text_are_no_json(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(ValueError, match="utf-8"):
        read_json(tmp_path / "file")
