"""A search on disk: Optuna's journal, and what graphsys asks of it."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from graphsys.core import ownership
from graphsys.core.config import difference, to_toml
from graphsys.core.errors import ConfigError, CorruptStoreError, StorageFullError
from graphsys.core.plain_files import read_plain
from graphsys.core.rng import draw_key
from graphsys.storage.folder_kinds import SEARCH_NAME
from graphsys.storage.reader import GraphReader
from graphsys.storage.runs.run_folder import describe_graph, write_durably
from graphsys.storage.transaction import disk_errors
from graphsys.tuning.search import SettingsSearch

BEST: Final = "best.toml"
_STARTUP: Final = 10
"""Trials that are drawn at random, before there is something to learn from."""
_UNPRUNED: Final = 4
"""Trials that are trained to their end, before others are compared with them."""
_MOST_DRAWS: Final = 20


class SearchRecord:
    """A search as its folder has it: what it is about, and its trials.

    Args:
        out: The folder; another process may be writing to it.
        storage: Optuna's, of the journal there.
        name: Of the study.

    Attributes:
        search: What is searched.
        seed: Seed of all draws.
        graph_facts: What is trained on, as runs describe it.
    """

    def __init__(self, out: Path, storage: Any, name: str) -> None:
        import optuna

        self.out, self.name = out, name
        self.study = optuna.load_study(
            study_name=name,
            storage=storage,
            pruner=optuna.pruners.MedianPruner(n_startup_trials=_UNPRUNED),
        )
        said = self.study.user_attrs
        self.search, self.seed = (
            SettingsSearch.of_mapping(said["search"]),
            int(said["seed"]),
        )
        self.graph_facts: Mapping[str, Any] = said["graph"]

    @classmethod
    def read(cls, out: Path) -> "SearchRecord":
        """Return the last search of a folder, and write nothing.

        Raises:
            ConfigError: None has been begun.
            CorruptStoreError: The journal cannot be read.
        """
        storage = _storage_of(out / SEARCH_NAME)
        begun = [name for name, is_begun in _searches(storage).items() if is_begun]
        if not begun:
            raise ConfigError(f"{out} holds no search that was begun; wait, or begin one")
        return cls(out, storage, begun[-1])

    @property
    def ended(self) -> list[Any]:
        """Trials that were trained to an end, or could not be, in their order."""
        return [it for it in self.study.trials if state_of(it)]

    @property
    def best(self) -> Any:
        """The best of the complete trials; None where there is none."""
        found = [it for it in self.ended if state_of(it) == "complete"]
        return self.study.best_trial if found else None

    def settings_of(self, trial: Any) -> dict[str, Any]:
        """Return the searched settings of a trial that ended."""
        from optuna.trial import FixedTrial

        return self.search.draw(FixedTrial(trial.params))

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield what is told of each trial that ended."""
        for number, trial in enumerate(self.ended, 1):
            said = trial.user_attrs
            yield {
                "trial": number,
                "state": state_of(trial),
                "value": trial.value,
                "epochs": said.get("epochs", 0),
                "seconds": said.get("seconds", 0.0),
                "settings": self.settings_of(trial),
            }


class Journal(SearchRecord):
    """A search that this process goes on with.

    Several may be in one journal, the last one being meant: one that replaces another is
    begun beside it, and the other goes with its first complete trial.

    Args:
        out: The folder, which this process holds.
        graph: What is trained on.
        given: What to search; None for what is written there.
        seed: Seed of all draws; None for that of the search.
        resume: Whether to go on with the last one.

    Raises:
        ConfigError: It goes on as another one than it was begun.
        CorruptStoreError: The journal cannot be read.
    """

    def __init__(
        self,
        out: Path,
        graph: GraphReader,
        given: SettingsSearch | None,
        seed: int | None,
        *,
        resume: bool,
    ) -> None:
        import optuna

        self.graph, self._storage = graph, _storage_of(out / SEARCH_NAME, mend=True)
        there = _searches(self._storage)
        begun = [name for name, is_begun in there.items() if is_begun]
        if resume and begun:
            name = begun[-1]
        elif given is None:
            raise ConfigError(f"{out} holds no search to go on with; add --config FILE")
        else:
            numbers = [int(it.rpartition("-")[2]) for it in there]
            name = f"search-{1 + max(numbers, default=0)}"
            self._create(name, given, seed or 0)
        super().__init__(out, self._storage, name)
        self._others = [it for it in there if it != name]
        self._require_same(given, seed, self.graph_facts)
        for trial in self.study.trials:
            if trial.state == optuna.trial.TrialState.RUNNING:  # of a call that was killed
                self.study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        self.write_best()

    def _create(self, name: str, given: SettingsSearch, seed: int) -> None:
        import optuna

        study = optuna.create_study(
            study_name=name,
            storage=self._storage,
            direction="minimize" if given.is_lower_better else "maximize",
        )
        study.set_user_attr("graph", describe_graph(self.graph))
        study.set_user_attr("seed", seed)
        study.set_user_attr("search", given.as_mapping())  # the last: now it is begun

    def _require_same(
        self, given: SettingsSearch | None, seed: int | None, graph: Mapping[str, Any]
    ) -> None:
        if given is not None:
            given.require_same(self.search, self.out)
        if seed not in (None, self.seed):
            raise ConfigError(
                f"the search {self.out} has seed {self.seed}, got {seed}; go on without "
                "--seed, or choose another output"
            )
        here = describe_graph(self.graph) | {"path": graph["path"]}
        if changes := difference(graph, here):
            raise ConfigError(
                f"the search {self.out} is of another graph ({'; '.join(changes)}); give "
                "that graph, or choose another output"
            )

    def draw(self) -> tuple[Any, dict[str, Any]]:
        """Return a new trial of Optuna's with its settings; None if all were tried."""
        import optuna

        before = [self.settings_of(trial) for trial in self.ended]
        for attempt in range(_MOST_DRAWS):
            self.study.sampler = sampler_of(self.seed, len(before), attempt)
            trial = self.study.ask()
            drawn = self.search.draw(trial)
            if drawn not in before:
                return trial, drawn
            self.study.tell(trial, state=optuna.trial.TrialState.FAIL)
        return None, {}

    def write_best(self) -> None:
        """Write the settings of the best trial, and forget searches that it replaces.

        Raises:
            StorageFullError: They cannot be written; those before stay.
        """
        import optuna

        best = self.best
        if best is None:
            return
        for name in self._others:
            optuna.delete_study(study_name=name, storage=self._storage)
        self._others = []
        config = self.search.config_of(self.settings_of(best))
        number = 1 + [it.number for it in self.ended].index(best.number)
        head = (
            f"# {best.user_attrs['metric']} {best.value:.6g}: trial {number} of "
            f"graphsys tune; for graphsys train {self.search.trainer} GRAPH --config\n"
        )
        text = (head + to_toml(config)).encode()
        with contextlib.suppress(OSError):
            if (self.out / BEST).read_bytes() == text:
                return
        write_durably(self.out / BEST, text)

    def require_success(self) -> None:
        """Refuse a search of which all trials failed.

        Raises:
            ConfigError: They did; the message has the last one's.
        """
        ended = self.ended
        if ended and all(state_of(it) == "failed" for it in ended):
            last = ended[-1]
            raise ConfigError(
                f"none of {len(ended)} trials could be trained; the last one, with "
                f"{self.settings_of(last)}: {last.user_attrs['error']}"
            )

    @contextlib.contextmanager
    def removed_if_empty(self) -> Iterator[None]:
        """Leave no search without a complete trial behind, if the block fails."""
        import optuna

        try:
            yield
        except BaseException:
            if self.best is None:
                optuna.delete_study(study_name=self.name, storage=self._storage)
                if not self._others:
                    ownership.remove_listed(self.out, [SEARCH_NAME])
            raise


def state_of(trial: Any) -> str:
    """Return how a trial of Optuna's ended; "" if nothing came of it."""
    from optuna.trial import TrialState

    if trial.state == TrialState.FAIL:  # or of a call that was killed
        return "failed" if "error" in trial.user_attrs else ""
    return {TrialState.COMPLETE: "complete", TrialState.PRUNED: "pruned"}.get(
        trial.state, ""
    )


def sampler_of(seed: int, number: int, attempt: int) -> Any:
    """Return what draws the settings of a trial, the same whoever draws them."""
    from optuna.samplers import TPESampler

    key = draw_key(seed, "trial", number, attempt)
    return TPESampler(seed=int(key) >> 33, n_startup_trials=_STARTUP)


class _NoLock:
    """Optuna's lock of the journal: the folder's own is held already."""

    def acquire(self) -> bool:
        """Do nothing."""
        return True

    def release(self) -> None:
        """Do nothing."""


def _searches(storage: Any) -> dict[str, bool]:
    """Return the names of searches in their order, and whether each was begun.

    A kill may have come before a search said what it is about.
    """
    import optuna

    there = optuna.get_all_study_summaries(storage, include_best_trial=False)
    return {it.study_name: "search" in it.user_attrs for it in there}


def _storage_of(file: Path, *, mend: bool = False) -> Any:
    """Open a journal, or begin one.

    Args:
        file: The journal.
        mend: Drop a line that a kill cut short; readers pass over it.

    Raises:
        CorruptStoreError: It cannot be understood.
    """
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    try:
        with disk_errors(file) if mend else contextlib.nullcontext():
            if file.exists():
                whole = read_plain(file).rfind(b"\n") + 1
                if mend:
                    with file.open("r+b") as stream:
                        stream.truncate(whole)
            backend = JournalFileBackend(str(file), lock_obj=_NoLock())
            return JournalStorage(backend)
    except StorageFullError:
        raise
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as err:
        raise CorruptStoreError(
            f"{file} cannot be read: {err!r}; choose another output, or remove the file"
        ) from err
