"""Every model and task where a node type has no incoming, no outgoing, or no edges."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys import gnn
from graphsys.core.errors import GraphsysError
from graphsys.core.types import EdgeType
from graphsys.gnn.model_spec import model_names, spec_of
from graphsys.gnn.part_specs import TASKS
from graphsys.storage import NodeChunk
from tests.stores import edge_chunk, make_store

NUM = 24
LABELED = ("user", "item", "tag")
"""Without incoming edges, without outgoing ones, without any; all three have labels."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    made: Path = tmp_path_factory.mktemp("unreached") / "g"
    rng = np.random.default_rng(0)
    parts: list[Any] = [
        NodeChunk(
            ids=np.arange(NUM),
            node_type=name,
            columns={
                "label": pa.array([("x", "y")[k % 2] for k in range(NUM)]),
                "number": pa.array(rng.random(NUM)),
                "time": pa.array(np.full(NUM, 1000)),
                "split": pa.array(["train", "train", "valid", "test"] * (NUM // 4)),
            },
            features={"x": rng.normal(0, 1, (NUM, 3)).astype(np.float32)},
        )
        for name in LABELED
    ]
    for later, (split, count) in enumerate((("train", 80), ("valid", 20), ("test", 20))):
        pairs = rng.integers(0, NUM, (count, 2)).tolist()
        kind = EdgeType("user", "likes", "item")
        time = 100 * later + np.arange(count)
        parts.append(edge_chunk(pairs, kind, split=split, time=time))
    make_store(made, *parts)
    return made


def trained(folder: Path, out: Path, **settings: Any) -> dict[str, Any] | str:
    """Return the metrics of a training of one epoch, or the line that refuses it."""
    kept = {"epochs": 1, "dim": 8, "layers": 2, "reverse_edges": False, "batch_size": 8}
    wanted = {**kept, **settings}
    pairs = [f"{name}={str(value).lower()}" for name, value in wanted.items()]
    try:
        report = gnn.train(folder, gnn.load_config(overrides=pairs), out)
    except GraphsysError as err:
        return str(err)
    if settings.get("model") not in ("edgebank", "recency"):  # which score pairs alone
        assert np.isfinite(gnn.open_run(out).output()).all()
    return dict(report.metrics)


def kinds() -> list[tuple[str, str, str]]:
    """Return every model, task and node type; tasks of links have rows of all types."""
    return [
        (model, task, node_type)
        for model in model_names()
        for task in TASKS.names()
        for node_type in (LABELED[:1] if TASKS.get(task).is_of_links else LABELED)
    ]


TRAINED = ("gat", "gatv2", "gcn", "gin", "hep", "hgt", "rgcn", "sage")
"""Models whose layers go from any type to any other."""


@pytest.mark.parametrize(("model", "task", "node_type"), kinds())
def test_every_model_and_task_trains_or_is_refused_in_one_line(
    folder: Path, tmp_path: Path, model: str, task: str, node_type: str
) -> None:
    settings: dict[str, Any] = {}
    if model == "gatne":
        settings = {"reverse_edges": True}
    elif model == "han":
        settings = {"batch_size": 0}
    label = "number" if task == "regression" else "label"
    found = trained(
        folder,
        tmp_path / "run",
        model=model,
        task=task,
        node_type=node_type,
        label=label,
        **settings,
    )
    if isinstance(found, dict):
        assert np.isfinite(found["loss"])
        return
    assert "\n" not in found
    if TASKS.get(task).is_of_graphs:
        is_of_layers = model in (*TRAINED, "diffpool", "sagpool")
        expected = "expected one with the id of the" if is_of_layers else "; expected"
        assert expected in found  # this is no set of graphs
    elif node_type == "tag":
        assert "tag" in found or "expected" in found
    else:
        assert model not in TRAINED, found
        assert re.search("expected|choose|set |take ", found), found


@pytest.mark.parametrize("model", ["han", "lightgcn", "pinsage"])
def test_what_a_refusal_of_links_advises_trains(
    folder: Path, tmp_path: Path, model: str
) -> None:
    settings: dict[str, Any] = {"model": model, "task": "link_prediction"}
    settings |= {"node_type": "user", "batch_size": 0 if model == "han" else 8}
    settings["reverse_edges"] = model != "lightgcn"  # the others say which way edges go
    refused = trained(folder, tmp_path / "refused", **settings)
    assert isinstance(refused, str)
    advised = re.search(r'set (\w+) ?= ?"?(\w+)', refused)
    assert advised is not None, refused
    found = trained(folder, tmp_path / "run", **{**settings, advised[1]: advised[2]})
    assert isinstance(found, dict), found


@pytest.mark.parametrize("model", TRAINED)
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("batch_size", [0, 8])
def test_types_without_messages_use_their_own_rows(
    folder: Path, tmp_path: Path, model: str, layers: int, batch_size: int
) -> None:
    for node_type in ("user", "item"):
        out = tmp_path / node_type
        found = trained(
            folder,
            out,
            model=model,
            node_type=node_type,
            layers=layers,
            batch_size=batch_size,
            activation="relu" if spec_of(model).has_activation else "elu",
        )
        assert isinstance(found, dict), found
        rows = gnn.open_run(out).output()
        assert len({tuple(row) for row in rows.round(6).tolist()}) > NUM // 2


def test_a_run_of_before_types_had_rows_of_their_own_is_read(
    folder: Path, tmp_path: Path
) -> None:
    # items hear from users, whose rows the second layer left out then
    trained(folder, tmp_path / "run", node_type="item", model="sage")
    network = gnn.open_run(tmp_path / "run").context.network
    weights = network.state_dict()
    older = {name: it for name, it in weights.items() if not name.startswith("own_rows")}
    assert len(older) == len(weights) - 2  # one layer, weight and bias
    network.restore(older, tmp_path / "run")
    assert network.state_dict().keys() == older.keys()
