"""What a user sets: one frozen config, from a preset, a TOML file and overrides."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphsys.core.config import apply_overrides, from_mapping, load_toml
from graphsys.core.errors import ConfigError, unknown_name
from graphsys.core.threads import num_cores
from graphsys.gnn.config_checks import check_fields
from graphsys.gnn.settings import GnnSettings

PRESET_DIR = Path(__file__).parent / "presets"
_SMALL_WORK = 1 << 22  # numbers added up by a layer


@dataclass(frozen=True, kw_only=True)
class GnnConfig(GnnSettings):
    """Everything a run of a graph neural network depends on besides the graph."""

    def __post_init__(self) -> None:
        """Check what concerns several fields at once.

        Raises:
            ConfigError: Fields that contradict each other.
        """
        check_fields(self)


def num_threads(config: GnnConfig, num_edges: int) -> int:
    """Return the threads of a training: one where handing over would cost more than work.

    Args:
        config: The settings.
        num_edges: Of the graph.
    """
    if config.deterministic:
        return 1
    is_small = config.is_whole_graph and num_edges * config.dim < _SMALL_WORK
    return config.threads or (1 if is_small else num_cores())


def preset_names() -> list[str]:
    """Return the names of the presets, sorted."""
    return sorted(path.stem for path in PRESET_DIR.glob("*.toml"))


def load_config(
    *,
    preset: str | None = None,
    file: str | Path | None = None,
    overrides: Iterable[str] = (),
) -> GnnConfig:
    """Build a config from a preset or a file, with ``key=value`` overrides on top.

    Raises:
        ConfigError: Both are given, or a setting is wrong.
        UnknownNameError: There is no such preset.
    """
    mapping: Mapping[str, Any] = {}
    where = "settings"
    if preset is not None and file is not None:
        raise ConfigError(f"got preset {preset!r} and config file {file}; give one of them")
    if preset is not None:
        if preset not in preset_names():
            raise unknown_name("preset", preset, preset_names())
        mapping, where = load_toml(PRESET_DIR / f"{preset}.toml"), f"preset {preset}"
    elif file is not None:
        mapping, where = load_toml(Path(file)), Path(file).name
    return from_mapping(GnnConfig, apply_overrides(mapping, overrides), where=where)
