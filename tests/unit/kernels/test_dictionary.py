"""The dictionary kernels against Python's dict, growth included."""

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsys.kernels.cpu import hashing
from graphsys.kernels.cpu.text import dictionary
from graphsys.storage.ids.string_ids import ends_to_offsets, string_buffers


def oracle(items: list[Any]) -> tuple[list[Any], list[int]]:
    """Codes in order of first appearance, by Python's dict."""
    codes: dict[Any, int] = {}
    positions = [codes.setdefault(item, len(codes)) for item in items]
    return list(codes), positions


def encode_growing(given: npt.NDArray[Any], capacity: int) -> tuple[list[int], list[int]]:
    """Encode as an encoder does: whenever the table is full, double it.

    Every third id does not count towards the degrees, as those of node tables do not.
    """
    is_counted = np.arange(len(given)) % 3 > 0
    ids = given.astype(np.uint64) | (~is_counted).astype(np.uint64) << np.uint64(63)
    codes, size, done = np.empty(len(ids), dtype=np.uint32), 0, 0
    known = np.empty(capacity * 5 // 8, dtype=np.int64)
    degrees = np.empty(len(known), dtype=np.uint32)
    table = np.full((capacity, 2), dictionary.EMPTY, dtype=np.int64)
    while True:
        done, size = dictionary.encode_integers(
            ids, table, known, size, degrees, codes, done
        )
        if done == len(ids):
            expected = np.bincount(codes[is_counted], minlength=size)
            assert degrees[:size].tolist() == expected.tolist()
            return known[:size].tolist(), codes.tolist()
        capacity *= 2
        known = np.concatenate((known[:size], np.zeros(capacity * 5 // 8 - size, np.int64)))
        degrees = np.concatenate((degrees[:size], np.zeros(len(known) - size, np.uint32)))
        table = np.full((capacity, 2), dictionary.EMPTY, dtype=np.int64)
        dictionary.insert_integers(known[:size], table)


@given(st.lists(st.integers(0, 2**63 - 1) | st.integers(0, 9), min_size=1, max_size=80))
def test_integers_get_the_codes_that_a_dict_gives(ids: list[int]) -> None:
    assert encode_growing(np.array(ids, np.int64), 4) == oracle(ids)


def test_many_integers_through_many_doublings(rng: np.random.Generator) -> None:
    ids = rng.integers(0, 5000, 20_000)
    assert encode_growing(ids, 2) == oracle(ids.tolist())


def encode_strings(
    texts: list[str], capacity: int, arena: int
) -> tuple[list[str], list[int], list[int]]:
    offsets, data = string_buffers(pa.array(texts, pa.large_string()))
    codes = np.empty(len(texts), dtype=np.uint32)
    weights = np.ones(len(texts), dtype=np.uint32)
    size, done = 0, 0
    known_offsets, known = np.zeros(1, np.int64), np.zeros(arena, np.uint8)
    degrees = np.zeros(0, np.uint32)
    while True:
        room = capacity * 5 // 8
        known_offsets = np.resize(known_offsets, room + 1)
        degrees = np.resize(degrees, room)
        table = np.full((capacity, 2), dictionary.EMPTY, dtype=np.int64)
        dictionary.insert_strings(known_offsets, known, size, table)
        done, size = dictionary.encode_strings(
            offsets, data, weights, table, known_offsets, known, size, degrees, codes, done
        )
        if done == len(texts):
            break
        capacity *= 2
        known = np.concatenate((known, np.zeros(len(known), np.uint8)))
    found = [known[a:b].tobytes().decode() for a, b in pairwise(known_offsets[: size + 1])]
    return found, codes.tolist(), degrees[:size].tolist()


TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=60)


@given(TEXTS)
def test_strings_get_the_codes_that_a_dict_gives(texts: list[str]) -> None:
    known, codes, degrees = encode_strings(texts, 4, 8)
    assert (known, codes) == oracle(texts)
    assert degrees == [texts.count(text) for text in known]


def test_strings_of_equal_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """With Python functions in place of compiled ones, every hash can be made the same."""
    for name in ("encode_strings", "insert_strings"):
        monkeypatch.setattr(dictionary, name, getattr(dictionary, name).py_func)
    monkeypatch.setattr(dictionary, "hash_bytes", lambda data, begin, end: np.uint64(5))
    texts = ["a", "b", "aa", "", "b", "a"]
    assert encode_strings(texts, 32, 64)[:2] == oracle(texts)


@given(TEXTS, st.integers(0, 5))
def test_shards_merge_back_into_the_stream(texts: list[str], bits: int) -> None:
    offsets, data = string_buffers(pa.array(texts, pa.large_string()))
    hashes = np.empty(len(texts), np.uint64)
    hashing.hash_strings(offsets, data, hashes)
    shards = np.empty(len(texts), np.uint16)
    dictionary.shards_of_hashes(hashes, bits, shards)
    assert (shards == hashes >> np.uint64(64 - bits) if bits else shards == 0).all()
    starts, order = np.zeros(2**bits + 1, np.int64), np.empty(len(texts), np.uint32)
    dictionary.group_by_shard(shards, starts, order)
    assert order.tolist() == np.argsort(shards, kind="stable").tolist()
    assert np.diff(starts).tolist() == np.bincount(shards, minlength=2**bits).tolist()
    out = np.empty(len(texts), np.int64)
    positions = np.arange(len(texts), dtype=np.int64)
    grouped = positions[order]
    dictionary.merge_shards(shards, grouped, starts[:-1].copy(), out)
    assert (out == positions).all()


@given(TEXTS)
def test_gather_copies_strings_in_any_order(texts: list[str]) -> None:
    offsets, data = string_buffers(pa.array(texts, pa.large_string()))
    order = np.arange(len(texts))[::-1].copy()
    out_offsets = ends_to_offsets(np.diff(offsets)[order])
    out = np.empty(int(out_offsets[-1]), np.uint8)
    dictionary.gather_strings(order, offsets, data, out_offsets, out)
    assert out.tobytes().decode() == "".join(reversed(texts))


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), unique=True, min_size=2))
def test_different_strings_have_different_hashes(texts: list[str]) -> None:
    offsets, data = string_buffers(pa.array(texts, pa.large_string()))
    hashes = np.empty(len(texts), np.uint64)
    hashing.hash_strings(offsets, data, hashes)
    assert len(set(hashes.tolist())) == len(texts)


def test_hashes_are_the_same_on_every_machine() -> None:
    hashes = np.empty(3, np.uint64)
    hashing.hash_integers(np.array([0, 1, 2**63 - 1]), hashes)
    # the first is the first output of splitmix64 seeded with 0
    assert hashes[0] == 0xE220A8397B1DCDAF
    assert len(set(hashes.tolist())) == 3
