"""Numbers in text are rounded as Python rounds them, to the last bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsys.datasets.text.layout import ID, NUMBER, LineFormat, TextColumn
from graphsys.datasets.text.lines import parse_lines

LAYOUT = LineFormat(columns=(TextColumn("src", ID), TextColumn("weight", NUMBER)))


def parse(words: list[str]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    text = "".join(f"1 {word}\n" for word in words).encode()
    columns, _ = parse_lines(np.frombuffer(text, dtype=np.uint8), LAYOUT)
    found: np.ndarray[tuple[int], np.dtype[np.float64]] = columns["weight"]
    return found


def check(words: list[str]) -> None:
    expected = np.array([float(word) for word in words])
    found = parse(words)
    wrong = np.flatnonzero(found.view(np.uint64) != expected.view(np.uint64))
    assert not len(wrong), [words[k] for k in wrong[:5]]


@pytest.mark.parametrize("kind", ["fractions", "bits", "exponents", "ties", "plain"])
def test_many_random_numbers(kind: str, rng: np.random.Generator) -> None:
    size = 40_000
    if kind == "fractions":
        words = [repr(value) for value in rng.random(size).tolist()]
    elif kind == "bits":
        bits = rng.integers(0, 2**64, size, dtype=np.uint64).view(np.float64)
        words = [repr(value) for value in bits[np.isfinite(bits)].tolist()]
    elif kind == "exponents":
        powers = rng.integers(-345, 310, size).tolist()
        words = [f"{rng.integers(0, 10**18)}e{power}" for power in powers]
    elif kind == "ties":
        words = [f"{2 * value + 1}" for value in rng.integers(2**53, 2**54, size).tolist()]
    else:
        parts = rng.integers(0, 10**9, (size, 2)).tolist()
        words = [f"{whole}.{rest}" for whole, rest in parts]
    check(words)


def test_forms_of_writing() -> None:
    check(
        [
            "0",
            "-0",
            "0.0",
            "1",
            "-1.5",
            "+3",
            "00012",
            ".5",
            "5.",
            "1e5",
            "-.5e-3",
            "1E+2",
            "1e-400",
            "1e400",
            "0e999",
            "inf",
        ]
    )
    check(["0." + "0" * 40 + "1", "1" * 40, "9" * 19, "9" * 20, "4.9e-324", "2.2e-308"])
    check(["1.7976931348623157e308", "1.7976931348623159e308", "123456789012345678901.5"])


@given(st.floats(allow_nan=False))
def test_every_float_round_trips(value: float) -> None:
    check([repr(value), f"{value:.17e}", f"{value:.3e}"])
