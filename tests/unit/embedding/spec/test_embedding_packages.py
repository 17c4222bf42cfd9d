"""A stranger's comparator, loss and operator, each one file, do all that ours do."""

import json
import re
import tomllib
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.embedding import EmbeddingConfig
from graphsys.embedding.spec import comparators, losses, operators
from graphsys.embedding.spec.comparators import ComparatorSpec
from graphsys.embedding.spec.losses import LossSpec
from graphsys.embedding.spec.operators import OperatorSpec
from tests.advice.case import advised
from tests.conftest import ROOT
from tests.packages import describe, install, run, run_contracts

GUIDE = "scripts/documenting/pages/guides/embedding.md"
HEADING = "A comparator, a loss or an operator of one's own"
OTHERS = '''
"""A squared hinge, and a row turned round and shifted."""

import math

from graphsys.embedding.spec.losses import LossSpec
from graphsys.embedding.spec.operators import OperatorSpec


def squared_hinge(scores, margin, gradient):
    total = 0.0
    for j in range(1, scores.size):
        excess = margin + scores[j] - scores[0]
        if excess > 0:
            total += excess * excess
            gradient[j] = 2 * excess
            gradient[0] -= 2 * excess
    return total


def apply(parameters, row, out):
    for k in range(row.size):
        out[k] = math.exp(parameters[k]) * row[k]


def gradient(parameters, row, dout, drow, dparameters):
    for k in range(row.size):
        drow[k] = math.exp(parameters[k]) * dout[k]
        dparameters[k] += drow[k] * row[k]


LOSS = LossSpec(name="squared_hinge", query_loss=squared_hinge)
OPERATOR = OperatorSpec(name="exponential", apply=apply, gradient=gradient)
'''
CONTRACTS = """
from graphsys.embedding.testing import ComparatorContract, LossContract, OperatorContract


class TestComparator(ComparatorContract):
    name = "negative_l1"


class TestLoss(LossContract):
    name = "squared_hinge"
    known = ((1.0, (0.5, 2.0), 0.0, 1.0), (1.0, (0.5, 2.0), 1.0, 4.25))


class TestOperator(OperatorContract):
    name = "exponential"
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the guide's package and another, and a small graph."""
    folder = tmp_path_factory.mktemp("site")
    install(folder, GUIDE, HEADING)
    (folder / "two_more.py").write_text(OTHERS)
    points = {
        "graphsys.losses": {"squared_hinge": "two_more:LOSS"},
        "graphsys.operators": {"exponential": "two_more:OPERATOR"},
    }
    describe(folder, "two-more", points)
    _write_line(folder)
    run(folder, "ingest", "triples", "-o", "graph")
    return folder


def _write_line(folder: Path) -> None:
    """Write triples of 40 places on a line; those held out follow from the others."""
    found = {"train": list[str](), "test": list[str]()}
    for name, step in (("next", 1), ("before", -1), ("after", 2), ("ago", -2)):
        for k in range(max(0, -step), min(40, 40 - step)):
            split = "test" if (7 * k + 3 * step) % 11 == 3 else "train"
            found[split].append(f"e{k:02d}\t{name}\te{k + step:02d}\n")
    (folder / "triples").mkdir()
    for split, lines in found.items():
        (folder / "triples" / f"{split}.txt").write_text("".join(lines))


SETTINGS = [
    "dim=4",
    "epochs=300",
    "operator=translation",
    "init_scale=0.5",
    "lr=0.3",
    "loss=ranking",
    "margin=1.0",
    "batch_size=20",
    "num_batch_negatives=10",
    "num_uniform_negatives=30",
    "deterministic=true",
]


def _settings(*more: str) -> list[str]:
    return [part for setting in (*SETTINGS, *more) for part in ("--set", setting)]


def test_a_comparator_outside_the_package_does_all_that_ours_do(site: Path) -> None:
    command = ["train", "embedding", "graph", "-o", "run", "--json"]
    run(site, *command, *_settings("comparator=negative_l1"))
    metrics = json.loads(run(site, "evaluate", "run", "--json"))["metrics"]
    assert metrics["mrr"] > 0.6  # .85; by l2 .6, by chance .1
    near = run(site, "nearest", "run", "e07", "-k", "2", "--json")
    assert re.findall("e06|e08", near)
    run(site, "predict", "run", "--relation", "next", "-k", "2", "-o", "tails.csv")
    assert len((site / "tails.csv").read_text().splitlines()) > 70
    resumed = run(site, *command, "--resume", "--set", "epochs=300")
    assert json.loads(resumed)["epochs"] == 300
    assert "negative_l1" in run(site, "train", "embedding", "--settings")


def test_losses_and_operators_outside_the_package_train(site: Path) -> None:
    settings = _settings(
        "loss=squared_hinge",
        "operator=exponential",
        "comparator=negative_l1",
        "reciprocal=true",
        "bias=true",
    )
    run(site, "train", "embedding", "graph", "-o", "all", "--json", *settings)
    metrics = json.loads(run(site, "evaluate", "all", "--json"))["metrics"]
    assert metrics["mrr"] > 0.4


def test_a_run_whose_comparator_is_not_installed_is_one_clear_error(site: Path) -> None:
    settings = _settings("comparator=negative_l1", "epochs=1")
    run(site, "train", "embedding", "graph", "-o", "alone", *settings)
    said = run(site, "evaluate", "alone", code=2, is_there=False)
    assert re.search(
        r"^error: .*config.toml: comparator: got 'negative_l1', expected one of "
        r"complex_l1, cos, dot, l1, l2, squared_l2; install the package that brings it "
        r"\(entry point of graphsys.comparators\)$",
        said.strip(),
    )


def test_a_device_an_index_and_pbg_refuse_what_they_do_not_know(site: Path) -> None:
    settings = _settings("comparator=negative_l1", "operator=exponential", "epochs=1")
    run(site, "train", "embedding", "graph", "-o", "other", *settings)
    command = ("train", "embedding", "graph", "-o", "gpu", "--device", "cuda")
    said = run(site, *command, *_settings("comparator=negative_l1"), code=2)
    assert "no kernel for comparator = 'negative_l1', it has cos, dot, l2, squ" in said
    said = run(site, "nearest", "other", "e01", "--index", "hnsw", code=2)
    assert "got 'hnsw' with the comparator negative_l1, expected 'exact'" in said
    files = ("-o", "rows.tsv", "--relation-types", "relations.tsv")
    said = run(site, "export", "other", *files, code=2)
    alone = advised(
        said,
        "graphsys/embedding/pbg/export.py",
        r"operator 'exponential' is of another package.*; leave out --relation-types$",
    )
    assert alone[0]
    run(site, "export", "other", "-o", "rows.tsv")
    assert len((site / "rows.tsv").read_text().splitlines()) >= 40


def test_their_contracts_can_be_run_by_whoever_wrote_them(site: Path) -> None:
    (site / "test_contracts.py").write_text(CONTRACTS)
    assert "8 passed" in run_contracts(site)


def _too_many(dim: int) -> npt.NDArray[np.float32]:
    return np.zeros(dim + 1, dtype=np.float32)


def _plain(query: object) -> None:
    del query


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: ComparatorSpec(name="half", score=_plain),
            "comparator 'half': expected the functions score and gradient",
        ),
        (lambda: LossSpec(name="half"), "loss 'half': expected the function query_loss"),
        (
            lambda: OperatorSpec(name="half", apply=_plain),
            "operator 'half': expected the functions apply and gradient",
        ),
    ],
)
def test_a_spec_says_what_it_lacks(make: "type[object]", said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        make()


def test_what_does_not_compile_is_named() -> None:
    spec = ComparatorSpec(name="wrong", score=_plain, gradient=_plain)
    with pytest.raises(ConfigError, match="comparator 'wrong': its function score does"):
        _ = spec.addresses
    wrong = OperatorSpec(name="wrong", apply=_plain, gradient=_plain, identity=_too_many)
    with pytest.raises(ConfigError, match=r"shape \(4,\), expected \(3,\), its num_par"):
        wrong.first(3, None)


@pytest.mark.parametrize(
    ("key", "given", "nearest"),
    [
        ("comparator", "cosine", "cos"),
        ("loss", "sofmax", "softmax"),
        ("operator", "translate", "translation"),
    ],
)
def test_a_name_that_there_is_not_is_answered(key: str, given: str, nearest: str) -> None:
    with pytest.raises(UnknownNameError, match=f"did you mean '{nearest}'"):
        EmbeddingConfig(**{key: given})  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match=f"entry point of graphsys.{key}"):
        EmbeddingConfig(**{key: "zzz"})  # type: ignore[arg-type]


def test_names_are_given_once_and_files_name_none() -> None:
    with pytest.raises(ValueError, match="comparator 'dot' is registered twice"):
        comparators.register(comparators.comparator_of("dot"))
    with pytest.raises(ValueError, match="loss 'softmax' is registered twice"):
        losses.register(losses.loss_of("softmax"))
    with pytest.raises(ValueError, match="operator 'linear' is registered twice"):
        operators.register(operators.operator_of("linear"))
    for path in sorted((ROOT / "graphsys" / "embedding").rglob("*.py")):
        text = path.read_text()
        asked = re.findall(r"config\.(?:comparator|operator|loss) (?:==|!=|in) ", text)
        assert not asked, path


def test_the_guides_package_is_the_example(site: Path) -> None:
    section = (ROOT / GUIDE).read_text()
    section = section[section.index(HEADING) :]
    found = re.search(r"```toml\n(.*?)```", section, re.DOTALL)
    assert found is not None
    assert tomllib.loads(found[1])["project"]["name"] == "negative-l1"
