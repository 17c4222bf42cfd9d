"""What the manifest says of one delta: of what was appended to a store at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from graphsys.storage.manifest_check import expect


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaEntry:
    """One append to a generation.

    Attributes:
        number: k of its folder ``deltas/<k>``; 1 for the first of a generation.
        partitions: The partition that its new nodes form, by node type.
        node_splits: New nodes per value of the column ``split``, by node type.
        added: Edges added, by edge type and split.
        removed: Edges removed, by edge type and split.
        relations: Relations that it brought, which stand behind the others, by edge type.
        source: What it was read from, for people.
    """

    number: int
    partitions: dict[str, int] = field(default_factory=dict)
    node_splits: dict[str, dict[str, int]] = field(default_factory=dict)
    added: dict[str, dict[str, int]] = field(default_factory=dict)
    removed: dict[str, dict[str, int]] = field(default_factory=dict)
    relations: dict[str, int] = field(default_factory=dict)
    source: str = ""


def check_deltas(
    deltas: Sequence[DeltaEntry],
    partitions: Mapping[str, int],
    counts: Mapping[str, Mapping[str, int]],
) -> None:
    """Check that deltas are numbered from 1 and fit the counts of the whole store.

    Args:
        deltas: All of a generation.
        partitions: Partitions by node type, those of deltas included.
        counts: Edges by edge type and split, after the last delta.

    Raises:
        ValueError: They do not; the message starts with the place.
    """
    used = dict(partitions)
    for k, delta in reversed(list(enumerate(deltas))):
        where = f"deltas[{k}]"
        expect(delta.number == k + 1, f"{where}.number", delta.number, str(k + 1))
        for name, part in delta.partitions.items():
            last = used.get(name, 0) - 1
            expect(part == last > 0, f"{where}.partitions.{name}", part, f"{last}")
            used[name] = last
    for name, splits in counts.items():
        for split, count in splits.items():
            first = count
            for delta in deltas:
                first -= delta.added.get(name, {}).get(split, 0)
                first += delta.removed.get(name, {}).get(split, 0)
            expect(first >= 0, f"edge_types.{name}.num_edges.{split}", count, "more edges")
