"""The lock server: disjoint units, affinity, what is lost, calls that come twice."""

import itertools
from collections.abc import Iterable

import pytest

from graphsys.core.errors import ClusterError
from graphsys.distributed.embedding.bucket_locks import (
    NUM_FILES,
    BucketLocks,
    EpochUnit,
    Finished,
    Turn,
)
from graphsys.distributed.run_files import Listed
from graphsys.embedding.data.schedule import Part

A, B, C, D = (("node", k) for k in range(4))


def units_of(num_partitions: int) -> list[EpochUnit]:
    """Return the units of a graph of one node type."""
    pairs = itertools.combinations_with_replacement(range(num_partitions), 2)
    return [EpochUnit(needs=frozenset({("node", i), ("node", j)})) for i, j in pairs]


def files_of(needs: Iterable[Part], number: int) -> dict[Part, Listed]:
    return {part: {f"{part[1]}.{number}": (1, "x")} for part in needs}


class Walk:
    """Workers that ask in turns, and what they are told."""

    def __init__(self, locks: BucketLocks, units: list[EpochUnit], workers: str) -> None:
        self.locks, self.units = locks, units
        self.turns: dict[str, Turn] = {}
        self.numbers = dict.fromkeys(workers, 0)
        for worker in workers:
            locks.join(worker)

    def ask(self, worker: str, epoch: int = 0) -> Turn:
        had = self.turns.pop(worker, None)
        finished = None
        if had is not None:
            needs = self.units[had.unit].needs
            finished = Finished(
                unit=had.unit, files=files_of(needs, had.serial + 1), num_edges=3, loss=1.5
            )
        self.numbers[worker] += 1
        turn = self.locks.turn(worker, self.numbers[worker], epoch, finished)
        if turn.kind == "train":
            self.turns[worker] = turn
        return turn

    def held(self) -> list[Part]:
        return [p for turn in self.turns.values() for p in self.units[turn.unit].needs]


@pytest.mark.parametrize("is_anchored", [False, True])
@pytest.mark.parametrize(("partitions", "workers"), [(4, "ab"), (8, "abcd"), (5, "ab")])
def test_every_unit_is_trained_once_and_no_partition_twice_at_a_time(
    partitions: int, workers: str, is_anchored: bool
) -> None:
    units = units_of(partitions)
    locks = BucketLocks({}, 0, is_anchored=is_anchored)
    walk = Walk(locks, units, workers)
    for epoch in range(2):
        locks.begin_epoch(epoch, units)
        trained, serials, together = list[int](), list[int](), 0
        for worker in itertools.islice(itertools.cycle(workers), 1000):
            turn = walk.ask(worker, epoch)
            if turn.kind == "over":
                break
            if turn.kind == "train":
                trained.append(turn.unit)
                serials.append(turn.serial)
            assert len(walk.held()) == len(set(walk.held()))
            together = max(together, len(walk.turns))
        assert sorted(trained) == list(range(len(units)))
        assert min(b - a for a, b in itertools.pairwise(serials)) >= NUM_FILES
        assert together == len(workers)
        finished, files, _ = locks.outcome()
        assert len(finished) == len(units)
        assert len(files) == partitions
        assert locks.progress() == (3 * len(units), 1.5 * len(units))


def test_what_is_held_is_kept_where_it_can_be() -> None:
    units = units_of(4)
    locks = BucketLocks({}, 0, is_anchored=False)
    locks.begin_epoch(0, units)
    walk = Walk(locks, units, "a")
    needs = [units[walk.ask("a").unit].needs for _ in units]
    loads = [len(now - before) for before, now in itertools.pairwise(needs)]
    assert max(loads) == 1  # of two, one is there
    assert sum(loads) == 6
    assert walk.ask("a").kind == "over"


def test_what_is_read_ahead_is_nobodys_and_comes_next_where_it_can() -> None:
    units = [EpochUnit(needs=frozenset(pair)) for pair in [(A, B), (C, D), (B, C), (A, D)]]
    locks = BucketLocks(files_of([A, B, C, D], 0), 10, is_anchored=False)
    locks.begin_epoch(0, units)
    walk = Walk(locks, units, "ab")
    first = walk.ask("a")
    assert (first.unit, first.ahead) == (0, files_of([C], 0))  # nobody has C or D
    assert walk.ask("b").ahead == {}  # B and A are locked
    assert walk.ask("a").kind == "wait"  # b trains what it read
    assert walk.ask("b").unit == 3  # as near as the other one, where a has C
    last = walk.ask("a")
    assert (last.unit, last.ahead) == (2, {})
    assert last.files == {**files_of([B], 11), **files_of([C], 15)}  # that C is old


def test_two_workers_do_not_read_the_same_ahead() -> None:
    units = units_of(8)
    locks = BucketLocks(files_of([("node", k) for k in range(8)], 0), 10)
    locks.begin_epoch(0, units)
    walk = Walk(locks, units, "abc")
    for worker in itertools.islice(itertools.cycle("abc"), 60):
        turn = walk.ask(worker)
        ahead = [part for each in walk.turns.values() for part in each.ahead]
        assert len(ahead) == len(set(ahead))
        assert not set(turn.ahead) & set(walk.held())
        assert len(turn.ahead) <= 1


def test_a_partition_trained_before_comes_first_as_in_pbg() -> None:
    units = [EpochUnit(needs=frozenset(pair)) for pair in [(A, B), (C, D), (B, C)]]
    locks = BucketLocks({}, 0)
    locks.begin_epoch(0, units)
    walk = Walk(locks, units, "ab")
    assert walk.ask("a").unit == 0
    assert walk.ask("b").kind == "wait"  # C and D were never trained
    assert walk.ask("a").unit == 2
    assert walk.ask("b").kind == "wait"
    assert walk.ask("a").unit == 1
    apart = [EpochUnit(needs=frozenset({A})), EpochUnit(needs=frozenset({B}))]
    locks = BucketLocks({}, 0)
    locks.begin_epoch(0, apart)
    walk = Walk(locks, apart, "a")
    assert [walk.ask("a").kind for _ in range(3)] == ["train", "train", "over"]


def test_partitions_whose_other_ends_all_workers_train_begin_side_by_side() -> None:
    """Users in partitions, places in one: rows of places are what users have in common."""
    units = [EpochUnit(needs=frozenset({part}), has_shared=True) for part in (A, B)]
    locks = BucketLocks({}, 0)
    locks.begin_epoch(0, units)
    walk = Walk(locks, units, "ab")
    assert [walk.ask(name).unit for name in "ab"] == [0, 1]


def test_a_lost_unit_is_trained_again_on_the_files_from_before() -> None:
    units = units_of(2)[:2]
    before = files_of([A, B], 0)
    locks = BucketLocks(before, 7)
    locks.begin_epoch(0, units)
    walk = Walk(locks, units, "ab")
    first = walk.ask("a")
    assert first.files == files_of([A], 0)
    assert walk.ask("b").kind == "wait"
    locks.forget("a")
    again = walk.ask("b")
    assert (again.unit, again.files) == (first.unit, first.files)
    assert again.serial > first.serial
    assert walk.ask("a").kind == "lost"  # it was given up, and says more
    assert locks.progress() == (0, 0.0)
    locks.forget("nobody")


def test_a_call_that_comes_again_is_answered_as_before() -> None:
    units = units_of(2)
    locks = BucketLocks({}, 0)
    locks.join("a")
    locks.begin_epoch(0, units)
    first = locks.turn("a", 1, 0)
    assert locks.turn("a", 1, 0) is first
    done = Finished(
        unit=first.unit, files=files_of(units[first.unit].needs, 1), num_edges=3, loss=1.0
    )
    second = locks.turn("a", 2, 0, done)
    assert locks.turn("a", 2, 0, done) is second
    assert locks.progress() == (3, 1.0)
    with pytest.raises(ClusterError, match=f"gave back unit {first.unit}, expected"):
        locks.turn("a", 3, 0, done)


def test_files_go_once_nothing_refers_to_them() -> None:
    """Those of the last checkpoint stay until the next one."""
    units = [EpochUnit(needs=frozenset({A}))] * 3
    locks = BucketLocks(files_of([A], 0), 10)
    locks.begin_epoch(0, units)
    walk = Walk(locks, units, "a")
    assert [walk.ask("a").drop for _ in range(4)] == [(), (), ("0.11",), ("0.15",)]
    assert locks.outcome()[1] == files_of([A], 19)
    locks.hold()
    locks.committed()
    locks.begin_epoch(1, units, done=[0, 1])
    assert walk.ask("a").kind == "over"  # of the epoch before
    assert walk.ask("a", 1).unit == 2
    assert walk.ask("a", 1).drop == ()


def test_files_stay_that_a_checkpoint_is_about_to_list() -> None:
    units = [EpochUnit(needs=frozenset({A}))] * 4
    locks = BucketLocks(files_of([A], 0), 10)
    locks.begin_epoch(0, units)
    walk = Walk(locks, units, "a")
    walk.ask("a")
    walk.ask("a")
    finished, files, _ = locks.hold()
    assert ([unit.unit for unit in finished], files) == ([0], files_of([A], 11))
    assert walk.ask("a").drop == ()  # 0.11 is superseded, and about to be listed
    locks.committed()
    assert walk.ask("a").drop == ("0.15",)  # nobody lists it
    assert walk.ask("a").drop == ("0.19",)


def test_phases_follow_each_other() -> None:
    units = [EpochUnit(needs=frozenset({part}), phase=k) for k, part in enumerate([A, B])]
    locks = BucketLocks({}, 0, is_anchored=False)
    locks.begin_epoch(0, units)
    walk = Walk(locks, units, "ab")
    assert walk.ask("a").unit == 0
    assert walk.ask("b").kind == "wait"
    assert walk.ask("a").unit == 1
