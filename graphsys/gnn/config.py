"""What a user sets: one frozen config, from a preset, a TOML file and overrides."""

import os
from dataclasses import dataclass
from pathlib import Path

from graphsys.core.threads import num_cores
from graphsys.gnn.config_checks import check_fields, check_names
from graphsys.gnn.settings import GnnSettings
from graphsys.training.config import ConfigLoader

_SMALL_WORK = 1 << 22  # numbers added up by a layer


@dataclass(frozen=True, kw_only=True)
class GnnConfig(GnnSettings):
    """Everything a run of a graph neural network depends on besides the graph."""

    def __post_init__(self) -> None:
        """Check what concerns several fields at once.

        Raises:
            ConfigError: Fields that contradict each other.
        """
        check_names(self)
        super().__post_init__()
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
    is_small = is_small or config.is_of_events  # a few hundred events a step
    if config.threads or is_small:
        return config.threads or 1
    told = os.environ.get("LOCAL_WORLD_SIZE", "1")  # torchrun's: processes of this machine
    return max(num_cores() // max(int(told), 1), 1) if told.isdigit() else num_cores()


_LOADER = ConfigLoader(GnnConfig, Path(__file__).parent / "presets")
preset_names = _LOADER.preset_names
load_config = _LOADER.load
