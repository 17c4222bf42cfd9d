"""Partitioners: which partition of its type a node lives in."""

if __name__ == "partitioners":
    raise ImportError(
        "this is the source folder of graphsys.partitioners; "
        "take the repository root off sys.path"
    )

from graphsys.partitioners import buckets as buckets
from graphsys.partitioners import greedy as greedy
from graphsys.partitioners import hash as hash
from graphsys.partitioners import kahip as kahip
from graphsys.partitioners import metis as metis
from graphsys.partitioners import random as random
from graphsys.partitioners import range as range
from graphsys.partitioners.base import PARTITIONERS as PARTITIONERS
from graphsys.partitioners.base import NeedsMemory as NeedsMemory
from graphsys.partitioners.base import NodeStream as NodeStream
from graphsys.partitioners.base import Partitioner as Partitioner
from graphsys.partitioners.base import StreamPartitioner as StreamPartitioner
from graphsys.partitioners.base import check_partitioner as check_partitioner
from graphsys.partitioners.base import get_partitioner as get_partitioner
from graphsys.partitioners.base import get_stream_partitioner as get_stream_partitioner
from graphsys.partitioners.base import is_stream_partitioner as is_stream_partitioner
from graphsys.partitioners.base import partitioner_names as partitioner_names
