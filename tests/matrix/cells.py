"""What a cell of the matrix is given, and whether its result is the oracle's."""

from typing import Any

from graphsys.engine.algorithms import ALGORITHMS
from graphsys.engine.program import NodeId
from graphsys.engine.result import Result
from tests.matrix.oracles import ORACLES, SETTINGS
from tests.unit.engine.algorithms.small_graphs import SmallGraph


def given_to(name: str, graph: SmallGraph) -> dict[str, Any]:
    """Return an algorithm's parameters; nodes of its example become the graph's."""
    entry = ALGORITHMS[name]
    types = entry.parameters("program") if entry.program else {}
    named = {"source", "target"} | {n for n, kind in types.items() if kind is NodeId}
    given = {
        key: graph.ids[value] if key in named else value
        for key, value in entry.example.parameters.items()
    }
    if "terminals" in given:
        given["terminals"] = [graph.ids[place] for place in given["terminals"]]
    return given | (SETTINGS[name](graph) if name in SETTINGS else {})


def taken_by(name: str, implementation: str, given: dict[str, Any]) -> dict[str, Any]:
    known = ALGORITHMS[name].parameters(implementation)
    return {key: value for key, value in given.items() if key in known}


def difference(
    name: str, graph: SmallGraph, done: Result, given: dict[str, Any], cell: str
) -> list[str]:
    """Return what the oracle says of a result, with its cell; nothing where it agrees."""
    try:
        ORACLES[name](graph, done, given)
    except AssertionError as err:
        return [f"{cell}: {str(err)[:300]}"]
    return []
