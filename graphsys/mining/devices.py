"""Where counting is done, what a GPU counts, and what is kept in memory for it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from graphsys.core.errors import ConfigError
from graphsys.core.progress import Progress
from graphsys.mining.closed_forms import SUMS_FORMS
from graphsys.mining.count_plan import CountPlan
from graphsys.mining.plan_cache import CENSUS_OF_5, HOUSES
from graphsys.mining.simple_graph import NOTHING, TaskMemory

_LARGEST_CENSUS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRun:
    """Where and how counting is done.

    Attributes:
        num_threads: Of the CPU; all cores where None.
        progress: Receives a stage for each kernel.
        device: ``cpu`` or ``cuda``.
        memory: Budget of the process; what there is where None.
    """

    num_threads: int | None
    progress: Progress
    device: str
    memory: int | str | None


def require_countable(device: str, plans: Mapping[Any, CountPlan]) -> None:
    """Check that there is a device and that it counts some patterns; nothing is read.

    Args:
        device: ``cpu`` or ``cuda``.
        plans: How patterns will be counted, by what users call them.

    Raises:
        ConfigError: an unknown device, no GPU, a pattern that it does not count.
        MissingDependencyError: numba-cuda is not installed.
    """
    check_device(device)
    if device == "cpu":
        return
    for name, plan in plans.items():
        by_sums = plan.way == "closed form" and plan.shape in SUMS_FORMS
        by_census = plan.way == "census" and len(plan.order) <= _LARGEST_CENSUS
        if not (by_sums or by_census):
            said = f"the pattern {name!r}" if isinstance(name, str) and name else "this"
            raise ConfigError(
                f"device='cuda' counts stars, cliques of up to 5 nodes and all that has 3 "
                f"or 4 nodes, without labels, but {said} is none of them; use device='cpu'"
            )


def check_device(device: str) -> None:
    """Check that there is a device.

    Raises:
        ConfigError: an unknown device, or no GPU.
        MissingDependencyError: numba-cuda is not installed.
    """
    if device not in ("cpu", "cuda"):
        raise ConfigError(f"device must be 'cpu' or 'cuda', got {device!r}")
    if device == "cuda":
        from graphsys.core.cuda.device import require_device

        require_device()


def kept_of(plans: Iterable[CountPlan]) -> TaskMemory:
    """Return what counting plain patterns keeps besides rows."""
    kept = NOTHING
    for plan in plans:
        if plan.way == "closed form" and plan.shape == "house":
            kept |= HOUSES
        elif plan.way == "census" and len(plan.order) == 5:
            kept |= CENSUS_OF_5
    return kept
