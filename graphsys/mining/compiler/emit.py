"""The text of the kernel that counts a pattern: a loop for each step, sets made once.

The nodes that a step can be are the neighbors that the steps before share, less those of
the steps it must have no edge with. Such a set is made where the last step that it is of
is bound, and once for all steps that begin alike; the last step's is only counted.

Mawhirter, Wu, "AutoMine: harmonizing high-level abstraction and high performance for graph
mining", SOSP 2019 (loops of sets); Mawhirter et al., "GraphZero", SIGOPS Operating Systems
Review 55(1), 2021 (restrictions within the sets).
"""

from dataclasses import dataclass, field

from graphsys.mining.compiler.schedule import Schedule

_HEAD = """\
from graphsys.kernels.cpu.atomics import atomic_add
from graphsys.kernels.cpu.mining.sets import has, intersect, intersect_size, subtract
from graphsys.kernels.cpu.mining.squares import place_of
from graphsys.kernels.cpu.mining.wide import add_wide
from graphsys.kernels.jit import lean_jit
import numpy as np


@lean_jit
def count(thread, indptr, indices, bounds, counter, sets, sums):
    found = sums[thread]
"""
Bits = int
STOP = 1 << 62
"""Number of a chunk from which a kernel ends at once."""


@dataclass(frozen=True, slots=True)
class _Key:
    """What a set is: of which steps' neighbors, and between which nodes."""

    needed: Bits
    refused: Bits
    above: Bits
    below: Bits

    def until(self, step: int) -> "_Key":
        """Return what of it is known when a step is bound."""
        mask = (2 << step) - 1
        parts = (self.needed, self.refused, self.above, self.below)
        return _Key(*(bits & mask for bits in parts))


@dataclass(frozen=True, slots=True)
class _Set:
    """A piece of an array, by the names of its array, begin and end."""

    array: str
    begin: str
    end: str

    @property
    def piece(self) -> str:
        return f"{self.array}, {self.begin}, {self.end}"


@dataclass
class _Text:
    """The lines of a kernel, and the sets that are known."""

    schedule: Schedule
    lines: list[str] = field(default_factory=list)
    known: dict[_Key, _Set] = field(default_factory=dict)
    num_scratch: int = 0
    num_names: int = 0

    def add(self, depth: int, text: str) -> None:
        self.lines.append("    " * (depth + 3) + text)

    def name(self, letter: str) -> str:
        self.num_names += 1
        return f"{letter}{self.num_names}"


def kernel_text(schedule: Schedule) -> tuple[str, int]:
    """Return the text of a schedule's kernel, and how many sets of scratch it needs."""
    text = _Text(schedule)
    text.add(-2, "while True:")
    text.add(-1, "chunk = atomic_add(counter, 0, 1)")
    text.add(-1, "if chunk >= len(bounds) - 1:")
    text.add(0, "break")
    text.add(-1, "for v0 in range(bounds[chunk], bounds[chunk + 1]):")
    _bind(text, 0)
    last = len(schedule.order) - 1
    loops = last - 1 if schedule.is_paired else last
    for step in range(1, loops):
        if step == last - 1:
            text.add(step - 1, "total = np.int64(0)")
        own = text.known[_key(schedule, step).until(step - 1)]
        text.add(step - 1, f"for k{step} in range({own.begin}, {own.end}):")
        text.add(step, f"v{step} = np.int64({own.array}[k{step}])")
        for other in _possibly_same(schedule, step):
            text.add(step, f"if v{step} == v{other}:")
            text.add(step + 1, "continue")
        if step == 1 or step < last - 2:  # not where it would cost
            text.add(step, f"if atomic_add(counter, 0, 0) >= {STOP}:")
            text.add(step + 1, "return")
        _bind(text, step)
    if schedule.is_paired:
        _count_pairs(text, last)
    else:
        _count_last(text, last)
    scratch = [f"    s{k} = sets[thread, {k}]" for k in range(text.num_scratch)]
    lines = [*scratch, *text.lines]
    return _HEAD + "\n".join(lines) + "\n", text.num_scratch


def _key(schedule: Schedule, step: int) -> _Key:
    parts = (schedule.needed, schedule.refused, schedule.above, schedule.below)
    return _Key(*(bits[step] for bits in parts))


def _possibly_same(schedule: Schedule, step: int) -> list[int]:
    """Return the steps before that could be given the same node, but for a look."""
    other = schedule.needed[step] | schedule.above[step] | schedule.below[step]
    return [k for k in range(step) if not other >> k & 1]


def _bind(text: _Text, step: int) -> None:
    """Make all sets whose last step is bound now, for the steps to come."""
    schedule, last = text.schedule, len(text.schedule.order) - 1
    text.add(step, f"lo{step}, hi{step} = indptr[v{step}], indptr[v{step} + 1]")
    for later in range(step + 1, last + 1):
        key = _key(schedule, later).until(step)
        # counted, not made
        is_end = later == last and step == last - 1
        if not key.needed or key in text.known or is_end:
            continue
        text.known[key] = _make(text, key, step)


def _make(text: _Text, key: _Key, step: int) -> _Set:
    """Write what makes a set of those known before and the neighbors of a step."""
    found, rest = _start(text, key, step)
    for sign, other in rest:
        row = _row(text, key if sign == "intersect" else None, other, step)
        array = f"s{text.num_scratch}"
        text.num_scratch += 1
        size = text.name("n")
        text.add(step, f"{size} = {sign}({found.piece}, {row.piece}, {array})")
        found = _Set(array, "0", size)
    return found


def _start(text: _Text, key: _Key, step: int) -> tuple[_Set, list[tuple[str, int]]]:
    """Return the set to begin with, and with which rows it is to be cut down."""
    before = key.until(step - 1) if step else _Key(0, 0, 0, 0)
    if before.needed:
        base = text.known[before]
        rest = []
        if key.needed >> step & 1:
            rest = [("intersect", step)]
        elif key.refused >> step & 1:
            rest = [("subtract", step)]
        return _narrowed(text, base, key, before, step), rest
    base = _Set("indices", f"lo{step}", f"hi{step}")
    rest = [("subtract", k) for k in range(step) if key.refused >> k & 1]
    return _narrowed(text, base, key, _Key(0, 0, 0, 0), step), rest


def _row(text: _Text, key: _Key | None, other: int, step: int) -> _Set:
    base = _Set("indices", f"lo{other}", f"hi{other}")
    return base if key is None else _narrowed(text, base, key, _Key(0, 0, 0, 0), step)


def _narrowed(text: _Text, base: _Set, key: _Key, before: _Key, step: int) -> _Set:
    """Cut a sorted set down to what lies between the nodes that are known."""
    begin, end = base.begin, base.end
    if new := _steps(key.above & ~before.above):
        begin = text.name("b")
        least = new[0] if len(new) == 1 else f"max({', '.join(new)})"
        text.add(
            step, f"{begin} = place_of({base.array}, {base.begin}, {end}, {least} + 1)"
        )
    if new := _steps(key.below & ~before.below):
        end = text.name("e")
        most = new[0] if len(new) == 1 else f"min({', '.join(new)})"
        text.add(step, f"{end} = place_of({base.array}, {begin}, {base.end}, {most})")
    return _Set(base.array, begin, end)


def _steps(bits: Bits) -> list[str]:
    return [f"v{k}" for k in range(bits.bit_length()) if bits >> k & 1]


def _count_last(text: _Text, last: int) -> None:
    """Write how many nodes the last step can be, in the loop of the one before."""
    schedule, step = text.schedule, last - 1
    key, depth = _key(schedule, last), last - 1
    if last == 1:
        text.add(depth, "total = np.int64(0)")
    if key in text.known:
        own = text.known[key]
        text.add(depth, f"total += {own.end} - {own.begin}")
        sides = [("", own)]
    else:
        own, rest = _start(text, key, step)
        sides = [("", own)]
        for sign, other in rest[:-1]:
            own = _cut(text, key, own, sign, other, step)
            sides = [("", own)]
        if not rest:
            text.add(depth, f"total += {own.end} - {own.begin}")
        for sign, other in rest[-1:]:
            row = _row(text, key if sign == "intersect" else None, other, step)
            shared = f"intersect_size({own.piece}, {row.piece})"
            if sign == "intersect":
                text.add(depth, f"total += {shared}")
                sides.append(("", row))
            else:
                text.add(depth, f"total += {own.end} - {own.begin} - {shared}")
                sides.append(("not ", row))
    for other in _possibly_same(schedule, last):
        tests = [f"{no}has({side.piece}, v{other})" for no, side in sides]
        text.add(depth, f"if {' and '.join(tests)}:")
        text.add(depth + 1, "total -= 1")
    text.add(max(depth - 1, 0), "add_wide(found, 0, total)")


def _count_pairs(text: _Text, last: int) -> None:
    """Write how many pairs of nodes the last two steps can be: all, but a node twice."""
    schedule, depth = text.schedule, last - 2
    own, sizes = [], []
    for step in (last - 1, last):
        found = text.known[_key(schedule, step).until(depth)]
        others = [k for k in _possibly_same(schedule, step) if k <= depth]
        size = text.name("n")
        text.add(depth, f"{size} = {found.end} - {found.begin}")
        for other in others:
            text.add(depth, f"{size} -= has({found.piece}, v{other})")
        own.append((found, others))
        sizes.append(size)
    if schedule.is_alike:
        is_halved = (schedule.above[last] | schedule.below[last]) >> (last - 1) & 1
        half = " // 2" if is_halved else ""
        text.add(depth, f"add_wide(found, 0, {sizes[0]} * ({sizes[0]} - 1){half})")
        return
    (one, _), (other_set, _) = own
    both = text.name("n")
    shared = f"intersect_size({one.piece}, {other_set.piece})"
    text.add(depth, f"{both} = {shared}")
    for other in sorted(set(own[0][1]) & set(own[1][1])):
        tests = f"has({one.piece}, v{other}) and has({other_set.piece}, v{other})"
        text.add(depth, f"if {tests}:")
        text.add(depth + 1, f"{both} -= 1")
    text.add(depth, f"add_wide(found, 0, {sizes[0]} * {sizes[1]} - {both})")


def _cut(text: _Text, key: _Key, own: _Set, sign: str, other: int, step: int) -> _Set:
    row = _row(text, key if sign == "intersect" else None, other, step)
    array, size = f"s{text.num_scratch}", text.name("n")
    text.num_scratch += 1
    text.add(step, f"{size} = {sign}({own.piece}, {row.piece}, {array})")
    return _Set(array, "0", size)
