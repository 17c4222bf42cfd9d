"""What damaged stores advise: ``verify`` names the file, and a new ingest mends it."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import graphsys as gs
from graphsys.core.errors import CorruptStoreError
from graphsys.embedding import EmbeddingConfig
from graphsys.embedding.negatives_config import PoolConfig
from graphsys.embedding.type_configs import NodeTypeConfig
from graphsys.gnn import GnnConfig
from graphsys.storage import Graph, NodeChunk, checked_files
from graphsys.storage.checked_files import CheckedFiles
from tests.advice.case import advised
from tests.advice.conftest import Command
from tests.stores import edge_chunk, make_store

SIZE = 20
BUCKET = "gen-1/edges/edge/train/bucket-0-0.arrow"
BAGS = "gen-1/features/node/words/part-0.arrow"
INDEX = "gen-1/index/edge/out-0.arrow"
EMBED = EmbeddingConfig(dim=4, epochs=1)
WORDS = EmbeddingConfig(
    dim=4, epochs=1, node_types={"node": NodeTypeConfig(features="words")}
)
POOLS = EmbeddingConfig(dim=4, epochs=1, negatives=(PoolConfig(kind="degree", num=4),))
LINKS = GnnConfig(task="link_prediction", dim=4, epochs=1)


@pytest.fixture
def store(folder: Path) -> Path:
    """Make the graph ``g``: a ring, whose nodes have bags of words."""
    ends = np.minimum(np.arange(SIZE + 1) * 2, 2 * SIZE)
    bags = pa.ListArray.from_arrays(
        pa.array(ends, pa.int32()), pa.array(np.arange(2 * SIZE) % 7, pa.int32())
    )
    nodes = NodeChunk(ids=np.arange(SIZE), features={"words": bags})
    pairs = [(k, (k + step) % SIZE) for k in range(SIZE) for step in (1, 3)]
    make_store(folder / "g", nodes, edge_chunk(pairs)).graph.close()
    shutil.copytree(folder / "g", folder / "whole")
    return folder / "g"


def overwrite(file: Path, column: str, value: int) -> None:
    """Write a number into the middle of a column of an Arrow file, in its place."""
    mapped = pa.memory_map(str(file))
    whole = mapped.read_buffer()
    array = pa.ipc.open_file(pa.BufferReader(whole)).get_batch(0)
    found = array.column(column)
    if column in ("indptr", "indices"):  # one list each
        found = found.values
    buffer = next(it for it in found.buffers()[1:] if it is not None)
    width = 8 if pa.types.is_large_list(found.type) else found.type.bit_width // 8
    place = buffer.address - whole.address + width * (len(found) // 2)
    with file.open("r+b") as stream:
        stream.seek(place)
        stream.write(value.to_bytes(width, "little"))


def names(command: Command, verify: str, damaged: str) -> None:
    """Check that what is advised names a file, and nothing after it was restored."""
    found = command(f"{verify} g")
    assert found.code == 1
    assert damaged in found.out
    shutil.rmtree("g")
    shutil.move("whole", "g")
    assert command(f"{verify} g").code == 0


def rot(store: Path, name: str, column: str) -> None:
    """Change a file that was found whole as disks do: its times stay, as far as we look."""
    read_all(store)
    known = checked_files._cache_of(str(store.resolve())).known
    _, found = known[name]
    overwrite(store / name, column, 10**6)
    identity = CheckedFiles(store)._identity(name)
    assert identity is not None
    known[name] = identity, found


def read_all(store: Path) -> None:
    """Have every file looked at, long enough after it was written to be remembered."""
    time.sleep(0.06)
    with Graph(store) as graph:
        graph.bucket("edge", 0, 0)
        graph.features("node", 0, "words")
        graph.out_index("edge", 0)
        graph.in_index("edge", 0)


def refused_by(work: Callable[[], object]) -> str:
    """Return what is said of a damaged store."""
    with pytest.raises(CorruptStoreError) as refused:
        work()
    return str(refused.value)


def test_numbers_of_edges_that_no_node_has(store: Path, command: Command) -> None:
    rot(store, BUCKET, "dst")
    line = advised(
        refused_by(lambda: gs.embedding.train("g", EMBED, "run")),
        "graphsys/embedding/data/buckets.py",
        "run `(graphsys verify)`, then ingest again",
    )
    names(command, line[1], BUCKET)


def test_bags_that_do_not_follow_each_other(store: Path, command: Command) -> None:
    rot(store, BAGS, "words")
    line = advised(
        refused_by(lambda: gs.embedding.train("g", WORDS, "run")),
        "graphsys/embedding/rows/node_rows.py",
        "run `(graphsys verify)`, then ingest again",
    )
    names(command, line[1], BAGS)


def test_an_index_whose_rows_are_outside_of_it(store: Path, command: Command) -> None:
    rot(store, INDEX, "indptr")
    line = advised(
        refused_by(lambda: gs.embedding.train("g", POOLS, "run")),
        "graphsys/embedding/training/negative_tables.py",
        "run `(graphsys verify)`, then ingest again",
    )
    names(command, line[1], INDEX)


def test_neighbors_that_no_node_is(store: Path, command: Command) -> None:
    for name in (INDEX, INDEX.replace("out", "in")):
        rot(store, name, "indices")
    line = advised(
        refused_by(lambda: gs.gnn.train("g", LINKS, "run")),
        "graphsys/sampling/sample_builder.py",
        "run `(graphsys verify)`, then ingest again",
    )
    names(command, line[1], INDEX)


def test_a_file_with_another_byte(store: Path, command: Command) -> None:
    overwrite(store / INDEX, "indices", 1)
    done = command("run pagerank g -o ranks.csv")
    assert done.code == 2
    line = advised(
        done.said,
        "graphsys/storage/mapped_files.py",
        "run `(graphsys verify)`, then ingest again",
    )
    names(command, line[1], INDEX)
    assert command("run pagerank g -o ranks.csv").code == 0


@pytest.mark.parametrize("change", ["gone", "cut"])
def test_a_file_that_is_not_whole(store: Path, command: Command, change: str) -> None:
    file = store / BUCKET
    if change == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-9])
    done = command("info g")
    line = advised(
        done.said,
        "graphsys/storage/opening.py",
        "run `(graphsys verify)`, then ingest again or restore the file",
    )
    names(command, line[1], BUCKET)
    assert command("info g").code == 0
