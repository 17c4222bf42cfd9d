"""Settings of single relations and node types."""

from dataclasses import dataclass
from typing import Literal

from graphsys.core.config import Checked, option
from graphsys.embedding.spec import operators


@dataclass(frozen=True, kw_only=True)
class RelationConfig(Checked):
    """What differs for one relation."""

    operator: str | None = option(
        None,
        "Operator of this relation; by default that of all.",
        choices=operators.OPERATORS.names,
        plugins=operators.GROUP,
    )
    weight: float = option(1.0, "Factor on the loss of its edges.", minimum=0)
    lr: float | None = option(
        None, "Learning rate of its operator; by default relation_lr.", above=0
    )
    all_negatives: bool = option(
        False, "Every node of the partition in memory is a negative of its edges."
    )

    def __post_init__(self) -> None:
        """Check every field.

        Raises:
            UnknownNameError: There is no such operator.
            ConfigError: A value of the wrong type or out of range.
        """
        if self.operator is not None:
            operators.operator_of(self.operator)
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class NodeTypeConfig(Checked):
    """What differs for the nodes of one type."""

    dim: int | None = option(
        None, "Length of its embeddings; by default that of all.", minimum=1
    )
    init_scale: float | None = option(
        None, "Standard deviation of its first values; by default that of all.", above=0
    )
    global_embedding: bool | None = option(
        None, "Whether one more trained vector is added to every row of the type."
    )
    features: str | None = option(
        None,
        "Bag feature of the graph, such as words: a node's row is then made of the rows of "
        "its features.",
    )
    pooling: Literal["mean", "sum"] = option(
        "mean", "How the rows of a node's features become its row."
    )
