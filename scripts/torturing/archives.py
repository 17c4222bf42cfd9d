"""Archives and pickles: damaged, or made to write elsewhere, to run, to fill memory."""

import gzip
import io
import pickle
import random
import resource
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from torturing.judge import Verdict, ending, tree
from torturing.processes import forked, installed
from torturing.world import World

_EDGES: Final = b"".join(b"%d\t%d\n" % (k, k * 7 % 50) for k in range(50))
_EVIL: Final = ("../evil", "/tmp/evil-graphsys", "a/../../evil", "..\\evil", "evil")
_MEMORY: Final = 6 << 30


class _Runs:
    """Pickles as a call of a program."""

    def __reduce__(self) -> Any:
        import os

        return os.system, ("touch evil",)


def _tar(draw: random.Random) -> tuple[str, bytes]:
    made, mode = io.BytesIO(), draw.choice(("w", "w:gz", "w:bz2", "w:xz"))
    with tarfile.open(fileobj=made, mode=mode) as archive:  # type: ignore[call-overload]
        for _ in range(draw.choice((1, 2, 3))):
            member = tarfile.TarInfo(
                draw.choice((*_EVIL, "train.txt", "", "x" * 300, "a\nb"))
            )
            member.type = draw.choice(
                (
                    tarfile.REGTYPE,
                    tarfile.REGTYPE,
                    tarfile.SYMTYPE,
                    tarfile.LNKTYPE,
                    tarfile.CHRTYPE,
                    tarfile.FIFOTYPE,
                    tarfile.DIRTYPE,
                )
            )
            member.linkname = draw.choice(("/etc/passwd", "../../evil", "train.txt"))
            member.size = len(_EDGES) if member.isreg() else 0
            archive.addfile(member, io.BytesIO(_EDGES) if member.isreg() else None)
    return draw.choice(("x.tgz", "x.tar.gz", "x.tar", "x.tar.bz2")), made.getvalue()


def _zip(draw: random.Random) -> tuple[str, bytes]:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", draw.choice((0, 8, 12, 14))) as archive:
        for name in draw.sample((*_EVIL, "indptr.npy", "indices.npy", "train.txt"), 3):
            archive.writestr(name, _EDGES)
    return draw.choice(("x.zip", "x.npz")), made.getvalue()


def _bomb(draw: random.Random) -> tuple[str, bytes]:
    """Pack much of nothing: lines, one line, zeros, edges."""
    one = draw.choice((b"\n", b"1", b"\0", b"1 2\n", b"#"))
    packed = gzip.compress(one * ((64 << 20) // len(one)), 1)
    return draw.choice(("x.txt.gz", "x.csv.gz", "x.mtx.gz", "x.tgz")), packed


def _pickle(draw: random.Random) -> tuple[str, bytes]:
    content = draw.choice((_Runs(), {"x": _Runs()}, [[_Runs()]]))
    name = f"ind.cora.{draw.choice(('x', 'graph', 'allx', 'y'))}"
    return draw.choice((name, "x.npy", "x.npz", "x.pkl")), pickle.dumps(content)


def _array(draw: random.Random) -> tuple[str, bytes]:
    made = io.BytesIO()
    if draw.random() < 0.5:
        np.save(made, np.array([_Runs()], dtype=object), allow_pickle=True)
    else:
        shape = draw.choice(("(4611686018427387904,)", "(-1,)", "(1000000000, 1000000000)"))
        header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}"
        made.write(
            b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
        )
    return draw.choice(("x.npy", "x.npz")), made.getvalue()


def _matrix(draw: random.Random) -> tuple[str, bytes]:
    sizes = draw.choice(("9999999999 9999999999 1", "1 1 99999999999", f"{10**4000} 1 1"))
    text = f"%%MatrixMarket matrix coordinate pattern general\n{sizes}\n1 1\n"
    return draw.choice(("x.mtx", "x.metis", "x.gr")), text.encode()


MAKERS: Final[tuple[Callable[[random.Random], tuple[str, bytes]], ...]] = (
    _tar,
    _tar,
    _tar,
    _zip,
    _bomb,
    _pickle,
    _array,
    _matrix,
)


def case(world: World, draw: random.Random, verdict: Verdict) -> str:
    """Ingest a hostile archive; nothing may come of it but a graph or a refusal."""
    name, data = draw.choice(MAKERS)(draw)
    if draw.random() < 0.5 and data:
        broken = bytearray(data)
        for _ in range(draw.choice((1, 2, 20))):
            broken[draw.randrange(len(broken))] ^= 1 << draw.randrange(8)
        data = bytes(broken[: draw.choice((len(broken), len(broken), len(broken) // 2))])
    folder = world.out / "given"
    folder.mkdir()
    (folder / name).write_bytes(data)
    before, whole = tree(folder), tree(world.case)
    what = f"archives: {name} of {len(data)} bytes"
    line = [
        "ingest",
        str(folder / name),
        "-o",
        str(world.out / "graph"),
        "--memory",
        "64MB",
    ]
    line += draw.choice(
        (
            [],
            [],
            ["--format", "edgelist"],
            ["--format", "npz"],
            ["--format", "planetoid"],
            ["--format", "csv"],
        )
    )
    is_plain = draw.random() < 0.1
    outcome = installed(line) if is_plain else forked(line, _bounded)
    verdict.count("commands")
    kind = ending(outcome)
    if kind is not None:
        verdict.fault(
            kind, f"{what}; {line[4:]}: exit {outcome.code}: {outcome.err[-900:]}"
        )
    else:
        verdict.count("refused" if outcome.code else "right")
    evil = [*world.folder.rglob("evil"), Path("/tmp/evil-graphsys"), Path("evil")]
    if found := [str(path) for path in evil if path.exists()]:
        verdict.fault("lost", f"{what}: {found} was made")
    if tree(folder) != before or tree(world.case) != whole:
        verdict.fault("lost", f"{what}: an input was changed")
    if outcome.code and (world.out / "graph").exists():
        verdict.fault("litter", f"{what}: {sorted(tree(world.out / 'graph'))[:10]} is left")
    verdict.count("cases")
    return what


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
