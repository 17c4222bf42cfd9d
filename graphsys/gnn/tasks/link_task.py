"""What nearest neighbors, files of rows and recommendations ask of a task of links."""

from typing import Protocol, runtime_checkable

import torch

from graphsys.gnn.tasks.link_ranking import Ends
from graphsys.gnn.tasks.output import Output


@runtime_checkable
class LinkTask(Protocol):
    """A task whose rows tell which nodes belong together.

    ``relation`` is one of the task's ``relations``; None where nodes have one row each.
    """

    def row_types(self, relation: str | None) -> list[str]:
        """Return the node types that have rows; of any relation if none is given."""

    def rows(self, output: Output, node_type: str, relation: str | None) -> torch.Tensor:
        """Return the rows of all nodes of a type, float32 ``[N, F]``.

        Raises:
            ConfigError: A relation is missing.
            UnknownNameError: The type has no part in the relation.
        """

    def ends(self, output: Output, relation: str | None) -> Ends:
        """Return the rows of both ends of links, and which links there are.

        Raises:
            ConfigError: A relation is missing.
        """

    def scores(self, query: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        """Return the scores of every query with every other row, ``[n, m]``."""
