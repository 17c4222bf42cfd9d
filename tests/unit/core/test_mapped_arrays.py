"""Advice on mapped files never touches other memory."""

import mmap
from pathlib import Path
from typing import Any

import numpy as np

from graphsys.core.memory import MappedArrays


def mapped(path: Path, values: np.ndarray[Any, Any], *, prot: int) -> np.ndarray[Any, Any]:
    path.write_bytes(values.tobytes())
    with path.open("r+b") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), 0, prot=prot), dtype=values.dtype)


def resident_pages(array: np.ndarray[Any, Any]) -> int:
    """Return the kilobytes of an array's mapping that this process has mapped."""
    begin = array.ctypes.data
    found = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first = line.split(maxsplit=1)[0]
        if "-" in first and not first.endswith(":"):
            low, high = (int(text, 16) for text in first.split("-"))
            found = low <= begin < high
        elif found and first == "Rss:":
            return int(line.split()[1])
    return 0


def test_pages_are_fetched_and_given_back(tmp_path: Path) -> None:
    values = np.arange(1 << 18, dtype=np.int64)
    array = mapped(tmp_path / "a", values, prot=mmap.PROT_READ)
    advice = MappedArrays()
    advice.add([array])
    assert resident_pages(array) == 0
    advice.expect(array, "in sequence")
    advice.fetch(array[: len(array) // 2])
    assert resident_pages(array) >= 1024
    advice.give_back(array)
    assert resident_pages(array) == 0
    np.testing.assert_array_equal(array, values)


def test_advice_survives_a_mapping_cut_in_two(tmp_path: Path) -> None:
    array = mapped(tmp_path / "a", np.zeros(1 << 18), prot=mmap.PROT_READ)
    first = MappedArrays()
    first.add([array])
    first.expect(array[: 1 << 17], "scattered")  # two regions from now on
    second = MappedArrays()
    second.add([array])
    second.fetch(array)
    assert resident_pages(array[1 << 17 :]) >= 1024


def test_memory_that_is_no_mapped_file_keeps_its_data(tmp_path: Path) -> None:
    anonymous = np.arange(1 << 18, dtype=np.int64)
    private = mapped(tmp_path / "b", anonymous, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    advice = MappedArrays()
    advice.add([anonymous, private])
    for array in (anonymous, private):
        advice.give_back(array)
        np.testing.assert_array_equal(array, np.arange(1 << 18))
