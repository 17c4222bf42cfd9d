"""Every task, sampler, decoder and loss keeps its contract; a stranger's train as ours."""

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from graphsys.core.errors import UnknownNameError
from graphsys.core.registry import SpecRegistry
from graphsys.gnn import GnnConfig, part_specs
from graphsys.gnn.model_spec import model_names, spec_of
from graphsys.gnn.part_specs import DECODERS, PAIR_LOSSES, SAMPLERS, SIDE_TASKS, TASKS
from graphsys.gnn.testing import (
    DecoderContract,
    PairLossContract,
    SamplerContract,
    SideTaskContract,
    StreamContract,
    TaskContract,
)
from tests.conftest import ROOT
from tests.packages import describe, run, run_contracts

SETTINGS: dict[str, dict[str, Any]] = {
    "regression": {"label": "number"},
    "graph_classification": {"fanouts": ()},
}


@pytest.mark.parametrize(
    "registry",
    [it for it in vars(part_specs).values() if isinstance(it, SpecRegistry)],
    ids=lambda it: it.kind,
)
def test_every_part_of_ours_is_listed_before_its_file_is_read(registry: Any) -> None:
    for module in set(registry.modules.values()):
        importlib.import_module(module)
    assert set(registry._items) == set(registry.modules)


@pytest.mark.parametrize("name", TASKS.names())
class TestTasks(TaskContract):
    @pytest.fixture(autouse=True)
    def _named(self, name: str) -> None:
        self.name = name  # type: ignore[misc]
        self.settings = SETTINGS.get(name, {})  # type: ignore[misc]


@pytest.mark.parametrize(
    "name", [name for name in model_names() if spec_of(name).make_stream is not None]
)
class TestStreams(StreamContract):
    @pytest.fixture(autouse=True)
    def _named(self, name: str) -> None:
        self.name = name  # type: ignore[misc]


@pytest.mark.parametrize("name", SAMPLERS.names())
class TestSamplers(SamplerContract):
    @pytest.fixture(autouse=True)
    def _named(self, name: str) -> None:
        self.name = name  # type: ignore[misc]


@pytest.mark.parametrize("name", DECODERS.names())
class TestDecoders(DecoderContract):
    @pytest.fixture(autouse=True)
    def _named(self, name: str) -> None:
        self.name = name  # type: ignore[misc]


@pytest.mark.parametrize("name", PAIR_LOSSES.names())
class TestPairLosses(PairLossContract):
    @pytest.fixture(autouse=True)
    def _named(self, name: str) -> None:
        self.name = name  # type: ignore[misc]


@pytest.mark.parametrize("name", SIDE_TASKS.names())
class TestSideTasks(SideTaskContract):
    @pytest.fixture(autouse=True)
    def _named(self, name: str) -> None:
        self.name = name  # type: ignore[misc]


PARTS = '''
"""The absolute error, as few neighbors as asked for first, a matrix between rows, squares,
and links with half the loss."""

import torch
from torch import nn

from graphsys.gnn.part_specs import DecoderSpec, PairLossSpec, SamplerSpec, TaskSpec
from graphsys.gnn.tasks.decoders import Decoder
from graphsys.gnn.tasks.link_prediction import LinkPrediction
from graphsys.gnn.tasks.regression import NodeRegression
from graphsys.sampling import NeighborSampler


class AbsoluteError(NodeRegression):
    def loss(self, rows, batch):
        found = rows[self.node_type][batch.places[self.node_type]][:, 0]
        target = self._target(batch.seeds[self.node_type])
        return (found - target.to(found.device)).abs().mean()


class Bilinear(Decoder):
    is_symmetric = False

    def __init__(self, num_features):
        super().__init__()
        self.matrix = nn.Parameter(torch.eye(num_features) + 0.01)

    def forward(self, query, others):
        return (query @ self.matrix) @ others.T

    def own(self, query, others):
        return (others @ (query @ self.matrix)[:, :, None])[:, :, 0]


def make_single(rows, config):
    return NeighborSampler(rows, [2] * config.layers, seed=config.seed)


def squares(config, positive, negative):
    return torch.relu(config.margin + negative - positive).square().mean()


class Halves(LinkPrediction):
    """Learns half of the pairs of every batch."""

    def loss(self, rows, batch):
        return super().loss(rows, batch) / 2

    def measure(self, split, output):
        return super().measure(split, output) | {"is_half": True}


TASK = TaskSpec(name="absolute_error", make=AbsoluteError)
LINKS = TaskSpec(name="halves", make=Halves, is_of_links=True)
LOSS = PairLossSpec(name="squares", measure=squares)
SAMPLER = SamplerSpec(name="couple", make=make_single)
DECODER = DecoderSpec(name="bilinear", make=lambda config, num: Bilinear(num))
'''
CONTRACTS = """
from graphsys.gnn.testing import (
    DecoderContract, PairLossContract, SamplerContract, TaskContract
)


class TestLinks(TaskContract):
    name = "halves"


class TestLoss(PairLossContract):
    name = "squares"


class TestTask(TaskContract):
    name = "absolute_error"
    settings = {"label": "number"}


class TestSampler(SamplerContract):
    name = "couple"


class TestDecoder(DecoderContract):
    name = "bilinear"
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a package of five parts."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "more_parts.py").write_text(PARTS)
    points = {
        "graphsys.tasks": {
            "absolute_error": "more_parts:TASK",
            "halves": "more_parts:LINKS",
        },
        "graphsys.pair_losses": {"squares": "more_parts:LOSS"},
        "graphsys.samplers": {"couple": "more_parts:SAMPLER"},
        "graphsys.decoders": {"bilinear": "more_parts:DECODER"},
    }
    describe(folder, "more-parts", points)
    (folder / "test_contracts.py").write_text(CONTRACTS)
    return folder


def test_a_strangers_parts_keep_the_contracts(site: Path) -> None:
    assert "13 passed" in run_contracts(site)


def test_a_strangers_parts_train_and_are_missed_where_they_are_not(site: Path) -> None:
    table = "".join(f"{k} {(k + s) % 60}\n" for s in (1, 2, 5) for k in range(60))
    (site / "edges.txt").write_text(table)
    run(site, "ingest", "edges.txt", "-o", "graph")
    settings = [
        "task=link_prediction",
        "decoder=bilinear",
        "sampler=couple",
        "epochs=2",
        "eval_every=0",
        "dim=8",
        "num_negatives=8",
    ]
    command = ["train", "gnn", "graph", "-o", "run", "--json"]
    run(site, *command, *[part for it in settings for part in ("--set", it)])
    run(site, "predict", "run", "-o", "rows.parquet")
    said = run(site, *command, "--resume", code=2, is_there=False)
    assert re.search(
        r"config.toml: decoder: got 'bilinear', expected one of cosine, distmult, dot, "
        r"mlp, senses; install the package that brings it "
        r"\(entry point of graphsys.decoders\)$",
        said.strip(),
    )
    assert json.loads(run(site, *command, "--resume"))["epochs"] == 2


@pytest.mark.slow
def test_a_strangers_link_task_and_loss_train_evaluate_and_predict(site: Path) -> None:
    table = "".join(f"{k} {(k + s) % 60}\n" for s in (1, 2, 5) for k in range(60))
    (site / "links.txt").write_text(table)
    run(site, "ingest", "links.txt", "-o", "linked", "--split", "0.8,0.1,0.1")
    settings = ["task=halves", "loss=squares", "epochs=2", "dim=8", "num_negatives=8"]
    command = ["train", "gnn", "linked", "-o", "links", "--json"]
    run(site, *command, *[part for it in settings for part in ("--set", it)])
    found = json.loads(run(site, "evaluate", "links", "--json"))["metrics"]
    assert found["is_half"] is True
    assert 0 < found["mrr"] <= 1
    run(site, "predict", "links", "--top-k", "3", "-o", "best.csv")
    assert len((site / "best.csv").read_text().splitlines()) == 1 + 3 * 60
    run(site, "nearest", "links", "1", "-k", "2")
    said = run(site, "evaluate", "links", code=2, is_there=False)
    assert "task: got 'halves', expected one of change_prediction, graph_cla" in said


@pytest.mark.parametrize(
    ("key", "given", "nearest"),
    [
        ("task", "regresion", "regression"),
        ("sampler", "labour", "labor"),
        ("decoder", "dott", "dot"),
        ("loss", "logistik", "logistic"),
    ],
)
def test_a_name_that_there_is_not_is_answered(key: str, given: str, nearest: str) -> None:
    with pytest.raises(UnknownNameError, match=f"did you mean '{nearest}'"):
        GnnConfig(**{key: given})  # type: ignore[arg-type]


@pytest.mark.parametrize("path", sorted((ROOT / "graphsys" / "gnn").rglob("*.py")))
def test_no_other_file_knows_a_part_by_name(path: Path) -> None:
    asked = re.findall(
        r"config\.(?:task|sampler|decoder|loss) (?:==|!=|in) ", path.read_text()
    )
    is_own_file = path.name == "multiplex_links.py"  # gatne says what goes with it
    assert is_own_file or not asked, path
