"""Positions of ids: a few are hashed and the many scanned, never the other way."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from graphsys.core.errors import UnknownNameError
from graphsys.storage import lookup
from graphsys.storage.lookup import lookup_ids


def known_ids(kind: str) -> pa.ChunkedArray:
    """Return a thousand ids in three chunks, one of them empty."""
    ids = np.random.default_rng(0).permutation(5000)[:1000]
    column = pa.array(ids if kind == "int64" else [f"n{k}" for k in ids])
    column = column.cast(pa.int64() if kind == "int64" else pa.large_string())
    return pa.chunked_array([column[:300], column[300:300], column[300:]])


@pytest.mark.parametrize("kind", ["int64", "text"])
@pytest.mark.parametrize("num_asked", [0, 1, 7, 124, 126, 3000])
def test_positions_are_found_for_few_and_many(
    kind: str, num_asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "_SCANNED_AT_A_TIME", 64)  # in several pieces
    known = known_ids(kind)
    wanted = np.random.default_rng(1).integers(0, 1000, num_asked)  # some ask twice
    ids = [known[int(k)].as_py() for k in wanted]
    assert lookup_ids(known, ids, "'x'").tolist() == wanted.tolist()
    with pytest.raises(UnknownNameError, match="is not among the 1000 nodes of type"):
        lookup_ids(known, [*ids, 99_999 if kind == "int64" else "who"], "'x'")


def test_the_table_is_of_what_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, real = [], pc.index_in

    def index_in(values: Any, *, value_set: Any) -> Any:
        sizes.append(len(value_set))
        return real(values, value_set=value_set)

    monkeypatch.setattr(pc, "index_in", index_in)
    known = known_ids("int64")
    lookup_ids(known, known[:9].to_pylist(), "'x'")
    assert max(sizes) == 9  # a table of all ids takes 250 bytes for each


@pytest.mark.parametrize("numbering", ["own", "shuffled", "reversed"])
def test_one_integer_is_found_wherever_it_is(
    numbering: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether ids are the nodes' numbers or not; in several pieces and empty chunks."""
    monkeypatch.setattr(lookup, "_COMPARED_AT_A_TIME", 7)
    ids = np.arange(40, dtype=np.int64)
    if numbering == "shuffled":
        np.random.default_rng(0).shuffle(ids)
    ids = ids[::-1].copy() if numbering == "reversed" else ids
    known = pa.chunked_array([ids[:23], ids[:0], ids[23:]])
    for place, number in enumerate(ids.tolist()):
        assert lookup_ids(known, [number], "'x'").tolist() == [place]
    for number in (-1, 40, 2**63 - 1, -(2**63) + 1, 2**70):
        with pytest.raises(UnknownNameError, match="is not among the 40 nodes"):
            lookup_ids(known, [number], "'x'")


def test_one_id_among_none() -> None:
    known = pa.chunked_array([np.empty(0, np.int64)])
    with pytest.raises(UnknownNameError, match="is not among the 0 nodes"):
        lookup_ids(known, [0], "'x'")
