"""Polars and DuckDB at the work of an ingest: distinct ids, numbers by joins, sorted edges.

Each writes ``nodes.parquet`` (number, id) and ``edges.parquet`` (src, dst as numbers).
"""

import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet

from bench.cases.ingest_inputs import edge_checksum, numbers_of_ids


def ingest_polars(path: str, out: str, memory: str) -> dict[str, Any]:
    """Renumber with joins; Polars has no memory budget to set."""
    import polars as pl

    del memory
    target = _fresh(out)
    if path.endswith(".parquet"):
        edges = pl.scan_parquet(path)
    else:
        edges = pl.scan_csv(
            path, separator="\t", has_header=False, new_columns=["src", "dst"]
        )
    edges = edges.collect()
    nodes = (
        pl.concat([edges["src"].alias("id"), edges["dst"].alias("id")])
        .unique()
        .sort()
        .to_frame()
        .with_row_index("number")
    )
    numbered = (
        edges.lazy()
        .join(nodes.lazy().rename({"number": "s"}), left_on="src", right_on="id")
        .join(nodes.lazy().rename({"number": "d"}), left_on="dst", right_on="id")
        .select(pl.col("s").alias("src"), pl.col("d").alias("dst"))
        .sort("src", "dst")
        .collect()
    )
    nodes.write_parquet(target / "nodes.parquet", compression="uncompressed")
    numbered.write_parquet(target / "edges.parquet", compression="uncompressed")
    return {"num_edges": numbered.height, "num_nodes": nodes.height, "out": out}


def ingest_duckdb(path: str, out: str, memory: str) -> dict[str, Any]:
    """Renumber with joins, within the same memory budget."""
    import duckdb

    target = _fresh(out)
    connection = duckdb.connect(str(target / "work.duckdb"))
    connection.execute(f"SET memory_limit = '{memory}'")
    connection.execute(f"SET temp_directory = '{target}/spill'")
    if path.endswith(".parquet"):
        source = f"read_parquet('{path}')"
    else:
        source = f"read_csv('{path}', delim = '\t', header = false, names = ['src', 'dst'])"
    connection.execute(
        f"CREATE TABLE nodes AS SELECT row_number() OVER (ORDER BY id) - 1 AS number, id "
        f"FROM (SELECT src AS id FROM {source} UNION SELECT dst FROM {source})"
    )
    connection.execute(
        f"COPY (SELECT s.number AS src, d.number AS dst FROM {source} AS e "
        "JOIN nodes AS s ON e.src = s.id JOIN nodes AS d ON e.dst = d.id "
        f"ORDER BY 1, 2) TO '{target}/edges.parquet' (COMPRESSION uncompressed)"
    )
    connection.execute(
        f"COPY (FROM nodes ORDER BY number) TO '{target}/nodes.parquet' "
        "(COMPRESSION uncompressed)"
    )
    connection.close()
    counts = [
        pyarrow.parquet.ParquetFile(target / f"{name}.parquet").metadata.num_rows
        for name in ("edges", "nodes")
    ]
    return {"num_edges": counts[0], "num_nodes": counts[1], "out": out}


def checksum_of_tables(folder: Path) -> int:
    """Return the checksum of the edges in a peer's output."""
    nodes = pyarrow.parquet.read_table(folder / "nodes.parquet", columns=["id"])
    ids = numbers_of_ids(nodes["id"])
    total = 0
    for batch in pyarrow.parquet.ParquetFile(folder / "edges.parquet").iter_batches(
        1 << 21
    ):
        src, dst = batch["src"].to_numpy(), batch["dst"].to_numpy()
        total += edge_checksum(ids[src], ids[dst])
    return total % 2**64


def _fresh(out: str) -> Path:
    shutil.rmtree(out, ignore_errors=True)
    target = Path(out)
    target.mkdir(parents=True)
    return target
