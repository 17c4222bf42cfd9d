"""What verbs, gathers and the disk cost on this machine, measured on small graphs, kept."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from graphsys.core import ownership
from graphsys.core.bandwidth import median_seconds
from graphsys.core.deps import own_version
from graphsys.core.errors import ConfigError
from graphsys.core.progress import SILENT, Progress
from graphsys.core.threads import num_cores, run_parallel
from graphsys.core.user_cache import user_cache
from graphsys.kernels.jit import jit
from graphsys.planning.probes import PROBES, Store, make_store

SCALES: Final = (12, 16)
"""Logarithms of the nodes of the graphs that are measured; 16 edges a node."""
GATHERED: Final = (1 << 20, 16 << 20, 256 << 20)
"""Sizes in bytes of the tables whose gather rates are measured."""
_DISK_BYTES: Final = 128 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """What a verb costs.

    Attributes:
        small: CPU seconds of its work on the smaller graph.
        large: On the larger one.
        parallel: Wall time by CPU time of the larger one.
        peak_bytes: Anonymous memory that it took beside the process, on the larger one.
    """

    small: float
    large: float
    parallel: float
    peak_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What was measured on a machine.

    Attributes:
        machine: Its processors and versions; a change makes the rates invalid.
        measured: When, in seconds since 1970.
        load: Load average before.
        verbs: Rates by name.
        start: CPU seconds that a process takes before and after a verb's work, by kind.
        gather: Random reads per second by size of the table in bytes.
        disk_write: Bytes per second.
        disk_read: Bytes per second, of what is not in the page cache.
    """

    machine: Mapping[str, Any]
    measured: float
    load: float
    verbs: Mapping[str, Rate]
    start: Mapping[str, float]
    gather: Mapping[int, float]
    disk_write: float
    disk_read: float


def this_machine() -> dict[str, Any]:
    """Return what rates depend on."""
    return {
        "cores": num_cores(),
        "graphsys": own_version(),
        "python": sys.version[:6],
    }


def known_rates(progress: Progress = SILENT, *, calibrate_again: bool = False) -> Rates:
    """Return the rates that were kept, or measure them: some 20 seconds.

    Args:
        progress: Told of what is measured.
        calibrate_again: Whether to measure in any case.
    """
    folder = user_cache("rates")
    path = None if folder is None else folder / "rates.json"
    if path is not None and not calibrate_again:
        kept = read_rates(path)
        if kept is not None and kept.machine == this_machine():
            return kept
    rates = calibrate_apart(progress)
    if path is not None:
        write_rates(rates, path)
    return rates


def read_rates(path: Path) -> Rates | None:
    """Return the rates of a file, or None where it is missing or of another version."""
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
        given["verbs"] = {name: Rate(**rate) for name, rate in given["verbs"].items()}
        given["gather"] = {int(size): rate for size, rate in given["gather"].items()}
        rates = Rates(**given)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return rates if rates.verbs.keys() == PROBES.keys() else None


def write_rates(rates: Rates, path: Path) -> None:
    """Keep rates in a file, whole or not at all."""
    draft = ownership.draft_of(path)
    try:
        with draft.open("x", encoding="utf-8") as file:
            json.dump(asdict(rates), file, indent=1)
        os.replace(draft, path)
    finally:
        ownership.remove_draft(draft)


def calibrate_apart(progress: Progress = SILENT) -> Rates:
    """Measure as :func:`calibrate`, in a process of its own.

    What verbs load while they are measured stays in their process; a plan made in the same
    one would count hundreds of megabytes of it in the memory of every verb.

    Raises:
        ConfigError: a verb cannot be run here.
    """
    progress.stage("measuring this machine", len(PROBES) + 3, "steps")
    with tempfile.TemporaryDirectory(prefix="graphsys-rates-") as folder:
        path, errors = Path(folder) / "rates.json", Path(folder) / "errors"
        command = [sys.executable, "-P", "-m", "graphsys.planning.rates", str(path)]
        with (
            errors.open("w", encoding="utf-8") as stderr,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr) as process,
        ):
            assert process.stdout is not None
            for _ in process.stdout:  # a line a step
                progress.advance(1)
        progress.close()
        rates = read_rates(path) if process.returncode == 0 else None
        if rates is None:
            said = errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise ConfigError(
                f"measuring this machine ended with {process.returncode} and "
                f"{said[-1] if said else 'no message'!r}, expected rates; "
                "see `graphsys doctor`"
            )
    return rates


class _Lines(Progress):
    """Tells steps to the process that waits for them."""

    def advance(self, steps: int, **figures: float) -> None:
        """Print a line a step."""
        sys.stdout.write("step\n" * steps)
        sys.stdout.flush()


def calibrate(progress: Progress = SILENT) -> Rates:
    """Measure this machine: every verb on two small graphs.

    Kernels that were never compiled are compiled first, which takes longer, once.

    Args:
        progress: Told of every verb.

    Raises:
        ConfigError: a verb cannot be run here.
    """
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="graphsys-rates-") as name:
        folder = Path(name)
        progress.stage("measuring this machine", len(PROBES) + 3, "steps")
        stores = [make_store(folder, scale) for scale in SCALES]
        verbs = {}
        for verb, probe in PROBES.items():
            verbs[verb] = _measured(probe, stores)
            progress.advance(1)
        start = _starts(stores[0])
        progress.advance(1)
        gather = {size: gather_rate(size, 3) for size in GATHERED}
        progress.advance(1)
        write, read, _ = disk_bandwidths(folder, _DISK_BYTES)
        progress.advance(1)
    progress.close()
    return Rates(
        machine=this_machine(),
        measured=time.time(),
        load=load,
        verbs=verbs,
        start=start,
        gather=gather,
        disk_write=write,
        disk_read=read,
    )


def _measured(probe: Callable[[Store], Any], stores: list[Store]) -> Rate:
    """Run a verb on both graphs, after once for its kernels."""
    from graphsys.core.memory import MemoryMeter, release_free_memory, resident_bytes

    probe(stores[0])
    seconds = []
    for store in stores:
        release_free_memory()
        base = resident_bytes()
        with MemoryMeter() as meter:
            wall, cpu = time.perf_counter(), time.process_time()
            told = probe(store)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        seconds.append((cpu, wall) if told is None else (told * num_cores(), told))
    (small, _), (large, wall) = seconds
    return Rate(
        small=small,
        large=large,
        parallel=min(wall / max(large, 1e-9), 1.0),
        peak_bytes=max(meter.peak_bytes - base, 0),
    )


def _starts(store: Store) -> dict[str, float]:
    """Return the CPU seconds of processes that have next to nothing to do."""
    graph, run = str(store.path), str(store.folder / "start")
    commands = {
        "run": ["run", "wcc", graph, "-o", f"{run}.parquet"],
        "train": ["train", "embedding", graph, "-o", run, "--dry-run"],
    }
    found = {}
    for kind, words in commands.items():
        before = os.times()
        done = subprocess.run(
            [sys.executable, "-m", "graphsys", *words],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ConfigError(
                f"graphsys {words[0]} does not run here, so that nothing can be planned: "
                f"{done.stderr.strip()[-300:]}"
            )
        after = os.times()
        found[kind] = (
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )
    return found


@jit
def _gather(table: Any, places: Any) -> Any:
    total = table[0]
    for place in places:
        total += table[place]
    return total


def gather_rate(table_bytes: int, repeats: int) -> float:
    """Read random 4-byte entries with a thread per core; return reads/s.

    Args:
        table_bytes: Size of the table that is read from.
        repeats: Of which the median counts.
    """
    rng = np.random.default_rng(0)
    table = np.ones(table_bytes // 4, dtype=np.uint32)
    places = [
        rng.integers(0, len(table), size=1 << 22, dtype=np.uint32)
        for _ in range(num_cores())
    ]
    seconds = median_seconds(
        lambda: run_parallel(lambda part: _gather(table, part), places), repeats
    )
    return sum(map(len, places)) / seconds


def disk_bandwidths(folder: Path, num_bytes: int) -> tuple[float, float, float]:
    """Write, read cold and read warm one file; return bytes/s of each.

    Args:
        folder: Where the file lies for a while.
        num_bytes: Its size.
    """
    block = np.random.default_rng(0).bytes(8 << 20)
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        began = time.perf_counter()
        for _ in range(num_bytes // len(block)):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        write = num_bytes / (time.perf_counter() - began)
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        cold = _read_seconds(file.fileno(), len(block))
        warm = _read_seconds(file.fileno(), len(block))
    return write, num_bytes / cold, num_bytes / warm


def _read_seconds(descriptor: int, block_bytes: int) -> float:
    buffer = bytearray(block_bytes)
    os.lseek(descriptor, 0, os.SEEK_SET)
    began = time.perf_counter()
    while os.readv(descriptor, [buffer]):
        pass
    return time.perf_counter() - began


if __name__ == "__main__":
    write_rates(calibrate(_Lines()), Path(sys.argv[1]))
