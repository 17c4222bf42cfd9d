"""The page of all models says what the registry and the results say."""

import runpy
from pathlib import Path

from graphsys.gnn import preset_names
from graphsys.gnn.model_spec import models

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "graphsys" / "gnn" / "MODELS.md"


def test_the_page_of_models_is_that_of_the_registry_and_the_results() -> None:
    made = runpy.run_path(str(ROOT / "scripts" / "models_page"))["page"]()
    assert PAGE.read_text(encoding="utf-8") == made, "run scripts/models_page"


def test_every_model_and_preset_has_a_line() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in models.modules if f"| [{name}](" not in text] == []
    assert [name for name in preset_names() if f"`{name}`" not in text] == []
