"""Case ``readers``: one graph written in every text format, against the edge list.

Per format two works: ``read`` parses and throws the chunks away, ``ingest`` goes on to a
store. The peer is our own edge list of the same edges with ids of the same kind (integers;
words, where the format's ids are words): the ratio is edge-list time / time, so that 0.77
means 1.3 times its time per edge. Names of works tell the bytes of an edge.
"""

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.cases.ingest_inputs import edge_checksum
from bench.cases.readers_inputs import FORMATS, Input, write_input
from bench.child import in_child
from bench.harness import Contender, Outcome, Work, WrongResultError
from bench.limits import Limits

PEERS: dict[str, str] = {}
MODULE = "bench.cases.readers"
BASELINES = {"int": "edgelist", "words": "edgelist of words"}


def works(
    *, quick: bool, folder: Path, limits: Limits, missing: list[str]
) -> Iterator[Work]:
    """Yield two works a format; its files are deleted after them."""
    del limits, missing
    scale = 15 if quick else 18
    baselines = {
        kind: write_input(name, folder / f"base-{kind}", scale)
        for kind, name in BASELINES.items()
    }
    for name, form in FORMATS.items():
        if name in BASELINES.values():
            continue
        source = write_input(name, folder / "other", scale)
        for how in ("read", "ingest"):
            yield _work(how, name, source, baselines[form.ids], folder)
        shutil.rmtree(folder / "other")


def _work(how: str, name: str, source: Input, base: Input, folder: Path) -> Work:
    def contender(system: str, given: Input) -> Contender:
        arguments = {"paths": given.paths, "options": given.options}
        if how == "ingest":
            arguments["out"] = str(folder / "store")
        return Contender(system=system, run=in_child(f"{MODULE}:{how}", **arguments))

    def verify(results: Mapping[str, Any]) -> None:
        for system, given in ((f"graphsys, {name}", source), ("edge list", base)):
            if results[system] != given.num_edges:
                raise WrongResultError(f"{system}: {results[system]} edges")
            if (found := checksum(given)) != given.checksum:
                raise WrongResultError(f"{system}: other edges, {found:x}")

    each, other = (it.num_bytes / it.num_edges for it in (source, base))
    size = f"{source.num_edges / 1e6:.3g}M edges, {each:.1f} B each (edge list {other:.1f})"
    return Work(
        name=f"{how} {name}, {size}",
        amount=source.num_edges,
        unit="edges/s",
        contenders=[
            contender(f"graphsys, {name}", source),
            contender("edge list", base),
        ],
        verify=verify,
    )


def read(paths: Sequence[str], options: dict[str, Any]) -> Outcome:
    """Parse all files and drop what they hold; the second time counts."""
    from graphsys.datasets import open_source
    from graphsys.storage.source import EdgeChunk

    seconds = []
    for _ in range(2):
        began, num_edges = time.perf_counter(), 0
        for chunk in open_source(paths, **options).chunks():
            if isinstance(chunk, EdgeChunk):
                num_edges += len(chunk.src)
        seconds.append(time.perf_counter() - began)
    compile_s = seconds[0] - seconds[1]
    return Outcome(seconds=seconds[1], result=num_edges, compile_s=max(compile_s, 0))


def ingest(paths: Sequence[str], options: dict[str, Any], out: str) -> Outcome:
    """Ingest into a store; the second time counts."""
    from graphsys import datasets

    seconds = []
    for _ in range(2):
        shutil.rmtree(out, ignore_errors=True)
        began = time.perf_counter()
        graph = datasets.ingest(paths, out, **options).graph
        seconds.append(time.perf_counter() - began)
        num_edges = graph.num_edges
        graph.close()
    compile_s = seconds[0] - seconds[1]
    return Outcome(seconds=seconds[1], result=num_edges, compile_s=max(compile_s, 0))


def checksum(given: Input) -> int:
    """Return the checksum of the edges that a reader gives, as numbers from 0."""
    import numpy as np
    import pyarrow.compute as pc

    from graphsys.datasets import open_source
    from graphsys.storage.source import EdgeChunk

    total = 0
    for chunk in open_source(given.paths, **given.options).chunks():
        if not isinstance(chunk, EdgeChunk):
            continue
        ends = []
        for ids in (chunk.src, chunk.dst):
            if not isinstance(ids, np.ndarray):
                words = ids.dictionary
                numbers = pc.cast(pc.utf8_slice_codeunits(words, 1), "int64").to_numpy()
                ids = numbers[ids.indices.to_numpy()]
            ends.append(ids - given.first_id)
        if not given.is_directed:
            ends = [np.minimum(*ends), np.maximum(*ends)]
        total += edge_checksum(*ends)
    return total % 2**64
