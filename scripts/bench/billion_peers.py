"""Steps of case ``billion`` that others do: DuckDB's degrees and components, PBG's epoch.

    python -m bench.billion_peers edges GRAPH FOLDER
    python -m bench.billion_peers degrees|wcc FOLDER MEMORY
    python -m bench.billion_peers pbg FOLDER SCALE PARTITIONS

``edges`` writes a store's edges as Parquet and loads them into a database of DuckDB's:
questions are asked of its own format. Each prints seconds of the question alone, and checks
the answer against what graphsys wrote into the same folder; PyTorch-BigGraph, in its own
environment, trains the same number of edges of the same generator with the same settings.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from bench.child import in_child
from bench.environments import peer_python

DATABASE = "edges.duckdb"
THREADS = 2


def edges(graph: Path, folder: Path) -> dict[str, Any]:
    """Load the edges of a store into a new database, through Parquet."""
    import duckdb

    parquet = folder / "edges.parquet"
    num_edges = _write_parquet(graph, parquet)
    (folder / DATABASE).unlink(missing_ok=True)
    began = time.perf_counter()
    with duckdb.connect(str(folder / DATABASE)) as base:
        base.execute(f"SET threads={THREADS}")
        base.execute("CREATE TABLE edges AS SELECT * FROM read_parquet(?)", [str(parquet)])
    parquet.unlink()
    return {"seconds": time.perf_counter() - began, "edges": num_edges}


def _write_parquet(graph: Path, path: Path) -> int:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    import graphsys as gs

    num_edges = 0
    with gs.open(graph) as opened:
        [edge_type], [node_type] = opened.edge_types, opened.node_types
        offsets = opened.offsets(node_type)
        schema = pa.schema({"src": pa.int64(), "dst": pa.int64()})
        with pq.ParquetWriter(path, schema) as writer:
            for i, j in opened.buckets(edge_type):
                bucket = opened.bucket(edge_type, i, j)
                for at in range(0, bucket.num_edges, 1 << 22):
                    some = slice(at, at + (1 << 22))
                    src = bucket.src[some].astype(np.int64) + offsets[i]
                    dst = bucket.dst[some].astype(np.int64) + offsets[j]
                    writer.write_table(pa.table({"src": src, "dst": dst}, schema=schema))
                    num_edges += len(src)
    return num_edges


def degrees(folder: Path, memory: str) -> dict[str, Any]:
    """Count the edges of every node, in and out, as ``degree_statistics`` does."""
    with _opened(folder, memory) as base:
        began = time.perf_counter()
        base.execute("""CREATE TEMP TABLE degrees AS
            SELECT id, sum(outs)::BIGINT AS out_degree, sum(ins)::BIGINT AS in_degree FROM (
                SELECT src AS id, count(*) AS outs, 0 AS ins FROM edges GROUP BY src
                UNION ALL
                SELECT dst, 0, count(*) FROM edges GROUP BY dst) GROUP BY id""")
        seconds = time.perf_counter() - began
        found = base.execute("SELECT count(*), max(out_degree) FROM degrees").fetchall()
        _compare(base, folder / "degree_statistics.parquet", found[0])
    return {"seconds": seconds, "nodes": found[0][0]}


def _compare(base: Any, ours: Path, found: tuple[int, int]) -> None:
    """Compare the nodes that have edges and the largest out-degree with our table's."""
    names = [
        row[0]
        for row in base.execute(
            "SELECT name FROM parquet_schema(?)", [str(ours)]
        ).fetchall()
    ]
    out, into = (next(n for n in names if n.startswith(way)) for way in ("out", "in"))
    known = base.execute(
        f"SELECT count(*), max({out}) FROM read_parquet(?) WHERE {out} + {into} > 0",
        [str(ours)],
    ).fetchall()[0]
    if tuple(known) != tuple(found):
        sys.exit(f"error: degrees: DuckDB finds {found}, graphsys {known}")


def wcc(folder: Path, memory: str) -> dict[str, Any]:
    """Find weak components: least labels of the neighbors that changed, until none does."""
    with _opened(folder, memory) as base:
        began, rounds = time.perf_counter(), 0
        base.execute("""CREATE TEMP TABLE labels AS
            SELECT DISTINCT id, id AS label FROM (
                SELECT src AS id FROM edges UNION ALL SELECT dst FROM edges)""")
        base.execute("CREATE TEMP TABLE changed AS SELECT * FROM labels")
        while base.execute("SELECT count(*) FROM changed").fetchall()[0][0]:
            rounds += 1
            base.execute("""CREATE OR REPLACE TEMP TABLE changed AS
                WITH sent AS (
                    SELECT dst AS id, label FROM edges JOIN changed ON src = changed.id
                    UNION ALL
                    SELECT src, label FROM edges JOIN changed ON dst = changed.id),
                best AS (SELECT id, min(label) AS label FROM sent GROUP BY id)
                SELECT best.id, best.label FROM best JOIN labels USING (id)
                WHERE best.label < labels.label""")
            base.execute("""UPDATE labels SET label = changed.label FROM changed
                WHERE labels.id = changed.id""")
        seconds = time.perf_counter() - began
        nodes, found = base.execute(
            "SELECT count(*), count(DISTINCT label) FROM labels"
        ).fetchall()[0]
        known, total = base.execute(
            "SELECT count(DISTINCT value), count(*) FROM read_parquet(?)",
            [str(folder / "wcc.parquet")],
        ).fetchall()[0]
    if known != found + total - nodes:  # nodes without edges are in no row of the edges
        sys.exit(f"error: wcc: DuckDB finds {found} components, graphsys {known}")
    return {"seconds": seconds, "rounds": rounds, "components": known}


def _opened(folder: Path, memory: str) -> Any:
    import duckdb

    base = duckdb.connect(str(folder / DATABASE))
    base.execute(f"SET threads={THREADS}")
    base.execute(f"SET temp_directory='{folder / 'duckdb-spill'}'")
    if memory:
        base.execute(f"SET memory_limit='{memory}'")
    return base


def pbg(folder: Path, scale: int, partitions: int) -> dict[str, Any]:
    """Train PyTorch-BigGraph an epoch, and say seconds of its loop with its files' time."""
    import shutil

    from bench.billion_steps import DIM, EDGE_FACTOR
    from bench.cases import embedding_inputs as inputs

    python = peer_python("torchbiggraph")
    if python is None:
        sys.exit("error: no environment: scripts/bench/peer_environments torchbiggraph")
    data, out = folder / "pbg-data", folder / "pbg"
    for old in (data, out):
        shutil.rmtree(old, ignore_errors=True)
    # the writer holds all edges: in a process that has ended when PBG starts
    in_child(
        "bench.billion_peers:write_pbg",
        scale=scale,
        edge_factor=EDGE_FACTOR,
        folder=str(data),
        partitions=partitions,
    )()
    config = inputs.pbg_config(
        data, out, partitions=partitions, dim=DIM, chunk=50, workers=THREADS
    )
    outcome = in_child(
        "bench.cases.embedding_peer:train",
        python=python,
        pss=True,
        config=str(inputs.write_config(data, config)),
    )()
    shutil.rmtree(data)
    result = outcome.result
    return {
        "seconds": outcome.seconds + result["figures"]["io_s"],
        "edges": result["num_edges"],
        "loss": result["loss"],
        "peak_bytes": outcome.peak_bytes,
    }


def write_pbg(scale: int, edge_factor: int, folder: str, partitions: int) -> None:
    """Write the graph as PyTorch-BigGraph's importer does."""
    from bench.cases import embedding_inputs as inputs

    inputs.write_pbg(inputs.HeldOut(scale, edge_factor, 0), Path(folder), partitions)


def main(what: str, *given: str) -> None:
    """Run a step and print what it found as JSON."""
    if what == "edges":
        told = edges(Path(given[0]), Path(given[1]))
    elif what == "pbg":
        told = pbg(Path(given[0]), int(given[1]), int(given[2]))
    else:
        told = {"degrees": degrees, "wcc": wcc}[what](Path(given[0]), given[1])
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
