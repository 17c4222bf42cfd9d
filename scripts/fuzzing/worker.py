"""Tries cases of one reader in a process of its own, which may crash or be killed.

After each case: either a store that ``verify`` finds sound, or a GraphsysError of one line
that names a file of the case, and then nothing is left behind. Numba checks bounds here.
"""

import json
import os
import random
import re
import shutil
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from resource import RLIMIT_DATA, RUSAGE_SELF, getrusage, setrlimit
from typing import Any, Final

from fuzzing.corpus import BINARY, TEXT
from fuzzing.mutate import mutate
from fuzzing.seeds import Seed
from graphsys.core.errors import GraphsysError
from graphsys.datasets.opening import open_source
from graphsys.datasets.text.blocks import text_blocks
from graphsys.storage.ingest.ingest import ingest
from graphsys.storage.source import EdgeChunk, NodeChunk, Source
from graphsys.storage.verify.verify import verify

DATA_LIMIT: Final = 3 << 30
GROWTH_LIMIT: Final = 384 << 20
MOST_ROWS: Final = 2_000_000
MOST_PIECES: Final = 40_000
"""Blocks times columns: each piece is an Arrow array of its own, some 60 us."""
STATE_BYTES: Final = 256
_OUTCOMES: Final = ("accepted", "refused", "cut")


class CutError(GraphsysError):
    """A sound small file that says it has millions of nodes: read no further."""


class Limited(Source):
    """A source that ends with CutError behind MOST_ROWS rows."""

    def __init__(self, source: Source) -> None:
        self.name = source.name
        self.total_bytes = source.total_bytes
        self.is_directed = source.is_directed
        self.allows_nan = source.allows_nan
        self._source = source

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield what the source yields."""
        rows = 0
        for chunk in self._source.chunks():
            rows += len(chunk.src if isinstance(chunk, EdgeChunk) else chunk.ids)
            if rows > MOST_ROWS:
                raise CutError(f"{self.name}: more than {MOST_ROWS} rows")
            yield chunk


CASES_PER_CHILD = 5000
"""The address space, not the memory, of a process grows by some 0.4 MB an ingest."""


class WrongError(Exception):
    """What must not happen, in words."""


def make_case(reader: str, seed: int, number: int) -> tuple[Seed, random.Random]:
    """Return a case, always the same; -1, -2 ... are the sound files themselves."""
    seeds = (TEXT | BINARY)[reader]()
    draw = random.Random(f"{seed}/{reader}/{number}")
    if number < 0:
        return seeds[-1 - number], draw
    return mutate(seeds, draw), draw


def write_case(case: Seed, folder: Path) -> list[Path]:
    """Write the files of a case; return those to open."""
    for name, content in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return [folder / name for name in case.opened]


def try_case(case: Seed, draw: random.Random, folder: Path) -> str:
    """Ingest a case; return "accepted", "refused" or "cut".

    Raises:
        WrongError: the store is unsound, something is left, or the message is poor.
        Exception: whatever the reader let through.
    """
    source_folder, target = folder / "in", folder / "out"
    source_folder.mkdir()
    target.mkdir()
    paths = write_case(case, source_folder)
    blocks = max(draw.choice((16 << 20, 4096, 61, 7)), _least_block(case))
    text_blocks.__kwdefaults__["block_bytes"] = blocks  # type: ignore[index] # it has some
    options = dict(case.options, num_threads=draw.choice((1, 2)))
    partitions, coalesce = draw.choice((1, 1, 3)), draw.random() < 0.2
    before = getrusage(RUSAGE_SELF).ru_maxrss
    try:
        source = open_source(paths[0] if len(paths) == 1 else paths, **options)
        report = ingest(
            Limited(source), target / "g", partitions=partitions, coalesce=coalesce
        )
        report.graph.close()
        outcome = "accepted"
    except GraphsysError as err:
        _check_message(str(err), case, source_folder)
        outcome = "cut" if isinstance(err, CutError) else "refused"
    grown = (getrusage(RUSAGE_SELF).ru_maxrss - before) << 10
    if grown > GROWTH_LIMIT:
        raise WrongError(f"memory grew by {grown >> 20} MiB")
    _check_left(outcome, case, folder)
    return outcome


def _least_block(case: Seed) -> int:
    """Return the bytes of a block with which no file has more than MOST_PIECES."""
    contents = case.files.values()
    lines = (line for content in contents for line in content.splitlines())
    widest = max((len(re.split(rb"[\s,;|:]+", line)) for line in lines), default=1)
    longest = max(map(len, contents), default=0)
    return longest * max(widest, 100) // MOST_PIECES


def _check_message(message: str, case: Seed, folder: Path) -> None:
    names = {Path(name).name for name in (*case.files, *case.opened)} - {"."}
    if "\n" in message or "\r" in message:
        raise WrongError(f"a message of several lines: {message!r}")
    if str(folder) not in message and not any(name in message for name in names):
        raise WrongError(f"a message without a file: {message}")


def _check_left(outcome: str, case: Seed, folder: Path) -> None:
    """Compare what lies in the folders with what may lie there."""
    left = sorted(path.name for path in (folder / "out").iterdir())
    if outcome != "accepted" and left:
        raise WrongError(f"{outcome}, but left behind {left}")
    inside = (path for path in (folder / "in").rglob("*") if path.is_file())
    found = {str(path.relative_to(folder / "in")) for path in inside}
    if found != set(case.files):
        raise WrongError(f"files beside the input: {sorted(found ^ set(case.files))}")
    if outcome == "accepted":
        if left != ["g"] or not (verified := verify(folder / "out/g")).ok:
            raise WrongError(f"unsound store: {left}, {verified.problems[:2]}")
        names = sorted(path.name for path in (folder / "out/g").iterdir())
        if len(names) != 2 or names[1] != "graph.json":
            raise WrongError(f"litter in the store: {names}")


def describe_failure(err: BaseException, number: int) -> dict[str, Any]:
    """Return kind, message and place of a failure."""
    frames = traceback.extract_tb(err.__traceback__)
    ours = [it for it in frames if "/fuzzing/" not in it.filename]
    near = [it for it in ours if "/graphsys/" in it.filename] or ours
    place = f"{Path(near[-1].filename).name}:{near[-1].lineno}" if near else ""
    return {
        "kind": type(err).__name__,
        "what": str(err)[:500],
        "place": place,
        "case": number,
    }


def work(reader: str, seed: int, first: int, seconds: float, state: Path) -> None:
    """Try cases from ``first`` on; write what happened to ``state`` before each."""
    setrlimit(RLIMIT_DATA, (DATA_LIMIT, DATA_LIMIT))
    warnings.filterwarnings("error", module=r"graphsys\b")
    warnings.simplefilter("ignore", UserWarning)  # advice, such as to coalesce
    counts: Counter[str] = Counter()
    handle = os.open(state, os.O_WRONLY | os.O_CREAT)
    failures = state.with_suffix(".jsonl").open("a")
    number, began, warm_up = -len((TEXT | BINARY)[reader]()), time.monotonic(), True
    while warm_up or (
        time.monotonic() - began < seconds and number - first < CASES_PER_CHILD
    ):
        if warm_up and number == 0:
            number, began, warm_up = first, time.monotonic(), False
        line = [number, time.monotonic(), time.monotonic() - began]
        line += [counts[name] for name in _OUTCOMES]
        os.pwrite(handle, json.dumps(line).ljust(STATE_BYTES).encode(), 0)
        folder = Path(tempfile.mkdtemp(prefix="case-"))
        try:
            outcome = try_case(*make_case(reader, seed, number), folder)
            counts[outcome] += not warm_up
        except Exception as err:
            failures.write(json.dumps(describe_failure(err, number)) + "\n")
            failures.flush()
        shutil.rmtree(folder, ignore_errors=True)
        if litter := os.listdir(tempfile.gettempdir()):
            failure = describe_failure(WrongError(f"temporary files: {litter}"), number)
            failures.write(json.dumps(failure) + "\n")
            failures.flush()
            for name in litter:
                shutil.rmtree(Path(tempfile.gettempdir()) / name, ignore_errors=True)
        number += 1
    line = [number, 0, time.monotonic() - began, *(counts[name] for name in _OUTCOMES)]
    os.pwrite(handle, json.dumps(line).ljust(STATE_BYTES).encode(), 0)
