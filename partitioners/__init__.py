"""Partitioners: which partition of its type a node lives in."""

if __name__ == "partitioners":
    raise ImportError(
        "this is the source folder of graphsys.partitioners; "
        "take the repository root off sys.path"
    )

from graphsys.partitioners import hash as hash
from graphsys.partitioners import random as random
from graphsys.partitioners import range as range
from graphsys.partitioners.base import PARTITIONERS as PARTITIONERS
from graphsys.partitioners.base import Partitioner as Partitioner
from graphsys.partitioners.base import get_partitioner as get_partitioner
