"""The answer first: what held the run up, from what was measured, and what to change."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphsys.analysis.host import HostFigures
from graphsys.analysis.metrics import Metric
from graphsys.analysis.next_command import ProfiledCommand, is_busy, load_text
from graphsys.core.errors import ConfigError
from graphsys.core.memory import parse_bytes

_SHORT = (
    "Supersteps are short: a native implementation, where there is one, runs several in "
    "one call."
)
_LONG = (
    "Supersteps are long for that: the timeline and the operators below say in what the "
    "time went."
)
_OF_MACHINE = 0.8
"""Share of the machine's memory that a command is advised to take at most."""
_LONG_S = 0.05
"""Seconds from which on a step's fixed costs are nothing beside it."""
_IN_TRAININGS = (
    (_SHORT, "Steps are short: larger batches do more in each."),
    (_LONG, _LONG.replace("Supersteps are long", "Steps are long")),
    ("supersteps", "epochs"),
    ("superstep", "step"),
)
"""What the findings say of supersteps, and what they say of a training."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that took time.

    Attributes:
        share: Part of the run's whole time that it explains, 0 to 1.
        text: What was measured.
        advice: What to change.
        command: What does so, where the profiled command says enough.
    """

    share: float
    text: str
    advice: str
    command: str | None = None

    def as_mapping(self) -> dict[str, Any]:
        """Return it as the report's JSON has it."""
        return {
            "share": self.share,
            "text": self.text,
            "advice": self.advice,
            "command": self.command,
        }


_UNKNOWN = ProfiledCommand("")
_WORTH_SAYING = 0.05
_EVEN = 1.15
_NUM_SPANS = 4


def verdict_of(
    figures: HostFigures,
    metrics: Mapping[str, Metric],
    machine: Mapping[str, Any],
    cluster: Mapping[str, Any] | None = None,
    command: ProfiledCommand = _UNKNOWN,
) -> dict[str, Any]:
    """Return a summary in one sentence, the machine's load, and findings, largest first.

    Args:
        figures: The host's counters; of a cluster, its first worker's.
        metrics: By name.
        machine: Cores and load.
        cluster: Its workers, where there are any.
        command: What was profiled.
    """
    findings = [
        _workers(cluster, metrics, command),
        _waiting(metrics, machine, command),
        _threads(figures, metrics, machine, command),
        _host_share(figures, metrics, command),
        _compiling(figures, metrics, command),
        _around(figures, metrics),
        _bandwidth(metrics, command),
    ]
    load = {"load": load_text(machine)}
    nothing = (
        "Nothing stands out: threads were balanced, nothing was waited for, and the time "
        "went into the kernels themselves."
    )
    if not figures.steps and not figures.kernels:
        return verdict_from([], _of_spans(figures, metrics)) | load
    known = [found for found in findings if found is not None]
    if any("epoch" in step.facts for step in figures.steps):
        known = [_of_training(found) for found in known]
    found = verdict_from(known, nothing)
    summary = f"{_breakdown(figures, metrics)}{found['summary']}"
    return {**found, "summary": summary} | load


def _of_training(found: Finding) -> Finding:
    """Speak of epochs where a training has no supersteps."""
    texts = [found.text, found.advice]
    for old, new in _IN_TRAININGS:
        texts = [text.replace(old, new) for text in texts]
    return replace(found, text=texts[0], advice=texts[1])


def _of_spans(figures: HostFigures, metrics: Mapping[str, Metric]) -> str:
    """Say which spans took the time, where neither supersteps nor kernels ran."""
    wall = _value(metrics, "wall_seconds")
    if not figures.spans or not wall:
        return "Nothing was measured: no superstep and no kernel ran."
    longest = sorted(figures.spans.items(), key=lambda item: -item[1])[:_NUM_SPANS]
    parts = [f"{_percent(seconds / wall)} {name}" for name, seconds in longest]
    return (
        f"Of {_number(wall)} s: {', '.join(parts)}, in whichever thread; no superstep and "
        "no kernel of a team ran."
    )


def _breakdown(figures: HostFigures, metrics: Mapping[str, Metric]) -> str:
    """Say in one sentence where the time went."""
    wall = _value(metrics, "wall_seconds")
    inside = sum(kernel.seconds for kernel in figures.kernels.values())
    if not wall or not inside:
        return ""
    shares = {
        "in kernels": inside / wall,
        "waiting": _value(metrics, "waiting_share") or 0.0,
        "compiling or loading kernels": (_value(metrics, "compile_seconds") or 0.0) / wall,
    }
    parts = [f"{_percent(share)} {name}" for name, share in shares.items() if share >= 0.01]
    return f"Of {_number(wall)} s: {', '.join(parts)}. " if parts else ""


def verdict_from(findings: Sequence[Finding], nothing: str) -> dict[str, Any]:
    """Return a verdict: the largest finding in a sentence, and all of them.

    Args:
        findings: In any order; small ones are left out.
        nothing: What to say where there are none.
    """
    found = [finding for finding in findings if finding.share >= _WORTH_SAYING]
    found.sort(key=lambda finding: -finding.share)
    summary = f"{found[0].text} {found[0].advice}" if found else nothing
    return {"summary": summary, "findings": [finding.as_mapping() for finding in found]}


def _value(metrics: Mapping[str, Metric], name: str) -> float | None:
    metric = metrics.get(name)
    return None if metric is None else metric.value


def _number(amount: float) -> str:
    """Write a number with two digits, and no power of ten.

    Examples:
        >>> _number(0.0123), _number(7.84), _number(99.6), _number(1234.0)
        ('0.012', '7.8', '100', '1234')
    """
    return f"{amount:.0f}" if amount >= 10 else f"{amount:.2g}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _waiting(
    metrics: Mapping[str, Metric], machine: Mapping[str, Any], command: ProfiledCommand
) -> Finding | None:
    share, alpha = _value(metrics, "waiting_share"), _value(metrics, "overlap_alpha")
    if not share:
        return None
    hidden = "" if alpha is None else f" (overlap {alpha:.2f} of 1)"
    return Finding(
        share,
        f"{_percent(share)} of the time went into waiting for reads and writes{hidden}.",
        "Give it more --memory, so that more partitions stay, or a faster disk.",
        _with_more_memory(command, machine),
    )


def _with_more_memory(command: ProfiledCommand, machine: Mapping[str, Any]) -> str | None:
    """Return the command with twice its memory, where it has a limit and there is more."""
    given = command.option("--memory")
    if given is None:
        return None
    try:
        more = min(2 * parse_bytes(given), int(machine["memory_bytes"] * _OF_MACHINE))
        if more <= parse_bytes(given):
            return None
    except ConfigError:
        return None
    return command.with_option("--memory", f"{more >> 20}MiB")


def _workers(
    cluster: Mapping[str, Any] | None,
    metrics: Mapping[str, Metric],
    command: ProfiledCommand,
) -> Finding | None:
    wall = _value(metrics, "wall_seconds")
    if cluster is None or not wall or len(cluster["workers"]) < 2:
        return None
    share, ratio = cluster["waiting_share"] or 0.0, cluster["load_imbalance"] or 1.0
    longest = max(row["seconds"] for row in cluster["workers"])
    then = None
    advice = "Partitions with as many edges (--partitioner) share the work more evenly."
    if cluster["kind"] == "gnn":
        advice = "Each has its share of every batch: look at what else their machines do."
    if cluster["kind"] == "embedding":
        advice = (
            "Twice as many partitions as workers can hold (--partitions) leave each a "
            "bucket to go on with."
        )
    elif ratio < _EVEN:
        advice = "They work evenly: what they wait for is the sending; take fewer of them."
        where, _, number = (command.option("--cluster") or "").partition(":")
        if where == "local" and number.isdecimal() and int(number) > 2:
            then = command.with_option("--cluster", f"local:{int(number) // 2}")
    return Finding(
        share * min(longest / wall, 1.0),
        f"{len(cluster['workers'])} workers waited for each other in {_percent(share)} of "
        f"their time; the busiest worked {ratio:.2f} times the mean.",
        advice,
        then,
    )


def _threads(
    figures: HostFigures,
    metrics: Mapping[str, Metric],
    machine: Mapping[str, Any],
    command: ProfiledCommand,
) -> Finding | None:
    idle, ratio = _value(metrics, "thread_waiting"), _value(metrics, "thread_imbalance")
    wall = _value(metrics, "wall_seconds")
    if idle is None or ratio is None or not wall:
        return None
    cores, load = machine["cpu"]["usable_cores"], machine["load_average"]
    advice = "Rows are uneven: order nodes by degree, or give fewer --threads."
    then = command.ordered("degree")
    if is_busy(machine):
        then = command.again()
        advice = (
            f"Other work shares the {cores} cores (load average {load:.1f}): measure again "
            "on a quiet machine."
        )
    inside = sum(kernel.seconds for kernel in figures.kernels.values())
    return Finding(
        idle * min(inside / wall, 1.0),
        f"In kernels, threads idled {_percent(idle)} of their time; the busiest worked "
        f"{ratio:.2f} times the mean.",
        advice,
        then,
    )


def _host_share(
    figures: HostFigures, metrics: Mapping[str, Metric], command: ProfiledCommand
) -> Finding | None:
    inside, wall = _value(metrics, "kernel_share"), _value(metrics, "wall_seconds")
    known = [step.seconds for step in figures.steps if step.seconds is not None]
    if inside is None or not known or not wall:
        return None
    typical = statistics.median(known)
    took = f"{typical:.2g} s" if typical >= 1 else f"{1e3 * typical:.3g} ms"
    return Finding(
        (1.0 - inside) * min(sum(known) / wall, 1.0),
        f"{_percent(1.0 - inside)} of the supersteps' time passed outside kernels (a "
        f"superstep takes {took}, median of {len(known)}).",
        _SHORT if typical < _LONG_S else _LONG,
        _with_longer_steps(command) if typical < _LONG_S else None,
    )


def _with_longer_steps(command: ProfiledCommand) -> str | None:
    """Return the command natively, or with batches twice as large, where it says so."""
    if command.option("--implementation") == "program":
        return command.with_option("--implementation", None)
    size = command.setting("batch_size")
    if command.verb == "train" and size is not None and size.isdecimal():
        return command.with_setting("batch_size", 2 * int(size))
    return None


def _compiling(
    figures: HostFigures, metrics: Mapping[str, Metric], command: ProfiledCommand
) -> Finding | None:
    seconds, wall = _value(metrics, "compile_seconds"), _value(metrics, "wall_seconds")
    if not seconds or not wall:
        return None
    what = "loading compiled kernels"
    advice = "Loading them is a fixed cost that larger graphs do not notice."
    if figures.num_compiled:
        what = f"compiling {figures.num_compiled} kernels"
        advice = (
            "They are cached now, so the same again is faster; graphsys doctor --warm-up "
            "compiles what other commands need."
        )
    return Finding(
        min(seconds / wall, 1.0),
        f"{_number(seconds)} of {_number(wall)} seconds went into {what}.",
        advice,
        command.again() if figures.num_compiled else None,
    )


def _around(figures: HostFigures, metrics: Mapping[str, Metric]) -> Finding | None:
    names = ("wall_seconds", "superstep_seconds", "compile_seconds")
    wall, inside, compiling = (_value(metrics, name) or 0.0 for name in names)
    inside = max(inside, sum(kernel.seconds for kernel in figures.kernels.values()))
    rest = wall - inside - compiling - wall * (_value(metrics, "waiting_share") or 0.0)
    if wall <= 0:
        return None
    return Finding(
        max(rest / wall, 0.0),
        f"{_number(rest)} of {_number(wall)} seconds passed before, between and after the "
        "work: importing, opening the graph, making rows, writing results.",
        "It does not grow with the supersteps: judge short runs by the supersteps' time.",
    )


def _bandwidth(metrics: Mapping[str, Metric], command: ProfiledCommand) -> Finding | None:
    share = _value(metrics, "bandwidth_share")
    wall, inside = _value(metrics, "wall_seconds"), _value(metrics, "superstep_seconds")
    if share is None or share < 0.3 or not wall or inside is None:
        return None
    return Finding(
        min(share, 1.0) * min(inside / wall, 1.0),
        f"The useful bytes alone move at {_percent(share)} of what this memory can copy.",
        "It is bound by memory: a smaller dtype, or an order of nodes with more locality "
        "(--order rabbit), moves fewer bytes.",
        command.ordered("rabbit"),
    )
