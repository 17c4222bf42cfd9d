"""Small sound files of every format, from which cases are bred."""

import gzip
import io
import json
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import scipy.io
import scipy.sparse

from fuzzing.folders import graphar_seeds, icebug_seeds
from fuzzing.seeds import Seed


def _one(name: str, content: str | bytes, **options: Any) -> Seed:
    data = content.encode() if isinstance(content, str) else content
    return Seed({name: data}, (name,), options)


def _set(files: dict[str, str], opened: tuple[str, ...], **options: Any) -> Seed:
    return Seed({name: it.encode() for name, it in files.items()}, opened, options)


def _edgelist() -> list[Seed]:
    plain = "# SNAP\n0 1\n1\t2\n\n 2 0 # behind\n9223372036854775807 0\r\n"
    weighted = "% w\n3 4 0.5\n4 5 -1e-3\n5 3 12345678901234567890\n3 3 .25\n"
    names = "ann bob\nbob c\xe9cile\nann \u4e2d\u6587\n"
    timed = "1,2,100,x\n2,3,-5,y\n1,2,7,z\n"
    return [
        _one("g.txt", plain),
        _one("g.el", weighted),
        _one("g.tsv", names),
        _one("g.edges", timed, columns="src,dst,time,kind", separator=","),
        _one("g.txt", "src dst\n1 2\n3 4\n", skip=1, undirected=True),
        _one("g.txt.gz", gzip.compress((plain * 3).encode(), mtime=0)),
        _one("g.txt", "\ufeff7 8\n8 9\n", ids="string"),
        _one("g.txt", "1 2 0.1 3\n2 3 0.2 4\n", columns="src,dst,weight,_"),
    ]


def _csv() -> list[Seed]:
    quoted = 'src,dst,weight,note\n"a, b",c,1.5,"say ""hi"""\nc,d,2,\n"",x,nan,\n'
    return [
        _one("g.csv", "src,dst\n1,2\n2,3\n4,4\n"),
        _one("g.csv", quoted),
        _one("g.csv", "source;target;time\n5;6;12\n6;7;-1\n"),
        _one("g.csv", "buyer|shop|n\n1|2|3\n4|5|\n", columns="src=buyer,dst=shop,n"),
        _one("g.csv", "1,2,3\n4,5,6\n"),
        _one("g.csv", 'head,relation,tail\n"x",likes,y\ny,hates,"z z"\n'),
    ]


def _mtx() -> list[Seed]:
    head = "%%MatrixMarket matrix "
    return [
        _one("g.mtx", head + "coordinate real general\n% c\n3 3 2\n1 2 0.5\n3 1 -1\n"),
        _one("g.mtx", head + "coordinate pattern symmetric\n3 3 2\n2 1\n3 3\n"),
        _one("g.mtx", head + "coordinate integer skew-symmetric\n3 3 1\n2 1 7\n"),
        _one("g.mtx", head + "coordinate real general\n2 4 2\n1 4 1e3\n2 2 nan\n"),
        _one("g.mtx", head + "array real general\n2 2\n0\n1\n2\n3\n"),
        _one("g.mtx", head + "coordinate complex general\n1 1 1\n1 1 1 2\n"),
    ]


def _metis() -> list[Seed]:
    return [
        _one("g.graph", "% c\n4 4\n2 3\n1 3\n1 2 4\n3\n"),
        _one("g.graph", "3 2 001\n2 5\n1 5 3 7.5\n2 7.5\n"),
        _one("g.graph", "3 2 111 2\n1 4 5 2 9\n2 4 5 1 9 3 8\n0 1 2 2 8\n"),
        _one("g.metis", "3 1\n\n3\n2\n"),
    ]


def _gap() -> list[Seed]:
    return [
        _one("g.el", "0 1\n1 2\n2 0\n", format="gap"),
        _one("g.wel", "0 1 5\n1 2 3\n2 0 255\n"),
        _one("g.gr", "c DIMACS\np sp 4 3\na 1 2 10\na 2 3 20\na 4 1 1\n"),
        _one("g.gr", "p sp 3 2\nc in between\na 1 2 1.5\na 3 2 2\n", undirected=True),
    ]


def _triples() -> list[Seed]:
    rows = "/m/1\t/a/b\t/m/2\n/m/2\t/a/c\t/m/3\n00260881\t_hyper\t00260622\n"
    files = {"train.txt": rows, "valid.txt": rows[:16], "test.tsv": rows[16:32]}
    return [
        _set(files, (".",)),
        _one("g.txt", "1 2 3\n4 5 6\n", format="triples", ids="int"),
        _one("kg.tsv", "a\tb\tr\nb\tc\ts\n", format="triples", columns="src,dst,relation"),
    ]


def _openke() -> list[Seed]:
    files = {
        "train2id.txt": "3\n0 1 0\n1 2 1\n2 0 0\n",
        "valid2id.txt": "1\n0\t2\t1\n",
        "test2id.txt": "1\n2 1 0\n",
        "entity2id.txt": "4\n/m/a\t0\n/m/b\t1\nname c\t2\nd\t3\n",
        "relation2id.txt": "2\nr\t1\ns\t0\n",
    }
    return [_set(files, (".",)), _one("train2id.txt", "2\n5 6 7\n6 5 7\n")]


def _ldbc() -> list[Seed]:
    files = {
        "g.v": "1\n2\n5 \n",
        "g.e": "1 2 0.5\n2 5 1.25\n",
        "g.properties": "graph.g.directed = false\ngraph.g.meta.vertices = 3\n",
    }
    named = {"h.v": "a 1 x\nb 2 y\n", "h.e": "a b\nb a\n"}
    return [_set(files, ("g.v", "g.e")), _set(named, ("h.e",)), _set(named, (".",))]


def _ogb() -> list[Seed]:
    plain = {
        "raw/edge.csv": "0,1\n1,2\n3,0\n",
        "raw/num-node-list.csv": "4\n",
        "raw/num-edge-list.csv": "3\n",
        "raw/node-feat.csv": "0.5,1\n1,2\n-1,3e-1\n0,0\n",
        "raw/node-label.csv": "1\nnan\n0\n2\n",
        "raw/node_year.csv": "2013\n2014\n2015\n2016\n",
        "split/time/train.csv": "0\n2\n",
        "split/time/valid.csv": "1\n",
        "split/time/test.csv": "3\n",
    }
    typed = {
        "raw/triplet-type-list.csv": "author,writes,paper\npaper,cites,paper\n",
        "raw/num-node-dict.csv": "author,paper\n2,3\n",
        "raw/relations/author___writes___paper/edge.csv": "0,2\n1,0\n",
        "raw/relations/paper___cites___paper/edge.csv": "0,1\n",
        "raw/node-feat/paper/node-feat.csv": "1,2\n3,4\n5,6\n",
        "raw/node-label/paper/node-label.csv": "7\n8\n9\n",
        "split/time/paper/train.csv": "0\n1\n",
        "split/time/paper/test.csv": "2\n",
    }
    packed = {
        f"{name}.gz": gzip.compress(text.encode(), mtime=0) for name, text in plain.items()
    }
    return [_set(plain, (".",)), _set(typed, (".",)), Seed(packed, (".",))]


def _tables() -> list[Seed]:
    card = """directed = true
[[nodes]]
type = "author"
file = "author.txt"
columns = ["id", "name"]
separator = "tab"
encoding = "latin-1"
[[nodes]]
type = "author"
file = "label.txt"
columns = ["id", "label"]
join = true
[[nodes]]
type = "paper"
count = 3
features = { x = "x.csv" }
splits = { split = { train = "train.txt", test = "test.txt" } }
[[edges]]
type = ["author", "writes", "paper"]
file = "writes.txt"
columns = ["src", "dst", "weight"]
[[edges]]
type = ["paper", "cites", "paper"]
file = "cites.csv"
header = true
separator = "comma"
names = { src = "from", dst = "to" }
where = { kind = "a" }
"""
    files = {
        "graph.toml": card,
        "author.txt": "1\tAnn\n2\tJos\xe9\n7\tBob B\n",
        "label.txt": "1 0\n7 2\n",
        "x.csv": "0.5,1\n2,3\n4,5e1\n",
        "train.txt": "0\n",
        "test.txt": "1\n2\n",
        "writes.txt": "1 0 0.5\n2 1 1\n7 2 2\n",
        "cites.csv": "from,to,kind\n0,1,a\n1,2,b\n2,0,a\n",
    }
    lists = {
        "graph.toml": """directed = false
[[edges]]
type = ["user", "likes", "item"]
file = "train.txt"
columns = ["src", "dst[*]"]
[[edges]]
type = ["user", "likes", "item"]
file = "test.txt"
columns = ["src", "dst[*]"]
split = "test"
""",
        "train.txt": "0 1 2 3\n1 2\n2 0 3\n",
        "test.txt": "0 0\n1 3\n",
    }
    return [_set(files, ("graph.toml",)), _set(lists, ("graph.toml",))]


def _snb() -> list[Seed]:
    snb = {
        "person_0_0.csv": 'id|firstName|birthday\n933|Mahinda "M"|628646400000\n4|An|7\n',
        "place_0_0.csv": "id|name\n5|India\n",
        "person_knows_person_0_0.csv": "Person.id|Person.id|date\n933|4|2010-03-13\n",
        "person_isLocatedIn_place_0_0.csv": "Person.id|Place.id\n933|5\n4|5\n",
    }
    neo4j = {
        "people.csv": 'name,key:ID(Person),age:int,:LABEL\n"Ann, B",a,30,X\nBob,b,40,X\n',
        "cities.csv": "key:ID(City)\nparis\n",
        "lives.csv": ":START_ID(Person),since:double,:END_ID(City)\na,2001.5,paris\n",
    }
    return [_set(it, tuple(it), format="snb") for it in (snb, neo4j)]


def _planetoid() -> list[Seed]:
    def matrix(rows: int) -> Any:
        return scipy.sparse.csr_matrix(np.eye(rows, 3, dtype=np.float32))

    contents = {
        "graph": {0: [1, 2], 1: [0], 2: [0, 3], 3: [2, 3, 5], 4: [], 5: [3]},
        "x": matrix(1),
        "y": np.eye(1, 2, dtype=np.int32),
        "tx": matrix(2),
        "ty": np.eye(2, 2, dtype=np.int32),
        "allx": matrix(3),
        "ally": np.eye(3, 2, dtype=np.int32),
    }
    files = {f"ind.t.{part}": pickle.dumps(it, 3) for part, it in contents.items()}
    files["ind.t.test.index"] = b"5\n3\n"
    return [Seed(files, ("ind.t.graph",))]


def _small_graphs() -> list[Seed]:
    folder = {
        "S_A.txt": "4, 5\n5, 4\n1, 2\n2, 1\n2, 3\n3, 2\n",
        "S_graph_indicator.txt": "1\n1\n1\n2\n2\n",
        "S_graph_labels.txt": "1\n-1\n",
        "S_node_labels.txt": "7\n7\n3\n3\n0\n",
        "S_node_attributes.txt": "0.5, 1\n0, -2\n1, 1e3\n4, 5\n6, 7\n",
    }
    text = "2\n3 1\n7 2 1 2\n7 1 0\n3 1 0\n1 0\n5 0\n"
    return [_set(folder, (".",)), _one("g.txt", text, format="gin")]


def _gap_binary() -> list[Seed]:
    offsets = np.array([0, 1, 3, 4], "<i8").tobytes()
    ends = np.array([1, 0, 2, 1], "<i4").tobytes()
    weights = np.array([[1, 5], [0, 5], [2, 6], [1, 6]], "<i4").tobytes()
    head = np.array([4, 3], "<i8").tobytes()
    half = offsets + ends
    return [
        _one("g.sg", b"\0" + head + half),
        _one("g.sg", b"\1" + head + half + half),
        _one("g.wsg", b"\0" + head + offsets + weights),
    ]


def _npz() -> list[Seed]:
    sparse, arrays = io.BytesIO(), io.BytesIO()
    scipy.sparse.save_npz(sparse, scipy.sparse.csr_array(np.array([[0, 1.5], [2, 0]])))
    np.savez(
        arrays,
        edges=np.array([[0, 1], [1, 2]]),
        node_features=np.eye(3),
        node_labels=np.array([0, 1, 1]),
        train_masks=np.eye(3, dtype=bool),
    )
    return [_one("g.npz", it.getvalue()) for it in (sparse, arrays)]


def _matlab() -> list[Seed]:
    stream = io.BytesIO()
    network = scipy.sparse.csc_matrix(np.array([[0, 1.0], [1, 0]]))
    scipy.io.savemat(stream, {"network": network, "group": np.eye(2)})
    return [_one("g.mat", stream.getvalue())]


def _pbg() -> list[Seed]:
    import h5py

    files: dict[str, bytes] = {}
    for name, rows in (("0_0", [(0, 0, 1)]), ("0_1", [(1, 1, 0), (0, 0, 2)])):
        stream = io.BytesIO()
        with h5py.File(stream, "w") as file:
            file.attrs["format_version"] = 1
            for k, column in enumerate(("lhs", "rel", "rhs")):
                file[column] = np.array([row[k] for row in rows])
        files[f"edges/edges_{name}.h5"] = stream.getvalue()
    files |= {"entity_count_all_0.txt": b"2", "entity_count_all_1.txt": b"3"}
    words = {"entities": {"all": list("abcde")}, "relations": ["r", "s"]}
    files["dictionary.json"] = json.dumps(words).encode()
    return [Seed(files, ("edges",))]


def _graphbolt() -> list[Seed]:
    card = """graph:
  nodes:
    - {type: user, num: 3}
    - {type: item, num: 2}
  edges:
    - {type: "user:likes:item", format: csv, path: likes.csv}
    - {type: "user:follows:user", format: numpy, path: follows.npy}
feature_data:
  - {domain: node, type: item, name: feat, format: numpy, in_memory: false, path: f.npy}
tasks:
  - name: node_classification
    num_classes: 4
    train_set:
      - type: user
        data:
          - {name: seeds, format: numpy, path: train.npy}
          - {name: labels, format: numpy, path: label.npy}
"""
    files = {"metadata.yaml": card.encode(), "likes.csv": b"0,1\n2,0\n"}
    arrays = {
        "follows": [[0, 1], [1, 2]],
        "f": [[0.5, 1], [2, 3]],
        "train": [2],
        "label": [3],
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, values in arrays.items():
            np.save(Path(folder) / name, np.array(values))
            files[f"{name}.npy"] = (Path(folder) / f"{name}.npy").read_bytes()
    return [Seed(files, (".",))]


def _pajek() -> list[Seed]:
    vertices = '*Vertices 3\n1 "a b" 0.1 0.2 0.5 ic Red\n2 b\n'
    return [
        _one("g.net", vertices + "*Arcs\n1 2 1.5 c Blue\n*Edges\n2 3\n"),
        _one("g.net", vertices + '*Arcslist :1 "likes"\n1 2 3\n*Edgeslist\n2 3\n'),
        _one("g.net", "*Vertices 2\n*Matrix\n0 1\n2 0\n"),
    ]


def _json() -> list[Seed]:
    nodes = [{"id": "a"}, {"id": "b"}]
    edges = [{"source": "a", "target": "b", "weight": 2}]
    by_place = [{"source": 0, "target": 1}]
    elements = {"nodes": [{"data": it} for it in nodes], "edges": [{"data": edges[0]}]}
    shapes: list[Any] = [
        {"graph": {"nodes": {"a": {}, "b": {}}, "edges": edges}},
        {"directed": True, "nodes": nodes, "links": by_place},
        {"elements": elements},
    ]
    return [_one("g.json", json.dumps(shape)) for shape in shapes]


TEXT: Final[dict[str, Callable[[], list[Seed]]]] = {
    "edgelist": _edgelist,
    "csv": _csv,
    "triples": _triples,
    "metis": _metis,
    "gap": _gap,
    "mtx": _mtx,
    "tables": _tables,
    "openke": _openke,
    "ldbc": _ldbc,
    "ogb": _ogb,
    "snb": _snb,
    "planetoid": _planetoid,
    "small-graphs": _small_graphs,
    "pajek": _pajek,
    "json": _json,
}
BINARY: Final[dict[str, Callable[[], list[Seed]]]] = {
    "gap-binary": _gap_binary,
    "npz": _npz,
    "mat": _matlab,
    "pbg": _pbg,
    "graphbolt": _graphbolt,
    "graphar": graphar_seeds,
    "networkit": icebug_seeds,
}
