"""The search: a trial is a training, and the best on the valid split is written as TOML.

Optuna draws the settings of each trial from what those before it were worth (Bergstra et
al., "Algorithms for hyper-parameter optimization", NeurIPS 2011), and ends trials that are
worse than the median of the others after as many epochs.

The output folder has Optuna's journal, which dashboards read, and ``best.toml``. A trial is
in the journal once it has ended. What a kill leaves of one is forgotten, and the next call
draws the same: draws depend on the seed and on the trials before alone.
"""

import contextlib
import dataclasses
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from graphsys.core import ownership
from graphsys.core.deps import require
from graphsys.core.errors import (
    BudgetError,
    ConfigError,
    OutputExistsError,
    StorageFullError,
    TrainingFailedError,
)
from graphsys.core.progress import IN_NOTEBOOKS, Progress
from graphsys.datasets.temporary import GraphLike, stored_graph
from graphsys.storage.folder_kinds import RUN_NAME, SEARCH_NAME, is_search, require_outside
from graphsys.storage.locks import LOCK_NAME, WriterLock
from graphsys.storage.reader import GraphReader
from graphsys.storage.runs.run_replacement import part_of
from graphsys.storage.transaction import disk_errors
from graphsys.training.callbacks import Callback, Training
from graphsys.tuning.journal import BEST, Journal, SearchRecord, sampler_of
from graphsys.tuning.search import SettingsSearch, read_search

TRIAL: Final = "trial"
"""The run of the trial under way, in the output folder."""
USUAL_TRIALS: Final = 20
_MOST_FAILED: Final = 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class TuneReport:
    """What a search found.

    Attributes:
        out: Its folder.
        metric: What trials are compared by, such as ``valid_mrr``; "" if none ended.
        is_lower_better: Whether the best trial has the lowest value.
        trials: Trials that ended, over all calls.
        pruned: How many of them were ended early.
        failed: How many could not be trained.
        seconds: What they took, over all calls.
        best: ``trial``, ``value``, ``epochs`` and ``settings`` of the best one; None where
            none was trained to its end.
        table: Every trial: the same, and ``state``: complete, pruned or failed.
        plan: Of a dry run: what the first trial would take, and all of them.
    """

    out: Path
    metric: str = ""
    is_lower_better: bool = False
    trials: int = 0
    pruned: int = 0
    failed: int = 0
    seconds: float = 0.0
    best: Mapping[str, Any] | None = None
    table: tuple[Mapping[str, Any], ...] = ()
    plan: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def config(self) -> Path:
        """The settings of the best trial, which ``--config`` of a training takes."""
        return self.out / BEST


def tune(
    graph: GraphLike,
    search: Mapping[str, Any] | str | Path | None,
    out: str | Path,
    *,
    trials: int | None = None,
    minutes: float | None = None,
    seed: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    dry_run: bool = False,
    memory: int | str | None = None,
    device: str = "cpu",
    progress: Progress = IN_NOTEBOOKS,
) -> TuneReport:
    """Search settings of a training, and write the best ones as TOML.

    Args:
        graph: What is trained on.
        search: What is searched: a TOML file, or what one says (the guide has
            its keys). None for ``resume``: what the search was begun with.
        out: Folder of the search.
        trials: Trials in all, over all calls; 20 by default, without end with ``minutes``.
        minutes: No trial is begun after so many.
        seed: Seed of all draws; 0 by default, and that of the search for ``resume``.
        resume: Go on with the search in ``out``.
        overwrite: Replace the search in ``out``, once a trial of the new one has ended.
        dry_run: Only plan the first trial; write nothing.
        memory: As for ``train``.
        device: As for ``train``.
        progress: Receives a trial per stage.

    Returns:
        What was found.

    Raises:
        ConfigError: The search is wrong, another one than ``resume`` goes on with, or none
            of its trials can be trained.
        MissingDependencyError: Optuna is not installed.
        OutputExistsError: ``out`` exists.
        StoreBusyError: Another search writes to ``out``.
        CorruptStoreError: The journal is damaged.
    """
    require("optuna", extra="tune")
    out, reader = Path(out), stored_graph(graph)
    given = None if search is None else read_search(search)
    if given is None and (dry_run or not resume):
        raise ConfigError("got no settings to search, expected a file; add --config FILE")
    if trials is None and minutes is None:
        trials = USUAL_TRIALS
    ends_s = float("inf") if minutes is None else time.monotonic() + 60 * minutes
    how = {"memory": memory, "device": device}
    if dry_run and given is not None:
        return _planned(out, reader, given, seed or 0, trials, how)
    with _writing(out, resume=resume, overwrite=overwrite), _quiet_optuna():
        journal = Journal(out, reader, given, seed, resume=resume)
        with journal.removed_if_empty(), _explained_full_disk(journal):
            while trials is None or len(journal.ended) < trials:
                if time.monotonic() >= ends_s or not _run_trial(journal, how, progress):
                    break
            journal.require_success()
        progress.close()
        return _report_of(journal)


def search_report(out: str | Path) -> TuneReport:
    """Return what a search has found so far; another process may be at it.

    Args:
        out: Its folder.

    Raises:
        ConfigError: It holds no search.
        MissingDependencyError: Optuna is not installed.
        CorruptStoreError: The journal is damaged.
    """
    require("optuna", extra="tune")
    if not is_search(out):
        raise ConfigError(f"{out} holds no search, expected the folder of one")
    with _quiet_optuna():
        return _report_of(SearchRecord.read(Path(out)))


def _run_trial(journal: Journal, how: Mapping[str, Any], progress: Progress) -> bool:
    """Train with new settings, and write down what they are worth.

    Args:
        journal: The search.
        how: Further arguments of ``train``.
        progress: Receives the trial as a stage.

    Returns:
        Whether there were settings that no trial had.
    """
    from optuna.trial import TrialState

    search, number = journal.search, len(journal.ended) + 1
    trial, drawn = journal.draw()
    if trial is None:
        return False
    watch, began = _Watch(trial, prune=search.prune, progress=progress), time.monotonic()
    run = journal.out / TRIAL
    try:
        config = search.config_of(drawn)
        progress.stage(f"trial {number}", config.epochs, "epochs")
        _remove_run(run)
        search.library.train(journal.graph, config, run, callbacks=[watch], **how)
        value = watch.value(config, is_lower_better=search.is_lower_better)
    except (ConfigError, TrainingFailedError, BudgetError) as err:
        trial.set_user_attr("error", str(err))
        journal.study.tell(trial, state=TrialState.FAIL)
    else:
        facts = {"metric": watch.metric, "epochs": watch.epochs}
        for name, fact in {**facts, "seconds": time.monotonic() - began}.items():
            trial.set_user_attr(name, fact)
        if watch.is_pruned:
            journal.study.tell(trial, state=TrialState.PRUNED)
        else:
            journal.study.tell(trial, value)
    finally:
        _remove_run(run)
    journal.write_best()
    if len(journal.ended) == _MOST_FAILED:
        journal.require_success()
    return True


class _Watch(Callback):
    """Tells Optuna what evaluations found, and ends a training that it would prune.

    Args:
        trial: Optuna's.
        prune: Whether to end any.
        progress: Receives epochs.
    """

    def __init__(self, trial: Any, *, prune: bool, progress: Progress) -> None:
        self._trial, self._prunes, self._progress = trial, prune, progress
        self._values: list[float] = []
        self.metric, self.epochs, self.is_pruned = "", 0, False

    def on_evaluation(self, training: Training, metrics: Mapping[str, Any]) -> None:
        """Tell the value; ask whether the others were better after as many epochs."""
        self.metric = training.monitored[0]
        value = float(metrics[self.metric])
        self._values.append(value)
        self._trial.report(value, training.epoch)
        if self._prunes and self._trial.should_prune():
            self.is_pruned = True
            training.stop()

    def on_epoch_end(self, training: Training) -> None:
        """Count the epoch; end a training that has nothing to evaluate.

        Raises:
            ConfigError: The split is not there: later epochs would find no more.
        """
        self.epochs, config = training.epoch, training.config
        is_due = config.eval_every and training.epoch % config.eval_every == 0
        if is_due and not self._values:
            raise ConfigError(
                f"the graph has nothing in split {config.eval_split!r}, by which trials "
                "are compared (folds have none); ingest a column split with train, valid "
                "and test"
            )
        last = {self.metric: self._values[-1]} if self._values else {}
        self._progress.advance(1, **last)

    def value(self, config: Any, *, is_lower_better: bool) -> float:
        """Return what the trial is worth: its best evaluation, if its run keeps that.

        Args:
            config: The settings.
            is_lower_better: How the best is found.

        Raises:
            TrainingFailedError: It is not a number.
        """
        has_best = getattr(config, "keep", "") == "best" or (
            not hasattr(config, "keep") and config.patience > 0
        )
        choose = min if is_lower_better else max
        found = choose(self._values) if has_best else self._values[-1]
        if found != found:
            raise TrainingFailedError(f"{self.metric} is not a number")
        return found


def _report_of(journal: SearchRecord) -> TuneReport:
    """Return what a search has found so far."""
    rows, best = tuple(journal.rows()), journal.best
    states = [row["state"] for row in rows]
    found = None
    if best is not None:
        found = dict(rows[[it.number for it in journal.ended].index(best.number)])
        del found["state"]
    metrics = [
        it.user_attrs["metric"] for it in journal.ended if it.user_attrs.get("metric")
    ]
    return TuneReport(
        out=journal.out,
        metric=next(iter(metrics), ""),
        is_lower_better=journal.search.is_lower_better,
        trials=len(rows),
        pruned=states.count("pruned"),
        failed=states.count("failed"),
        seconds=sum(row["seconds"] for row in rows),
        best=found,
        table=rows,
    )


@contextlib.contextmanager
def _explained_full_disk(journal: Journal) -> Iterator[None]:
    """Say what a full disk leaves of a search; the run of a trial goes."""
    try:
        with disk_errors(journal.out):
            yield
    except StorageFullError as err:
        # what a training says of its run is of no use here
        cause = err.__cause__ if isinstance(err.__cause__, StorageFullError) else err
        left = "no trial had ended, so nothing is left: search again"
        if journal.best is not None:
            left = f"the trials of {journal.out} that ended are whole: go on with --resume"
        raise StorageFullError(f"{cause}; {left}") from err


def _planned(
    out: Path,
    graph: GraphReader,
    search: SettingsSearch,
    seed: int,
    trials: int | None,
    how: Mapping[str, Any],
) -> TuneReport:
    """Return what the first trial would take; nothing is written."""
    import optuna

    with _quiet_optuna():
        study = optuna.create_study(sampler=sampler_of(seed, 0, 0))
        drawn = search.draw(study.ask())
    found = search.library.train(
        graph, search.config_of(drawn), out / TRIAL, dry_run=True, **how
    )
    plan = dict(found.metrics)
    if trials is not None and "estimated_seconds" in plan:
        plan["estimated_seconds_of_all_trials"] = trials * plan["estimated_seconds"]
    return TuneReport(out=out, plan=plan)


@contextlib.contextmanager
def _writing(out: Path, *, resume: bool, overwrite: bool) -> Iterator[None]:
    """Hold the folder of a search; a new one that nothing came of goes.

    Raises:
        ConfigError: There is nothing to go on with, or it lies in a graph or a run.
        OutputExistsError: A search or something else is there.
        StoreBusyError: Another search writes there.
    """
    require_outside(out)
    is_there = is_search(out)
    if resume and not is_there:
        raise ConfigError(f"{out} holds no search to go on with; search without --resume")
    if is_there and not (resume or overwrite):
        raise OutputExistsError(
            f"{out} holds a search; go on with --resume or replace it with --overwrite"
        )
    if not is_there and out.exists() and SEARCH_NAME not in ownership.claimed_names(out):
        found = next(iter(sorted(out.iterdir())), None) if out.is_dir() else out
        if found is not None or not overwrite:
            raise OutputExistsError(
                f"{out} exists and is no search; choose another output (it holds "
                f"{'nothing' if found is None else repr(found.name)})"
            )
    with disk_errors(out):
        out.mkdir(parents=True, exist_ok=True)
        lock = WriterLock(out)
    try:
        with disk_errors(out):
            ownership.claim(out, (SEARCH_NAME, BEST, LOCK_NAME))
        yield
    finally:
        if not (out / SEARCH_NAME).exists():
            ownership.unclaim(out)
        lock.release()
        ownership.remove_empty(out)


def _remove_run(run: Path) -> None:
    """Remove the run of a trial, which this search or a killed call of it trained."""
    if (run / RUN_NAME).exists() and not run.is_symlink():
        ownership.claim(run)
    ownership.remove_claimed(run, part_of(run))


@contextlib.contextmanager
def _quiet_optuna() -> Iterator[None]:
    """Keep Optuna from telling of each trial what progress and report tell."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
