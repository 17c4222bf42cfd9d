from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphsys.graph.file_columns import CAN_MAP, FileColumn, map_side_by_side

pytestmark = pytest.mark.skipif(not CAN_MAP, reason="mmap(2) of Linux is used")
WORDS = np.dtype(np.uint32)


def written(folder: Path, name: str, begin: int, values: np.ndarray) -> FileColumn:
    """A file with other bytes before and behind the values."""
    path = folder / name
    path.write_bytes(b"\xff" * begin + values.tobytes() + b"\xee" * 100)
    return FileColumn(path=path, begin=begin, length=len(values))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 5000)), max_size=6),
    st.sampled_from(["uint32", "int64"]),
)
def test_columns_are_one_array(
    tmp_path: Path, sizes: list[tuple[int, int]], dtype: str
) -> None:
    kind = np.dtype(dtype)
    rng = np.random.default_rng(len(sizes))
    wanted = [rng.integers(0, 1 << 30, length).astype(kind) for _, length in sizes]
    columns = [
        written(tmp_path, f"{k}", skip * kind.itemsize, values)
        for k, ((skip, _), values) in enumerate(zip(sizes, wanted, strict=True))
    ]
    array, places = map_side_by_side(columns, kind)
    assert (np.diff(places) >= 0).all()
    assert not len(array) or not array.flags.writeable
    for place, values in zip(places.tolist(), wanted, strict=True):
        assert np.array_equal(array[place : place + len(values)], values)
    most = sum(len(values) for values in wanted) + 2 * 4096 // kind.itemsize * len(sizes)
    assert len(array) <= most


def mappings(path: Path) -> int:
    return Path("/proc/self/maps").read_text().count(str(path))


def test_pages_are_given_back_with_the_last_view(tmp_path: Path) -> None:
    columns = [written(tmp_path, name, 8, np.arange(5000, dtype=WORDS)) for name in "ab"]
    array, _ = map_side_by_side(columns, WORDS)
    view = array[10:20]
    del array
    assert mappings(tmp_path) == 2
    assert view[0] == 8
    del view
    assert mappings(tmp_path) == 0


def test_a_file_that_is_gone_or_shorter_is_an_error(tmp_path: Path) -> None:
    column = written(tmp_path, "a", 0, np.arange(9000, dtype=WORDS))
    column.path.write_bytes(b"short")
    with pytest.raises(OSError, match="shorter"):
        map_side_by_side([column], WORDS)
    column.path.unlink()
    with pytest.raises(FileNotFoundError):
        map_side_by_side([column], WORDS)
    assert mappings(tmp_path) == 0
