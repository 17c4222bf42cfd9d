"""Every partitioner of ours keeps the public contract; tests/meta demands it."""

import sys

import numpy as np
import pytest

from graphsys.core.errors import (
    BudgetError,
    ConfigError,
    MissingDependencyError,
    UnknownNameError,
)
from graphsys.partitioners import (
    NeedsMemory,
    check_partitioner,
    get_partitioner,
    get_stream_partitioner,
    is_stream_partitioner,
)
from graphsys.partitioners.base import adapt
from graphsys.partitioners.testing import (
    EdgeStream,
    PartitionerContract,
    clustered_graph,
    draw_ids,
)


class TestHash(PartitionerContract):
    name = "hash"


class TestRandom(PartitionerContract):
    name = "random"


class TestRange(PartitionerContract):
    name = "range"


class TestLdg(PartitionerContract):
    name = "ldg"


class TestFennel(PartitionerContract):
    name = "fennel"


class TestReldg(PartitionerContract):
    name = "reldg"


class TestRefennel(PartitionerContract):
    name = "refennel"


class TestBuckets(PartitionerContract):
    name = "buckets"


class TestMetis(PartitionerContract):
    name = "metis"

    def make(self):  # type: ignore[no-untyped-def]  # skips where it is not installed
        pytest.importorskip("pymetis")
        return super().make()


class TestKahip(PartitionerContract):
    name = "kahip"

    def make(self):  # type: ignore[no-untyped-def]  # skips where it is not installed
        pytest.importorskip("kahip")
        return super().make()


@pytest.mark.parametrize("name", ["hash", "random", "range"])
def test_sizes_are_those_of_a_fair_draw(name: str) -> None:
    hashes, ranks = draw_ids(100_000)
    sizes = np.bincount(get_partitioner(name)(hashes, ranks, 8, 0), minlength=8)
    # six standard deviations of a fair draw: 12,500 +- 627
    assert abs(sizes - 12_500).max() < 630


def test_random_depends_on_the_seed_and_hash_does_not() -> None:
    hashes, ranks = draw_ids(1000)

    def differs(name: str) -> bool:
        call = get_partitioner(name)
        return bool((call(hashes, ranks, 4, 0) != call(hashes, ranks, 4, 1)).any())

    assert differs("random")
    assert not differs("hash")


def test_range_keeps_neighbors_in_the_original_order_together() -> None:
    hashes, ranks = draw_ids(100)
    parts = get_partitioner("range")(hashes, ranks, 4, 0)
    assert (np.diff(parts[np.argsort(ranks)].astype(np.int64)) >= 0).all()
    assert np.bincount(parts).tolist() == [25, 25, 25, 25]


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    for look in (get_partitioner, get_stream_partitioner, check_partitioner):
        with pytest.raises(
            UnknownNameError, match=r"'rnage'.*hash.*random, range.*'range'"
        ):
            look("rnage")


def test_a_partitioner_asked_for_as_the_other_kind_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"'reldg' needs the neighbors.*take hash"):
        get_partitioner("reldg")
    with pytest.raises(ConfigError, match=r"'hash' looks at ids alone"):
        get_stream_partitioner("hash")
    assert is_stream_partitioner("metis")
    assert not is_stream_partitioner("hash")
    assert not is_stream_partitioner("nothing")


@pytest.mark.parametrize("found", [lambda graph, seed: None, object(), 3])
def test_what_cannot_be_called_as_a_partitioner_is_refused(found: object) -> None:
    with pytest.raises(ConfigError, match=r"takes \(hashes, ranks, .*or \(stream, num_par"):
        adapt(found)


@pytest.mark.parametrize(
    ("name", "package", "extra"), [("metis", "pymetis", "all"), ("kahip", "kahip", "kahip")]
)
def test_a_missing_package_is_named_with_its_extra(
    name: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    said = rf"{package} is needed and not installed; pip install 'graphsys\[{extra}\]'"
    with pytest.raises(MissingDependencyError, match=said):
        get_stream_partitioner(name)(clustered_graph(), 2, 0)


def test_kahip_refuses_more_than_it_can_count() -> None:
    pytest.importorskip("kahip")
    stream = EdgeStream(2, [(0, 1)])
    stream.degrees = np.array([2**31, 2**31])
    with pytest.raises(BudgetError, match=r"counts in 32 bits.*4294967296 ends.*reldg"):
        get_stream_partitioner("kahip")(stream, 2, 0)


@pytest.mark.parametrize("name", ["metis", "kahip", "buckets"])
def test_those_that_hold_the_graph_say_what_it_takes(name: str) -> None:
    partitioner = get_stream_partitioner(name)
    assert isinstance(partitioner, NeedsMemory)
    assert partitioner.memory_bytes(0, 1000) >= 4000
    assert not isinstance(get_stream_partitioner("reldg"), NeedsMemory)
