import tracemalloc

import numpy as np

from graphsys.embedding import EmbeddingConfig
from graphsys.embedding.rows.table_files import first_rows

ROWS = 150_000  # three blocks


def test_first_rows_do_not_depend_on_the_threads() -> None:
    part = ("node", 0)
    one, four = (
        first_rows(EmbeddingConfig(dim=3, threads=threads), part, ROWS)
        for threads in (1, 4)
    )
    np.testing.assert_array_equal(one, four)


def test_first_rows_are_normal_and_every_block_has_its_own() -> None:
    config = EmbeddingConfig(dim=3, init_scale=0.5)
    rows = first_rows(config, ("node", 0), ROWS)
    assert abs(rows.mean()) < 0.005
    assert abs(rows.std() - 0.5) < 0.005
    assert len(np.unique(rows[:, :2], axis=0)) == ROWS
    other = first_rows(config, ("node", 1), ROWS)
    assert not (other == rows).all(axis=1).any()


def test_rows_in_16_bits_never_take_the_memory_of_32() -> None:
    config = EmbeddingConfig(dim=64, row_dtype="bfloat16", threads=1)
    tracemalloc.start()
    try:
        rows = first_rows(config, ("node", 0), ROWS)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert rows.nbytes == 2 * 64 * ROWS
    assert peak < 1.5 * rows.nbytes
