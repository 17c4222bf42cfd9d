"""The small world that every case starts from, the verbs, and their right answers."""

import contextlib
import hashlib
import io
import json
import os
import random
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from graphsys.storage import EdgeChunk, NodeChunk, Source
from torturing.judge import digest, facts
from torturing.processes import Outcome, command, forked

ALGORITHMS: Final = (
    "pagerank",
    "wcc",
    "triangle_count",
    "k_core",
    "leiden",
    "lcc",
    "bfs",
    "sssp",
)
_TRAIN: Final = ("--set", "epochs=1", "--set", "dim=8", "--set", "threads=1")
_EMBED: Final = (
    "--set",
    "deterministic=true",
    "--set",
    "batch_size=200",
    "--set",
    "num_batch_negatives=50",
    "--set",
    "num_uniform_negatives=50",
)
_LAYERS: Final = ("--set", "fanouts=[3,3]", "--set", "batch_size=32", "--set", "layers=2")
_NODES: Final = 240
STORES: Final = ("plain", "words", "groups")
RUNS: Final = ("erun", "nrun")


SPILLED: Final = "ingest-spilled"
"""A command of the worlds alone: an ingest under the least budget."""


class Many(Source):
    """Weighted edges between sparse ids, so many that they spill."""

    name = "many"

    def chunks(self) -> Iterator[EdgeChunk]:
        rng = np.random.default_rng(8)
        for _ in range(8):
            src, dst = rng.integers(0, 200_000, (2, 100_000)) * 10**12
            yield EdgeChunk(src=src, dst=dst, columns={"weight": rng.random(100_000)})


@command(SPILLED)
def ingest_spilled(arguments: list[str]) -> int:
    """Do :data:`SPILLED`: ``OUT [--overwrite]``."""
    from graphsys.core.errors import GraphsysError
    from graphsys.storage import ingest

    out, *how = arguments
    try:
        ingest(Many(), out, memory="16MiB", partitions=3, overwrite=bool(how))
    except GraphsysError as err:
        print(f"error: {err}", file=sys.stderr)
        return 2
    return 0


class Groups(Source):
    """Nodes with features, labels and splits; most edges are within a group."""

    name = "groups"
    is_directed = False

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        rng = np.random.default_rng(5)
        label = np.arange(_NODES) % 3
        split = np.array(["train", "valid", "train", "test"])[np.arange(_NODES) // 3 % 4]
        x = rng.normal(0, 0.5, (_NODES, 8)).astype(np.float32)
        x[np.arange(_NODES), label] += 1
        columns = {"label": label.astype(np.int64), "split": pa.array(split.tolist())}
        yield NodeChunk(ids=np.arange(_NODES), columns=columns, features={"x": x})
        src = rng.integers(0, _NODES, 900)
        dst = (src + 3 * rng.integers(1, 20, 900)) % _NODES
        yield EdgeChunk(src=src, dst=dst)


@dataclass(frozen=True)
class Verb:
    """A command on a store or a run.

    Attributes:
        name: For people.
        arguments: The command line; ``{of}`` is the store or run, ``{out}`` the output.
        suffix: Of the output, None where there is none.
    """

    name: str
    arguments: tuple[str, ...]
    suffix: str | None = None


def verbs_of(name: str) -> list[Verb]:
    """Return all verbs for a store or a run of the world."""
    if name in RUNS:
        verbs = [
            Verb("verify", ("verify", "{of}", "--json")),
            Verb("evaluate", ("evaluate", "{of}", "--json")),
            Verb(
                "predict", ("predict", "{of}", "-o", "{out}", *_QUESTIONS[name]), ".parquet"
            ),
        ]
        if name == "erun":
            verbs.append(Verb("nearest", ("nearest", "{of}", "w7", "-k", "5", "--json")))
            for suffix in (".parquet", ".npy", ".safetensors"):
                verbs.append(
                    Verb(f"export{suffix}", ("export", "{of}", "-o", "{out}"), suffix)
                )
        return verbs
    first = "w1" if name == "words" else "1"
    verbs = [Verb("info", ("info", "{of}", "--json"))]
    verbs.append(Verb("verify", ("verify", "{of}", "--json")))
    for each in ALGORITHMS:
        asked = ("--param", f"source={first}") if each in ("bfs", "sssp") else ()
        line = ("run", each, "{of}", "-o", "{out}", "--json", *asked)
        verbs.append(Verb(each, line, ".parquet"))
    line = ("partition", "{of}", "--partitioner", "ldg", "--partitions", "3", "-o", "{out}")
    verbs.append(Verb("partition", line, "store"))
    task = "node_classification" if name == "groups" else "link_prediction"
    embed = ("train", "embedding", "{of}", "-o", "{out}", *_TRAIN, *_EMBED)
    layers = (
        "train",
        "gnn",
        "{of}",
        "-o",
        "{out}",
        *_TRAIN,
        *_LAYERS,
        "--set",
        f"task={task}",
    )
    return [*verbs, Verb("train embedding", embed, "run"), Verb("train gnn", layers, "run")]


_QUESTIONS: Final = {"erun": ("--relation", "likes", "-k", "3"), "nrun": ()}


@dataclass
class World:
    """Stores and runs in ``case``, whole again in ``whole``; what verbs answer on them.

    Attributes:
        folder: Holds both, and outputs in ``out``.
        answers: What each verb answers on each whole store or run.
        seconds: How long it took.
    """

    folder: Path
    answers: dict[tuple[str, str], Any] = field(default_factory=dict)
    seconds: dict[tuple[str, str], float] = field(default_factory=dict)

    @property
    def case(self) -> Path:
        """Where cases play."""
        return self.folder / "case"

    @property
    def out(self) -> Path:
        """Where outputs go, empty at the start of a case."""
        return self.folder / "out"

    def build(self, *, has_answers: bool = True) -> None:
        """Make everything in this process, so that its forks have it compiled.

        Args:
            has_answers: Ask every verb, too.
        """
        shutil.rmtree(self.folder, ignore_errors=True)
        self.case.mkdir(parents=True)
        self.out.mkdir()
        _write_texts(self.case)
        from graphsys.storage import ingest

        with contextlib.redirect_stderr(io.StringIO()):
            ingest(Groups(), self.case / "groups", partitions=2)
        self._in_process("ingest", *plain_edges(self.case), "-o", str(self.case / "plain"))
        texts = [str(self.case / f"{name}.txt") for name in ("train", "valid", "test")]
        for name, parts in (("words", "2"), ("parted", "6")):
            how = ("--format", "triples", "--partitions", parts)
            self._in_process("ingest", *texts, *how, "-o", str(self.case / name))
        for store, run, verb in (
            ("words", "erun", "train embedding"),
            ("groups", "nrun", "train gnn"),
        ):
            line = next(it for it in verbs_of(store) if it.name == verb)
            self._in_process(*self.line(line, store, self.case / run))
        shutil.copytree(self.case, self.folder / "whole")
        if not has_answers:
            return
        for name in (*STORES, *RUNS):
            self.restore()
            for verb in verbs_of(name):
                self._in_process(*self.line(verb, name, self.output(verb)))
        for name in (*STORES, *RUNS):
            self.restore()
            for verb in verbs_of(name):
                outcome, answer = self.ask(name, verb)
                if outcome.code:
                    raise SystemExit(f"{outcome.arguments} fails: {outcome.err[-2000:]}")
                self.answers[name, verb.name] = answer
                self.seconds[name, verb.name] = outcome.seconds

    def restore(self) -> None:
        """Make ``case`` whole and ``out`` empty, for the next case."""
        for folder in (self.case, self.out):
            for path in (folder, *folder.rglob("*")) if folder.exists() else ():
                if path.is_dir() and not path.is_symlink():
                    path.chmod(0o755)
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.folder / "whole", self.case)
        self.out.mkdir()

    def output(self, verb: Verb) -> Path:
        """Return where a verb's output goes."""
        suffix = "" if verb.suffix in (None, "store", "run") else verb.suffix
        return self.out / f"{verb.name.replace(' ', '-').replace('.', '-')}{suffix}"

    def line(self, verb: Verb, name: str, out: Path | None = None) -> list[str]:
        """Return a verb's command line."""
        given = {"of": str(self.case / name), "out": str(out or self.output(verb))}
        return [each.format(**given) for each in verb.arguments]

    def ask(self, name: str, verb: Verb, **options: Any) -> tuple[Outcome, Any]:
        """Run a verb in a fork; return how it ended and, if with 0, what it answered."""
        out = self.output(verb)
        outcome = forked(self.line(verb, name, out), **options)
        answer = self.answer(verb, outcome, out)
        if out.is_dir():
            shutil.rmtree(out)
        return outcome, answer

    def answer(self, verb: Verb, outcome: Outcome, out: Path) -> Any:
        """Return what a verb answered, in stdout and in its output; None if it failed."""
        if outcome.code:
            return None
        told = facts(outcome.out) if verb.suffix not in ("store", "run") else None
        return (told, content(out) if verb.suffix else None)

    def _in_process(self, *arguments: str) -> None:
        from graphsys.cli.main import main

        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = main(list(arguments))
        if code:
            raise SystemExit(f"{arguments} fails: {said.getvalue()[-2000:]}")


def content(out: Path) -> Any:
    """Return what an output holds, without times and numbers of versions."""
    if (out / "graph.json").is_file():
        return sorted(
            (entry["path"].partition("/")[2], entry["checksum"])
            for entry in json.loads((out / "graph.json").read_text())["files"]
        )
    if (out / "run.json").is_file():
        return {
            f"{path.parent.relative_to(out)}/{path.name.rsplit('.', 2)[0]}": hashlib.sha256(
                path.read_bytes()
            ).hexdigest()
            for path in sorted(out.rglob("*"))
            if path.suffix in (".npy", ".safetensors")
        }
    ids = out.with_name(out.name + ".ids.parquet")
    return digest(out), digest(ids) if ids.exists() else None


def plain_edges(folder: Path, name: str = "edges") -> list[str]:
    """Return how the plain store is made, or made anew from other edges."""
    return [str(folder / f"{name}.tsv"), "--partitions", "2"]


def _write_texts(folder: Path) -> None:
    draw = random.Random(11)
    for name, size in (("edges", 1500), ("others", 1700), ("more", 400), ("tidy", 10)):
        lines = [
            "\t".join(str(draw.randrange(_NODES)) for _ in range(3)) + ".5\n"
            for _ in range(size)
        ]
        (folder / f"{name}.tsv").write_text("".join(lines))
    known = (folder / "edges.tsv").read_text().splitlines()[:200]
    gone = dict.fromkeys("\t".join(line.split("\t")[:2]) for line in known)
    (folder / "gone.tsv").write_text("\n".join(gone) + "\n")
    for name, size in (("train", 1200), ("valid", 80), ("test", 80)):
        lines = [
            f"w{draw.randrange(_NODES)}\t{draw.choice(('likes', 'knows', 'is'))}"
            f"\tw{draw.randrange(_NODES)}\n"
            for _ in range(size)
        ]
        (folder / f"{name}.txt").write_text("".join(lines))


def quiet_environment(folder: Path) -> None:
    """Keep caches and temporary files of this process and its forks in a folder."""
    (folder / "cache").mkdir(parents=True, exist_ok=True)
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    os.environ["GRAPHSYS_CACHE"] = str(folder / "cache" / "graphsys")
