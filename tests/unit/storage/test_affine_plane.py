"""Affine planes: lines of a class are parallel, two points share one line."""

import numpy as np
import pytest

from graphsys.storage.grouped.affine_plane import ORDERS, parallel_classes


@pytest.mark.parametrize("order", ORDERS)
def test_each_two_points_are_on_one_line(order: int) -> None:
    classes = parallel_classes(order)
    assert classes.shape == (order + 1, order, order)
    met = np.zeros((order**2, order**2), dtype=np.int64)
    for lines in classes:
        assert np.array_equal(np.sort(lines.ravel()), np.arange(order**2))
        for line in lines:
            met[np.ix_(line, line)] += 1
    assert np.array_equal(met, 1 + order * np.eye(order**2, dtype=np.int64))
