"""Memory: a budget stated, kept by work that was planned, refused with what works.

What counts is RssAnon + RssShmem of the process; pages of mapped files belong to the
page cache and are not counted.
"""

import ctypes
import mmap
import os
import re
import tempfile
import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import BudgetError, ConfigError

_UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
    "K": 2**10,
    "M": 2**20,
    "G": 2**30,
    "T": 2**40,
}


def parse_bytes(text: int | str) -> int:
    """Read an amount of memory: ``"4GB"`` (10**9), ``"512MiB"`` (2**20), ``1024``.

    Raises:
        ConfigError: not a positive amount with a known unit.

    Examples:
        >>> parse_bytes("1.5GB"), parse_bytes("512MiB"), parse_bytes(7)
        (1500000000, 536870912, 7)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(text))
    unit = _UNITS.get(match.group(2).upper()) if match else None
    if match is None or unit is None or float(match.group(1)) * unit < 1:
        raise ConfigError(f"memory: got {text!r}, expected an amount such as 4GB or 512MiB")
    return int(float(match.group(1)) * unit)


def format_bytes(amount: float) -> str:
    """Write an amount of memory in the largest binary unit that fits.

    Examples:
        >>> format_bytes(3 * 2**29), format_bytes(12)
        ('1.5 GiB', '12 B')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(amount) < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def resident_bytes() -> int:
    """Return RssAnon + RssShmem of this process now, in bytes."""
    total = 0
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(("RssAnon:", "RssShmem:")):
            total += int(line.split()[1]) * 1024
    return total


def available_bytes() -> int:
    """Return the memory that new work can take without swapping, in bytes."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


class MemoryMeter:
    """Samples the resident memory while its block runs.

    Attributes:
        peak_bytes: The largest sample so far, in bytes.
    """

    def __init__(self, interval_s: float = 0.02) -> None:
        self.peak_bytes = 0
        self._interval_s = interval_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> "MemoryMeter":
        self.peak_bytes = resident_bytes()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        self.peak_bytes = max(self.peak_bytes, resident_bytes())

    def _sample(self) -> None:
        while not self._stop.wait(self._interval_s):
            self.peak_bytes = max(self.peak_bytes, resident_bytes())


_M_ARENA_MAX = -8  # glibc's malloc.h


def share_one_heap() -> None:
    """Let all threads started from now on allocate from one heap, where glibc is used.

    With a heap for each thread, what one thread frees another cannot use, and a pipeline
    of threads holds up to twice its data. Large arrays are few, so threads do not queue.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)


_M_TRIM_THRESHOLD = -1  # glibc's malloc.h
_M_MMAP_THRESHOLD = -3


def return_large_blocks(kept_bytes: int = 1 << 20) -> None:
    """Let blocks of so many bytes or more go back to the system when they are freed.

    By itself glibc keeps what is freed, up to 32 MiB a block, once such a block was used:
    a plan of the memory would have to count it twice. For the whole process, for good.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, kept_bytes)
        mallopt(_M_TRIM_THRESHOLD, kept_bytes)


def release_free_memory() -> None:
    """Give freed memory back to the system, where glibc is used."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def keep_to_budget(kept_bytes: int = 1 << 20) -> None:
    """Have what is freed go back to the system, so that a plan of the memory holds.

    For the whole process, for good: one heap for all threads, large blocks and Arrow's
    buffers straight from the system. Called where a budget was stated; without one what is
    kept for the next array saves time.

    Args:
        kept_bytes: Smaller blocks stay for the next array of their size.
    """
    import pyarrow as pa

    share_one_heap()
    return_large_blocks(kept_bytes)
    pa.set_memory_pool(pa.system_memory_pool())
    release_free_memory()


_POPULATE_READ = 22  # Linux 5.14: read the pages and map them
_PAGE = mmap.PAGESIZE
_ADVICE: dict[str, int] = {
    "anyhow": mmap.MADV_NORMAL,
    "in sequence": mmap.MADV_SEQUENTIAL,
    "scattered": mmap.MADV_RANDOM,
}
ReadOrder = Literal["anyhow", "in sequence", "scattered"]


class MappedArrays:
    """Tells the system which parts of mapped files are wanted next and which no more.

    Advice is given only for arrays that lie in files mapped for reading; for memory of any
    other kind, where dropping pages would drop data, the calls do nothing.

    """

    def __init__(self) -> None:
        self._wholes: list[tuple[int, int]] = []
        self._madvise = getattr(ctypes.CDLL(None), "madvise", None)
        if self._madvise is not None:
            self._madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

    def add(self, arrays: Iterable[npt.NDArray[Any]]) -> None:
        """Note arrays of which slices will be named."""
        spans = _mapped_spans()
        for array in arrays:
            begin, end = _span(array)
            if any(low <= begin and end <= high for low, high in spans):
                self._wholes.append((begin, end))

    def fetch(self, array: npt.NDArray[Any]) -> None:
        """Read the pages of an array and map them; returns when they are there."""
        self._advise(array, _POPULATE_READ)

    def give_back(self, array: npt.NDArray[Any]) -> None:
        """Unmap the pages of an array; they stay in the page cache while there is room."""
        self._advise(array, mmap.MADV_DONTNEED)

    def expect(self, array: npt.NDArray[Any], order: ReadOrder) -> None:
        """Say how an array will be read, for what the system reads around a page.

        In sequence it reads megabytes ahead, scattered just the page; after a pass at
        random through a mapping it would go on reading single pages, unless told.
        """
        self._advise(array, _ADVICE[order])

    def _advise(self, array: npt.NDArray[Any], advice: int) -> bool:
        begin, end = _span(array)
        is_known = any(low <= begin and end <= high for low, high in self._wholes)
        if self._madvise is None or not is_known or begin == end:
            return False
        begin = begin // _PAGE * _PAGE
        return bool(self._madvise(begin, end - begin, advice) == 0)


def _span(array: npt.NDArray[Any]) -> tuple[int, int]:
    low, high = np.lib.array_utils.byte_bounds(array)
    return int(low), int(high)


def _mapped_spans() -> list[tuple[int, int]]:
    """Return where files are mapped that this process may only read."""
    spans: list[tuple[int, int]] = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, rights, _, _, inode = line.split(maxsplit=5)[:5]
        if inode != "0" and rights.startswith("r-"):
            low, high = (int(text, 16) for text in span.split("-"))
            if spans and spans[-1][1] == low:  # one file, with other advice from here on
                low = spans.pop()[0]
            spans.append((low, high))
    return spans


_METER_S = 0.002
_KEPT_BYTES = 8 << 20
"""Blocks of questions and candidates take less, and are made anew all the time."""
_VARIES = 20
"""A process takes one part in so many more or less from one time to the next."""


def stated_budget(memory: int | str | None) -> int | None:
    """Return a budget in bytes, None where none was stated.

    Where one is, what the process frees goes back to the system from now on.

    Raises:
        ConfigError: not an amount of memory.
    """
    if memory is None:
        return None
    budget = parse_bytes(memory)
    keep_to_budget(_KEPT_BYTES)
    return budget


def metered() -> AbstractContextManager[MemoryMeter]:
    """Meter a step of a rehearsal, which begins with what the process must have."""
    release_free_memory()
    return MemoryMeter(_METER_S)


def require_budget(what: str, needed: int, budget: int | None) -> None:
    """Check that work fits a budget.

    Args:
        what: The work.
        needed: Bytes that it takes at its peak, the process itself included.
        budget: Bytes allowed; None: no limit.

    Raises:
        BudgetError: It does not; the message names an amount that works.
    """
    if budget is not None and needed > budget:
        raise too_small(what, needed, budget)


def too_small(what: str, needed: int, budget: int, why: str = "") -> BudgetError:
    """Return the refusal of a budget; it names one that works.

    Args:
        what: The work.
        needed: Bytes that it takes in the smallest way.
        budget: Bytes allowed.
        why: What is said of the amount, if anything.
    """
    smallest = needed * (_VARIES + 1) // _VARIES
    amount = rounded(smallest)
    error = BudgetError(
        f"memory: {what} needs {format_bytes(smallest)}{why}, got "
        f"{format_bytes(budget)}; give --memory {amount} (memory={amount!r}) or more"
    )
    error.smallest = smallest
    return error


def rounded(amount: int) -> str:
    """Write an amount of memory that is enough, in whole megabytes.

    Examples:
        >>> rounded(2_000_001)
        '3MB'
    """
    return f"{-(-amount // 10**6)}MB"


def scratch_folder() -> str:
    """Return ``$TMPDIR``, or ``/var/tmp``: ``/tmp`` is often memory itself."""
    if os.environ.get("TMPDIR") or not os.access("/var/tmp", os.W_OK):
        return tempfile.gettempdir()
    return "/var/tmp"


def scratch_is_memory() -> bool:
    """Whether files of :func:`scratch_folder` are memory themselves, and count as it."""
    kinds = {}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, place, kind = line.split()[:3]
        kinds[place] = kind
    folder = os.path.realpath(scratch_folder())
    while folder not in kinds and folder != "/":
        folder = os.path.dirname(folder)
    return kinds.get(folder) in ("tmpfs", "ramfs")
