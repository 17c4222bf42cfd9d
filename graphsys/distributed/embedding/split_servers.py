"""Parameters in parts at several servers, called as one; how many, by a measured model.

Block ``b`` of a table is at server ``b % P``, so that all have about as much of what is
changed, and an exchange asks them at the same time. The time of an exchange with ``P`` of
them is taken for ``a + b / P + c P`` (Kim et al., "Parallax: Sparsity-aware Data Parallel
Training of Deep Neural Networks", EuroSys 2019): what they add up and send is shared, what
every call costs is not. The three numbers are fitted to exchanges that were timed.
"""

import itertools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Self

import numpy as np

from graphsys.distributed.embedding.parameter_server import (
    Blocks,
    Floats,
    Pulled,
    as_blocks,
    from_blocks,
    width_of,
)

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
