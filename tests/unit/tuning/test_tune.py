"""A search: what it draws, what it writes, how it goes on, and what it leaves alone."""

import json
import os
import resource
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import graphsys
from graphsys import embedding, gnn
from graphsys.core.errors import (
    ConfigError,
    CorruptStoreError,
    MissingDependencyError,
    OutputExistsError,
    StorageFullError,
    StoreBusyError,
)
from graphsys.storage import Graph
from graphsys.storage.locks import WriterLock
from graphsys.tuning import tune
from graphsys.tuning.trials import TRIAL, _Watch
from tests.conftest import Run
from tests.unit.gnn.small_graphs import rings_and_trees, store_of
from tests.unit.tuning.conftest import EMBEDDING, GNN

optuna = pytest.importorskip("optuna")


def results(report: Any) -> list[tuple[Any, ...]]:
    """Return what trials were, but for how long they took."""
    return [
        (row["trial"], row["state"], row["value"], row["epochs"], row["settings"])
        for row in report.table
    ]


def with_settings(search: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    return {**search, "settings": {**search["settings"], **changes}}


@pytest.mark.parametrize(("search", "library"), [(EMBEDDING, embedding), (GNN, gnn)])
def test_the_best_trial_is_written_as_settings_that_train_as_well(
    ring: Graph, tmp_path: Path, search: dict[str, Any], library: Any
) -> None:
    out = tmp_path / "search"
    found = tune(ring, search, out, trials=3)
    assert found.trials == 3
    assert found.best is not None
    values = [row["value"] for row in found.table if row["state"] == "complete"]
    assert found.best["value"] == max(values)
    config = library.load_config(file=found.config)
    drawn = found.best["settings"]
    assert {name: getattr(config, name) for name in drawn} == drawn
    assert config.epochs == search["settings"]["epochs"]
    again = library.train(ring, config, tmp_path / "run").metrics[found.metric]
    assert found.best["value"] == (again[-1][1] if isinstance(again, list) else again)
    assert not (out / TRIAL).exists()


def test_trials_do_not_look_at_test(
    ring: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[str] = []
    tell = _Watch.on_evaluation

    def note(watch: Any, training: Any, metrics: Mapping[str, Any]) -> None:
        measured.extend(metrics)
        tell(watch, training, metrics)

    monkeypatch.setattr(_Watch, "on_evaluation", note)
    assert tune(ring, EMBEDDING, tmp_path / "a", trials=1).metric == "valid_mrr"
    assert {name.partition("_")[0] for name in measured} == {"valid"}
    for split in ("test", "train"):
        asked = with_settings(EMBEDDING, eval_split=split)
        with pytest.raises(ConfigError, match=f"eval_split: got {split}, expected valid"):
            tune(ring, asked, tmp_path / "b", trials=1)
    assert not (tmp_path / "b").exists()


def test_a_search_that_goes_on_draws_as_one_that_never_stopped(
    ring: Graph, tmp_path: Path
) -> None:
    whole = tune(ring, GNN, tmp_path / "whole", trials=13, seed=3)
    tune(ring, GNN, tmp_path / "parts", trials=4, seed=3)
    tune(ring, None, tmp_path / "parts", trials=11, resume=True)
    parts = tune(ring, GNN, tmp_path / "parts", trials=13, resume=True)
    assert results(parts) == results(whole)
    assert parts.config.read_bytes() == whole.config.read_bytes()
    other = tune(ring, GNN, tmp_path / "other", trials=2, seed=4)
    assert results(other) != results(whole)[:2]


KILLED = """
import os, signal
from graphsys.tuning.trials import _Watch, tune
calls, end = [], _Watch.on_epoch_end
def die(watch, training):
    end(watch, training)
    calls.append(1)
    if len(calls) == 10:  # in the third trial
        os.kill(os.getpid(), signal.SIGKILL)
_Watch.on_epoch_end = die
tune({graph!r}, {search!r}, {out!r}, trials=4)
"""


def test_a_killed_search_goes_on_as_if_nothing_had_happened(
    ring: Graph, ring_path: Path, tmp_path: Path, run_python: Run
) -> None:
    whole = tune(ring, GNN, tmp_path / "whole", trials=4)
    out = tmp_path / "killed"
    done = run_python(KILLED.format(graph=str(ring_path), search=GNN, out=str(out)))
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (out / TRIAL / "run.json").exists()
    with (out / "trials.journal").open("ab") as journal:  # as a kill within a write
        journal.write(b'{"op_code":7,"work')
    found = tune(ring, None, out, trials=4, resume=True)
    assert results(found) == results(whole)
    assert found.config.read_bytes() == whole.config.read_bytes()
    names = {it.name for it in out.iterdir() if not it.name.startswith(".graphsys-")}
    assert names == {"trials.journal", "best.toml"}


def test_optuna_reads_the_journal(ring: Graph, tmp_path: Path) -> None:
    found = tune(ring, EMBEDDING, tmp_path / "search", trials=2)
    backend = optuna.storages.journal.JournalFileBackend(
        str(tmp_path / "search/trials.journal")
    )
    storage = optuna.storages.JournalStorage(backend)
    (name,) = optuna.get_all_study_names(storage)
    study = optuna.load_study(study_name=name, storage=storage)
    assert found.best is not None
    assert study.best_value == found.best["value"]
    assert len(study.trials[0].intermediate_values) == 3


def test_trials_worse_than_the_median_end_early(ring: Graph, tmp_path: Path) -> None:
    search = with_settings(GNN, epochs=8) | {
        "search": {"lr": [1e-8, 0.01, 0.03, 0.1, 1e-9]}
    }
    pruned = tune(ring, search, tmp_path / "pruned", trials=12)
    assert pruned.trials == 5  # no settings are tried twice
    search["search"] = {"lr": {"low": 1e-9, "high": 0.1, "log": True}}
    pruned = tune(ring, search, tmp_path / "more", trials=12)
    assert pruned.pruned > 0
    assert {row["epochs"] for row in pruned.table if row["state"] == "complete"} == {8}
    assert min(row["epochs"] for row in pruned.table if row["state"] == "pruned") < 8
    whole = tune(ring, {**search, "prune": False}, tmp_path / "whole", trials=12)
    assert whole.pruned == 0


def test_the_lowest_loss_is_the_best(ring: Graph, tmp_path: Path) -> None:
    search = with_settings(GNN, monitor="loss")
    found = tune(ring, search, tmp_path / "search", trials=3)
    assert found.metric == "valid_loss"
    assert found.best is not None
    assert found.best["value"] == min(
        row["value"] for row in found.table if row["state"] == "complete"
    )


def test_trials_that_cannot_be_trained_are_counted_and_named(
    ring: Graph, tmp_path: Path
) -> None:
    search = with_settings(EMBEDDING, operator="complex_diagonal")
    search["search"] = {"dim": [4, 5, 6, 7, 8]}
    found = tune(ring, search, tmp_path / "search", trials=5)
    assert (found.trials, found.failed) == (5, 2)
    search["search"] = {"dim": [5, 7, 9]}
    with pytest.raises(
        ConfigError, match=r"none of 3 trials.*dim: got \d, expected an even"
    ):
        tune(ring, search, tmp_path / "none", trials=3)
    assert not (tmp_path / "none").exists()


def test_a_graph_without_what_trials_are_compared_by_is_refused(tmp_path: Path) -> None:
    """After an epoch of a trial, not when it is over; of folds there is no valid."""
    graphs = store_of(tmp_path / "g", rings_and_trees(12))
    settings = {"task": "graph_classification", "folds": 3, "epochs": 50, "dim": 8}
    search = {"trainer": "gnn", "settings": settings, "search": {"lr": [0.01, 0.1]}}
    told = r"none of 2 trials.*nothing in split 'valid', by which .* ingest a column split"
    with pytest.raises(ConfigError, match=told):
        tune(graphs, search, tmp_path / "search", trials=2)
    assert not (tmp_path / "search").exists()


def test_an_output_that_is_there_is_left_alone(ring: Graph, tmp_path: Path) -> None:
    out = tmp_path / "search"
    first = tune(ring, EMBEDDING, out, trials=1)
    best = first.config.read_bytes()
    with pytest.raises(OutputExistsError, match="go on with --resume or replace it with"):
        tune(ring, EMBEDDING, out, trials=1)
    bad = with_settings(EMBEDDING, operator="complex_diagonal") | {
        "search": {"dim": [5, 7]}
    }
    with pytest.raises(ConfigError, match="none of 2 trials"):
        tune(ring, bad, out, trials=2, overwrite=True)
    assert first.config.read_bytes() == best
    assert tune(ring, None, out, trials=1, resume=True) == first
    other = tune(ring, EMBEDDING, out, trials=1, seed=9, overwrite=True)
    assert other.trials == 1
    assert results(other) != results(first)
    assert tune(ring, None, out, trials=1, resume=True) == other
    for name, text in (("thesis.tex", "mine"), ("notes/a.txt", "mine")):
        file = tmp_path / "own" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        with pytest.raises(OutputExistsError, match="exists and is no search"):
            tune(ring, EMBEDDING, tmp_path / "own", trials=1, overwrite=True)
        assert file.read_text() == text


def test_a_search_goes_on_as_what_it_was_begun(ring: Graph, tmp_path: Path) -> None:
    out = tmp_path / "search"
    with pytest.raises(ConfigError, match="holds no search to go on with"):
        tune(ring, None, out, resume=True)
    with pytest.raises(ConfigError, match="add --config FILE"):
        tune(ring, None, out)
    tune(ring, EMBEDDING, out, trials=1)
    with pytest.raises(ConfigError, match=r"is another one \(base.epochs: 3 -> 4\)"):
        tune(ring, with_settings(EMBEDDING, epochs=4), out, trials=2, resume=True)
    with pytest.raises(ConfigError, match="has seed 0, got 1"):
        tune(ring, None, out, seed=1, resume=True)
    lock = WriterLock(out)
    with pytest.raises(StoreBusyError, match="being written by another process"):
        tune(ring, None, out, resume=True)
    lock.release()
    (out / "trials.journal").write_text("{}\nno journal\n")
    with pytest.raises(CorruptStoreError, match=r"trials\.journal cannot be read"):
        tune(ring, None, out, resume=True)


def test_another_graph_is_refused(ring: Graph, tmp_path: Path) -> None:
    from tests.stores import edge_chunk, make_store

    tune(ring, EMBEDDING, tmp_path / "search", trials=1)
    other = make_store(tmp_path / "other", edge_chunk([(0, 1), (1, 2)])).graph
    with pytest.raises(ConfigError, match=r"is of another graph \(.*num_edges"):
        tune(other, None, tmp_path / "search", resume=True)


def test_what_is_interrupted_before_a_trial_ended_leaves_nothing(
    ring: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_Watch, "on_epoch_end", interrupt)
    with pytest.raises(KeyboardInterrupt):
        tune(ring, EMBEDDING, tmp_path / "search", trials=1)
    assert list(tmp_path.iterdir()) == []


@contextmanager
def disk_of(size: int) -> Iterator[None]:
    """Let no file grow beyond a size."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_leaves_the_trials_that_ended(ring: Graph, tmp_path: Path) -> None:
    out = tmp_path / "search"
    with disk_of(5000), pytest.raises(StorageFullError, match=r"is left: search again$"):
        tune(ring, GNN, out, trials=1)
    assert list(tmp_path.iterdir()) == []
    first = tune(ring, GNN, out, trials=1)
    kept = {it.name: it.read_bytes() for it in out.iterdir()}
    size = len(kept["trials.journal"])
    for room in (0, 100, 2000):
        with disk_of(size + room), pytest.raises(StorageFullError, match=r"--resume$"):
            tune(ring, None, out, trials=2, resume=True)
        assert (out / "best.toml").read_bytes() == kept["best.toml"]
        assert not (out / TRIAL).exists()
    found = tune(ring, None, out, trials=2, resume=True)
    assert results(found)[0] == results(first)[0]
    assert found.trials == 2


def test_info_tells_what_a_search_has_found_and_writes_nothing(
    ring: Graph, tmp_path: Path, run_cli: Run
) -> None:
    """Beside another process, too: its line that is not whole yet stays."""
    out = tmp_path / "search"
    found = tune(ring, EMBEDDING, out, trials=2)
    with (out / "trials.journal").open("ab") as stream:
        stream.write(b'{"op_code": 4, "worker')
    before = {it.name: it.read_bytes() for it in out.iterdir()}
    lock = WriterLock(out)
    done = run_cli("info", str(out), "--json")
    lock.release()
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["best"] == found.best
    assert len(said["table"]) == 2
    assert {it.name: it.read_bytes() for it in out.iterdir() if it.name in before} == before
    journal = out / "trials.journal"
    odd = {
        b"": f"error: {out} holds no search that was begun; wait, or begin one\n",
        b"[]\n": f"error: {journal} cannot be read: ",
        b"\x00\xff\n{}\n": f"error: {journal} cannot be read: ",
    }
    for content, said in odd.items():
        journal.write_bytes(content)
        done = run_cli("info", str(out))
        assert (done.returncode, done.stderr[: len(said)]) == (2, said)
        assert journal.read_bytes() == content
    journal.unlink()
    os.mkfifo(journal)  # nobody writes to it: who opens it waits
    done = run_cli("info", str(out))
    assert done.returncode == 2
    assert "not a plain file" in done.stderr


def test_a_graph_with_a_journal_beside_is_a_graph(
    ring_path: Path, tmp_path: Path, run_cli: Run
) -> None:
    graph = tmp_path / "graph"
    shutil.copytree(ring_path, graph)
    (graph / "trials.journal").write_text("")
    done = run_cli("info", str(graph), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["num_nodes"] > 0


def test_no_trial_begins_after_the_minutes(ring: Graph, tmp_path: Path) -> None:
    found = tune(ring, EMBEDDING, tmp_path / "search", minutes=1e-9)
    assert (found.trials, found.best) == (0, None)
    assert tune(ring, None, tmp_path / "search", trials=1, resume=True).trials == 1


def test_a_dry_run_plans_and_writes_nothing(ring: Graph, tmp_path: Path) -> None:
    plan = graphsys.tune(ring, GNN, tmp_path / "search", trials=7, dry_run=True).plan
    assert plan["estimated_seconds_of_all_trials"] == 7 * plan["estimated_seconds"]
    assert list(tmp_path.iterdir()) == []


def test_without_optuna_the_extra_is_named(
    ring: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'graphsys\[tune\]'"):
        tune(ring, EMBEDDING, tmp_path / "search")


def test_the_command_searches_and_the_trainer_takes_its_settings(
    ring_path: Path, tmp_path: Path, run_cli: Run
) -> None:
    """As README says: a file, a search, a training with the best settings."""
    (tmp_path / "search.toml").write_text(
        'trainer = "gnn"\n'
        "[settings]\nepochs = 3\nbatch_size = 0\n"
        "[search]\nlr = {low = 1e-3, high = 1e-1, log = true}\ndim = [8, 16]\n"
    )
    out = tmp_path / "search"
    asked = ("--config", str(tmp_path / "search.toml"), "--trials", "2", "--seed", "1")
    done = run_cli("tune", str(ring_path), "-o", str(out), *asked, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["trials"] == len(found["table"]) == 2
    assert found["metric"] == "valid_accuracy"
    done = run_cli("tune", str(ring_path), "-o", str(out), "--resume", "--trials", "3")
    assert done.returncode == 0, done.stderr
    assert "valid_accuracy" in done.stdout
    best, run = str(out / "best.toml"), str(tmp_path / "run")
    done = run_cli("train", "gnn", str(ring_path), "-o", run, "--config", best, "--json")
    assert done.returncode == 0, done.stderr
    assert gnn.open_run(run).config.dim in (8, 16)
    done = run_cli("tune", str(ring_path), "-o", str(out), *asked)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1
