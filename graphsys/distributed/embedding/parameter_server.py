"""Parameters that all workers train: operators of relations, global vectors, small tables.

Workers add what they changed and take what others did, block by block: rows (of nodes, or
of the features that make them) one by one, each with the sum of all that was trained since
the last exchange, by whichever nodes. How far a worker is ahead of the slowest one that
trains is bounded (Ho et al., "More effective distributed ML via a stale synchronous
parallel parameter server", NIPS 2013), and how much it had not seen is counted.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Chosen = npt.NDArray[np.uint32]
Blocks = tuple[Chosen, Floats]
"""Numbers of blocks ``[n]``, and their values or differences ``[n, W]``."""

BLOCK = 64
"""Numbers of a dense table that travel together; its last block is filled with zeros."""
SLACK = 2
"""How many exchanges a worker may be ahead of the slowest that trains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulled:
    """What a worker gets for what it gave.

    Attributes:
        blocks: By table, what changed since it pulled last.
        is_ahead: Whether it has to wait for others before it goes on.
        is_member: Whether it takes part; False for one given up as lost.
    """

    blocks: Mapping[str, Blocks]
    is_ahead: bool = False
    is_member: bool = True


@dataclass(slots=True)
class _Member:
    number: int = 0
    seen: int = 0
    seen_before: int = 0
    clock: int = 0
    is_active: bool = False
    pushes: int = 0
    missed: int = 0
    most_missed: int = 0


class ParameterServer:
    """Holds the tables.

    Args:
        tables: Their values, float32, by name.
        slack: How many exchanges a worker may be ahead of the slowest that trains.
    """

    def __init__(self, tables: Mapping[str, Floats], slack: int = SLACK) -> None:
        self._shapes = {name: table.shape for name, table in tables.items()}
        self._blocks = {
            name: as_blocks(table, width_of(name, table)).copy()
            for name, table in tables.items()
        }
        self._changed = {
            name: np.zeros(len(blocks), dtype=np.int64)
            for name, blocks in self._blocks.items()
        }
        self._version = 0
        self._slack = slack
        self._members: dict[str, _Member] = {}

    def join(self, worker: str) -> None:
        """Let a worker exchange."""
        self._members[worker] = _Member(seen=-1, seen_before=-1)

    def forget(self, worker: str) -> None:
        """Wait for a worker no longer, and take nothing from it."""
        self._members.pop(worker, None)

    def exchange(
        self, worker: str, number: int, pushed: Mapping[str, Blocks], *, is_last: bool
    ) -> Pulled:
        """Add what a worker changed; return what it has not seen.

        Args:
            worker: Its name.
            number: Number of the call, from 1; one that comes again adds nothing.
            pushed: By table, differences since it pulled last.
            is_last: Whether it trains nothing now, so that nobody waits for it.
        """
        member = self._members.get(worker)
        if member is None:
            return Pulled(blocks={}, is_member=False)
        if number > member.number:
            member.number, member.seen_before = number, member.seen
            self._add(member, pushed)
            self._tick(member, is_last=is_last)
        blocks = {
            name: (chosen, self._blocks[name][chosen])
            for name, changed in self._changed.items()
            if (chosen := _where(changed > member.seen_before)).size
        }
        member.seen = self._version
        return Pulled(blocks=blocks, is_ahead=self.is_ahead(worker))

    def is_ahead(self, worker: str) -> bool:
        """Return whether a worker has to wait before it trains on."""
        member = self._members.get(worker)
        if member is None or not member.is_active:
            return False
        return member.clock - self._slowest() > self._slack

    def tables(self) -> dict[str, Floats]:
        """Return all tables."""
        return {
            name: from_blocks(blocks, self._shapes[name])
            for name, blocks in self._blocks.items()
        }

    def staleness(self) -> dict[str, tuple[int, int, int]]:
        """Return of every worker its pushes, and the pushes of others that it had missed.

        Returns:
            Pushes, the sum of missed ones over them, the most at one push.
        """
        return {
            worker: (member.pushes, member.missed, member.most_missed)
            for worker, member in self._members.items()
        }

    def _add(self, member: _Member, pushed: Mapping[str, Blocks]) -> None:
        if not pushed:
            return
        missed = self._version - max(member.seen, 0)
        member.pushes += 1
        member.missed += missed
        member.most_missed = max(member.most_missed, missed)
        self._version += 1
        for name, (chosen, differences) in pushed.items():
            self._blocks[name][chosen] += differences
            self._changed[name][chosen] = self._version

    def _tick(self, member: _Member, *, is_last: bool) -> None:
        if member.is_active:
            member.clock += 1
        elif not is_last:  # whoever comes back is as far as the slowest, at least
            member.clock = max(member.clock, self._slowest(default=member.clock))
        member.is_active = not is_last

    def _slowest(self, default: int = 0) -> int:
        active = (member.clock for member in self._members.values() if member.is_active)
        return min(active, default=default)


def staleness_bound(workers: int, slack: int = SLACK) -> int:
    """Return how many pushes of others a worker has missed at its own, at most.

    Each of the others is at most ``slack + 1`` exchanges behind when it pulls, and at most
    as many ahead when it pushes.

    Examples:
        >>> staleness_bound(2)
        6
    """
    return (workers - 1) * 2 * (slack + 1)


class SharedTables:
    """A worker's copies of the tables, brought up to date between slices.

    Args:
        tables: The arrays that are trained in place, float32, by name.
        exchange: Calls the server: what was changed, and whether this is the last
            exchange of a unit; waits where it has to.

    Attributes:
        sent_bytes: Bytes that left this worker, or came to it, so far.
    """

    def __init__(
        self,
        tables: Mapping[str, Floats],
        exchange: Callable[[Mapping[str, Blocks], bool], Pulled],
    ) -> None:
        self._tables = {name: table for name, table in tables.items() if table.size}
        self._exchange = exchange
        self._seen = {
            name: as_blocks(table, width_of(name, table)).copy()
            for name, table in self._tables.items()
        }
        self.sent_bytes = 0

    def exchange(self, *, is_last: bool = False) -> None:
        """Push what was trained since the last exchange, and pull what others did.

        What is not finite is not pushed: the worker's own look at its losses or at its
        rows ends the training.
        """
        if not self._tables:
            return
        pushed = {}
        for name, table in self._tables.items():
            differences = as_blocks(table, width_of(name, table)) - self._seen[name]
            chosen = _where(differences.any(axis=1))
            if chosen.size and np.isfinite(differences[chosen]).all():
                pushed[name] = chosen, differences[chosen]
        pulled = self._exchange(pushed, is_last)
        for name, (chosen, values) in pulled.blocks.items():
            seen = self._seen[name]
            seen[chosen] = values
            write_blocks(self._tables[name], chosen, values)
        for blocks in (*pushed.values(), *pulled.blocks.values()):
            self.sent_bytes += sum(array.nbytes for array in blocks)


def width_of(name: str, table: Floats) -> int:
    """Return how many numbers of a table travel together.

    A row, and its state, where few rows change; else what is worth its number.
    """
    if name.startswith(("rows/", "state/")):
        return math.prod(table.shape[1:])
    return BLOCK


def as_blocks(table: Floats, width: int = BLOCK) -> Floats:
    """Return a table as blocks ``[n, width]``: a view where its size is a multiple."""
    flat = np.ascontiguousarray(table).reshape(-1)
    rest = -len(flat) % width
    if rest:
        flat = np.concatenate([flat, np.zeros(rest, dtype=np.float32)])
    return flat.reshape(-1, width)


def from_blocks(blocks: Floats, shape: tuple[int, ...]) -> Floats:
    """Return the table of such blocks, a copy."""
    size = int(np.prod(shape))
    return blocks.reshape(-1)[:size].reshape(shape).copy()


def write_blocks(table: Floats, chosen: Chosen, values: Floats) -> None:
    """Write blocks into a table, which is C-contiguous."""
    flat, width = table.reshape(-1), values.shape[1]
    whole = len(flat) // width
    inside = chosen < whole
    flat[: whole * width].reshape(-1, width)[chosen[inside]] = values[inside]
    for last in values[~inside]:
        flat[whole * width :] = last[: len(flat) - whole * width]


def _where(is_chosen: npt.ArrayLike) -> Chosen:
    return np.flatnonzero(is_chosen).astype(np.uint32)
