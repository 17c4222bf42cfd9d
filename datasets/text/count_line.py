"""A first line that counts nodes and edges, as some tools write above edges."""

from typing import Any

import numpy as np

from graphsys.core.errors import InputError


class CountLine:
    """Watches the edges of a file whose first line may be counts.

    Two integers are counts where one is the number of all other lines, and the other is
    the number of nodes: the greatest id, or one more where ids begin at 0.

    Args:
        where: File and line, for the message.
        line: Number of the first line.
        is_open: Whether to look: not where the user says what the columns are.
    """

    def __init__(self, where: str, line: int, *, is_open: bool) -> None:
        self._where = where
        self._line = line
        self._is_open = is_open
        self._first: tuple[int, int] | None = None
        self._rows = 0
        self._greatest = -1
        self._least = 2**63

    def add(self, src: Any, dst: Any) -> None:
        """Take in edges, ids ``[n]`` each, ``n > 0``; names end the watch."""
        is_integer = isinstance(src, np.ndarray) and isinstance(dst, np.ndarray)
        if not self._is_open or not is_integer:
            self._is_open = False
            return
        self._rows += len(src)
        if self._first is None:
            self._first = int(src[0]), int(dst[0])
            src, dst = src[1:], dst[1:]
            if self._first[0] < 2 or self._first[1] < 2:
                self._is_open = False
        if len(src):
            self._greatest = max(self._greatest, int(src.max()), int(dst.max()))
            self._least = min(self._least, int(src.min()), int(dst.min()))
        if max(self._rows - 1, self._greatest) > max(self._first):
            self._is_open = False  # neither can be a count: others cost no more

    def check(self) -> None:
        """Refuse a first line of counts.

        Raises:
            InputError: it is one.
        """
        if not self._is_open or self._first is None or self._rows < 2:
            return
        num_nodes = self._greatest + (self._least == 0)
        if self._first in ((num_nodes, self._rows - 1), (self._rows - 1, num_nodes)):
            raise InputError(
                f"{self._where}: found {self._first[0]} {self._first[1]}, which are the "
                f"numbers of nodes and of edges below; pass --skip {self._line}, or "
                "--columns src,dst if it is an edge"
            )
