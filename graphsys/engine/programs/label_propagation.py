"""Labels of some nodes spread to the rest: classification from a few examples.

Where ``cdlp`` starts from every node's id and finds communities, this starts from known
labels, which never change: in every superstep each other node takes the most frequent label
among its neighbors that have one (in both directions), the smallest among equals. It is
the majority rule on the clamped labels of Zhu and Ghahramani, "Learning from labeled and
unlabeled data with label propagation", 2002. Ends when no node changes; nodes that flip for
ever, as pairs may, are cut short by ``max_supersteps``. O(N + E) per superstep.
"""

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.errors import ConfigError
from graphsys.engine import program as gs
from graphsys.engine.topology import Topology

_PASS: Final = "pass labels={id: integer} (--param labels=ID=0,ID=1)"


def stored_labels(
    topology: Topology,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return which nodes have a column ``label``, and what it says.

    Where nodes have a column ``split`` too, only those of ``train``.

    Returns:
        The engine's numbers of the nodes, ascending, and their labels; int64 ``[K]`` both.

    Raises:
        ConfigError: no node has a label, or labels are not integers, or are negative.
    """
    graph = topology.graph
    numbers, labels = [], []
    for kind in graph.node_types if graph else ():
        assert graph is not None  # else there were no types
        bases = graph.offsets(kind) + topology.numbers.base(kind)
        for part in range(graph.num_partitions(kind)):
            table = graph.nodes(kind, part)
            if "label" not in table.column_names:
                continue
            found, values = _labels_of(table, kind)
            numbers.append(found + int(bases[part]))
            labels.append(values)
    if not sum(map(len, numbers)):
        raise ConfigError(f"no node of {topology.numbers.where} has a label; {_PASS}")
    return np.concatenate(numbers), np.concatenate(labels)


def _labels_of(
    table: pa.Table, kind: str
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the rows of a node table that have a label, and their labels."""
    label = table["label"]
    if pa.types.is_floating(label.type):  # integers, some of which are missing
        label = _whole(label)
    if not pa.types.is_integer(label.type):
        raise ConfigError(
            f"labels of nodes {kind!r} are {label.type}, expected integers; {_PASS}"
        )
    chosen = pc.is_valid(label)
    if "split" in table.column_names:
        chosen = pc.and_(chosen, pc.fill_null(pc.equal(table["split"], "train"), False))
    rows = pc.indices_nonzero(chosen).to_numpy().astype(np.int64)
    values = label.filter(chosen).to_numpy().astype(np.int64, copy=False)
    if len(values) and values.min() < 0:
        row = int(np.argmax(values < 0))
        node = table["id"][int(rows[row])].as_py()
        raise ConfigError(f"label of {node!r} is {values[row]}, expected an int >= 0")
    return rows, values


def _whole(label: Any) -> Any:
    """Return numbers that are whole, or missing, as integers; others as they are."""
    values = label.to_numpy()
    is_given = ~np.isnan(values)
    given = values[is_given]
    if not (np.isfinite(given) & (given == np.rint(given))).all():
        return label
    codes = np.where(is_given, values, 0).astype(np.int64)
    return pa.chunked_array([pa.array(codes, mask=~is_given)])


class LabelPropagation(gs.VertexProgram):
    """The label of every node, null where none arrives.

    Known labels are ``labels`` ({user id: integer >= 0}), or the store's column ``label``,
    of the training split where nodes have splits.
    """

    labels: dict[Any, int] | None = None
    iterations: int | None = None
    label = gs.state("int64", default=-1, null=-1)
    is_known = gs.state("bool")
    moved = gs.aggregator(gs.sum_)
    results = ("label",)
    direction = "both"
    combine = gs.mode
    start_bytes = 32  # numbers and labels, of parts and of all
    max_supersteps: int | None = 1000
    when_cut_short = (
        "nodes may take each other's labels for ever, which more do not end; run a number "
        "of supersteps with iterations=100 (--param iterations=100)"
    )

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        if self.iterations is not None:
            self.max_supersteps = None

    def start(self, graph: Any) -> Any:
        if self.labels is None:
            numbers, labels = stored_labels(graph)
            return gs.NumberedStates(numbers, {"label": labels, "is_known": True})
        for node, label in self.labels.items():
            if not _is_class(label):
                raise ConfigError(
                    f"label of {node!r} is {label!r}, expected an int >= 0: number the "
                    "classes"
                )
        return {n: {"label": label, "is_known": True} for n, label in self.labels.items()}

    def message(self, src: Any, edge: Any) -> Any:
        if src.label < 0:
            return None
        return src.label

    def accepts(self, node: Any) -> Any:
        return not node.is_known

    def update(self, node: Any, message: Any) -> Any:
        return message, False

    def aggregate(self, before: Any, node: Any) -> Any:
        return 1 if node.label != before.label else 0

    def until(self, totals: Any) -> bool:
        if self.iterations is not None:
            return self.superstep >= self.iterations
        return bool(totals["moved"] == 0)


def _is_class(label: Any) -> bool:
    """Whether a label is a whole number of at least 0; numpy's count too."""
    try:
        number = float(label)
    except (TypeError, ValueError):
        return False
    is_text = isinstance(label, str | bytes | bool)
    return not is_text and math.isfinite(number) and number >= 0 and number % 1 == 0
