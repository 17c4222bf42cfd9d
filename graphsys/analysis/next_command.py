"""What to do next, as a command that can be copied: the profiled one with other flags."""

import shlex
from collections.abc import Mapping
from typing import Any, Final

_OUT: Final = ("-o", "--out")
_AGAIN: Final = "again.html"


class ProfiledCommand:
    """The command that was profiled, and others that follow from it.

    Args:
        text: As the report calls it, ``graphsys run bfs web``; anything else is no command
            line of ours, and nothing follows from it.
        level: At which it was profiled.

    Examples:
        >>> command = ProfiledCommand("graphsys run bfs web -o a.csv --threads 4")
        >>> command.with_option("--threads", "2")
        'graphsys profile -o again.html -- run bfs web -o a.csv --threads 2 --overwrite'
        >>> ProfiledCommand("python").again() is None
        True
    """

    def __init__(self, text: str, level: str = "L1") -> None:
        words = shlex.split(text) if text.startswith("graphsys ") else []
        self.words = words[1:]
        self._level = level

    @property
    def verb(self) -> str:
        """The first word, or nothing."""
        return self.words[0] if self.words else ""

    def option(self, flag: str) -> str | None:
        """Return an option's value, or None where it is not given."""
        place = self._place(flag)
        if place is None:
            return None
        word = self.words[place]
        if word != flag:
            return word.partition("=")[2]
        return self.words[place + 1] if place + 1 < len(self.words) else None

    def setting(self, key: str) -> str | None:
        """Return what a ``--set`` gives a setting, or None."""
        told = [it for it in self.words if it.startswith(f"{key}=")]
        return told[-1].partition("=")[2] if told else None

    def graph(self) -> str | None:
        """Return the graph of ``run ALGORITHM GRAPH``, or None."""
        if self.verb != "run" or len(self.words) < 3:
            return None
        named = self.words[1:3]
        return None if any(it.startswith("-") for it in named) else named[1]

    def again(self, *options: str) -> str | None:
        """Return the command that profiles it again, with options of the profile's."""
        return self._profiling(self.words, options)

    def with_option(self, flag: str, value: str | None) -> str | None:
        """Return the same with another value of an option; None leaves the option out."""
        words, place = list(self.words), self._place(flag)
        if place is not None:
            del words[place : place + (2 if words[place] == flag else 1)]
        return self._profiling([*words, *([flag, value] if value is not None else [])])

    def with_setting(self, key: str, value: object) -> str | None:
        """Return the same with another value of a setting that it gives."""
        words = [f"{key}={value}" if it.startswith(f"{key}=") else it for it in self.words]
        return self._profiling(words)

    def ordered(self, order: str) -> str | None:
        """Return the command that writes its graph in another order of nodes."""
        graph = self.graph()
        if graph is None:
            return None
        out = f"{graph.rstrip('/')}-by-{order}"
        return shlex.join(["graphsys", "partition", graph, "-o", out, "--order", order])

    def _place(self, flag: str) -> int | None:
        return next(
            (
                k
                for k, it in enumerate(self.words)
                if it == flag or it.startswith(f"{flag}=")
            ),
            None,
        )

    def _profiling(self, words: list[str], options: tuple[str, ...] = ()) -> str | None:
        if not words:
            return None
        if any(it in _OUT for it in words) and not {"--overwrite", "--resume"} & set(words):
            words = [*words, "--overwrite"]  # the first run's output is there
        level = [] if self._level == "L1" or "--level" in options else self._level.split()
        flags = [*(["--level", *level] if level else []), *options]
        return shlex.join(["graphsys", "profile", "-o", _AGAIN, *flags, "--", *words])


def load_text(machine: Mapping[str, Any]) -> str:
    """Say in a sentence whether other work shared the machine.

    Examples:
        >>> load_text({"load_average": 3.4, "cpu": {"usable_cores": 2}})
        'Load 3.4 on 2 cores: other work took part, so these times are too long.'
    """
    load, cores = machine["load_average"], machine["cpu"]["usable_cores"]
    told = f"Load {load:.1f} on {cores} cores"
    if is_busy(machine):
        return f"{told}: other work took part, so these times are too long."
    return f"{told}: no sign of other work."


def is_busy(machine: Mapping[str, Any]) -> bool:
    """Whether more wanted to run than the machine has cores for."""
    load: float = machine["load_average"]
    cores: int = machine["cpu"]["usable_cores"]
    return load > cores + 0.5


def next_of(
    verdict: Mapping[str, Any],
    command: ProfiledCommand,
    machine: Mapping[str, Any],
    configuration: Mapping[str, Any],
    *,
    has_rows: bool,
) -> dict[str, str] | None:
    """Return the command to give next and why; None where none follows.

    Args:
        verdict: With its findings, the largest first.
        command: What was profiled.
        machine: Its load.
        configuration: The profile's.
        has_rows: Whether the SIMT model saw rows.
    """
    found: list[tuple[str | None, str]] = []
    if is_busy(machine):
        found.append((command.again(), "Measure again when the other work is done."))
    found += [(it["command"], it["advice"]) for it in verdict["findings"]]
    if configuration.get("level") == "L0":
        found.append(
            (command.again("--level", "L1"), "See what a GPU's lanes and SMs would do.")
        )
    elif has_rows:
        found.append(
            (command.again("--schedulers"), "See what a GPU's caches and warps would do.")
        )
    return next(
        ({"command": text, "reason": why} for text, why in found if text is not None), None
    )
