"""Labels of some nodes spread to the rest: classification from a few examples.

Where ``cdlp`` starts from every node's id and finds communities, this starts from known
labels, which never change: in every superstep each other node takes the most frequent label
among its neighbors that have one (in both directions), the smallest among equals. It is
the majority rule on the clamped labels of Zhu and Ghahramani, "Learning from labeled and
unlabeled data with label propagation", 2002. Ends when no node changes; nodes that flip for
ever, as pairs may, are cut short by ``max_supersteps``. O(N + E) per superstep.
"""

import math
from collections.abc import Mapping
from typing import Any

from graphsys.core.errors import ConfigError
from graphsys.engine import program as gs
from graphsys.engine.node_labels import stored_labels


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
        if not isinstance(self.labels, Mapping):
            raise ConfigError(
                f"labels must map ids to classes, got {type(self.labels).__name__}"
            )
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
