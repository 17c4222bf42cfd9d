"""A run that goes on from the last result, made ready."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from graphsys.engine.last_result import read_last
from graphsys.engine.memory_plan import Facts, Need
from graphsys.engine.native_plan import NativeRun, prepare_native
from graphsys.engine.result import Result, parameters_of
from graphsys.engine.topology import Topology

_NODE_BYTES: Final = {"wcc": 41, "pagerank": 24, "bfs": 49, "sssp": 49}
_NEIGHBOR_NODE_BYTES: Final = 73
_ENTRY_BYTES: Final = 4


def prepare_from(
    last: Any,
    name: str,
    function: Callable[..., Result],
    follower: Callable[..., Result],
    needed: Callable[[Facts], Need],
    topology: Topology,
    options: Mapping[str, Any],
    memory: int | str | None,
    num_threads: int | None,
) -> NativeRun:
    """Decide how a result is brought up to date.

    Args:
        last: A result, a table, or a file's path.
        name: Of the algorithm.
        function: What computes it from scratch, natively.
        follower: What goes on from the last result.
        needed: Tells what ``function`` takes.
        topology: The graph.
        options: The algorithm's parameters, checked.
        memory: Budget of anonymous memory; what there is by default.
        num_threads: Threads; all cores by default.

    Raises:
        ConfigError: the algorithm does not go on from this result.
        BudgetError: the budget is too small.
    """
    parameters = parameters_of(function, options)
    found = read_last(last, name, parameters, topology)
    work = prepare_native(
        name,
        follower,
        topology,
        {**options, "last": found, "num_threads": num_threads},
        memory,
        _needed(name, needed),
    )
    text = f"from the last result: {found.edges.size} edges came or went since"
    choice = replace(work.choice, reasons=(text, *work.choice.reasons))
    return replace(work, choice=choice, parameters=parameters)


def _needed(name: str, anew: Callable[[Facts], Need]) -> Callable[[Facts], Need]:
    """Return what it takes: no less than from scratch, which it may come to."""

    def need(facts: Facts) -> Need:
        scratch = anew(facts)
        own = _NODE_BYTES.get(name, _NEIGHBOR_NODE_BYTES) + 2 * facts.id_bytes
        own += facts.ranked if name == "wcc" else 0
        copied = 0 if name in _NODE_BYTES else _ENTRY_BYTES * facts.simple_entries
        is_simple = scratch.simple or name not in _NODE_BYTES
        total = scratch.bytes + own * facts.nodes + copied
        return replace(scratch, simple=is_simple, bytes=total, kernels="")

    return need
