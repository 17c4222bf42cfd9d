"""What the memory of a training is made of: a part for each kind of thing that it holds.

Each part is counted by the sizes of its arrays, and the whole is what the system says of
the process. The parts add up to the whole, for what is left is a part too: what the process
had before the training (``process``: the interpreter, libraries, the open graph), and
beyond that ``temporary``: what operators make and drop, and free memory of the heap.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from graphsys.core.events import count, is_asked, observe
from graphsys.core.memory import resident_bytes

PARTS: Final = (
    "process",
    "parameters",
    "gradients",
    "optimizer",
    "activations",
    "features",
    "topology",
    "caches",
    "temporary",
)
"""In the order in which they are stacked."""
MEMORY: Final = "memory"
"""The observation that a profile asks for, and the event that tells of it."""


def split_of(total: int, process: int, known: Mapping[str, int]) -> dict[str, int]:
    """Return the parts of a process's memory, in bytes.

    Args:
        total: Of the process.
        process: What it had before the training.
        known: What was counted, by part.

    Returns:
        All of :data:`PARTS`. They add up to ``total``, but where more than that is known:
        the whole is sampled, and pages that nobody has written to yet are not in it.

    Examples:
        >>> split = split_of(100, 40, {"parameters": 30, "activations": 20})
        >>> {name: size for name, size in split.items() if size}
        {'process': 40, 'parameters': 30, 'activations': 20, 'temporary': 10}
    """
    rest = max(total - sum(known.values()), 0)
    before = min(process, rest)
    beyond = known.get("temporary", 0) + rest - before
    found = {**known, "process": before, "temporary": beyond}
    return {name: found.get(name, 0) for name in PARTS}


def is_watched() -> bool:
    """Tell whether a profile wants to see the memory of every step."""
    return is_asked(MEMORY)


def tell_memory(phase: str, process: int, known: Callable[[], Mapping[str, int]]) -> None:
    """Tell a profile the parts of the memory now; one ``if`` where nobody asks.

    Args:
        phase: What the training has just done.
        process: What the process had before it, in bytes.
        known: Counts the parts.
    """

    def tell() -> None:
        total = resident_bytes()
        parts: dict[str, Any] = split_of(total, process, known())
        count(MEMORY, total, phase=phase, parts=parts)

    observe(MEMORY, tell)


class MemoryWatch:
    """The most that a training's steps had of each part; tells a profile of every count.

    Args:
        process: What the process had before the training, in bytes.

    Attributes:
        most: The most bytes of each part so far; empty before the first count.
    """

    def __init__(self, process: int) -> None:
        self.process, self.most = process, dict[str, int]()

    def saw(self, phase: str, found: Mapping[str, int]) -> None:
        """Take the bytes by part after a phase of a step."""
        for name, size in found.items():
            self.most[name] = max(self.most.get(name, 0), size)
        tell_memory(phase, self.process, lambda: found)

    def split(
        self, peak: int, ahead: Mapping[str, int] = MappingProxyType({})
    ) -> dict[str, int]:
        """Return the parts of the most that the process had; empty without a count.

        Args:
            peak: The most that the process had, in bytes.
            ahead: Bytes of batches that wait, by part.
        """
        if not self.most:
            return {}
        known = {name: size + ahead.get(name, 0) for name, size in self.most.items()}
        return split_of(peak, self.process, known)
