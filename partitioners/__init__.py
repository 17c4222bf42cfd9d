"""Partitioners: which partition of its type a node lives in."""

if __name__ == "partitioners":
    raise ImportError(
        "this is the source folder of graphsys.partitioners; "
        "take the repository root off sys.path"
    )

from graphsys.partitioners import greedy as greedy
from graphsys.partitioners import hash as hash
from graphsys.partitioners import metis as metis
from graphsys.partitioners import random as random
from graphsys.partitioners import range as range
from graphsys.partitioners.base import PARTITIONERS as PARTITIONERS
from graphsys.partitioners.base import Partitioner as Partitioner
from graphsys.partitioners.base import get_partitioner as get_partitioner
from graphsys.partitioners.names import check_partitioner as check_partitioner
from graphsys.partitioners.names import is_stream_partitioner as is_stream_partitioner
from graphsys.partitioners.names import partitioner_names as partitioner_names
from graphsys.partitioners.stream import STREAM_PARTITIONERS as STREAM_PARTITIONERS
from graphsys.partitioners.stream import NodeStream as NodeStream
from graphsys.partitioners.stream import StreamPartitioner as StreamPartitioner
from graphsys.partitioners.stream import get_stream_partitioner as get_stream_partitioner
