"""Interleaved A/B measurement of equal work by several systems.

Every round runs each system once, so that a noisy minute hits all of them; a ratio is the
median over rounds of the ratios within a round. The first round warms up and its results
are verified against each other before anything is timed.
"""

import importlib.util
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.environments import has_environment

OURS = "graphsys"


class WrongResultError(Exception):
    """Two systems did not compute the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one run of one system gave.

    Attributes:
        seconds: Time of the work alone.
        result: What it computed, for ``Work.verify``.
        peak_bytes: Peak of RssAnon + RssShmem; None where it was not measured.
        load_s: Time to load the system and its input, apart from the work.
        compile_s: Time to compile, apart from the work.
    """

    seconds: float
    result: Any = None
    peak_bytes: int | None = None
    load_s: float | None = None
    compile_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A system and how it does the work once; ours is called ``graphsys``.

    A variant of ours has a name that begins so (``graphsys 4 partitions``); all others
    are peers. A contender that does less than the work (``pyarrow.csv, parse only``) is
    shown, but with ``is_reference`` it is not counted as a peer.
    """

    system: str
    run: Callable[[], Outcome]
    is_reference: bool = False

    @property
    def is_peer(self) -> bool:
        """Return whether our ratio is taken against it."""
        return not (self.system.startswith(OURS) or self.is_reference)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One piece of work that several systems do.

    Attributes:
        name: What is done, with its size ("text, kron22, 64M edges").
        amount: How many units one run does.
        unit: Unit of the rate ("edges/s").
        contenders: Who does it, ours first.
        verify: Raises :class:`WrongResultError` if the results, by system, are wrong or
            differ; called after the warm-up round.
        limit_s: Least time that this machine's limits allow, if that can be said; a
            function gets the results of the warm-up round.
    """

    name: str
    amount: float
    unit: str
    contenders: Sequence[Contender]
    verify: Callable[[Mapping[str, Any]], None]
    limit_s: float | Callable[[Mapping[str, Any]], float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a result; the names are a contract."""

    work: str
    system: str
    median_s: float
    rate: float
    unit: str
    peak_bytes: int | None
    ratio_to_best_peer: float | None
    fraction_of_limit: float | None


@dataclass(slots=True)
class Runs:
    """All runs of one system at one work, in order of rounds, the warm-up left out.

    ``figures`` are what else a result tells (a quality, a size), from the warm-up.
    """

    work: str
    system: str
    seconds: list[float] = field(default_factory=list)
    peak_bytes: int | None = None
    load_s: list[float] = field(default_factory=list)
    compile_s: list[float] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    def add(self, outcome: Outcome) -> None:
        """Append one run."""
        self.seconds.append(outcome.seconds)
        if outcome.peak_bytes is not None:
            self.peak_bytes = max(self.peak_bytes or 0, outcome.peak_bytes)
        if outcome.load_s is not None:
            self.load_s.append(outcome.load_s)
        if outcome.compile_s is not None:
            self.compile_s.append(outcome.compile_s)

    def as_mapping(self) -> dict[str, Any]:
        """Return the runs for the record."""
        found = asdict(self)
        if not self.figures:
            del found["figures"]
        return found


def same_results(results: Mapping[str, Any]) -> None:
    """Verify that all systems gave the same result."""
    if len({repr(result) for result in results.values()}) > 1:
        raise WrongResultError(f"the systems' results differ: {dict(results)}")


def figures_of(result: Any) -> dict[str, float]:
    """Return the figures that a result has under that name, if it has any."""
    found = result.get("figures", {}) if isinstance(result, Mapping) else {}
    return {name: float(value) for name, value in found.items()}


def measure(
    work: Work, *, rounds: int, report: Callable[[str], None]
) -> tuple[list[Row], list[Runs]]:
    """Warm up, verify, run ``rounds`` interleaved rounds.

    Args:
        work: What to run.
        rounds: Timed rounds.
        report: Receives lines that tell how far it is.

    Raises:
        WrongResultError: a result is wrong; nothing is timed then.
    """
    report(f"{work.name}: warm-up")
    results = {contender.system: contender.run().result for contender in work.contenders}
    work.verify(results)
    runs = [
        Runs(work.name, contender.system, figures=figures_of(results[contender.system]))
        for contender in work.contenders
    ]
    for number in range(rounds):
        report(f"{work.name}: round {number + 1} of {rounds}")
        for contender, kept in zip(work.contenders, runs, strict=True):
            kept.add(contender.run())
    limit = work.limit_s(results) if callable(work.limit_s) else work.limit_s
    return summarize(work, runs, limit), runs


def summarize(work: Work, runs: Sequence[Runs], limit_s: float | None) -> list[Row]:
    """Turn runs into rows."""
    peers = [
        kept
        for contender, kept in zip(work.contenders, runs, strict=True)
        if contender.is_peer
    ]
    best = min(peers, key=lambda kept: statistics.median(kept.seconds), default=None)
    rows = []
    for kept in runs:
        median = statistics.median(kept.seconds)
        ratio = None
        if best is not None:
            ratio = statistics.median(
                peer / own for peer, own in zip(best.seconds, kept.seconds, strict=True)
            )
        rows.append(
            Row(
                work=work.name,
                system=kept.system,
                median_s=median,
                rate=work.amount / median,
                unit=work.unit,
                peak_bytes=kept.peak_bytes,
                ratio_to_best_peer=ratio,
                fraction_of_limit=limit_s / median if limit_s is not None else None,
            )
        )
    return rows


def missing_peers(peers: Mapping[str, str]) -> list[str]:
    """Name the peers whose module (the mapping's value) is installed nowhere.

    ``$NAME`` stands for a folder of programs that a variable of the environment names.
    """
    return [name for name, module in peers.items() if not _is_there(module)]


def _is_there(module: str) -> bool:
    if module.startswith("$"):
        return Path(os.environ.get(module[1:], "/nowhere")).is_dir()
    return importlib.util.find_spec(module) is not None or has_environment(module)
