"""A model is one file: ours are on the list, and a stranger's trains as ours do."""

import json
import re
from pathlib import Path

import pytest

from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.gnn import GnnConfig
from graphsys.gnn.model_spec import ModelSpec, model_names, models, register, spec_of
from tests.conftest import ROOT
from tests.packages import describe, install, run

GUIDE = "scripts/documenting/pages/guides/gnn.md"
OURS = [
    "diffpool",
    "edgebank",
    "evolving",
    "gat",
    "gatne",
    "gatv2",
    "gcn",
    "gin",
    "ahep",
    "han",
    "hep",
    "hgt",
    "jodie",
    "lightgcn",
    "mixture",
    "pinsage",
    "recency",
    "rgcn",
    "sage",
    "sagpool",
    "tgn",
]


@pytest.mark.parametrize("name", OURS)
def test_a_model_says_all_about_itself(name: str) -> None:
    spec = spec_of(name)
    assert spec.name == name
    assert name in model_names()
    ways = [spec.make_layer, spec.make_hop, spec.make_model, spec.make_stream]
    assert sum(way is not None for way in [*ways, spec.make_graph_model]) == 1
    assert spec.exit_layers in (0, 1, 2)


@pytest.mark.parametrize("path", sorted((ROOT / "graphsys" / "gnn").rglob("*.py")))
def test_no_other_file_knows_a_model_by_name(path: Path) -> None:
    """What a model needs stands in its spec, so that one more touches no other file."""
    asked = re.findall(r"\.model (?:==|!=|in) ", path.read_text())
    assert not asked, path


def test_a_spec_has_one_way_to_make_it() -> None:
    with pytest.raises(ConfigError, match="model 'none': expected one of make_layer"):
        ModelSpec(name="none")
    with pytest.raises(ValueError, match="model 'gin' is registered twice"):
        register(spec_of("gin"))


def test_a_model_that_there_is_not_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'sage'"):
        GnnConfig(model="sagee")
    adapt = models._adapt
    assert adapt is not None
    with pytest.raises(
        TypeError, match=r"expected a ModelSpec or a class of torch\.nn\.Module, got int"
    ):
        adapt(3)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the guide's package as an installer would leave it."""
    folder = tmp_path_factory.mktemp("site")
    install(folder, GUIDE, "A model of one's own")
    return folder


def test_a_model_outside_the_package_trains_evaluates_and_predicts(site: Path) -> None:
    run(site, "dataset", "build", "planted", "-o", "graph", "--json")
    settings = ["--set", "model=difference", "--set", "epochs=3", "--set", "dim=16"]
    command = ["train", "gnn", "graph", "-o", "run", "--json"]
    trained = json.loads(run(site, *command, *settings))
    assert trained["metrics"]["valid_accuracy"] > 0.5
    evaluated = json.loads(run(site, "evaluate", "run", "--json"))
    assert evaluated["metrics"]["accuracy"] > 0.5
    run(site, "predict", "run", "-o", "classes.csv")
    assert len((site / "classes.csv").read_text().splitlines()) > 100
    assert "difference" in run(site, "train", "gnn", "--settings")
    resumed = run(site, *command, "--resume")
    assert json.loads(resumed)["epochs"] == 3


def test_an_entry_point_may_be_the_class_alone(site: Path) -> None:
    points = {"graphsys.models": {"alone": "my_model:Difference"}}
    describe(site, "my-other-model", points)
    run(site, "dataset", "build", "planted", "-o", "other", "--json")
    settings = ["--set", "model=alone", "--set", "epochs=1", "--set", "dim=16"]
    run(site, "train", "gnn", "other", "-o", "alone", *settings)
    assert json.loads(run(site, "evaluate", "alone", "--json"))["metrics"]["accuracy"] > 0


@pytest.mark.parametrize("setting", ["output_heads", "attention_dropout"])
def test_a_setting_of_attention_is_said_of_the_models_that_read_it(setting: str) -> None:
    """In the sources: without an effect there is nothing to measure."""
    files = {
        "gat": "layers/gat.py",
        "gatv2": "layers/gat.py",
        "hgt": "layers/relational.py",
        "han": "layers/han.py",
        "tgn": "tgn.py",
    }
    folder = ROOT / "graphsys/gnn/models"
    reads = {it for it, at in files.items() if f".{setting}" in (folder / at).read_text()}
    told = GnnConfig.__dataclass_fields__[setting].metadata["applies"]
    assert set(told.split(", ")) == reads
