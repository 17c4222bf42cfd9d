"""A run as model hubs hold one: what others read of it, and that it answers the same."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml  # type: ignore[import-untyped]
from safetensors import safe_open

import graphsys as gs
from graphsys.cli import main as cli
from graphsys.core.errors import ConfigError, CorruptStoreError, OutputExistsError
from graphsys.training.history import history
from graphsys.training.hub import export_hub
from tests.advice.case import advised
from tests.conftest import Call

FEW = ("--set", "dim=4", "--set", "epochs=2")
SETTINGS = {
    "embedding": ("--set", "operator=complex_diagonal", "--set", "eval_every=1"),
    "gnn": ("--set", "task=link_prediction", "--set", "batch_size=8"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a graph in three partitions and runs of both trainers."""
    root = tmp_path_factory.mktemp("hub")
    rng = np.random.default_rng(3)
    pairs = sorted({(int(a), int(b)) for a, b in rng.integers(0, 20, (90, 2)) if a != b})
    lines = [f"n{a}\tr{(a + b) % 2}\tn{b}" for a, b in pairs]
    (root / "facts.txt").write_text("\n".join(lines) + "\n")
    words = ("--format", "triples", "--partitions", 3, "--split", "0.8,0.1,0.1")
    assert _cli("ingest", root / "facts.txt", "-o", root / "facts", *words) == 0
    for kind, more in SETTINGS.items():
        assert _cli("train", kind, root / "facts", "-o", root / kind, *FEW, *more) == 0
    return root


def _cli(*words: object) -> int:
    return cli.main([str(word) for word in words])


@pytest.fixture
def call(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Call:
    """Return a function that runs a command where the graph is."""
    monkeypatch.chdir(folder)

    def run(*words: object) -> tuple[int, str, str]:
        code = _cli(*words)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def card_of(hub: Path) -> tuple[dict[str, Any], str]:
    """Return a card's metadata and text."""
    start, metadata, text = (hub / "README.md").read_text().split("---\n", 2)
    assert start == ""
    found: dict[str, Any] = yaml.safe_load(metadata)
    return found, text


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_hubs_folder_answers_what_the_run_does(
    kind: str, call: Call, tmp_path: Path
) -> None:
    hub = tmp_path / "my-model"
    code, _, said = call("export", kind, "--format", "hub", "-o", hub)
    assert code == 0, said
    assert sorted(it.name for it in hub.iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
    ]
    for words in (
        ("nearest", "RUN", "n7", "-k", 5, "--json"),
        ("evaluate", "RUN", "--json"),
    ):
        one, two = (call(*(it if w == "RUN" else w for w in words)) for it in (kind, hub))
        assert one[0] == two[0] == 0, two[2]
        assert one[1] == two[1]
    asked = ("--top-k", 3, "--relation", "r1", "-o") if kind == "embedding" else ("-o",)
    for name, run in (("a.csv", kind), ("b.csv", hub)):
        assert call("predict", run, *asked, tmp_path / name)[0] == 0
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


def test_a_hubs_folder_has_rows_of_bytes(call: Call, tmp_path: Path) -> None:
    run, hub = tmp_path / "bytes", tmp_path / "hub"
    words = (*FEW, *SETTINGS["embedding"], "--set", "row_dtype=int8", "-o", run)
    assert call("train", "embedding", "facts", *words)[0] == 0
    assert call("export", run, "--format", "hub", "-o", hub)[0] == 0
    one, two = (call("nearest", it, "n7", "-k", 5, "--json") for it in (run, hub))
    assert one[0] == 0
    assert one[1] == two[1]


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_hubs_folder_is_described_drawn_and_verified(
    kind: str, call: Call, tmp_path: Path
) -> None:
    hub = tmp_path / "my-model"
    assert call("export", kind, "--format", "hub", "-o", hub)[0] == 0
    one, two = (json.loads(call("info", it, "--json")[1]) for it in (kind, hub))
    assert one.pop("go_on").startswith("graphsys train")
    assert two.pop("go_on") is None  # states of optimizers are left out
    assert 0 < two.pop("bytes") <= one.pop("bytes")
    one["graph"]["path"] = Path(one["graph"]["path"]).name
    assert two == one
    assert "to train more" not in call("info", hub)[1]
    assert call("plot", hub)[1] == call("plot", kind)[1]
    assert call("plot", hub, "-o", tmp_path / "curves.svg")[0] == 0
    assert call("verify", hub)[0] == 0
    weights = hub / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    code, told, _ = call("verify", hub)
    assert code == 1
    assert told.startswith("model.safetensors: ")
    assert "does not match its checksum" in told
    weights.write_bytes(data[:-8])
    code, told, _ = call("verify", hub)
    assert code == 1
    assert "model.safetensors was cut short" in told


@pytest.mark.parametrize("kind", SETTINGS)
def test_others_read_the_weights_and_the_card(
    kind: str, folder: Path, tmp_path: Path
) -> None:
    hub = export_hub(folder / kind, tmp_path / "my-model")
    with safe_open(hub / "model.safetensors", framework="numpy") as weights:
        found = {name: weights.get_tensor(name) for name in weights.keys()}  # noqa: SIM118
    if kind == "embedding":
        rows = gs.embedding.open_run(folder / kind)
        for part in range(3):
            expected = rows.rows("entity", part)
            np.testing.assert_array_equal(found[f"rows/entity/part-{part}"], expected)
    else:
        network = gs.gnn.open_run(folder / kind).context.network.state_dict()
        assert found.keys() == network.keys()
        for name, value in network.items():
            np.testing.assert_array_equal(found[name], value.numpy())
    metadata, text = card_of(hub)
    assert metadata["library_name"] == "graphsys"
    assert metadata["license"] == "unknown"
    assert metadata["datasets"] == ["facts"]
    (model,) = metadata["model-index"]
    (result,) = model["results"]
    assert result["task"]["type"] == "link-prediction"
    assert result["dataset"] == {"type": "facts", "name": "facts"}
    told = {it["type"]: it["value"] for it in result["metrics"]}
    best = history(folder / kind).best
    assert best is not None
    assert told["mrr"] == best["value"]
    assert f"graphsys train {kind} facts -o run --config settings.toml" in text
    config = json.loads((hub / "config.json").read_text())
    assert config["settings"]["dim"] == 4
    assert str(folder) not in text + json.dumps(config)  # no path of this machine


def test_a_card_reproduces_its_run(folder: Path, call: Call) -> None:
    hub = export_hub(folder / "embedding", folder / "my-model")
    card = card_of(hub)[1]
    settings = card.split("```toml\n")[1].split("```")[0]
    (folder / "settings.toml").write_text(settings)
    line = advised(
        card,
        "graphsys/training/hub.py",
        r"(graphsys train) (embedding facts -o run) (--config settings.toml) ```",
    )
    code, _, said = call(*" ".join(line.groups()).split()[1:])
    assert code == 0, said
    use = advised(
        card,
        "graphsys/training/hub.py",
        r"(graphsys evaluate) (my-model) (graphsys nearest) (my-model) NODE",
    )
    for words in (f"{use[1]} {use[2]}", f"{use[3]} {use[4]} n7"):
        code, _, said = call(*words.split()[1:])
        assert code == 0, said
    again = gs.embedding.open_run(folder / "run").config
    assert again == gs.embedding.open_run(folder / "embedding").config


def test_what_is_no_hubs_folder_or_damaged(folder: Path, tmp_path: Path) -> None:
    hub = export_hub(folder / "embedding", tmp_path / "my-model")
    with pytest.raises(OutputExistsError, match="replace it with --overwrite"):
        export_hub(folder / "embedding", hub)
    export_hub(folder / "gnn", hub, overwrite=True)
    shutil.copytree(hub, tmp_path / "cut")
    weights = tmp_path / "cut" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-8])
    with pytest.raises(CorruptStoreError, match="cut"):
        gs.gnn.open_run(tmp_path / "cut", graph=folder / "facts")
    shutil.copytree(hub, tmp_path / "other")
    (tmp_path / "other" / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(CorruptStoreError, match="is of another library's model; name a"):
        gs.gnn.open_run(tmp_path / "other", graph=folder / "facts")
    with pytest.raises(ConfigError, match="holds no run"):
        export_hub(folder / "facts", tmp_path / "new")
    with pytest.raises(
        ConfigError, match=r"the graph facts of the run .* is gone; give the"
    ):
        gs.gnn.open_run(hub)


@pytest.mark.parametrize("name", ["../../evil.1.npy", "rows/../../evil.1.npy", "run.json"])
def test_a_strangers_folder_writes_no_file_elsewhere(
    folder: Path, tmp_path: Path, name: str
) -> None:
    hub = export_hub(folder / "embedding", tmp_path / "my-model")
    content = json.loads((hub / "config.json").read_text())
    files = content["graphsys"]["files"]
    files[name] = next(iter(files.values()))
    (hub / "config.json").write_text(json.dumps(content))
    with pytest.raises(CorruptStoreError, match="is no file of a run"):
        gs.embedding.open_run(hub, graph=folder / "facts")
    assert not list(tmp_path.rglob("evil*"))


def test_options_that_do_not_go_with_it(call: Call, tmp_path: Path) -> None:
    words = ("export", "gnn", "-o", tmp_path / "hub", "--format")
    code, _, said = call(*words, "onnx")
    assert code == 2
    assert "format: got 'onnx', expected hub, or of a graph csr" in said
    code, _, said = call(*words, "hub", "--node-type", "entity")
    assert code == 2
    assert "--node-type does not go with --format hub; leave out one of them" in said
    for option in (("--safe-cells",), ("--memory", "1GB")):
        code, _, said = call(*words, "hub", *option)
        assert code == 2
        assert f"{option[0]} does not go with --format hub" in said
