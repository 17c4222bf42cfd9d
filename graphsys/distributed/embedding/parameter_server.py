"""Parameters that all workers train: operators of relations, global vectors, small tables.

Workers add what they changed and take what others did, block by block: rows (of nodes, or
of the features that make them) one by one, each with the sum of all that was trained since
the last exchange, by whichever nodes. How far a worker is ahead of the slowest one that
trains is bounded (Ho et al., "More effective distributed ML via a stale synchronous
parallel parameter server", NIPS 2013), and how much it had not seen is counted.
"""

import itertools
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, Self

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
class _WorkerProgress:
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
        self._members: dict[str, _WorkerProgress] = {}

    def join(self, worker: str) -> None:
        """Let a worker exchange."""
        self._members[worker] = _WorkerProgress(seen=-1, seen_before=-1)

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

    def _add(self, member: _WorkerProgress, pushed: Mapping[str, Blocks]) -> None:
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

    def _tick(self, member: _WorkerProgress, *, is_last: bool) -> None:
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


Call = Callable[..., Any]
"""Calls a method of a server by name, with its arguments."""

TRIED: Final = (1, 2, 4)
"""Numbers of servers with which exchanges are timed."""
LEAST_BYTES: Final = 16 << 20
"""Tables below are at one server: calls cost more than their bytes."""
_CHANGED: Final = 8
"""Of so many blocks one is changed in the exchanges that are timed."""
_ROUNDS: Final = 5
_THREADS: Final = 16


class SplitServers:
    """Servers that have a part of every table each.

    Args:
        calls: Call each server, made with what :meth:`parts` returns.
        tables: The whole tables, float32, by name.
    """

    def __init__(self, calls: Sequence[Call], tables: Mapping[str, Floats]) -> None:
        self._calls = calls
        self._shapes = {name: table.shape for name, table in tables.items()}
        self._widths = {name: width_of(name, table) for name, table in tables.items()}
        # they wait for answers, of all workers where these are timed through one object
        self._pool = ThreadPoolExecutor(_THREADS * len(calls))

    @staticmethod
    def parts(tables: Mapping[str, Floats], size: int) -> list[dict[str, Floats]]:
        """Return what each of ``size`` servers holds."""
        blocks = {
            name: as_blocks(table, width_of(name, table)) for name, table in tables.items()
        }
        return [
            {name: each[rank::size].copy() for name, each in blocks.items()}
            for rank in range(size)
        ]

    @classmethod
    def of(cls, calls: Sequence[Call], tables: Mapping[str, Floats]) -> Call:
        """Return what calls the servers as one."""
        return calls[0] if len(calls) == 1 else cls(calls, tables)

    def __call__(self, method: str, *arguments: Any, **named: Any) -> Any:
        """Call a method of :class:`ParameterServer`."""
        return getattr(self, method)(*arguments, **named)

    def join(self, worker: str) -> None:
        """Let a worker exchange."""
        self._ask_all("join", worker)

    def forget(self, worker: str) -> None:
        """Wait for a worker no longer, and take nothing from it."""
        self._ask_all("forget", worker)

    def exchange(
        self, worker: str, number: int, pushed: Mapping[str, Blocks], *, is_last: bool
    ) -> Pulled:
        """Add what a worker changed; see :meth:`ParameterServer.exchange`."""
        size = len(self._calls)
        shares: list[dict[str, Blocks]] = [{} for _ in range(size)]
        for name, (chosen, differences) in pushed.items():
            for rank, share in enumerate(shares):
                own = np.flatnonzero(chosen % size == rank)
                if own.size:
                    share[name] = chosen[own] // np.uint32(size), differences[own]
        asked = [
            self._pool.submit(call, "exchange", worker, number, share, is_last=is_last)
            for call, share in zip(self._calls, shares, strict=True)
        ]
        answers: list[Pulled] = [each.result() for each in asked]
        return Pulled(
            blocks=_joined([it.blocks for it in answers]),
            is_ahead=any(it.is_ahead for it in answers),
            is_member=all(it.is_member for it in answers),
        )

    def is_ahead(self, worker: str) -> bool:
        """Return whether a worker has to wait before it trains on."""
        return any(self._ask_all("is_ahead", worker))

    def tables(self) -> dict[str, Floats]:
        """Return all tables."""
        parts, size = self._ask_all("tables"), len(self._calls)
        found = {}
        for name, shape in self._shapes.items():
            blocks = np.empty(
                (sum(len(part[name]) for part in parts), self._widths[name]), np.float32
            )
            for rank, part in enumerate(parts):
                blocks[rank::size] = part[name]
            found[name] = from_blocks(blocks, shape)
        return found

    def staleness(self) -> dict[str, tuple[int, int, int]]:
        """Return of every worker its pushes and what they missed, where that is most."""
        told = self._ask_all("staleness")
        return {worker: max(each[worker] for each in told) for worker in told[0]}

    def _ask_all(self, method: str, *arguments: Any) -> list[Any]:
        asked = [self._pool.submit(call, method, *arguments) for call in self._calls]
        return [each.result() for each in asked]


def _joined(parts: Sequence[Mapping[str, Blocks]]) -> dict[str, Blocks]:
    """Return blocks that servers sent under their numbers in the whole tables."""
    size, found = np.uint32(len(parts)), dict[str, Blocks]()
    for name in dict.fromkeys(itertools.chain.from_iterable(parts)):
        pieces = [
            (chosen * size + np.uint32(rank), values)
            for rank, part in enumerate(parts)
            for chosen, values in [part.get(name, (None, None))]
            if chosen is not None
        ]
        chosen, values = zip(*pieces, strict=True)
        found[name] = np.concatenate(chosen), np.concatenate(values)
    return found


class ExchangeModel:
    """The time of an exchange by the number of servers, ``a + b / P + c P`` seconds.

    Attributes:
        measured: Seconds by number of servers.
        shared_s: ``b``, what servers share.
        call_s: ``c``, what each of them adds.
        fixed_s: ``a``.
    """

    def __init__(self, measured: Mapping[int, float]) -> None:
        self.measured = dict(measured)
        sizes = np.array([*measured], dtype=np.float64)
        terms = np.stack([np.ones_like(sizes), 1 / sizes, sizes], axis=1)
        fitted = np.linalg.lstsq(terms, np.array([*measured.values()]), rcond=None)[0]
        self.fixed_s, self.shared_s, self.call_s = map(float, fitted)

    @classmethod
    def timed(
        cls,
        start: Callable[[int], Call],
        tables: Mapping[str, Floats],
        workers: int,
    ) -> Self:
        """Time exchanges of all workers at once, an eighth of all blocks changed by each.

        Args:
            start: Gives so many servers of the tables, called as one.
            tables: The tables, float32, by name.
            workers: How many exchange.
        """
        changed = {
            name: (np.arange(0, len(blocks), _CHANGED, dtype=np.uint32), blocks[::_CHANGED])
            for name, table in tables.items()
            for blocks in [as_blocks(np.zeros_like(table), width_of(name, table))]
        }
        names = [str(rank) for rank in range(workers)]
        measured = {}
        with ThreadPoolExecutor(workers) as pool:
            for size in TRIED:
                call = start(size)
                for name in names:
                    call("join", name)

                def exchange(name: str, number: int, call: Call = call) -> None:
                    call("exchange", name, number, changed, is_last=True)

                seconds = []
                for number in range(1, _ROUNDS + 2):
                    began = time.perf_counter()
                    list(pool.map(exchange, names, [number] * workers))
                    seconds.append(time.perf_counter() - began)
                measured[size] = statistics.median(seconds[1:])  # all pull all in the first
        return cls(measured)

    def best(self, most: int) -> int:
        """Return the number of servers, at most ``most``, whose exchange takes least.

        Examples:
            >>> ExchangeModel({1: 0.105, 2: 0.06, 4: 0.045}).best(8)
            4
            >>> ExchangeModel({1: 0.010, 2: 0.011, 4: 0.013}).best(8)
            1
        """
        return min(range(1, most + 1), key=self.seconds)

    def seconds(self, size: int) -> float:
        """Return the time of an exchange with so many servers."""
        return self.fixed_s + self.shared_s / size + self.call_s * size

    def text(self, chosen: int) -> str:
        """Return a line that tells what was measured and chosen."""
        times = ", ".join(f"{s * 1e3:.0f} ms with {n}" for n, s in self.measured.items())
        return (
            f"parameters are at {chosen} server{'s' * (chosen > 1)}: an exchange of all "
            f"workers took {times}"
        )
