"""Runs loops that are compiled for patterns: matches counted, or visited one by one."""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.core.progress import SILENT, Progress
from graphsys.datasets.temporary import GraphLike
from graphsys.generated.modules import load_module
from graphsys.mining.census.sums import Kernels, degrees_of, kernels_of
from graphsys.mining.compiler.choose import CostedSchedule, choose_schedule, tasks_of
from graphsys.mining.compiler.emit import CountTask, kernel_text
from graphsys.mining.labeled_graph import LabeledGraph
from graphsys.mining.pattern import Pattern
from graphsys.mining.simple_graph import SimpleGraph

Visit = Callable[..., None]


def count_by_loops(
    graph: LabeledGraph,
    choices: Sequence[CostedSchedule],
    num_threads: int | None = None,
    progress: Progress = SILENT,
) -> list[int]:
    """Count the matches of some schedules by one kernel that is compiled for them.

    Complexity:
        Memory: the longest row for each of its sets and each thread.
    """
    text, num_sets = kernel_text(tasks_of(choices))
    kernel, rows = load_module(text).count, graph.rows
    with kernels_of(rows, num_threads, progress) as kernels:
        sets = _sets(rows, kernels.threads, num_sets)
        asked = (graph.kinds, graph.labels)
        return kernels.sums(
            kernel,
            len(choices),
            *asked,
            after=(sets,),
            trips=lambda: _trips(graph, choices, kernels),
        )


def _trips(
    graph: LabeledGraph, choices: Sequence[CostedSchedule], kernels: Kernels
) -> npt.NDArray[np.int64]:
    """Return how many entries the loops of each first node look at ``[N]``."""
    text, num_sets = kernel_text(tasks_of(choices), is_told=True)
    trips = np.zeros(kernels.num_nodes, dtype=np.int64)
    sums = np.zeros((kernels.threads, 2 * len(choices)), dtype=np.int64)
    sets = _sets(graph.rows, kernels.threads, num_sets)
    kernels.repeat(
        load_module(text).count, graph.kinds, graph.labels, after=(sets, trips, sums)
    )
    return trips


def visit_matches(
    graph: SimpleGraph | GraphLike,
    pattern: Pattern | str | Any,
    visit: Visit,
    *,
    shape: int | tuple[int, ...] = 1,
    dtype: str = "int64",
    data: tuple[npt.NDArray[Any], ...] = (),
    induced: str = "edge",
    labels: str | None = None,
    num_threads: int | None = None,
    progress: Progress = SILENT,
) -> npt.NDArray[Any]:
    """Call a function of the user's, compiled, with every match, and add up what it notes.

    Args:
        graph: As for :func:`graphsys.mining.count`.
        pattern: As for :func:`graphsys.mining.count`.
        visit: Plain Python that numba compiles: ``visit(nodes, out, data)``. ``nodes`` are
            the numbers of a match's nodes in the order of the pattern's, int64 ``[K]``:
            places in the order of the store, node types one after the other. ``out``
            begins as zeros and is added up over threads.
        shape: Of ``out``.
        dtype: Of ``out``: ``int64`` or ``float64``.
        data: Arrays that ``visit`` may read, columns of nodes for example.
        induced: ``edge`` or ``vertex``, as for :func:`graphsys.mining.count`.
        labels: As for :func:`graphsys.mining.count`.
        num_threads: All cores by default.
        progress: Receives a stage.

    Returns:
        The sum of all ``out``, of this shape and dtype.

    Raises:
        ConfigError: as :func:`graphsys.mining.count`; ``visit`` does not compile.

    Complexity:
        Memory: ``out`` and the longest row for each of the loops' sets, for every thread.

    Examples:
        >>> def visit(nodes, out, data):
        ...     if data[0][nodes[0]] != data[0][nodes[1]]:
        ...         out[0] += 1
        >>> edges = np.array([0, 1, 2, 2]), np.array([1, 2, 0, 3])
        >>> color = np.array([0, 0, 1, 1])
        >>> visit_matches(edges, "a-b", visit, data=(color,))
        array([2])
    """
    if induced not in ("vertex", "edge"):
        raise ConfigError(f"induced={induced!r} is neither 'vertex' nor 'edge'")
    if dtype not in ("int64", "float64"):
        raise ConfigError(f"dtype={dtype!r}: expected int64 or float64")
    pattern = Pattern.of(pattern)
    labeled = LabeledGraph.of(graph, pattern, labels)
    rows = labeled.rows
    choice = choose_schedule(
        rows, pattern, is_induced=induced == "vertex", labels=labeled.labels
    )
    text, num_sets = kernel_text([CountTask(choice.schedule, 0)])
    walk = _walker(text, visit)
    lengths = (shape,) if isinstance(shape, int) else tuple(shape)
    with kernels_of(rows, num_threads, progress) as kernels:
        out = np.zeros((kernels.threads, *lengths), dtype=dtype)
        match = np.zeros((kernels.threads, pattern.num_nodes), dtype=np.int64)
        scratch = (
            _sets(rows, kernels.threads, num_sets),
            rows.nodes,
            match,
            out,
            tuple(data),
        )
        try:
            kernels.run(walk, labeled.kinds, labeled.labels, after=scratch)
        except _numba_errors() as error:
            reason = str(error).strip().splitlines()[0]
            raise ConfigError(
                f"visit={getattr(visit, '__name__', visit)!s} does not compile: {reason}; "
                "expected plain Python of numbers and arrays, visit(nodes, out, data)"
            ) from error
    total: npt.NDArray[Any] = out.sum(axis=0)
    return total


def _sets(rows: SimpleGraph, num_threads: int, num_sets: int) -> npt.NDArray[Any]:
    """Return scratch for the sets of loops ``[T, S, D + 1]``."""
    longest = int(degrees_of(rows).max(initial=0))
    return np.empty((num_threads, max(num_sets, 1), longest + 1), rows.indices.dtype)


def _walker(text: str, visit: Visit) -> Callable[..., None]:
    """Compile loops around a user's function, for this process."""
    import numba

    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    own = visit if hasattr(visit, "py_func") else numba.njit(**options)(visit)
    module = ModuleType("graphsys_visitor")
    exec(compile(text, "<loops>", "exec"), module.__dict__)
    module.__dict__["visit"] = own
    walk: Callable[..., None] = numba.njit(**options)(module.walk)
    return walk


def _numba_errors() -> type[Exception]:
    from numba.core.errors import NumbaError

    found: type[Exception] = NumbaError
    return found
