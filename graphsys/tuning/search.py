"""What a search is about: a trainer, its settings, and which of them are searched.

A search file has the keys ``trainer`` (``embedding`` or ``gnn``), ``preset`` or ``config``
(where it begins), ``prune``, and two tables: ``[settings]``, which replace those of preset
or config, and ``[search]``, which has for each searched setting a list of values or a range
``{low, high, log, step}``.
"""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from graphsys.core.config import (
    REQUIRED,
    Checked,
    apply_overrides,
    as_overrides,
    check_settings,
    difference,
    from_mapping,
    load_toml,
    option,
    settings_by_key,
    to_mapping,
)
from graphsys.core.errors import ConfigError

COMPARED_BY: Final = ("monitor", "eval_split")
"""Settings that say what a trial is worth, and so cannot differ between trials."""
_SPLITS: Final = ("valid", "held_out")
_RANGE: Final = {"low", "high", "log", "step"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Head(Checked):
    """The keys of a search file besides its two tables."""

    trainer: Literal["embedding", "gnn"] = option(REQUIRED, "Which trainer.")
    preset: str | None = option(None, "Preset to begin with.")
    config: str | None = option(None, "TOML config to begin with, beside the search file.")
    prune: bool = option(True, "End a trial that is worse than half of those before it.")


@dataclasses.dataclass(frozen=True, slots=True)
class Range:
    """Numbers from ``low`` to ``high``, both included; whole ones if both ends are.

    Attributes:
        low: The least.
        high: The most.
        log: Whether their logarithm is drawn evenly, not they.
        step: Distance of the values; None for any value, or 1 of whole numbers.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the values are integers."""
        return all(isinstance(it, int) for it in (self.low, self.high, self.step or 1))

    @property
    def ends(self) -> tuple[Any, ...]:
        """The values that limits are checked with."""
        return self.low, self.high

    def draw(self, trial: Any, key: str) -> Any:
        """Return the value of a trial of Optuna's."""
        low, high = self.low, self.high
        if self.is_whole:
            return trial.suggest_int(key, low, high, log=self.log, step=self.step or 1)
        return trial.suggest_float(key, low, high, log=self.log, step=self.step)


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """One of some values.

    Attributes:
        values: What TOML has: numbers, texts, booleans, lists.
    """

    values: tuple[Any, ...]

    @property
    def ends(self) -> tuple[Any, ...]:
        """The values that limits are checked with: all."""
        return self.values

    def draw(self, trial: Any, key: str) -> Any:
        """Return the value of a trial of Optuna's, which knows no lists."""
        texts = [json.dumps(value) for value in self.values]
        return json.loads(trial.suggest_categorical(key, texts))


@dataclasses.dataclass(frozen=True, kw_only=True)
class SettingsSearch:
    """A search, checked.

    Attributes:
        trainer: ``embedding`` or ``gnn``.
        base: Settings of all trials, by name, but for those that are searched.
        space: What is searched, by the key that ``--set`` takes.
        table: The same as the file says it.
        prune: Whether trials that are worse than half of the others end early.
    """

    trainer: Literal["embedding", "gnn"]
    base: Mapping[str, Any]
    space: Mapping[str, Range | Choice]
    table: Mapping[str, Any]
    prune: bool = True

    @property
    def library(self) -> Any:
        """The trainer's package, which has ``train``."""
        return _library(self.trainer)

    @property
    def is_lower_better(self) -> bool:
        """Whether the best trial is that with the lowest value."""
        return self.base["monitor"] in ("loss", "mr")

    def draw(self, trial: Any) -> dict[str, Any]:
        """Return the searched settings of a trial of Optuna's, by key."""
        return {key: choice.draw(trial, key) for key, choice in self.space.items()}

    def config_of(self, drawn: Mapping[str, Any]) -> Any:
        """Return all settings of a trial.

        Raises:
            ConfigError: They contradict each other, or leave nothing to compare by.
        """
        merged = apply_overrides(self.base, as_overrides(drawn))
        config: Any = from_mapping(_config_class(self.trainer), merged)
        if not 1 <= config.eval_every <= config.epochs:
            raise ConfigError(
                f"eval_every: got {config.eval_every} with {config.epochs} epochs, "
                f"expected 1 to {config.epochs}, as trials are compared by their "
                "evaluations; set it in [settings]"
            )
        return config

    def as_mapping(self) -> dict[str, Any]:
        """Return what :meth:`of_mapping` takes, of values that JSON has."""
        names = ("trainer", "base", "table", "prune")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def of_mapping(cls, mapping: Mapping[str, Any]) -> "SettingsSearch":
        """Return a search from what :meth:`as_mapping` returned."""
        return cls(space=_space_of(mapping["table"], ""), **mapping)

    def require_same(self, other: "SettingsSearch", path: Path) -> None:
        """Check that a search goes on as what it was begun.

        Raises:
            ConfigError: The other, which the folder ``path`` has, differs.
        """
        changes = difference(other.as_mapping(), self.as_mapping())
        if changes:
            raise ConfigError(
                f"the search {path} is another one ({'; '.join(changes)}); go on with it "
                "without --config, or choose another output"
            )


def read_search(source: Mapping[str, Any] | str | Path) -> SettingsSearch:
    """Read and check a search.

    Args:
        source: A TOML file, or what one says.

    Raises:
        ConfigError: A key or a value is wrong, or nothing is searched.
        UnknownNameError: There is no such preset.
    """
    if isinstance(source, Mapping):
        said, where, folder = dict(source), "", Path()
    else:
        file = Path(source)
        said, where, folder = load_toml(file), f"{file.name}: ", file.parent
    fixed, table = (_table(said.pop(name, {}), name, where) for name in _TABLES)
    head = from_mapping(_Head, said, where=where.removesuffix(": "))
    file_ = None if head.config is None else folder / head.config
    library = _library(head.trainer)
    overrides = as_overrides(settings_by_key(fixed))
    base = library.load_config(preset=head.preset, file=file_, overrides=overrides)
    search = SettingsSearch(
        trainer=head.trainer,
        base=to_mapping(base),
        space=_space_of(table, where),
        table=table,
        prune=head.prune,
    )
    _check(search, where)
    return search


_TABLES: Final = ("settings", "search")


def _check(search: SettingsSearch, where: str) -> None:
    """Check what is searched, value by value, and what trials are compared by.

    Raises:
        ConfigError: There is nothing, or a value that its setting does not take.
    """
    if not search.space:
        raise ConfigError(
            f"{where}search: got nothing to search, expected a table such as "
            "[search] with lr = {low = 1e-3, high = 1e-1, log = true}"
        )
    cls = _config_class(search.trainer)
    for key, choice in search.space.items():
        if key in COMPARED_BY:
            raise ConfigError(
                f"{where}search.{key}: trials are compared by it, so that it is the same "
                "in all; put one value under [settings]"
            )
        for value in choice.ends:
            given = apply_overrides({}, as_overrides({key: value}))
            check_settings(cls, given, f"{where}search.")
    if search.base["eval_split"] not in _SPLITS:
        raise ConfigError(
            f"{where}eval_split: got {search.base['eval_split']}, expected "
            f"{' or '.join(_SPLITS)}, as what settings are chosen by says nothing of them "
            "afterwards"
        )
    if search.base["monitor"] == "held_out_loss":
        raise ConfigError(
            f"{where}monitor: got held_out_loss, expected a metric of eval_every's "
            "evaluations, such as mrr"
        )
    if "eval_every" not in search.space and "epochs" not in search.space:
        search.config_of({})


def _space_of(table: Mapping[str, Any], where: str) -> dict[str, Range | Choice]:
    """Return what is searched, by the key that ``--set`` takes.

    Raises:
        ConfigError: An entry is neither a list of values nor a range.
    """
    found: dict[str, Range | Choice] = {}
    for key, value in settings_by_key(table, _is_range).items():
        place = f"{where}search.{key}"
        if isinstance(value, Mapping):
            found[key] = _range(value, place)
        elif isinstance(value, list) and value:
            found[key] = Choice(tuple(value))
        else:
            raise ConfigError(
                f"{place}: got {value!r}, expected a list of values or "
                "{low = ..., high = ...}; one value belongs under [settings]"
            )
    return found


def _is_range(table: Mapping[str, Any]) -> bool:
    """Tell a range from a table of settings, which may be called like its keys."""
    ends = [table[name] for name in ("low", "high") if name in table]
    return bool(ends) and not any(isinstance(it, Mapping) for it in ends)


def _range(said: Mapping[str, Any], place: str) -> Range:
    """Return a range.

    Raises:
        ConfigError: It is none.
    """
    for name, value in said.items():
        kind = bool if name == "log" else int | float
        is_right = isinstance(value, kind) and isinstance(value, bool) == (name == "log")
        if name not in _RANGE or not is_right:
            raise ConfigError(
                f"{place}: got {name} = {value!r}, expected numbers low, high and step, "
                "and log = true or false"
            )
    if not {"low", "high"} <= said.keys() or not said["low"] < said["high"]:
        raise ConfigError(
            f"{place}: got {dict(said)}, expected low and high, the latter higher"
        )
    found = Range(**said)
    if found.log and (found.low <= 0 or found.step is not None):
        raise ConfigError(f"{place}: log = true takes low > 0 and no step; leave it out")
    if found.step is not None and not 0 < found.step <= found.high - found.low:
        raise ConfigError(
            f"{place}.step: got {found.step}, expected it to fit in the range"
        )
    return found


def _table(value: Any, name: str, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where}{name}: got {value!r}, expected a table")
    return dict(value)


def _library(trainer: str) -> Any:
    if trainer == "gnn":
        from graphsys import gnn

        return gnn
    from graphsys import embedding

    return embedding


def _config_class(trainer: str) -> type:
    library = _library(trainer)
    found: type = library.GnnConfig if trainer == "gnn" else library.EmbeddingConfig
    return found
