"""What the tests of this folder share: an S3 server and buckets, an open cluster."""

from collections.abc import Iterator

import pytest

from graphsys.distributed.cluster import Cluster, connected
from tests.buckets import bucket as bucket
from tests.buckets import object_server as object_server
from tests.buckets import one_try as one_try


@pytest.fixture(scope="module")
def two_workers() -> Iterator[None]:
    """Have the runs of a module start their workers in one cluster, not in one each."""
    with connected(Cluster.parse("local:2")):
        yield
