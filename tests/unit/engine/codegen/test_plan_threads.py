"""Workers that are threads of one process may plan their programs at the same time."""

from typing import Any

import numpy as np
import pytest
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from graphsys.engine import program as gs
from graphsys.engine.codegen.plan import plan_of
from graphsys.engine.codegen.spec import spec_of


class Smallest(gs.VertexProgram):
    value = gs.state("float64")
    combine = gs.minimum

    def message(self, src, edge):  # type: ignore[no-untyped-def]
        return src.value

    def update(self, node, message):  # type: ignore[no-untyped-def]
        return message


def test_types_are_inferred_by_one_thread_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """numba's context of types is one for the process and takes its registries up once."""
    held = []
    refresh = cpu_target.typing_context.refresh

    def watched() -> None:
        held.append(global_compiler_lock.is_locked())
        refresh()

    monkeypatch.setattr(cpu_target.typing_context, "refresh", watched)
    plan = plan_of(spec_of(Smallest), {})
    assert plan.phases[0].message_dtypes == (np.dtype("float64"),)
    assert held
    assert all(held)


class Weighed(gs.VertexProgram):
    value = gs.state("float32")
    combine = gs.minimum

    def message(self, src, edge):  # type: ignore[no-untyped-def]
        return src.value + edge.weight

    def update(self, node, message):  # type: ignore[no-untyped-def]
        return message


def test_a_program_is_typed_once_for_each_kind_of_graph(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def dtype_of(weight: str) -> np.dtype[Any]:
        plan = plan_of(spec_of(Weighed), {"weight": np.dtype(weight)})
        return plan.phases[0].message_dtypes[0]

    assert dtype_of("float32") == np.dtype("float32")
    assert dtype_of("float64") == np.dtype("float64")
    monkeypatch.setattr(cpu_target.typing_context, "refresh", pytest.fail)
    assert dtype_of("float32") == np.dtype("float32")
    assert dtype_of("float64") == np.dtype("float64")
