"""Which calls our functions take: all others go to NetworkX, never half understood."""

import functools
import inspect
import random
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np

from graphsys.core.errors import ConfigError, InvalidGraphError

Refusal = Callable[[Any, dict[str, Any]], str | None]
SMALL_GRAPH = 500
_PLAIN = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)
_NEIGHBORS = ("__getitem__", "__iter__", "adj", "adjacency", "degree", "neighbors")


def takes(
    *refusals: Refusal, without: tuple[str, ...] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare which calls a function takes.

    Args:
        *refusals: Functions of the graph (NetworkX's or ours) and the arguments that
            return why a call is not taken, or None.
        without: Arguments for which only the default is supported.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)
        defaults = {name: p.default for name, p in signature.parameters.items()}

        def refusal(*args: Any, **kwargs: Any) -> str | None:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as err:
                return str(err)
            bound.apply_defaults()
            arguments = dict(bound.arguments)
            graph = arguments.pop("G")
            if not is_plain(graph):
                return f"{type(graph).__name__} has neighbors of its own making"
            for name in without:
                if arguments[name] is not defaults[name]:
                    return f"{name}={arguments[name]!r} is not supported"
            for name in ("weight", "distance"):
                is_attribute = defaults.get(name, inspect.Parameter.empty) in (None, name)
                if is_attribute and not isinstance(arguments[name], str | None):
                    return f"{name} must name an edge attribute"
            reasons = (check(graph, arguments) for check in refusals)
            return next((reason for reason in reasons if reason), None)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except (ConfigError, InvalidGraphError) as err:
                # NetworkX takes over, or shows the reason where it must not
                raise NotImplementedError(str(err)) from err

        call.refusal = refusal  # type: ignore[attr-defined]  # read by can_run
        return call

    return decorate


def is_plain(graph: Any) -> bool:
    """Tell whether a graph's neighbors are those in its dictionaries.

    Subclasses may compute them instead, as NetworkX's own complement graphs do.
    """
    if getattr(graph, "__networkx_backend__", None) == "graphsys":
        return True
    base = next((cls for cls in type(graph).__mro__ if cls in _PLAIN), None)
    return base is not None and all(
        getattr(type(graph), name) is getattr(base, name) for name in _NEIGHBORS
    )


def no_multigraph(graph: Any, _: dict[str, Any]) -> str | None:
    """Refuse multigraphs."""
    return "multigraphs are not supported" if graph.is_multigraph() else None


def no_direction(graph: Any, _: dict[str, Any]) -> str | None:
    """Refuse directed graphs."""
    return "directed graphs are not supported" if graph.is_directed() else None


def only_direction(graph: Any, _: dict[str, Any]) -> str | None:
    """Refuse undirected graphs."""
    return None if graph.is_directed() else "only directed graphs are supported"


def no_loops(graph: Any, _: dict[str, Any]) -> str | None:
    """Refuse graphs with self-loops."""
    if hasattr(graph, "num_loops"):
        has_loops = graph.num_loops > 0
    else:
        has_loops = any(node in row for node, row in graph._adj.items())
    return "self-loops are not supported" if has_loops else None


def some_nodes(graph: Any, _: dict[str, Any]) -> str | None:
    """Refuse the graph without nodes."""
    return None if len(graph) else "NetworkX says what the graph without nodes gives"


def known_node(name: str) -> Refusal:
    """Refuse calls whose argument of this name is no node."""

    def refusal(graph: Any, arguments: dict[str, Any]) -> str | None:
        return None if arguments[name] in graph else "no such node"

    return refusal


def natural_cutoff(_: Any, arguments: dict[str, Any]) -> str | None:
    """Refuse cutoffs that are no number of at least 0."""
    cutoff = arguments["cutoff"]
    is_fine = cutoff is None or (isinstance(cutoff, int | float) and cutoff >= 0)
    return None if is_fine else "the cutoff must be a number >= 0"


def plain_seed(_: Any, arguments: dict[str, Any]) -> str | None:
    """Refuse seeds that are neither integers nor Python's generators."""
    is_plain = isinstance(arguments["seed"], int | np.integer | random.Random | None)
    return None if is_plain else "the seed must be an integer, None or a random.Random"


def plain_nodes(graph: Any, arguments: dict[str, Any]) -> str | None:
    """Refuse ``nodes`` and the like that is neither a node nor a list or set of nodes."""
    for name in ("nodes", "v"):
        chosen = arguments.get(name)
        if chosen is None or chosen in graph:
            continue
        if not isinstance(chosen, list | tuple | set | frozenset | dict | range):
            return f"{name} must be a node or a collection of nodes"
        if not all(node in graph for node in chosen):
            return f"{name} has members that are no nodes"
    return None


def chosen_numbers(graph: Any, nodes: Any) -> list[int]:
    """Return the numbers of a node, of a collection of nodes, or of all (None)."""
    if nodes is None:
        return list(range(len(graph)))
    if nodes in graph:
        return [graph.number[nodes]]
    return [graph.number[node] for node in dict.fromkeys(nodes)]


def by_node(graph: Any, values: Any, nodes: Any = None) -> Any:
    """Return values by node, or the only one where ``nodes`` is a node."""
    values = values.tolist()
    if nodes is None:
        return dict(zip(graph.nodes, values, strict=True))
    numbers = chosen_numbers(graph, nodes)
    if nodes in graph:
        return values[numbers[0]]
    return {graph.nodes[k]: values[k] for k in numbers}


def number_of(graph: Any, node: Any, message: str) -> int:
    """Return the number of a node, or raise what NetworkX raises."""
    if node not in graph:
        raise nx.NodeNotFound(message)
    return int(graph.number[node])
