"""Formats that are not read as they are, and what makes one that is of them."""

from pathlib import Path
from typing import Final

from graphsys.core.errors import InputError
from graphsys.datasets.base import base_name

_SQLITE: Final = (
    "write its table of edges, sqlite3 -header -csv FILE 'SELECT * FROM TABLE' > NEW.csv "
    "(sqlite3 FILE .tables lists them)"
)
_ARRAYS: Final = "write it as Parquet or CSV"
_PICKLE: Final = (
    "load it, and give the graph (of NetworkX, SciPy, PyG) or the table (of pandas) to "
    "gs.ingest in Python"
)
_HINTS: Final = {
    ".sif": (
        "pass --format triples if every line has three names, else write a line an edge, "
        "awk -F'\\t' '{if(NF<2)n=split($0,f,/ +/);else n=split($0,f);"
        'for(i=3;i<=n;i++)print f[1]"\\t"f[2]"\\t"f[i]}\' FILE > NEW.txt, and pass '
        "--format triples; nodes without edges are left out"
    ),
    ".md": (
        "write the table's columns, sed -E '/^[-|:+= ]+$/d; s/^ *\\| *//; s/ *\\| *$//; "
        "s/ *\\| */|/g' FILE > NEW.csv"
    ),
    ".dot": "write the graph as GML, gv2gml FILE > NEW.gml (of Graphviz)",
    ".gv": "write the graph as GML, gv2gml FILE > NEW.gml (of Graphviz)",
    ".xlsx": "save the sheet as CSV",
    ".xls": "save the sheet as CSV",
    ".lgl": (
        "write a line an edge, awk '/^#/{s=$2;next}{print s,$0}' FILE > NEW.txt, and pass "
        "--undirected"
    ),
    ".tgf": "leave the nodes out, sed '1,/^#/d' FILE > NEW.txt",
    ".npy": (
        'write pairs as text, python -c "import numpy,sys; a=numpy.load(sys.argv[1]); '
        "numpy.savetxt(sys.argv[2], a if a.shape[1]==2 else a.T, '%s')\" FILE NEW.txt"
    ),
    ".g6": 'write its edges, python -c "import networkx,sys; networkx.write_edgelist('
    'networkx.read_graph6(sys.argv[1]), sys.argv[2], data=False)" FILE NEW.txt, and pass '
    "--undirected",
    ".s6": 'write its edges, python -c "import networkx,sys; networkx.write_edgelist('
    'networkx.read_sparse6(sys.argv[1]), sys.argv[2], data=False)" FILE NEW.txt, and pass '
    "--undirected",
    ".xgmml": "export the network as GraphML or cyjs from Cytoscape",
    ".dl": "write the graph as GraphML, for example by igraph",
    ".sqlite": _SQLITE,
    ".sqlite3": _SQLITE,
    ".db": _SQLITE,
    ".h5": _ARRAYS,
    ".hdf5": _ARRAYS,
    ".pt": "load it with torch, and give the object (of PyG) to gs.ingest in Python",
    ".pkl": _PICKLE,
    ".pickle": _PICKLE,
    ".osm": "write its roads as GraphML, for example by osmnx",
    ".pbf": "write its roads as GraphML, for example by osmnx",
    ".orc": 'write it as Parquet, python -c "import pyarrow.orc as o, pyarrow.parquet as '
    'p, sys; p.write_table(o.read_table(sys.argv[1]), sys.argv[2])" FILE NEW.parquet',
    ".avro": _ARRAYS,
    ".bib": "write its references as CSV",
    ".max": "write its arcs, awk '/^a/{print $2,$3,$4}' FILE > NEW.txt",
    ".lz4": "decompress it, lz4 -d FILE NEW, and name that file",
    ".lzma": "decompress it, xz -dc --format=lzma FILE > NEW, and name that file",
    ".lzo": "decompress it, lzop -dc FILE > NEW, and name that file",
    ".br": "decompress it, brotli -dc FILE > NEW, and name that file",
    ".z": "decompress it, gzip -dc FILE > NEW, and name that file",
    ".sz": "decompress it, snzip -dc FILE > NEW, and name that file",
    ".snappy": "decompress it, snzip -dc FILE > NEW, and name that file",
    ".7z": "unpack it and name the files in it",
    ".rar": "unpack it and name the files in it",
    ".sql": "load it into a database and write its table of edges as CSV",
    ".cypher": "export the graph as CSV, as for neo4j-admin import",
    ".jsonld": "write it as N-Triples, for example with rdfpipe -o nt FILE > NEW.nt",
}


def refuse_other(path: Path) -> None:
    """Refuse a file of which the name says that it is of a format that is not read.

    Raises:
        InputError: it is, with what to do.
    """
    suffix = base_name(path)[1]
    if (hint := _HINTS.get(suffix)) is not None:
        raise InputError(f"{path}: {suffix} files are not read as they are; {hint}")
