"""Small GraphAr archives and icebug folders: our own writers' files, and strangers'."""

import functools
import io
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fuzzing.seeds import Seed

_PERSON: Final = """type: person
chunk_size: 2
prefix: vertex/person/
property_groups:
  - properties:
      - {name: id, data_type: int64, is_primary: true}
    file_type: csv
  - properties:
      - {name: first, data_type: string, is_primary: false}
      - {name: born, data_type: date, is_primary: false}
    file_type: FILE_TYPE
version: gar/v1
"""
_KNOWS: Final = """src_type: person
edge_type: knows
dst_type: person
chunk_size: 2
src_chunk_size: 2
dst_chunk_size: 2
directed: false
prefix: edge/person_knows_person/
adj_lists:
  - {ordered: true, aligned_by: dst, file_type: csv}
property_groups:
  - properties:
      - {name: since, data_type: int32, is_primary: false}
    file_type: csv
version: gar/v1
"""
_PEOPLE: Final = {
    "csv": ("first,born\nAda,1815-12-10\n007,\n", "first,born\nCleo,1990-01-01\n"),
    "json": (
        '{"first": "Ada", "born": 1}\n{"first": "007", "born": 2}\n',
        '{"first": "Cleo", "born": 3}\n',
    ),
}
_SCHEMA: Final = """CREATE NODE TABLE Person(age INT32, `key` STRING, PRIMARY KEY(`key`));
CREATE NODE TABLE City(id INT64, PRIMARY KEY (id)) WITH (storage = '');
CREATE REL TABLE `livesIn` (FROM Person TO City, since INT32) WITH (storage = '');
"""


def _stranger(file_type: str) -> Seed:
    """Return an archive as other writers make them, in files of text."""
    first, second = _PEOPLE[file_type]
    at = "edge/person_knows_person/ordered_by_dest"
    pair = "_graphArSrcIndex,_graphArDstIndex\n"
    files = {
        "people.graph.yml": "name: people\nvertices:\n  - person.vertex.yml\n"
        "edges:\n  - knows.edge.yml\nversion: gar/v1\n",
        "person.vertex.yml": _PERSON.replace("FILE_TYPE", file_type),
        "knows.edge.yml": _KNOWS,
        "vertex/person/id/chunk0": "_graphArVertexIndex,id\n0,70\n1,71\n",
        "vertex/person/id/chunk1": "_graphArVertexIndex,id\n2,72\n",
        "vertex/person/first_born/chunk0": first,
        "vertex/person/first_born/chunk1": second,
        f"{at}/adj_list/part0/chunk0": f"{pair}1,0\n2,0\n",
        f"{at}/adj_list/part0/chunk1": f"{pair}1,1\n",
        f"{at}/since/part0/chunk0": "since\n1999\n2001\n",
        f"{at}/since/part0/chunk1": "since\n2003\n",
    }
    counts = {"vertex/person/vertex_count": 3, f"{at}/vertex_count": 3}
    counts |= {f"{at}/edge_count0": 3, f"{at}/edge_count1": 0}
    found = {name: text.encode() for name, text in files.items()}
    found |= {name: count.to_bytes(8, "little") for name, count in counts.items()}
    return Seed(found, (".",))


_EDGES: Final = "src,dst,weight,time,note\na,b,0.5,1,x\nb,c,2,2,y\nc,a,2,3,\nd,d,1,4,z\n"


def _ours(format: str, *, has_features: bool) -> Seed:
    """Return what an export writes: directed edges with columns, or nodes with features."""
    from graphsys.datasets import open_source
    from graphsys.facade.graph import Graph
    from graphsys.interop.graph_files import write_graph
    from graphsys.storage.ingest.ingest import ingest

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        read = folder / ("g.npz" if has_features else "g.csv")
        (folder / "g.csv").write_text(_EDGES)
        np.savez(
            folder / "g.npz",
            edges=np.array([[0, 1], [1, 2], [2, 0], [3, 3]]),
            node_features=np.eye(4, 3, dtype=np.float32),
            node_labels=np.array([0, 1, 1, 2]),
        )
        ingest(open_source(read), folder / "g", partitions=2).graph.close()
        write_graph(Graph(folder / "g"), folder / "files", format=format)
        return Seed(_files_in(folder / "files"), (".",))


def _files_in(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder; the hidden list of what is ours is no input."""
    return {
        str(it.relative_to(folder)): it.read_bytes()
        for it in sorted(folder.rglob("*"))
        if it.is_file() and not it.name.startswith(".")
    }


def _disk() -> Seed:
    """Return a folder of icebug as other writers make them."""
    tables: dict[str, dict[str, Any]] = {
        "nodes_person": {"age": pa.array([3, 4, None], pa.int32()), "key": ["a", "b", "c"]},
        "nodes_city": {"id": [70, 71]},
        "indices_livesin": {
            "target": pa.array([0, 1, 1], pa.uint64()),
            "since": pa.array([2000, 2001, 2002], pa.int32()),
        },
        "indptr_livesin": {"ptr": pa.array([0, 2, 2, 3], pa.uint64())},
    }
    files = {"schema.cypher": _SCHEMA.encode()}
    for name, columns in tables.items():
        stream = io.BytesIO()
        pq.write_table(pa.table(columns), stream, compression="none", use_dictionary=False)
        files[f"{name}.parquet"] = stream.getvalue()
    return Seed(files, (".",))


@functools.cache  # what exports write takes a second, and each case begins with it
def graphar_seeds() -> list[Seed]:
    """Return archives in CSV, JSON and Parquet."""
    written = [_ours("graphar", has_features=it) for it in (True, False)]
    return [_stranger("csv"), _stranger("json"), *written]


@functools.cache
def icebug_seeds() -> list[Seed]:
    """Return folders of icebug-disk."""
    written = [_ours("networkit", has_features=it) for it in (True, False)]
    return [_disk(), *written]
