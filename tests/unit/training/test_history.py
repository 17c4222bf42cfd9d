"""What a run says of its training: its curves, what it is, how to go on, its pictures."""

import io
import json
import shlex
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from graphsys import embedding, gnn
from graphsys.analysis.page import charts
from graphsys.analysis.page.training import plot_training
from graphsys.core.errors import ConfigError, OutputExistsError
from graphsys.storage import NodeChunk
from graphsys.training.callbacks import Callback, Training
from graphsys.training.history import history, is_run, run_info
from tests.conftest import Run
from tests.stores import edge_chunk, make_store

SVG = "{http://www.w3.org/2000/svg}"


@dataclass(frozen=True)
class Trained:
    """A run, its graph, and what a callback saw while it was trained."""

    run: Path
    graph: Path
    seen: dict[int, dict[str, float]]
    losses: list[float]


class Listener(Callback):
    def __init__(self) -> None:
        self.seen: dict[int, dict[str, float]] = {}
        self.losses: list[float] = []

    def on_evaluation(self, training: Training, metrics: Any) -> None:
        self.seen[training.epoch] = dict(metrics)

    def on_epoch_end(self, training: Training) -> None:
        self.losses = list(training.losses)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("graphs") / "ring"
    split = pa.array(["train", "train", "valid", "test"] * 10)
    nodes = NodeChunk(
        ids=np.arange(40),
        columns={"label": np.arange(40) % 3, "split": split},
        features={"x": np.random.default_rng(0).random((40, 4), dtype=np.float32)},
    )
    pairs = [(k, (k + step) % 40) for k in range(40) for step in (1, 3)]
    train = [it for place, it in enumerate(pairs) if place % 9]
    valid = edge_chunk(pairs[::9], split="valid")
    make_store(path, nodes, edge_chunk(train), valid, is_directed=False)
    return path


@pytest.fixture(scope="module")
def trained(
    graph: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Trained]:
    """Return a function that trains with either trainer, once for the same settings."""
    made: dict[str, Trained] = {}

    def make(kind: str, **settings: Any) -> Trained:
        key = f"{kind} {settings}"
        if key not in made:
            run, listener = tmp_path_factory.mktemp("runs") / "run", Listener()
            library: Any = embedding if kind == "embedding" else gnn
            cls = library.EmbeddingConfig if kind == "embedding" else gnn.GnnConfig
            config = cls(**{"dim": 4, "epochs": 4, "eval_every": 2, **settings})
            library.train(graph, config, run, callbacks=[listener])
            made[key] = Trained(run, graph, listener.seen, listener.losses)
        return made[key]

    return make


@pytest.mark.parametrize(
    ("kind", "names"),
    [("embedding", ["valid_mrr"]), ("gnn", ["valid_loss", "valid_accuracy"])],
)
def test_curves_are_what_callbacks_saw(
    trained: Callable[..., Trained], kind: str, names: list[str]
) -> None:
    done = trained(kind)
    table = history(done.run).table().to_pydict()
    assert list(table) == ["epoch", "loss", *names]
    assert table["epoch"] == [1, 2, 3, 4]
    assert table["loss"] == done.losses
    assert set(done.seen) == {2, 4}
    for name in names:
        seen = [done.seen.get(epoch, {}).get(name) for epoch in table["epoch"]]
        assert table[name] == seen


@pytest.mark.parametrize("kind", ["embedding", "gnn"])
def test_info_says_what_a_run_is_and_how_to_go_on(
    trained: Callable[..., Trained], graph: Path, kind: str, run_cli: Run, tmp_path: Path
) -> None:
    done = trained(kind)
    assert is_run(done.run)
    assert not is_run(graph)
    told = run_cli("info", done.run, "--json")
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)
    assert found == run_info(done.run)
    assert (found["kind"], found["epochs"], found["epochs_planned"]) == (kind, 4, 4)
    assert found["is_complete"]
    assert found["model"] == {"embedding": "identity dot", "gnn": "sage"}[kind]
    assert found["graph"]["num_nodes"] == 40
    assert found["settings"]["dim"] == 4
    assert found["loss"] == done.losses[-1]
    values = {epoch: it[found["best"]["metric"]] for epoch, it in done.seen.items()}
    assert found["best"]["value"] == max(values.values())
    assert values[found["best"]["epoch"]] == found["best"]["value"]
    content = json.loads((done.run / "run.json").read_text())
    assert found["bytes"] == sum((done.run / it).stat().st_size for it in content["files"])
    page = run_cli("info", done.run)
    assert page.returncode == 0, page.stderr
    assert found["go_on"] in page.stdout
    more = run_cli(*shlex.split(found["go_on"])[1:], "--json")  # as it says
    assert more.returncode == 0, more.stderr
    assert json.loads(more.stdout)["epochs"] == 8
    assert run_info(done.run)["epochs"] == 8


@pytest.mark.parametrize("kind", ["embedding", "gnn"])
def test_matplotlib_draws_every_curve(trained: Callable[..., Trained], kind: str) -> None:
    found = history(trained(kind).run)
    left: Any = found.plot()
    left.figure.savefig(io.BytesIO(), format="png")
    [right] = [it for it in left.figure.axes if it is not left]
    for axes, is_loss in ((left, True), (right, False)):
        drawn = {it.get_label(): it.get_xydata().tolist() for it in axes.lines}
        names = [it for it in found.curves if it.endswith("loss") == is_loss]
        marks = [points for name, points in drawn.items() if name.startswith("_")]
        assert [it for it in drawn if not it.startswith("_")] == names
        for name in names:
            assert drawn[name] == [list(point) for point in found.curves[name]]
        best = found.best
        assert best is not None
        assert marks == [[[best["epoch"], best["value"]]]] * (best["metric"] in names)
    told = [it.get_text() for it in left.get_legend().get_texts()]
    assert sorted(told) == sorted(found.curves)


def test_a_report_draws_its_run(graph: Path, tmp_path: Path) -> None:
    config = embedding.EmbeddingConfig(dim=4, epochs=2, eval_every=0)
    plan = embedding.train(graph, config, tmp_path / "run", dry_run=True)
    with pytest.raises(ConfigError, match="holds no run"):
        plan.plot()
    axes: Any = embedding.train(graph, config, tmp_path / "run").plot()
    assert [line.get_label() for line in axes.lines] == ["loss"]
    assert axes.figure.axes == [axes]  # without evaluations there is no second axis
    again: Any = history(tmp_path / "run").plot(axes=axes)
    assert again is axes
    assert len(axes.lines) == 2


EARLY = {"eval_every": 1, "patience": 1, "epochs": 20}


@pytest.mark.parametrize(
    ("kind", "settings", "advice", "epochs"),
    [  # a new run has the same patience
        ("embedding", {**EARLY, "min_improvement": 2.0}, "--set init_from=", 2),
        ("gnn", {**EARLY, "lr": 1e-9}, "--resume --set patience=0", 21),
    ],
)
def test_what_early_stopping_ended_says_what_leads_on(
    trained: Callable[..., Trained],
    kind: str,
    settings: dict[str, Any],
    advice: str,
    epochs: int,
    run_cli: Run,
    tmp_path: Path,
) -> None:
    done = trained(kind, **settings)
    found = run_info(done.run)
    assert found["epochs"] < 20
    assert found["best"]["epoch"] == 1  # as early stopping counts
    assert advice in found["go_on"]
    command = found["go_on"].replace("NEW", str(tmp_path / "new"))
    more = run_cli(*shlex.split(command)[1:], "--set", "epochs=21", "--json")
    assert more.returncode == 0, more.stderr
    assert json.loads(more.stdout)["epochs"] == epochs


def test_a_run_in_the_middle_goes_on_by_resume(graph: Path, tmp_path: Path) -> None:
    class Stop(Callback):
        def on_epoch_end(self, training: Training) -> None:
            training.stop()

    run = tmp_path / "my run"
    embedding.train(graph, embedding.EmbeddingConfig(dim=4), run, callbacks=[Stop()])
    assert run_info(run)["go_on"].endswith(f"-o '{run}' --resume")
    assert run_info(run)["best"] is None


@pytest.mark.parametrize("kind", ["embedding", "gnn"])
def test_a_picture_has_a_point_for_every_value(
    trained: Callable[..., Trained], tmp_path: Path, kind: str
) -> None:
    done, out = trained(kind, epochs=6), tmp_path / "run.svg"
    plot_training(done.run, out)
    tree = ET.parse(out)
    curves = history(done.run).curves
    lines = [it.attrib["points"].split() for it in tree.iter(f"{SVG}polyline")]
    assert [len(line) for line in lines] == [len(points) for points in curves.values()]
    for line, points in zip(lines, curves.values(), strict=True):
        x, y = np.array([it.split(",") for it in line], float).T
        values = np.array([value for _, value in points])
        assert np.all(np.diff(x) > 0)
        assert list(np.argsort(-y, kind="stable")) == list(
            np.argsort(values, kind="stable")
        )
    marks = [it for it in tree.iter(f"{SVG}line") if it.attrib["class"] == "limit-line"]
    assert len(marks) == 1
    with pytest.raises(OutputExistsError, match=r"run\.svg exists"):
        plot_training(done.run, out)


def test_curves_of_one_value_or_none_are_drawn() -> None:
    assert "nothing was measured" in charts.curve([(1, float("nan"))], "loss")
    for points in ([(1, 2.0)], [(1, 2.0), (2, 2.0)], [(3, float("inf")), (4, 0.0)]):
        drawn = charts.curve(points, "loss", best=points[-1][0])
        assert "nan" not in drawn
        assert ET.fromstring(drawn).attrib["aria-label"] == "loss by epoch"


def test_the_command_shows_writes_and_draws(
    trained: Callable[..., Trained], graph: Path, tmp_path: Path, run_cli: Run
) -> None:
    run = trained("gnn", epochs=6).run
    shown = run_cli("plot", run)
    assert shown.returncode == 0, shown.stderr
    rows = [line.split("\t") for line in shown.stdout.splitlines()]
    assert rows[0] == ["epoch", "loss", "valid_loss", "valid_accuracy"]
    assert rows[1][2] == ""  # nothing was evaluated after the first
    assert rows[8][0].startswith("best valid_accuracy: ")
    told = json.loads(run_cli("plot", run, "--json").stdout)
    assert told["best"] == history(run).best
    out = tmp_path / "h.csv"
    done = run_cli("plot", run, "-o", out)
    assert done.returncode == 0, done.stderr
    assert pyarrow.csv.read_csv(out)["epoch"].to_pylist() == [1, 2, 3, 4, 5, 6]
    page = tmp_path / "h.html"
    assert run_cli("plot", run, "-o", page).returncode == 0
    assert page.read_text().count('<svg class="chart"') == 3
    assert "--resume --set epochs=12" in page.read_text()
    for words, why in (
        ((run, "-o", page), "exists; replace it with --overwrite"),
        ((run, "-o", tmp_path / "h.gif"), "h.gif"),
        ((graph,), "holds no run (no run.json)"),
        ((tmp_path / "none",), "holds no run (no run.json)"),
    ):
        refused = run_cli("plot", *words)
        assert refused.returncode == 2
        assert refused.stderr.startswith("error: ")
        assert why in refused.stderr


def test_another_picture_is_refused(
    trained: Callable[..., Trained], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"expected a name that ends in \.html or \.svg"):
        plot_training(trained("gnn").run, tmp_path / "run.png")
