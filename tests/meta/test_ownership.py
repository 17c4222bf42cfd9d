"""Removal is in one module, which asks whose a file is."""

import re

from tests.conftest import ROOT

OWNER = "graphsys/core/ownership/owner.py"
REMOVAL = re.compile(
    r"rmtree|\b(unlink|removedirs|rmdir)\(|os\.(unlink|remove|removedirs|rmdir)\b"
    r"|delete_object|shutil\.move|from (os|shutil) import"
)
"""Names that are imported from their modules would hide what is called."""


def test_nothing_is_removed_but_by_the_module_that_asks_whose_it_is() -> None:
    found = [
        path.relative_to(ROOT).as_posix()
        for folder in ("graphsys", "datasets", "partitioners")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if REMOVAL.search(path.read_text(encoding="utf-8"))
    ]
    assert found == [OWNER]
