"""A picture of a small graph, by NetworkX's layout and matplotlib."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphsys.core.deps import require
from graphsys.core.errors import ConfigError
from graphsys.core.notebook.figures import new_axes
from graphsys.facade.edges import to_networkx
from graphsys.storage.reader import GraphReader

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NODES: Final = 2000
"""More than these are a cloud to the eye, and minutes of layout."""
_NAMED_NODES: Final = 60
_MOST_KINDS: Final = 10
_INCHES: Final = 6.0


def draw_graph(
    graph: GraphReader, values: Any, *, names: bool | None, seed: int, axes: Any
) -> "Axes":
    """Draw nodes and edges where a spring layout puts them.

    Args:
        graph: Of :data:`MOST_NODES` at most.
        values: What colors the nodes: a result with ``id`` and ``value``, or a mapping of
            the keys that ``to_networkx`` gives to values; types of nodes by default.
        names: Whether to write the ids; of 60 nodes at most by default.
        seed: Of the layout.
        axes: Where to; a new figure by default.

    Raises:
        ConfigError: The graph is too large, or nodes have no value.
        MissingDependencyError: networkx or matplotlib is not installed.
    """
    nx = require("networkx", extra="plot")
    require("matplotlib", extra="plot")
    if graph.num_nodes > MOST_NODES:
        raise ConfigError(
            f"{graph.path} has {graph.num_nodes:,} nodes, and a picture shows "
            f"{MOST_NODES:,} at most; draw a part of it, such as "
            "graph.subgraph(nodes).plot()"
        )
    whole = to_networkx(graph, None)
    plain = (nx.DiGraph if graph.is_directed else nx.Graph)(whole)  # copies lie on another
    places = nx.spring_layout(plain, seed=seed)
    axes = new_axes(_INCHES, _INCHES) if axes is None else axes
    size = float(np.clip(3000 / max(len(plain), 1), 6, 200))
    has_names = len(plain) <= _NAMED_NODES if names is None else names
    arrows = {"arrowsize": 8, "node_size": size} if graph.is_directed else {}
    nx.draw_networkx_edges(plain, places, ax=axes, width=0.6, alpha=0.5, **arrows)
    _draw_nodes(nx, plain, places, _values_of(plain, values), axes, size)
    if has_names:
        labels = {node: str(node) for node in plain}
        nx.draw_networkx_labels(plain, places, labels, font_size=7, ax=axes)
    axes.set_axis_off()
    return axes  # type: ignore[no-any-return]


def _values_of(plain: Any, values: Any) -> list[Any]:
    """Return a value for each node; its type where nothing was given."""
    if values is None:
        return [node[0] if isinstance(node, tuple) else "node" for node in plain]
    if not isinstance(values, Mapping):
        table = values.table
        values = dict(zip(*(table[it].to_pylist() for it in ("id", "value")), strict=True))
    missing = [node for node in plain if node not in values]
    if missing:
        raise ConfigError(
            f"values has none for {len(missing):,} nodes, the first {missing[0]!r}; "
            "expected one for each node, by the keys of graph.to_networkx()"
        )
    return [values[node] for node in plain]


def _draw_nodes(
    nx: Any, plain: Any, places: Any, values: list[Any], axes: Any, size: float
) -> None:
    """Draw nodes: numbers on a scale, few kinds of other values with a legend."""
    is_number = all(isinstance(it, int | float) for it in values)
    kinds = sorted(set(values), key=None if is_number else str)
    common = {"pos": places, "node_size": size, "ax": axes}
    if is_number and (
        len(kinds) > _MOST_KINDS or any(isinstance(it, float) for it in kinds)
    ):
        dots = nx.draw_networkx_nodes(plain, node_color=values, cmap="viridis", **common)
        axes.figure.colorbar(dots, ax=axes, shrink=0.6)
        return
    codes = {kind: place for place, kind in enumerate(kinds)}
    for kind in kinds:
        chosen = [node for node, it in zip(plain, values, strict=True) if it == kind]
        color = f"C{codes[kind] % _MOST_KINDS}"
        nx.draw_networkx_nodes(
            plain, nodelist=chosen, node_color=color, label=str(kind), **common
        )
    if 1 < len(kinds) <= _MOST_KINDS:
        axes.legend(fontsize=7)
