"""The sorted sets that a compiled pattern's loops go over, and the text that makes them.

A set is what a step can be as far as it is known: the neighbors that some steps share, less
those of others, between the nodes that bound it. It is made where the last of these is
bound, from the one that was known before, and once for all steps that begin alike.
"""

from dataclasses import dataclass, field

from graphsys.mining.compiler.schedule import Schedule

Bits = int


@dataclass(frozen=True, slots=True)
class Key:
    """What a set is: of which steps' neighbors, and between which nodes."""

    needed: Bits
    refused: Bits
    above: Bits
    below: Bits

    @classmethod
    def of(cls, schedule: Schedule, step: int, until: int) -> "Key":
        """Return what of a step's set is known when the steps to ``until`` are bound."""
        return cls(*schedule.known_of(step, until))

    def until(self, step: int) -> "Key":
        """Return what of it is known when a step is bound."""
        mask = (2 << step) - 1
        parts = (self.needed, self.refused, self.above, self.below)
        return Key(*(bits & mask for bits in parts))


NOTHING = Key(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Set:
    """A piece of an array, by the names of its array, begin and end."""

    array: str
    begin: str
    end: str

    @property
    def piece(self) -> str:
        """The three as arguments of the kernels of sets."""
        return f"{self.array}, {self.begin}, {self.end}"

    @property
    def size(self) -> str:
        """How many nodes it holds."""
        return self.end if self.begin == "0" else f"{self.end} - {self.begin}"


Known = dict[Key, Set]


@dataclass
class Text:
    """The lines of a kernel, and the names it has used.

    Attributes:
        lines: The lines.
        num_scratch: Arrays of scratch.
        num_names: Names that were made.
        is_told: Whether the kernel notes in ``trips`` how far each first node's sets and
            loops go.
    """

    lines: list[str] = field(default_factory=list)
    num_scratch: int = 0
    num_names: int = 0
    is_told: bool = False

    def add(self, depth: int, text: str) -> None:
        """Add a line in the loop of a step, counted from 0."""
        self.lines.append("    " * (depth + 2) + text)

    def tell(self, depth: int, length: str) -> None:
        """Note that so many entries are looked at, where that is asked for."""
        if self.is_told:
            self.add(depth, f"trips[v0] += {length}")

    def name(self, letter: str) -> str:
        """Return a name that is new."""
        self.num_names += 1
        return f"{letter}{self.num_names}"

    def scratch(self) -> str:
        """Return an array that is new, as long as the longest row."""
        self.num_scratch += 1
        return f"s{self.num_scratch - 1}"


def made_set(text: Text, known: Known, key: Key, step: int) -> Set:
    """Write what makes a set whose last step is bound in this loop."""
    found, rest = first_set(text, known, key, step)
    for sign, other in rest:
        found = cut_set(text, key, found, sign, other, step)
    return found


def cut_set(text: Text, key: Key, own: Set, sign: str, other: int, step: int) -> Set:
    """Write what makes a set of another and the neighbors of a step."""
    row = row_of(text, key, sign, other, step)
    array, size = text.scratch(), text.name("n")
    text.add(step, f"{size} = {sign}({own.piece}, {row.piece}, {array})")
    text.tell(step, own.size)
    return Set(array, "0", size)


def first_set(
    text: Text, known: Known, key: Key, step: int
) -> tuple[Set, list[tuple[str, int]]]:
    """Return the set to begin with, and with which rows it is to be cut down."""
    before = key.until(step - 1) if step else NOTHING
    if before.needed:
        rest = []
        if key.needed >> step & 1:
            rest = [("intersect", step)]
        elif key.refused >> step & 1:
            rest = [("subtract", step)]
        return _narrowed(text, known[before], key, before, step), rest
    base = Set("indices", f"lo{step}", f"hi{step}")
    rest = [("subtract", k) for k in range(step) if key.refused >> k & 1]
    return _narrowed(text, base, key, NOTHING, step), rest


def row_of(text: Text, key: Key, sign: str, other: int, step: int) -> Set:
    """Return the neighbors of a step, those that can count if they are to be shared."""
    base = Set("indices", f"lo{other}", f"hi{other}")
    return base if sign == "subtract" else _narrowed(text, base, key, NOTHING, step)


def _narrowed(text: Text, base: Set, key: Key, before: Key, step: int) -> Set:
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
    return Set(base.array, begin, end)


def _steps(bits: Bits) -> list[str]:
    return [f"v{k}" for k in range(bits.bit_length()) if bits >> k & 1]
