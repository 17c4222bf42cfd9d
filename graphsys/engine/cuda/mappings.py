"""Which mapping each phase's rows get: the wanted one, or the one with the least work."""

from typing import Any

from graphsys.engine.codegen.plan import PhasePlan
from graphsys.engine.cuda.fused_source import FUSED_MAPPINGS
from graphsys.engine.cuda.launch import DeviceLauncher
from graphsys.engine.cuda.strategy import choose, predicted_work
from graphsys.engine.execute.directions import in_coming


class Mappings:
    """Chooses who visits rows, once per phase.

    Args:
        launcher: Knows the program, the graph, and which kernels there are.
        strategy: The wanted one, or ``auto``; ``fused`` is ``auto`` where nothing is fused.
    """

    def __init__(self, launcher: DeviceLauncher, strategy: str) -> None:
        self._launcher = launcher
        self._strategy = "auto" if strategy == "fused" else strategy
        self._chosen: dict[Any, str] = {}

    @property
    def of_nodes(self) -> str:
        """Who visits a node in kernels that walk no rows."""
        has_vectors = self._launcher.arrays.plan.num_components > 0
        return "warp" if has_vectors else "thread"

    def dense(self, phase: PhasePlan) -> str:
        """Return who visits all rows."""
        alone = self._launcher.arrays.plan.visited_by(phase)
        if alone:
            return alone
        if phase.number not in self._chosen:
            self._chosen[phase.number] = self._choose_dense(phase)
        return self._chosen[phase.number]

    def sparse(self, phase: PhasePlan) -> str:
        """Return who visits the rows of a list, whose degrees the host does not know."""
        alone = self._launcher.arrays.plan.visited_by(phase)
        if alone:
            return alone
        wanted = self._strategy
        if wanted == "edge":
            is_delta = self._launcher.arrays.plan.spec.delta
            has_edge = self._launcher.has(f"push_edge_{phase.number}") and not is_delta
            return "edge" if has_edge else "warp"
        if wanted != "auto":
            return wanted
        return self._of_degrees()

    def fused(self, phase: PhasePlan) -> str:
        """Return who visits rows in a fused kernel: ``thread`` or ``warp``."""
        key = ("fused", phase.number)
        if key not in self._chosen:
            if phase.spec.schedule == "changed":
                choice = "thread" if self._of_degrees() == "thread" else "warp"
            else:
                degrees = in_coming(self._launcher.arrays, phase)
                work = predicted_work(degrees, self._launcher.shape.block)
                choice = choose(work, FUSED_MAPPINGS)
            self._chosen[key] = choice
        return self._chosen[key]

    def _of_degrees(self) -> str:
        """Return who visits lists of rows whose degrees only the device knows."""
        if "sparse" not in self._chosen:
            degrees = self._launcher.arrays.column("out_degree")
            mean, longest = float(degrees.mean()), int(degrees.max(initial=0))
            choice = "twc"
            if longest <= 8 * max(mean, 4.0):
                choice = "thread" if mean < 8 else "warp"
            self._chosen["sparse"] = choice
        return self._chosen["sparse"]

    def _choose_dense(self, phase: PhasePlan) -> str:
        has_edge = self._launcher.has(f"gather_edge_{phase.number}")
        allowed: tuple[str, ...] = ("thread", "warp", "block", "twc")
        if phase.kind == "mode":
            allowed = ("thread", "block", "twc")
        wanted = self._strategy
        if wanted in allowed or (wanted == "edge" and has_edge):
            return wanted
        if wanted != "auto":  # the nearest that this phase can have
            return "twc"
        if has_edge and phase.combiner in ("minimum", "maximum"):
            allowed = (*allowed, "edge")  # sums would depend on the order of atomics
        degrees = in_coming(self._launcher.arrays, phase)
        return choose(predicted_work(degrees, self._launcher.shape.block), allowed)
