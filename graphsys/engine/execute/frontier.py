"""The nodes that send next: as bits, as a list, or everyone."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.bits import empty_bits, fill_bits, list_bits


@dataclass
class Frontier:
    """A set of nodes, held in one form and turned into the other when asked.

    Attributes:
        num_nodes: Nodes of the graph.
        count: Nodes of the set.
        edges: Entries of their rows along the messages' direction.
        everyone: Whether it is all nodes; then neither form is filled.
        is_alike: Whether all its nodes are known to hold the same states.
    """

    num_nodes: int
    count: int = 0
    edges: int = 0
    everyone: bool = False
    _words: npt.NDArray[np.uint64] | None = field(default=None, repr=False)
    _listed: npt.NDArray[Any] | None = field(default=None, repr=False)
    is_alike: bool = False

    @classmethod
    def all(cls, num_nodes: int, edges: int) -> "Frontier":
        """Return the set of all nodes."""
        return cls(num_nodes, num_nodes, edges, everyone=True)

    @classmethod
    def from_words(
        cls, num_nodes: int, words: npt.NDArray[np.uint64], count: int, edges: int
    ) -> "Frontier":
        """Return the set whose bits are set."""
        return cls(num_nodes, count, edges, _words=words)

    @classmethod
    def from_list(cls, num_nodes: int, listed: npt.NDArray[Any], edges: int) -> "Frontier":
        """Return the set of listed nodes, each listed once."""
        return cls(num_nodes, len(listed), edges, _listed=listed)

    def words(self) -> npt.NDArray[np.uint64]:
        """Return the set as bits, uint64 ``[ceil(N / 64)]``."""
        if self._words is None:
            self._words = empty_bits(self.num_nodes)
            if self.everyone:
                self._words.fill(np.uint64(2**64 - 1))
            elif self._listed is not None:
                fill_bits(self._words, self._listed, 0, self.count)
        return self._words

    def listed(self) -> npt.NDArray[Any]:
        """Return the set as a list, int64 ``[count]``; ascending if made from bits."""
        if self._listed is None:
            if self.everyone:
                self._listed = np.arange(self.num_nodes, dtype=np.int64)
            else:
                self._listed = np.empty(self.count, dtype=np.int64)
                list_bits(self.words(), self._listed)
        return self._listed


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one superstep did.

    Attributes:
        mode: ``pull``, ``push``, ``pull rows`` or ``local``.
        senders: Nodes that sent.
        messages: Edges along which they sent.
        changed: Nodes whose state changed.
        frontier: Those nodes, where the schedule is ``changed``; else all.
    """

    mode: str
    senders: int
    messages: int
    changed: int
    frontier: Frontier
