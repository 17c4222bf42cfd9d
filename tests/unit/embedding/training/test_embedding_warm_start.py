"""Runs that begin with the rows of another, and training only what is new."""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from graphsys.core.errors import ConfigError, CorruptStoreError
from graphsys.core.progress import Progress
from graphsys.embedding import (
    EmbeddingConfig,
    RelationConfig,
    drift,
    evaluate,
    open_run,
    train,
)
from graphsys.embedding import run as runs
from graphsys.embedding.config import RowDtype
from graphsys.embedding.training_log import read_log
from graphsys.storage import Graph
from graphsys.storage.ingest.append import append
from tests.trainings import Interrupt
from tests.unit.embedding.triple_graphs import Listed, read_triples, write

MakeRing = Callable[[int], Graph]
Rows = npt.NDArray[np.float32]


def rows_of(run: Path, ids: list[Any]) -> Rows:
    return open_run(run).lookup(ids)


def states_of(run: Path, ids: list[Any]) -> Rows:
    opened = open_run(run)
    parts = range(opened.graph.num_partitions("entity"))
    every = np.concatenate([opened.states("entity", part) for part in parts])
    return every[opened.graph.lookup("entity", ids)]


def untrained(graph: Graph, config: EmbeddingConfig, out: Path) -> Path:
    """Return a run as it is before its first bucket."""
    with pytest.raises(KeyboardInterrupt):
        train(graph, config, out, progress=Stop())
    return out


class Stop(Progress):
    """Stops a training when the first epoch begins."""

    def stage(self, name: str, total: int | None = None, unit: str = "") -> None:
        if name == "epoch 1":
            raise KeyboardInterrupt


CONFIG = EmbeddingConfig(
    dim=16,
    epochs=4,
    deterministic=True,
    operator="complex_diagonal",
    reciprocal=True,
    batch_size=200,
    num_batch_negatives=100,
    num_uniform_negatives=50,
    init_scale=0.1,
)


@pytest.fixture(scope="module")
def umls(shared_data: Path) -> dict[str, Any]:
    """Return the triples of UMLS by split."""
    return {s: read_triples(shared_data / "umls", s) for s in ("train", "valid")}


@pytest.mark.parametrize(("before", "now"), [(1, 3), (3, 2), (2, 2)])
def test_rows_states_and_operators_come_along_by_id_whatever_the_partitions(
    umls: dict[str, Any], tmp_path: Path, before: int, now: int
) -> None:
    old_graph = write(tmp_path / "g1", umls, partitions=before)
    new_graph = write(tmp_path / "g2", umls, partitions=now, order="original")
    old = train(old_graph, CONFIG, tmp_path / "old").run
    config = dataclasses.replace(CONFIG, init_from=str(old), seed=7)
    new = untrained(new_graph, config, tmp_path / "new")
    ids = old_graph.node_ids("entity").to_pylist()
    assert np.array_equal(rows_of(old, ids), rows_of(new, ids))
    assert np.array_equal(states_of(old, ids), states_of(new, ids))
    a, b = open_run(old), open_run(new)
    assert np.array_equal(a.operators(a.model[0]), b.operators(b.model[0]))
    assert evaluate(new, split="valid") == evaluate(old, split="valid")
    assert drift(old, new)["entity"]["max"] == 0.0


@pytest.mark.parametrize("row_dtype", ["bfloat16", "float16"])
def test_rows_come_along_into_16_bits(
    umls: dict[str, Any], tmp_path: Path, row_dtype: RowDtype
) -> None:
    graph = write(tmp_path / "graph", umls, partitions=2)
    old = train(graph, dataclasses.replace(CONFIG, epochs=1), tmp_path / "old").run
    config = dataclasses.replace(CONFIG, init_from=str(old), row_dtype=row_dtype)
    new = untrained(graph, config, tmp_path / "new")
    ids = graph.node_ids("entity").to_pylist()
    np.testing.assert_allclose(rows_of(new, ids), rows_of(old, ids), rtol=2**-8, atol=1e-7)
    assert not np.array_equal(rows_of(new, ids), rows_of(old, ids))


def test_rows_come_along_into_8_bits_and_from_there_unchanged(
    umls: dict[str, Any], tmp_path: Path
) -> None:
    graph = write(tmp_path / "graph", umls, partitions=2)
    old = train(graph, dataclasses.replace(CONFIG, epochs=1), tmp_path / "old").run
    config = dataclasses.replace(CONFIG, init_from=str(old), row_dtype="int8")
    new = untrained(graph, config, tmp_path / "new")
    ids = graph.node_ids("entity").to_pylist()
    rows, before = rows_of(new, ids), rows_of(old, ids)
    quantum = np.abs(before).max(axis=1, keepdims=True) / 126.5
    assert (np.abs(rows - before) <= quantum * 0.5001).all()
    again = dataclasses.replace(config, init_from=str(new))
    np.testing.assert_array_equal(
        rows_of(untrained(graph, again, tmp_path / "again"), ids), rows
    )


@pytest.mark.parametrize("optimizer", ["row_adagrad", "adagrad"])
def test_states_come_along_to_another_optimizer(
    umls: dict[str, Any], tmp_path: Path, optimizer: Any
) -> None:
    graph = write(tmp_path / "graph", umls, partitions=2)
    config = dataclasses.replace(CONFIG, epochs=1, optimizer=optimizer)
    old = train(graph, config, tmp_path / "old").run
    other: Any = "adagrad" if optimizer == "row_adagrad" else "row_adagrad"
    config = dataclasses.replace(config, init_from=str(old), optimizer=other)
    new = untrained(graph, config, tmp_path / "new")
    ids = graph.node_ids("entity").to_pylist()
    found, before = states_of(new, ids), states_of(old, ids)
    assert before.any()
    rows = (found, before) if other == "row_adagrad" else (before, found)
    np.testing.assert_allclose(rows[0], rows[1].mean(axis=1), rtol=1e-5)
    assert train(graph, config, tmp_path / "new", overwrite=True).epochs == 1


def test_states_of_another_kind_stay_where_they_are(
    umls: dict[str, Any], tmp_path: Path
) -> None:
    graph = write(tmp_path / "graph", umls, partitions=2)
    adam: dict[str, Any] = {"epochs": 1, "optimizer": "adam", "lr": 0.01}
    old = train(graph, dataclasses.replace(CONFIG, epochs=1), tmp_path / "old").run
    config = dataclasses.replace(CONFIG, init_from=str(old), **adam)
    with pytest.raises(ConfigError, match="has optimizer=row_adagrad, this one adam"):
        untrained(graph, config, tmp_path / "new")
    advised = dataclasses.replace(config, init_state=False)
    new = train(graph, advised, tmp_path / "new").run
    ids = graph.node_ids("entity").to_pylist()
    steps = states_of(new, ids)[:, 0]
    assert steps.max() > 1  # a row counts its own
    again = dataclasses.replace(config, init_from=str(new))
    taken = untrained(graph, again, tmp_path / "again")
    np.testing.assert_array_equal(states_of(taken, ids)[:, 0], steps)


def test_new_nodes_and_relations_have_first_values_and_states_may_stay_behind(
    umls: dict[str, Any], tmp_path: Path
) -> None:
    graph = write(tmp_path / "g1", {"train": umls["train"]})
    more = [*umls["train"], ("somebody", "knows", "alga"), ("x", "isa", "somebody")]
    grown = write(tmp_path / "g2", {"train": more}, partitions=2)
    old = train(graph, CONFIG, tmp_path / "old").run
    config = dataclasses.replace(CONFIG, init_from=str(old), init_state=False)
    new = untrained(grown, config, tmp_path / "new")
    fresh = untrained(grown, CONFIG, tmp_path / "fresh")
    ids = graph.node_ids("entity").to_pylist()
    assert np.array_equal(rows_of(old, ids), rows_of(new, ids))
    assert not states_of(new, ids).any()
    added = ["somebody", "x"]
    assert np.array_equal(rows_of(new, added), rows_of(fresh, added))
    warm = runs.read_state(new).warm
    assert warm["nodes"] == {"entity": {"matched": len(ids), "new": 2}}
    assert warm["relations"] == {"triple": graph.relations("triple")}
    a, b = open_run(old), open_run(new)
    (old_set,), (new_set,) = a.model, b.model
    at, to = old_set.relations.index("isa"), new_set.relations.index("isa")
    for row in (0, 2):
        before = a.operators(old_set)[row, slice(*old_set.offsets[at : at + 2])]
        after = b.operators(new_set)[row, slice(*new_set.offsets[to : to + 2])]
        assert np.array_equal(before, after)
    assert not b.operators(new_set)[1::2].any()


def test_a_warm_start_is_better_than_none_after_one_epoch(
    umls: dict[str, Any], tmp_path: Path
) -> None:
    graph = write(tmp_path / "g", umls)
    old = train(graph, dataclasses.replace(CONFIG, epochs=8), tmp_path / "old").run
    one = dataclasses.replace(CONFIG, epochs=1)
    cold = train(graph, one, tmp_path / "cold").run
    warm = train(graph, dataclasses.replace(one, init_from=str(old)), tmp_path / "warm")
    found = [evaluate(r, split="valid")["metrics"]["mrr"] for r in (cold, warm.run, old)]
    assert found[0] < found[1]
    assert found[1] > 0.95 * found[2]
    assert warm.metrics["drift"]["entity"]["nodes"] == graph.num_nodes
    assert 0 < warm.metrics["drift"]["entity"]["mean"] < 0.5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dim": 8}, r"init_from: the rows of .*'entity' have dim 16 in .*old, here dim 8"),
        ({"reciprocal": False}, r"init_from: the run .* has reciprocal=True"),
        ({"operator": "diagonal"}, r"init_from: relation 'affects' has another operator"),
        (
            {
                "relations": {
                    "isa": RelationConfig(operator="identity"),
                    "*": RelationConfig(),
                }
            },
            r"init_from: relation 'isa' has another operator in the run",
        ),
    ],
)
def test_a_run_of_other_shape_is_refused_before_anything_is_written(
    umls: dict[str, Any], tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    graph = write(tmp_path / "g", {"train": umls["train"][:500]})
    one = dataclasses.replace(CONFIG, epochs=1)
    old = train(graph, one, tmp_path / "old").run
    config = dataclasses.replace(one, init_from=str(old), **changes)
    with pytest.raises(ConfigError, match=message):
        train(graph, config, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_run_that_is_not_there_or_knows_no_node_is_refused(
    umls: dict[str, Any], tmp_path: Path
) -> None:
    graph = write(tmp_path / "g", {"train": umls["train"][:500]})
    config = dataclasses.replace(CONFIG, init_from=str(tmp_path / "nothing"))
    with pytest.raises(ConfigError, match=r"init_from: .*nothing does not exist; train"):
        train(graph, config, tmp_path / "new")
    other = write(tmp_path / "h", [("p", "isa", "q"), ("q", "isa", "r")])
    old = train(other, dataclasses.replace(CONFIG, epochs=1), tmp_path / "old").run
    with pytest.raises(ConfigError, match=r"init_from: no node of .*g has an id that"):
        train(graph, dataclasses.replace(CONFIG, init_from=str(old)), tmp_path / "new")
    assert not (tmp_path / "new").exists()
    shutil.rmtree(tmp_path / "h")
    with pytest.raises(
        ConfigError, match=r"init_from: the graph .*h of the run .* is gone"
    ):
        train(graph, dataclasses.replace(CONFIG, init_from=str(old)), tmp_path / "new")


def test_a_warm_started_run_resumes_without_its_source(
    umls: dict[str, Any], tmp_path: Path
) -> None:
    graph = write(tmp_path / "g", {"train": umls["train"]}, partitions=2)
    old = train(graph, dataclasses.replace(CONFIG, epochs=1), tmp_path / "old").run
    config = dataclasses.replace(CONFIG, init_from=str(old), init_lr=0.5)
    train(graph, config, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(graph, config, tmp_path / "broken", progress=Interrupt(5))
    shutil.rmtree(old)
    report = train(graph, config, tmp_path / "broken", resume=True)
    assert "drift" not in report.metrics
    ids = graph.node_ids("entity").to_pylist()
    whole, broken = (rows_of(tmp_path / name, ids) for name in ("whole", "broken"))
    assert np.array_equal(whole, broken)


def test_a_kill_during_the_warm_start_does_it_again(
    umls: dict[str, Any], tmp_path: Path
) -> None:
    graph = write(tmp_path / "g", {"train": umls["train"]}, partitions=3)
    one = dataclasses.replace(CONFIG, epochs=1)
    old = train(graph, one, tmp_path / "old").run
    config = dataclasses.replace(one, init_from=str(old))
    train(graph, config, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(graph, config, tmp_path / "broken", progress=Interrupt(1))
    assert not runs.read_state(tmp_path / "broken").warm
    train(graph, config, tmp_path / "broken", resume=True)
    ids = graph.node_ids("entity").to_pylist()
    whole, broken = (rows_of(tmp_path / name, ids) for name in ("whole", "broken"))
    assert np.array_equal(whole, broken)


def grow(umls: dict[str, Any], tmp_path: Path) -> tuple[Graph, Graph, list[str]]:
    """Return UMLS without some entities, UMLS with them, and these."""
    names = sorted({t[0] for t in umls["train"]})[::9]
    known = [t for t in umls["train"] if t[0] not in names and t[2] not in names]
    late = [t for t in umls["train"] if t[0] in names or t[2] in names]
    old = write(tmp_path / "g1", known, partitions=2)
    more = {"train": late + known[:50], "late": late[::3]}
    new = append(old, Listed(more), tmp_path / "g2").graph
    return old, new, names


@pytest.mark.parametrize("reciprocal", [True, False])
def test_only_what_is_new_is_trained_and_old_rows_stay_bit_by_bit(
    umls: dict[str, Any], tmp_path: Path, reciprocal: bool
) -> None:
    first, second, names = grow(umls, tmp_path)
    base = dataclasses.replace(CONFIG, reciprocal=reciprocal)
    old = train(first, dataclasses.replace(base, epochs=10), tmp_path / "old").run
    config = dataclasses.replace(base, init_from=str(old), train_only="new")
    report = train(second, config, tmp_path / "new")
    ids = [n for n in first.node_ids("entity").to_pylist() if n not in names]
    assert np.array_equal(rows_of(old, ids), rows_of(report.run, ids))
    assert np.array_equal(states_of(old, ids), states_of(report.run, ids))
    a, b = open_run(old), open_run(report.run)
    for r, name in enumerate(a.model[0].relations):
        to = b.model[0].relations.index(name)
        before = a.operators(a.model[0])[:, slice(*a.model[0].offsets[r : r + 2])]
        after = b.operators(b.model[0])[:, slice(*b.model[0].offsets[to : to + 2])]
        assert np.array_equal(before, after)
    num_new = sum(1 for t in umls["train"] if t[0] in names or t[2] in names)
    assert runs.read_state(report.run).num_edges == CONFIG.epochs * num_new
    assert report.metrics["drift"]["entity"]["max"] == 0.0
    added = [n for n in second.node_ids("entity").to_pylist() if n in names]
    start = rows_of(untrained(second, config, tmp_path / "start"), added)
    assert (rows_of(report.run, added) != start).any(axis=1).all()


def test_a_smaller_learning_rate_moves_old_rows_less(
    umls: dict[str, Any], tmp_path: Path
) -> None:
    first, second, _ = grow(umls, tmp_path)
    old = train(first, CONFIG, tmp_path / "old").run
    moved = []
    for factor in (0.0, 0.1, 1.0):
        config = dataclasses.replace(
            CONFIG, init_from=str(old), train_only="new", init_lr=factor
        )
        report = train(second, config, tmp_path / f"new{factor}")
        moved.append(report.metrics["drift"]["entity"]["mean"])
    assert moved[0] == 0.0
    assert 0.0 < moved[1] < 0.5 * moved[2]


def test_new_nodes_are_learnt_beside_fixed_old_ones(
    umls: dict[str, Any], tmp_path: Path
) -> None:
    first, second, names = grow(umls, tmp_path)
    old = train(first, dataclasses.replace(CONFIG, epochs=15), tmp_path / "old").run
    config = dataclasses.replace(CONFIG, init_from=str(old), train_only="new", epochs=10)
    start = untrained(second, config, tmp_path / "start")
    new = train(second, config, tmp_path / "new").run
    found = [evaluate(r, split="late")["metrics"]["mrr"] for r in (start, new)]
    assert found[1] > found[0] + 0.1
    lines = [line for line in read_log(new) if line["event"] == "warm_start"]
    assert lines[0]["nodes"]["entity"]["new"] == len(names)


@pytest.mark.parametrize("edge_chunks", [1, 3])
def test_new_edges_are_counted_once_in_however_many_parts(
    umls: dict[str, Any], tmp_path: Path, edge_chunks: int
) -> None:
    first, second, names = grow(umls, tmp_path)
    old = train(first, dataclasses.replace(CONFIG, epochs=1), tmp_path / "old").run
    config = dataclasses.replace(
        CONFIG, init_from=str(old), train_only="new", epochs=1, edge_chunks=edge_chunks
    )
    state = runs.read_state(train(second, config, tmp_path / "new").run)
    num_new = sum(1 for t in umls["train"] if t[0] in names or t[2] in names)
    assert state.warm["new_edges"] == num_new


def test_new_edges_that_are_all_held_out_end_in_a_line(
    umls: dict[str, Any], tmp_path: Path
) -> None:
    first = write(tmp_path / "g1", {"train": umls["train"][:100]})
    known = {(t[0], t[2]) for t in umls["train"][:100]}
    ids = first.node_ids("entity").to_pylist()
    head, tail = next((a, b) for a in ids for b in ids if (a, b) not in known)
    one = [(head, umls["train"][0][1], tail)]
    second = append(first, Listed({"train": one}), tmp_path / "g2").graph
    old = train(first, dataclasses.replace(CONFIG, epochs=1), tmp_path / "old").run
    refused = []
    for seed in range(8):
        config = dataclasses.replace(
            CONFIG,
            init_from=str(old),
            train_only="new",
            epochs=1,
            seed=seed,
            eval_fraction=0.5,
        )
        try:
            train(second, config, tmp_path / f"new{seed}")
        except ConfigError as err:
            refused.append(str(err))
    assert 0 < len(refused) < 8
    assert all("held out by eval_fraction, 0.5; append more" in it for it in refused)


def test_a_graph_without_anything_new_is_refused(
    umls: dict[str, Any], tmp_path: Path
) -> None:
    graph = write(tmp_path / "g", {"train": umls["train"][:500]})
    old = train(graph, dataclasses.replace(CONFIG, epochs=1), tmp_path / "old").run
    config = dataclasses.replace(CONFIG, init_from=str(old), train_only="new")
    with pytest.raises(ConfigError, match=r"train_only: .*g has no edge that .* lacks"):
        train(graph, config, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_lost_note_of_the_warm_start_is_named(
    umls: dict[str, Any], tmp_path: Path
) -> None:
    graph = write(tmp_path / "g", {"train": umls["train"][:500]})
    one = dataclasses.replace(CONFIG, epochs=1)
    old = train(graph, one, tmp_path / "old").run
    config = dataclasses.replace(one, init_from=str(old))
    out = untrained(graph, config, tmp_path / "new")
    next((out / "origin").rglob("*.npy")).unlink()
    with pytest.raises(CorruptStoreError, match=r"origin/entity/part-0\..* is missing"):
        train(graph, config, out, resume=True)
