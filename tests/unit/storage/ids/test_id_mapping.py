"""Ids to numbers and back: partition-major, ordered, for any kind of id and any budget."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from graphsys.core.errors import ConfigError, InputError
from graphsys.kernels.cpu import hashing
from graphsys.storage.ids import integer_ids, string_ids
from graphsys.storage.ids.id_mapping import Assignment, NodeNumbering
from graphsys.storage.scratch import Scratch


def batches_of(kind: str, rng: np.random.Generator) -> list[Any]:
    numbers = [rng.integers(0, 300, 400) for _ in range(4)]
    if kind == "dense":
        return numbers
    if kind == "sparse":
        return [x * 30_744_573_456_182_586 for x in numbers]
    return [pa.array([f"n{x}" if x else "" for x in batch.tolist()]) for batch in numbers]


def values_of(batch: Any) -> npt.NDArray[Any]:
    return batch if isinstance(batch, np.ndarray) else np.array(batch.to_pylist(), object)


def number(
    batches: list[Any], folder: Path, budget: int = 10**9, **options: Any
) -> tuple[NodeNumbering, npt.NDArray[Any]]:
    numbering = NodeNumbering("node", Scratch(folder, budget))
    for batch in batches:
        numbering.add(batch, weight=1)
    defaults = {"partitioner": "hash", "num_partitions": 1, "order": "original", "seed": 0}
    numbering.finish(**{**defaults, **options})
    num_parts = len(numbering.offsets) - 1
    ids = [key for part in range(num_parts) for key in numbering.ids(part).to_pylist()]
    dtype = object if numbering.id_type == "large_string" else np.int64
    return numbering, np.array(ids, dtype=dtype)


@pytest.mark.parametrize("kind", ["dense", "sparse", "text"])
@pytest.mark.parametrize("shard_bits", [None, 3])
@pytest.mark.parametrize("budget", [10**9, 0])
@pytest.mark.parametrize("order", ["degree", "original", "auto"])
def test_every_id_has_one_number_and_the_stream_comes_back(
    kind: str,
    shard_bits: int | None,
    budget: int,
    order: str,
    tmp_path: Path,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if shard_bits is not None:
        for stream in (integer_ids.IntegerIds, string_ids.StringIds):
            monkeypatch.setattr(stream, "_choose_shard_bits", lambda *_: shard_bits)
    batches = batches_of(kind, rng)
    numbering, ids = number(batches, tmp_path, budget, num_partitions=3, order=order)
    distinct = set(np.concatenate([values_of(batch) for batch in batches]).tolist())
    assert set(ids.tolist()) == distinct
    assert len(ids) == len(distinct) == numbering.num_nodes
    for batch, numbers in zip(batches, numbering.batches(), strict=True):
        assert (ids[numbers] == values_of(batch)).all()


@pytest.mark.parametrize("kind", ["dense", "sparse", "text"])
def test_degree_order_falls_inside_each_partition(
    kind: str, tmp_path: Path, rng: np.random.Generator
) -> None:
    batches = batches_of(kind, rng)
    numbering, ids = number(batches, tmp_path, num_partitions=3, order="degree")
    stream = np.concatenate([values_of(batch) for batch in batches]).tolist()
    degrees = numbering.degrees()
    assert degrees.tolist() == [stream.count(key) for key in ids.tolist()]
    for begin, end in zip(numbering.offsets[:-1], numbering.offsets[1:], strict=True):
        assert (np.diff(degrees[begin:end].astype(np.int64)) <= 0).all()


def test_original_order_is_ascending_for_integers(tmp_path: Path) -> None:
    for ids in ([5, 3, 9, 3], [5 * 2**50, 3, 9 * 2**50]):
        _, found = number([np.array(ids)], tmp_path)
        assert found.tolist() == sorted(set(ids))


def test_original_order_is_first_appearance_for_strings(tmp_path: Path) -> None:
    _, found = number([pa.array(["b", "a"]), pa.array(["c", "a", ""])], tmp_path)
    assert found.tolist() == ["b", "a", "c", ""]


def test_auto_takes_degree_order_for_hubs_and_not_for_even_degrees(tmp_path: Path) -> None:
    numbering = NodeNumbering("node", Scratch(tmp_path, 10**9))
    leaves = np.arange(1, 2001) * 10**12
    numbering.add(np.zeros(2000, np.int64), weight=1)
    numbering.add(leaves, weight=1)
    numbering.sample(np.zeros(2000, np.int64), leaves)
    options: dict[str, Any] = {"partitioner": "hash", "num_partitions": 1, "seed": 0}
    numbering.finish(order="auto", **options)
    assert numbering.order == "degree"
    assert numbering.ids(0)[0].as_py() == 0
    even, _ = number([np.arange(100)], tmp_path, order="auto")
    assert even.order == "original"


def test_auto_keeps_local_ids(tmp_path: Path) -> None:
    """A chain with one hub near its neighbors: skewed, but the ids carry locality."""
    src = np.arange(20_000)
    dst = np.minimum(src + 1, 19_999)
    dst[100:150] = 120
    numbering = NodeNumbering("node", Scratch(tmp_path, 10**9))
    numbering.add(src, weight=1)
    numbering.add(dst, weight=1)
    numbering.sample(src, dst)
    numbering.finish(partitioner="hash", num_partitions=1, order="auto", seed=0)
    assert numbering.order == "original"


def test_ids_of_node_tables_count_no_degree(tmp_path: Path) -> None:
    numbering = NodeNumbering("node", Scratch(tmp_path, 10**9))
    numbering.add(np.array([7, 8]), weight=0)
    numbering.add(np.array([8, 8]), weight=1)
    numbering.finish(partitioner="hash", num_partitions=1, order="original", seed=0)
    assert numbering.degrees().tolist() == [0, 2]


def test_more_partitions_than_nodes(tmp_path: Path) -> None:
    numbering, ids = number([np.array([3])], tmp_path, num_partitions=7)
    assert len(numbering.offsets) == 8
    assert ids.tolist() == [3]


@pytest.mark.parametrize("dtype", ["i4", "i8", "u4", "u8", "u1"])
def test_integer_ids_of_any_width_are_the_same_nodes(dtype: str, tmp_path: Path) -> None:
    _, ids = number([np.array([3, 1], dtype), np.array([1, 2], np.int64)], tmp_path)
    assert ids.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (np.array([1, -5]), "negative id -5"),
        (np.array([2**63], np.uint64), r"9223372036854775808, above 2\^63-1"),
        (np.array([1.5]), "float64, expected integers or strings"),
        (pa.array([1.5]), "double, expected integers or strings"),
        (pa.array([b"x"]), "binary, expected integers or strings"),
        (pa.array(["a", None]), "1 missing ids"),
        (pa.array([1, None]), "1 missing ids"),
    ],
)
def test_ids_that_cannot_be_are_refused(ids: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        number([ids], tmp_path)


def test_integers_and_strings_do_not_mix(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="both integer and string ids"):
        number([np.array([1]), pa.array(["1"])], tmp_path)


def test_an_unknown_order_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="order: got 'random', expected one of auto"):
        number([np.array([1])], tmp_path, order="random")


def test_dictionaries_may_hold_unused_repeated_and_null_entries(tmp_path: Path) -> None:
    entries = pa.array(["unused", "a", "a", "b", None])
    odd = pa.DictionaryArray.from_arrays(pa.array([1, 2, 3, 1], pa.int8()), entries)
    numbering, ids = number([odd, pa.chunked_array([["b"], ["c"]])], tmp_path)
    assert ids.tolist() == ["a", "b", "c"]
    assert [batch.tolist() for batch in numbering.batches()] == [[0, 0, 1, 0], [1, 2]]


@pytest.mark.parametrize("kind", ["integers", "strings", "strings of one hash"])
def test_nodes_keep_the_places_they_are_given(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    ids = pa.array(rng.permutation(5000) * 3)
    if kind != "integers":
        ids = ids.cast(pa.large_string())
    if kind == "strings of one hash":
        monkeypatch.setattr(hashing, "hash_strings", lambda _, __, out: out.fill(7))
    else:  # a table of hashes takes 200 bytes a node
        monkeypatch.delattr(pc, "index_in")
    numbering = NodeNumbering("node", Scratch(tmp_path, 1 << 24))
    batch = ids.take(pa.array(rng.permutation(5000)))
    numbering.add(batch.to_numpy() if kind == "integers" else batch, weight=1)
    parts = np.repeat(np.arange(2, dtype=np.uint32), 2500)
    numbering.finish(
        partitioner="hash",
        num_partitions=2,
        order="original",
        seed=0,
        assigned=Assignment(ids=ids, parts=parts, ranks=np.arange(5000, dtype=np.uint64)),
    )
    found = pa.concat_arrays([numbering.ids(0), numbering.ids(1)])
    assert found.to_pylist() == ids.to_pylist()
