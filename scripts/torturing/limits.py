"""Limits: few files, little memory, few threads, folders that nobody may write."""

import os
import random
import resource
from collections.abc import Callable
from typing import Any, Final

from torturing.judge import Verdict, ending, judge, tree
from torturing.processes import installed
from torturing.world import RUNS, STORES, World, verbs_of

_NOBODY: Final = 65534


def case(world: World, draw: random.Random, verdict: Verdict) -> str:
    """Run a verb under a limit: the right answer, or one line that says why not."""
    name = draw.choice((*STORES, *RUNS))
    verb = draw.choice(verbs_of(name))
    inputs = tree(world.case)
    if draw.random() < 0.04:
        return _uncached(world, verdict)
    # less, and CPython itself waits forever for a thread that has no memory to begin with
    more = draw.randrange(1 << 25, 1 << 28)
    limits: dict[str, Callable[[], Callable[[], None]]] = {
        "files": lambda: _limited(resource.RLIMIT_NOFILE, draw.randrange(3, 40)),
        "memory": lambda: _limited(resource.RLIMIT_AS, _used("VmSize") + more),
        "data": lambda: _limited(resource.RLIMIT_DATA, _used("VmData") + more),
        "threads": lambda: _unprivileged(draw.randrange(1, 4)),
        "read-only": lambda: _unprivileged(None),
    }
    kind = draw.choice(list(limits) if os.getuid() == 0 else list(limits)[:3])
    if kind == "threads":
        world.out.chmod(0o777)
    what = f"limits: {kind}, {name} {verb.name}"
    outcome, answer = world.ask(name, verb, setup=limits[kind]())
    judge(verdict, outcome, answer, world.answers[name, verb.name], what)
    is_refused = outcome.code != 0 and ending(outcome) is None
    if kind == "files" and is_refused and "open files" not in outcome.err:
        verdict.fault("unclear", f"{what}: the limit is not named: {outcome.err[-300:]}")
    if tree(world.case) != inputs:
        verdict.fault("lost", f"{what}: an input was changed")
    verdict.count("cases")
    return what


def _limited(which: int, value: int) -> Callable[[], None]:
    def limit() -> None:
        resource.setrlimit(which, (value, value))

    return limit


def _unprivileged(processes: int | None) -> Callable[[], None]:
    """Become nobody, whose threads may be counted, and who may write little."""

    def limit() -> None:
        if processes is not None:
            resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)

    return limit


def _used(name: str) -> int:
    """Return a size of this process's memory in bytes."""
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024


def _uncached(world: World, verdict: Verdict) -> str:
    """Run the installed command where no folder for compiled kernels can be written."""
    verb = next(it for it in verbs_of("plain") if it.name == "wcc")
    out: Any = world.output(verb)
    nowhere = {
        "HOME": "/dev/null",
        "XDG_CACHE_HOME": "/dev/null",
        "GRAPHSYS_CACHE": "/dev/null",
    }
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0"; exec "$@"'
    prefix = ["unshare", "--mount", "sh", "-c", script, source]
    outcome = installed(world.line(verb, "plain"), environment=nowhere, prefix=prefix)
    what = "limits: no folder for a cache"
    verdict.count("by_the_installed_command")
    judge(
        verdict,
        outcome,
        world.answer(verb, outcome, out),
        world.answers["plain", "wcc"],
        what,
    )
    if outcome.err.count("no folder for compiled kernels") != 1:
        verdict.fault(
            "unclear", f"{what}: it does not say so in one line: {outcome.err[-500:]}"
        )
    verdict.count("cases")
    return what
