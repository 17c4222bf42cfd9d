"""Guards on text are the same whether a file lies in a folder or in a bucket."""

import gzip
from typing import Any

import pytest

from tests.buckets import Bucket
from tests.stores import read_file_edges
from tests.unit.datasets.test_strange_lines import STRANGE


@pytest.mark.parametrize(("text", "suffix", "kind", "message"), STRANGE)
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_guards_hold_in_objects(
    bucket: Bucket, text: str, suffix: str, kind: Any, message: str, packed: str
) -> None:
    data = text.encode()
    name = f"days/g.{suffix}{packed}"
    bucket.write(name, gzip.compress(data) if packed else data)
    expected: Any = pytest.warns if kind is UserWarning else pytest.raises
    with expected(kind, match=message):
        read_file_edges(bucket.place(name))
