"""Names of a package load what they stand in when they are used, and are found by all."""

import importlib
import pkgutil
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

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


EXPORTING = sorted(
    path.relative_to(ROOT).parent.as_posix().replace("/", ".")
    for path in (ROOT / "graphsys").glob("**/__init__.py")
    if "lazy_exports(__name__)" in path.read_text()
)


@pytest.mark.parametrize("package", EXPORTING)
def test_no_module_takes_the_name_of_something_exported(package: str) -> None:
    """Importing ``a.b.c`` sets ``a.b`` to the module, whatever ``a`` exports as ``b``."""
    module = importlib.import_module(package)
    places = {name for _, name, _ in pkgutil.iter_modules(module.__path__)}
    for name in sorted(places & set(module.__all__)):
        assert getattr(module, name).__name__ == f"{package}.{name}"
