"""Values at some places of a column of chunks: what Arrow's take gives, without a copy."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsys.storage.ids.mapped_gather import taken


@given(
    sizes=st.lists(st.integers(0, 200), max_size=5),  # mostly few of many are taken
    picks=st.lists(st.floats(0, 0.999), max_size=20),
    is_text=st.booleans(),
)
def test_takes_what_arrow_takes(
    sizes: list[int], picks: list[float], is_text: bool
) -> None:
    kind = pa.large_string() if is_text else pa.int64()
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(int).tolist()
    chunks = [
        pa.array(range(begin, begin + size)).cast(kind)
        for begin, size in zip(first, sizes, strict=False)
    ]
    column = pa.chunked_array(chunks, type=kind)
    places = np.array([int(it * len(column)) for it in picks], dtype=np.int64)
    if not len(column):
        places = places[:0]
    found = taken(column, places)
    assert found.type == kind
    assert found.to_pylist() == column.combine_chunks().take(pa.array(places)).to_pylist()


def test_reads_only_what_is_taken() -> None:
    column = pa.chunked_array([pa.array(np.arange(100_000)) for _ in range(4)])
    whole = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(whole)
    pa.set_memory_pool(pool)
    try:
        taken(column, np.array([5, 399_999, 5]))
    finally:
        pa.set_memory_pool(whole)
    assert pool.max_memory() < 10_000


@pytest.mark.parametrize("places", [[4], [-1]])
def test_places_beyond_the_end_are_an_error(places: list[int]) -> None:
    column = pa.chunked_array([pa.array([1, 2]), pa.array([3, 4])])
    with pytest.raises(IndexError):
        taken(column, np.array(places))
