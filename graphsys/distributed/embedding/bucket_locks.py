"""Who trains which bucket: no two workers have a partition at the same time.

The lock server of PyTorch-BigGraph (Lerer et al., "PyTorch-BigGraph: A large-scale graph
embedding system", MLSys 2019, section 4.2), which knows besides which files hold each
partition: files count from when the bucket is given back, so that a bucket that was lost
half-way is trained again on the files from before it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from graphsys.core.errors import ClusterError
from graphsys.distributed.run_files import Listed
from graphsys.embedding.data.schedule import Part

NUM_FILES = 4
"""Rows and states of two partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochUnit:
    """What is given out at once: the buckets that need the same partitions.

    Attributes:
        needs: Those partitions, one or two; types with one partition apart.
        phase: Position in the sequence of edge sets and parts; phases do not mix.
        has_shared: Whether all of its buckets end in rows that all workers train, which
            bring their other ends into one space.
    """

    needs: frozenset[Part]
    phase: int = 0
    has_shared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What a worker gives back.

    Attributes:
        unit: Number of the unit in the epoch.
        files: New files of its partitions.
        num_edges: Edges trained.
        loss: Their summed loss.
        held_out: Summed loss and number of held-out edges.
        lines: Lines for the run's log: events and their facts.
    """

    unit: int
    files: Mapping[Part, Listed]
    num_edges: int
    loss: float
    held_out: tuple[float, float] = (0.0, 0.0)
    lines: tuple[tuple[str, Mapping[str, Any]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a worker does next.

    Attributes:
        kind: ``train`` a unit; ``wait`` and ask again; the epoch is ``over``; the worker
            was given up as ``lost``.
        unit: Number of the unit in the epoch.
        serial: New files of its partitions have the ``NUM_FILES`` numbers above.
        files: The files of its partitions; none: they have their first values.
        drop: Files that what was given back superseded, to be removed now.
        ahead: A partition that the unit after this one is likely to need, with its files,
            to be read while this one is trained. It is nobody's yet: what was read counts
            if the turn for that unit names the same files, which never change.
    """

    kind: Literal["train", "wait", "over", "lost"]
    unit: int = -1
    serial: int = 0
    files: Mapping[Part, Listed] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    ahead: Mapping[Part, Listed] = field(default_factory=dict)


@dataclass(slots=True)
class _Member:
    number: int = 0
    turn: Turn | None = None
    unit: int | None = None
    held: frozenset[Part] = frozenset()
    ahead: frozenset[Part] = frozenset()


class BucketLocks:
    """Hands out the units of an epoch.

    Calls of a worker carry a number of their own; one that comes again is answered as
    before, and does nothing.

    Args:
        files: The files of every partition that has some.
        serial: The last number that was given to a file.
        is_anchored: Whether, as in PyTorch-BigGraph, a unit is given out only if it has a
            partition that was trained before, so that all come to lie in one space.
    """

    def __init__(
        self, files: Mapping[Part, Listed], serial: int, *, is_anchored: bool = True
    ) -> None:
        self._files = dict(files)
        self._serial = serial
        self._is_anchored = is_anchored
        self._known = set(files)
        self._listed: set[str] = set()
        self._committed: set[str] = set()
        self._members: dict[str, _Member] = {}
        self._epoch = -1
        self._units: Sequence[EpochUnit] = ()
        self._waiting: set[int] = set()
        self._finished: list[Finished] = []
        self.hold()
        self.committed()

    def join(self, worker: str) -> None:
        """Let a worker ask for units."""
        self._members[worker] = _Member()

    def forget(self, worker: str) -> None:
        """Take back what a lost worker has; whatever it says from now on is ignored."""
        member = self._members.pop(worker, None)
        if member is not None and member.unit is not None:
            self._waiting.add(member.unit)

    def begin_epoch(
        self, epoch: int, units: Sequence[EpochUnit], done: Iterable[int] = ()
    ) -> None:
        """Begin an epoch.

        Args:
            epoch: Its number; for any other one the answer is that it is over.
            units: Its units, in the order in which they are given out, all else equal.
            done: Numbers of those that were trained before.
        """
        self._epoch, self._units = epoch, units
        self._waiting = set(range(len(units))) - set(done)
        self._finished = []

    def hold(self) -> tuple[list[Finished], dict[Part, Listed], int]:
        """Return :meth:`outcome` for a checkpoint, and keep the files of now for it.

        Units that are given back meanwhile are not in it, and their files supersede none
        of those.
        """
        self._listed = {name for listed in self._files.values() for name in listed}
        self._committed |= self._listed
        return self.outcome()

    def committed(self) -> None:
        """Keep the files of the last :meth:`hold`, which are listed now, until the next."""
        self._committed = self._listed

    def turn(
        self, worker: str, number: int, epoch: int, finished: Finished | None = None
    ) -> Turn:
        """Take back what a worker has trained, and say what it does next.

        Args:
            worker: Its name.
            number: Number of the call, from 1.
            epoch: The epoch that it trains.
            finished: The unit that it had, if it had one.

        Raises:
            ClusterError: It gives back what it does not have.
        """
        member = self._members.get(worker)
        if member is None:
            return Turn(kind="lost")
        if number <= member.number and member.turn is not None:
            return member.turn
        drop = () if finished is None else self._take_back(worker, member, finished)
        member.number = number
        is_over = epoch != self._epoch
        member.turn = Turn(kind="over") if is_over else self._next(member, drop)
        return member.turn

    def _take_back(self, worker: str, member: _Member, done: Finished) -> tuple[str, ...]:
        if member.unit != done.unit:
            raise ClusterError(
                f"worker {worker} gave back unit {done.unit}, expected {member.unit}; "
                "train again with --resume"
            )
        member.unit, member.held = None, self._units[done.unit].needs
        self._finished.append(done)
        drop = [
            name
            for part in done.files
            for name in self._files.get(part, ())
            if name not in self._committed
        ]
        self._files.update(done.files)
        return tuple(drop)

    def _next(self, member: _Member, drop: tuple[str, ...]) -> Turn:
        active = [m.unit for m in self._members.values() if m.unit is not None]
        if not self._waiting and not active:
            return Turn(kind="over", drop=drop)
        chosen = self._choose(member, active)
        if chosen is None:
            return Turn(kind="wait", drop=drop)
        self._waiting.remove(chosen)
        member.unit = chosen
        needs = self._units[chosen].needs
        self._known |= needs
        serial, self._serial = self._serial, self._serial + NUM_FILES
        ahead = member.ahead = self._foresee(needs, member.ahead - needs, active)
        return Turn(
            kind="train",
            unit=chosen,
            serial=serial,
            files=self._files_of(needs),
            drop=drop,
            ahead={part: self._files_of([part]).get(part, {}) for part in ahead},
        )

    def _files_of(self, parts: Iterable[Part]) -> dict[Part, Listed]:
        return {part: self._files[part] for part in parts if part in self._files}

    def _choose(self, member: _Member, active: Sequence[int]) -> int | None:
        """Choose a unit nobody is in the way of: with the fewest partitions to be read.

        Of those, one whose partitions no other worker reads ahead.
        """
        phase = min((self._units[k].phase for k in (*self._waiting, *active)), default=0)
        free = self._free(phase, active)
        if self._is_anchored and self._known:
            anchored = [
                k
                for k in free
                if self._units[k].has_shared or self._units[k].needs & self._known
            ]
            free = anchored if anchored or active else free
        has, others = member.held | member.ahead, self._ahead_of_others(member)

        def cost(unit: int) -> tuple[int, int, int]:
            needs = self._units[unit].needs
            return len(needs - has), len(needs - member.held), len(needs & others)

        return min(free, key=cost, default=None)

    def _foresee(
        self, needs: frozenset[Part], before: frozenset[Part], active: Sequence[int]
    ) -> frozenset[Part]:
        """Return a partition that is likely to be needed after those trained now, or none.

        Args:
            needs: What is trained now.
            before: What was read ahead and is not used yet; it stays if it may.
            active: Units of other workers.
        """
        phase = min((self._units[k].phase for k in self._waiting), default=0)
        taken = frozenset().union(*(m.ahead for m in self._members.values())) - before
        wanted = [
            missing
            for k in self._free(phase, active)
            if len(missing := self._units[k].needs - needs) == 1 and not missing & taken
        ]
        return min(wanted, key=lambda missing: missing != before, default=frozenset())

    def _free(self, phase: int, active: Sequence[int]) -> list[int]:
        """Return the waiting units of a phase that share nothing with active ones."""
        locked = {part for unit in active for part in self._units[unit].needs}
        return [
            k
            for k in sorted(self._waiting)
            if self._units[k].phase == phase and not self._units[k].needs & locked
        ]

    def _ahead_of_others(self, member: _Member) -> frozenset[Part]:
        others = (m.ahead for m in self._members.values() if m is not member)
        return frozenset().union(*others)

    def progress(self) -> tuple[int, float]:
        """Return the edges trained in this epoch, and their summed loss."""
        done = self._finished
        return sum(unit.num_edges for unit in done), sum(unit.loss for unit in done)

    def outcome(self) -> tuple[list[Finished], dict[Part, Listed], int]:
        """Return the units finished in this epoch, all files, and the last number."""
        return list(self._finished), dict(self._files), self._serial
