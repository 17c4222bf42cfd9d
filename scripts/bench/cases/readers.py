"""Case ``readers``: one graph written in every text format, against the edge list.

Two works for each kind of graph: ``read`` parses and throws the chunks away, ``ingest``
goes on to a store. The peer is our own edge list of the same edges with ids of the same
kind (integers, or words), and with weights where the format has them. The ratio is the
edge list's time over a format's, so that 0.77 means 1.3 times its time per edge. Names of
systems tell the bytes of an edge; MB/s is printed as it runs.
"""

import shutil
import sys
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
BASELINES = {
    "int": "edgelist",
    "weighted": "edgelist with weights",
    "words": "edgelist of words",
    "simple": "simple edgelist",
}


def works(
    *, quick: bool, folder: Path, limits: Limits, missing: list[str]
) -> Iterator[Work]:
    """Yield two works for each kind of graph."""
    del limits, missing
    scale = 15 if quick else 18
    for kind, baseline in BASELINES.items():
        base = write_input(baseline, folder / "base", scale)
        names = [name for name, form in FORMATS.items() if form.kind == kind]
        inputs = {
            name: write_input(name, folder / f"input-{k}", scale)
            for k, name in enumerate(names)
            if name != baseline
        }
        for how in ("read", "ingest"):
            yield _work(how, kind, inputs, base, folder)
        for path in folder.iterdir():
            shutil.rmtree(path)


def _work(
    how: str, kind: str, inputs: Mapping[str, Input], base: Input, folder: Path
) -> Work:
    given: dict[str, Input] = {}
    contenders = []
    for name, source in [*inputs.items(), ("", base)]:
        arguments: dict[str, Any] = {"paths": source.paths, "options": source.options}
        if how == "ingest":
            arguments["out"] = str(folder / "store")
        size = f"{source.num_bytes / source.num_edges:.1f} B an edge"
        system = f"graphsys, {name}, {size}" if name else f"edge list, {size}"
        given[system] = source
        run = in_child(f"{MODULE}:{how}", **arguments)
        contenders.append(Contender(system=system, run=run))

    def verify(results: Mapping[str, Any]) -> None:
        for system, source in given.items():
            num_edges, seconds = results[system]
            rate = source.num_bytes / seconds / 1e6
            print(f"  {system}: {rate:.0f} MB/s", file=sys.stderr)
            if num_edges != source.num_edges:
                raise WrongResultError(f"{system}: {num_edges} edges")
            if (found := checksum(source)) != source.checksum:
                raise WrongResultError(f"{system}: other edges, {found:x}")

    return Work(
        name=f"{how}, {kind} ids, {base.num_edges / 1e6:.3g}M edges",
        amount=base.num_edges,
        unit="edges/s",
        contenders=contenders,
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
    result = [num_edges, seconds[1]]
    return Outcome(seconds=seconds[1], result=result, compile_s=max(compile_s, 0))


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
    result = [num_edges, seconds[1]]
    return Outcome(seconds=seconds[1], result=result, compile_s=max(compile_s, 0))


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
