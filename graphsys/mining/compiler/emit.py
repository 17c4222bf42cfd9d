"""The text of the kernel of some patterns: a loop for each step, sets made once.

The nodes that a step can be are a sorted set (``sets.py``); the last steps are only
counted, together where they have no edges to or fro (``tail.py``). Patterns that begin
alike share their loops. A kernel that visits matches has a loop for the last step too.

Mawhirter, Wu, "AutoMine: harmonizing high-level abstraction and high performance for graph
mining", SOSP 2019 (loops of sets, shared by patterns); Mawhirter et al., "GraphZero",
SIGOPS Operating Systems Review 55(1), 2021 (restrictions within the sets).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from graphsys.mining.compiler.schedule import Schedule
from graphsys.mining.compiler.sets import (
    Key,
    Known,
    Set,
    Text,
    cut_set,
    first_set,
    made_set,
    row_of,
)
from graphsys.mining.compiler.tail import count_tail

_IMPORTS = """\
from graphsys.kernels.cpu.atomics import atomic_add
from graphsys.kernels.cpu.loops import claimed_rows
from graphsys.kernels.cpu.mining.sets import has, intersect, intersect_size, subtract
from graphsys.kernels.cpu.mining.four_cycles import place_of
from graphsys.kernels.cpu.mining.big_counts import add_wide
from graphsys.kernels.jit import lean_jit
import numpy as np


"""
_COUNT = """\
@lean_jit
def count(thread, indptr, indices, kinds, labels, bounds, counter, sets, sums):
    found = sums[thread]
"""
_TOLD = """\
@lean_jit
def count(thread, indptr, indices, kinds, labels, bounds, counter, sets, trips, sums):
    found = sums[thread]
"""
_WALK = """\
def walk(
    thread, indptr, indices, kinds, labels, bounds, counter, sets, nodes, match, out, data
):
    image, own = match[thread], out[thread]
"""
STOP = 1 << 62
"""Number of a chunk from which a kernel ends at once."""


@dataclass(frozen=True, slots=True)
class CountTask:
    """A schedule, and how its matches are counted.

    Attributes:
        schedule: The schedule.
        tail: How many of the last steps are counted without a loop, 0 to visit matches.
        place: Number of its sum.
    """

    schedule: Schedule
    tail: int
    place: int = 0

    @property
    def num_loops(self) -> int:
        """How many steps have a loop."""
        return len(self.schedule.order) - self.tail

    @property
    def is_sized(self) -> bool:
        """Whether the last step's set is not made, but for its size."""
        return self.tail == 1 and not self.schedule.is_filtered(self.num_loops)


def kernel_text(tasks: Sequence[CountTask], *, is_told: bool = False) -> tuple[str, int]:
    """Return the text of the kernel of some tasks, and how many sets of scratch it needs.

    One task with a tail of 0 gives a kernel that calls ``visit`` with each match.

    Args:
        tasks: The tasks.
        is_told: Whether it takes ``trips``, int64 ``[N]``, and adds to it how many entries
            of sets and loops are looked at for each node that a match begins with.
    """
    text = Text(is_told=is_told)
    text.add(-1, "for v0 in claimed_rows(bounds, counter):")
    for alike in _by_condition(tasks, 0):
        _loops(text, {}, alike, 0)
    head = _IMPORTS + (_WALK if tasks[0].tail == 0 else _TOLD if is_told else _COUNT)
    scratch = [f"    s{k} = sets[thread, {k}]" for k in range(text.num_scratch)]
    return head + "\n".join([*scratch, *text.lines]) + "\n", text.num_scratch


def _by_condition(tasks: Sequence[CountTask], step: int) -> list[list[CountTask]]:
    """Return tasks whose loops of a step are one loop."""
    alike: dict[tuple[object, ...], list[CountTask]] = {}
    for task in tasks:
        alike.setdefault(task.schedule.condition(step), []).append(task)
    return list(alike.values())


def _loops(text: Text, known: Known, tasks: list[CountTask], step: int) -> None:
    """Write what is in the loop of a step, for tasks that are one so far."""
    schedule = tasks[0].schedule
    if schedule.label(step) >= 0 and step == 0:
        text.add(step, f"if labels[v{step}] != {schedule.label(step)}:")
        text.add(step + 1, "continue")
    # Sets made in this loop are out of reach once it ends.
    known = dict(known)
    text.add(step, f"lo{step}, hi{step} = indptr[v{step}], indptr[v{step} + 1]")
    for task in tasks:
        _make_sets(text, known, task, step)
    for task in tasks:
        if task.num_loops == step + 1:
            _count(text, known, task)
    going_on = [task for task in tasks if task.num_loops > step + 1]
    for alike in _by_condition(going_on, step + 1):
        _next_loop(text, known, alike, step + 1)


def _next_loop(text: Text, known: Known, tasks: list[CountTask], step: int) -> None:
    """Write the loop of a step, in that of the one before."""
    schedule = tasks[0].schedule
    own = known[Key.of(schedule, step, step - 1)]
    summed = [it for it in tasks if it.num_loops == step + 1 and it.tail == 1]
    for task in summed:
        text.add(step - 1, f"t{task.place} = np.int64(0)")
    text.tell(step - 1, own.size)
    text.add(step - 1, f"for k{step} in range({own.begin}, {own.end}):")
    text.add(step, f"v{step} = np.int64({own.array}[k{step}])")
    _skip_others(text, schedule, step)
    last = max(len(task.schedule.order) for task in tasks) - 1
    if step == 1 or step < last - 2:  # not where it would cost
        text.add(step, f"if atomic_add(counter, 0, 0) >= {STOP}:")
        text.add(step + 1, "return")
    if tasks[0].tail == 0 and step == last:
        _visit(text, schedule)
        return
    _loops(text, known, tasks, step)
    for task in summed:
        text.add(step - 1, f"add_wide(found, {task.place}, t{task.place})")


def _skip_others(text: Text, schedule: Schedule, step: int) -> None:
    """Write what leaves out the nodes of a set that a step must not be given."""
    for other in schedule.can_be_same(step):
        text.add(step, f"if v{step} == v{other}:")
        text.add(step + 1, "continue")
    if schedule.label(step) >= 0:
        text.add(step, f"if labels[v{step}] != {schedule.label(step)}:")
        text.add(step + 1, "continue")
    for _, before, wanted, refused in schedule.tests_of(step):
        kind = text.name("q")
        place = f"place_of(indices, lo{before}, hi{before}, v{step})"
        text.add(step, f"{kind} = kinds[{place}]")
        asked = [f"not {kind} & {wanted}"] if wanted else []
        asked += [f"{kind} & {refused}"] if refused else []
        if asked:
            text.add(step, f"if {' or '.join(asked)}:")
            text.add(step + 1, "continue")


def _make_sets(text: Text, known: Known, task: CountTask, step: int) -> None:
    """Make all sets whose last step is bound now, for the steps to come."""
    last = len(task.schedule.order) - 1
    for later in range(step + 1, last + 1):
        key = Key.of(task.schedule, later, step)
        # Of the last set the size is enough: it is counted without being written.
        is_only_sized = later == last and step == last - 1 and task.is_sized
        if key.needed and key not in known and not is_only_sized:
            known[key] = made_set(text, known, key, step)


def _visit(text: Text, schedule: Schedule) -> None:
    """Write the call for a match."""
    last = len(schedule.order) - 1
    for step, node in enumerate(schedule.order):
        text.add(last, f"image[{node}] = nodes[v{step}]")
    text.add(last, "visit(image, own, data)")


def _count(text: Text, known: Known, task: CountTask) -> None:
    """Write how often the last steps can be done, in the loop of the one before them."""
    depth = task.num_loops - 1
    if task.tail > 1:
        ways = count_tail(text, known, task.schedule, task.tail)
        text.add(depth, f"add_wide(found, {task.place}, {ways})")
        return
    if depth == 0:  # there is no loop around to sum up in
        text.add(0, f"t{task.place} = np.int64(0)")
    if task.is_sized:
        _count_last(text, known, task)
    else:
        _count_filtered(text, known, task)
    if depth == 0:
        text.add(0, f"add_wide(found, {task.place}, t{task.place})")


def _count_filtered(text: Text, known: Known, task: CountTask) -> None:
    """Write a loop over the last step's set that counts the nodes that will do."""
    last = task.num_loops
    own = known[Key.of(task.schedule, last, last - 1)]
    text.tell(last - 1, own.size)
    text.add(last - 1, f"for k{last} in range({own.begin}, {own.end}):")
    text.add(last, f"v{last} = np.int64({own.array}[k{last}])")
    _skip_others(text, task.schedule, last)
    text.add(last, f"t{task.place} += 1")


def _count_last(text: Text, known: Known, task: CountTask) -> None:
    """Write how many nodes the last step can be."""
    schedule, last = task.schedule, task.num_loops
    depth, total = last - 1, f"t{task.place}"
    key = Key.of(schedule, last, depth)
    sides: list[tuple[str, Set]]
    if key in known:
        own = known[key]
        text.add(depth, f"{total} += {own.size}")
        sides = [("", own)]
    else:
        own, rest = first_set(text, known, key, depth)
        for sign, other in rest[:-1]:
            own = cut_set(text, key, own, sign, other, depth)
        sides = [("", own)]
        if not rest:
            text.add(depth, f"{total} += {own.size}")
        for sign, other in rest[-1:]:
            row = row_of(text, key, sign, other, depth)
            shared = f"intersect_size({own.piece}, {row.piece})"
            less = "" if sign == "intersect" else f"{own.size} - "
            text.add(depth, f"{total} += {less}{shared}")
            text.tell(depth, own.size)
            sides.append(("" if sign == "intersect" else "not ", row))
    for other in schedule.can_be_same(last):
        tests = [f"{no}has({side.piece}, v{other})" for no, side in sides]
        text.add(depth, f"if {' and '.join(tests)}:")
        text.add(depth + 1, f"{total} -= 1")
