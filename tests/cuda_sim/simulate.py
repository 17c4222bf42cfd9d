"""Running cases in numba's CUDA simulator, in a process that chooses it."""

from functools import cache
from typing import Any

from tests.processes import SIMULATED, rows_of


@cache
def outcomes(*cases: str) -> dict[str, dict[str, Any]]:
    """Run all cases in one process of its own, so that each program is lowered once."""
    module = "tests.cuda_sim.run_simulator"
    return rows_of(module, *cases, environment=SIMULATED, timeout=600)
