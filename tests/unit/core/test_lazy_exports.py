"""Names of a package load what they stand in when they are used, and are found by all."""

import sys
from pathlib import Path

import pytest

PACKAGE = """
from typing import TYPE_CHECKING
from graphsys.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from lazy_package.inner import number as number
    from lazy_package.inner import other as renamed

__getattr__ = lazy_exports(__name__)
"""


def test_names_load_their_module_on_first_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "lazy_package"
    folder.mkdir()
    (folder / "__init__.py").write_text(PACKAGE)
    (folder / "inner.py").write_text("number, other = 7, 8\n")
    monkeypatch.syspath_prepend(tmp_path)
    import lazy_package  # type: ignore[import-not-found]

    try:
        assert "lazy_package.inner" not in sys.modules
        assert {"number", "renamed"} <= set(dir(lazy_package))
        assert lazy_package.renamed == 8
        assert "lazy_package.inner" in sys.modules
        from lazy_package import number

        assert number == 7
        with pytest.raises(AttributeError, match="'lazy_package' has no attribute 'x'"):
            _ = lazy_package.x
    finally:
        for name in ("lazy_package", "lazy_package.inner"):
            sys.modules.pop(name, None)
