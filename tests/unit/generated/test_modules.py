"""Generated modules where no folder can be written."""

import tempfile
from pathlib import Path

import pytest

from graphsys.generated import modules
from graphsys.kernels import compiled


def test_a_module_is_loaded_where_no_folder_can_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GRAPHSYS_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "tempdir", "/dev/null")
    modules._private.cache_clear()
    source = (
        "from graphsys.kernels.jit import jit\n\n@jit\ndef seven(x):\n    return x + 7\n"
    )
    compiled._tell_uncached.cache_clear()
    module = modules.load_module(source)
    with pytest.warns(UserWarning, match="no folder for compiled kernels"):
        assert module.seven(1) == 8
    assert modules.load_module(source) is module
