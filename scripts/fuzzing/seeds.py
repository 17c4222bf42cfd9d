"""What a seed of the fuzzing is."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Seed:
    """Files that make one graph.

    Attributes:
        files: Their contents by name, relative to a folder.
        opened: Names of those that are given to ``open_source``; "." for the folder.
        options: Options of ``open_source``.
    """

    files: dict[str, bytes]
    opened: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)
