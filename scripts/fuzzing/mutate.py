"""Mutations of files: bytes, tokens, lines, lengths, and pieces of other seeds."""

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from fuzzing.seeds import Seed

TOKENS: Final = (
    *(b"0", b"-1", b"1", b"2", b"3", b"4", b"7", b"00", b"+5", b"1.5", b"-0.0", b"1e400"),
    *(b"9223372036854775807", b"9223372036854775808", b"18446744073709551616"),
    *(b"4294967296", b"2147483647", b"1000000", b"1e-320", b"nan", b"inf", b"-Infinity"),
    *(b"0.1234567890123456789012345678901234567890", b"1_000", b"0x10", b"1e", b".", b"e5"),
    *(b" ", b"\t", b"\n", b"\r\n", b"\r", b",", b";", b"|", b'"', b'""', b"#", b"%"),
    *(b"\0", b"\xff", b"\xc3", b"\xc3\xa9", b"\xef\xbb\xbf", b"\xff\xfe", b"\x1a", b"\x0b"),
    *(b"src dst\n", b"src,dst\n", b"id", b"null", b"true", b"[*]", b"_", b"=", b"..", b"/"),
)
_NUMBER: Final = re.compile(rb"\d+")
_MAX_BYTES: Final = 1 << 16


def _bytes(data: bytearray, draw: random.Random) -> None:
    for _ in range(draw.choice((1, 1, 2, 8))):
        place = draw.randrange(len(data))
        if draw.random() < 0.5:
            data[place] ^= 1 << draw.randrange(8)
        else:
            data[place] = draw.randrange(256)


def _token(data: bytearray, draw: random.Random) -> None:
    place = draw.randrange(len(data) + 1)
    stop = place if draw.random() < 0.6 else place + draw.randrange(1, 9)
    data[place:stop] = draw.choice(TOKENS) * draw.choice((1, 1, 1, 2, 50))


def _number(data: bytearray, draw: random.Random) -> None:
    found = list(_NUMBER.finditer(bytes(data)))
    if found:
        match = draw.choice(found)
        near = int(match[0][:15]) + draw.choice((-1, 1, 2))
        new = draw.choice((*TOKENS[:22], str(near).encode()))
        data[match.start() : match.end()] = new


def _cut(data: bytearray, draw: random.Random) -> None:
    begin = draw.randrange(len(data))
    if draw.random() < 0.3:
        del data[begin:]
    else:
        del data[begin : begin + draw.choice((1, 2, 5, 20, 200))]


def _repeat(data: bytearray, draw: random.Random) -> None:
    begin = draw.randrange(len(data))
    piece = data[begin : begin + draw.choice((1, 3, 10, 40))]
    data[begin:begin] = piece * draw.choice((1, 2, 30, 500))


def _lines(data: bytearray, draw: random.Random) -> None:
    lines = bytes(data).split(b"\n")
    first, second = draw.randrange(len(lines)), draw.randrange(len(lines))
    kind = draw.randrange(5)
    if kind == 0:
        lines[first], lines[second] = lines[second], lines[first]
    elif kind == 1:
        del lines[first]
    elif kind == 2:
        lines.insert(second, lines[first])
    elif kind == 3:
        lines[first] += draw.choice((b" ", b"\t", b",", b"")) + lines[second]
    else:
        fields = lines[first].split()
        draw.shuffle(fields)
        lines[first] = draw.choice((b" ", b"\t", b",")).join(fields)
    data[:] = b"\n".join(lines)


_MUTATIONS: Final = (
    _bytes,
    _token,
    _token,
    _number,
    _number,
    _cut,
    _repeat,
    _lines,
    _lines,
)


def mutate(seeds: Sequence[Seed], draw: random.Random) -> Seed:
    """Return a seed of which one file, sometimes more, was changed or left out."""
    seed = draw.choice(seeds)
    files = dict(seed.files)
    names = sorted(files)
    for _ in range(draw.choice((1, 1, 1, 2))):
        name = draw.choice(names)
        if len(names) > 1 and draw.random() < 0.03:
            files.pop(name, None)
            continue
        data = bytearray(files.get(name, b""))
        if draw.random() < 0.05:
            other = draw.choice(sorted(draw.choice(seeds).files.values()))
            data[draw.randrange(len(data) + 1) :] = other[draw.randrange(len(other)) :]
        for _ in range(draw.choice((1, 1, 2, 3, 6))):
            draw.choice(_MUTATIONS)(data, draw) if data else None
        files[name] = bytes(data[:_MAX_BYTES])
    return replace(seed, files=files)
