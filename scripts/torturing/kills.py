"""Kills: at random moments, and at every rename, unlink, open and flush."""

import json
import os
import random
import re
import shutil
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from graphsys.storage import Graph
from torturing.judge import Verdict, ending, tree
from torturing.processes import Outcome, forked
from torturing.world import SPILLED, World, content, verbs_of

_CHANGES: Final = (
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.mkdir",
    "os.truncate",
    "os.link",
)
_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_NUMBERS: Final = re.compile(r"\.\d+\.|gen-\d+|superstep-\d+")
_LEFT: Final = re.compile("a killed (writer|append) left it|removes what a kill left")
_LAST: Final = 10
"""Changes at the end, where the commit is, at which half of the kills are."""


@dataclass(frozen=True)
class Scene:
    """A command that writes.

    Attributes:
        name: For people.
        line: The command line; ``{case}`` is the world's, ``{out}`` the output.
        again: What to add when it is run after a kill, where something was left.
        before: Commands that made the old output.
        suffix: Of the output.
        next: Of a command that changes a store: the one after it, which removes what kills
            left. It is run again only where it was not done.
    """

    name: str
    line: tuple[str, ...]
    again: tuple[str, ...] = ("--overwrite",)
    before: tuple[tuple[str, ...], ...] = ()
    suffix: str = ""
    next: tuple[str, ...] | None = None


def scenes() -> list[Scene]:
    """Return all commands that write."""
    other = ("ingest", "{case}/others.tsv", "--partitions", "2", "-o", "{out}")
    ingest = ("ingest", "{case}/edges.tsv", "--partitions", "2", "-o", "{out}")
    cut = (
        "partition",
        "{case}/plain",
        "--partitioner",
        "ldg",
        "--partitions",
        "3",
        "-o",
        "{out}",
    )
    ranks = ("run", "pagerank", "{case}/plain", "-o", "{out}")
    steps = (
        "--implementation",
        "program",
        "--checkpoint",
        "{out}.states",
        "--checkpoint-every",
        "1",
    )
    lines = {
        name: next(v.arguments for v in verbs_of(store) if v.name == verb)
        for name, store, verb in (
            ("embed", "words", "train embedding"),
            ("layers", "groups", "train gnn"),
        )
    }
    embed, layers = (
        tuple(it.replace("{of}", f"{{case}}/{store}") for it in lines[name])
        for name, store in (("embed", "words"), ("layers", "groups"))
    )
    often = ("--set", "checkpoint_seconds=0", "--set", "epochs=2")
    export = ("export", "{case}/erun", "-o", "{out}")
    ask = ("predict", "{case}/nrun", "-o", "{out}")
    over, other_run = ("--overwrite",), ("run", "lcc", *ranks[2:])
    grown = (ingest, ("append", "{out}", "{case}/others.tsv"))
    append = ("append", "{out}", "{case}/more.tsv")
    tidy = ("append", "{out}", "{case}/tidy.tsv")
    buffered = (
        *(it.replace("/words", "/parted") for it in embed),
        *("--set", "epochs=3", "--set", "operator=complex_diagonal"),
        *("--set", "reciprocal=true", "--set", "bucket_order=beta"),
        *("--set", "buffer_partitions=3", "--set", "checkpoint_seconds"),
    )
    return [
        Scene("append", append, before=grown, next=tidy),
        Scene(
            "append and delete",
            (*append, "--delete", "{case}/gone.tsv"),
            before=grown,
            next=tidy,
        ),
        Scene("compact", ("compact", "{out}"), before=grown, next=tidy),
        Scene("ingest spilled", (SPILLED, "{out}")),
        Scene("ingest spilled over", (SPILLED, "{out}", *over), before=(ingest,)),
        # checkpoints after each unit, and fewer, with rows written back in between
        Scene("embed buffered", (*buffered[:-1], f"{buffered[-1]}=0"), ("--resume",)),
        Scene("embed seldom", (*buffered[:-1], f"{buffered[-1]}=0.1"), ("--resume",)),
        Scene("ingest", ingest),
        Scene("ingest over", (*ingest, *over), before=(other,)),
        Scene("partition", cut),
        Scene("partition over", (*cut, *over), before=(other,)),
        Scene("run over", (*ranks, *over), before=(other_run,), suffix=".parquet"),
        Scene("run csv", ranks, suffix=".csv"),
        Scene("checkpoint", (*ranks, *steps), (*over, "--resume"), suffix=".parquet"),
        Scene("embed", (*embed, *often), ("--resume",)),
        Scene("embed over", (*embed, *often, *over), before=(embed,)),
        Scene("layers", (*layers, *often), ("--resume",)),
        Scene("layers over", (*layers, *often, *over), before=(layers,)),
        Scene(
            "export",
            (*export, *over),
            before=(("export", "{case}/erun", "-o", "{out}"),),
            suffix=".npy",
        ),
        Scene("export parquet", export, suffix=".parquet"),
        Scene("predict over", (*ask, *over), before=(ask,), suffix=".parquet"),
    ]


def scene_names() -> list[str]:
    """Return the names of all scenes."""
    return [scene.name for scene in scenes()]


class Killer:
    """Ends this process at its n-th change of a file system, or only counts them."""

    def __init__(self, at: int | None, counted: Path | None = None) -> None:
        self._at, self._path, self._seen, self._counted = at, counted, 0, -1

    def __call__(self) -> None:
        """Listen, in the child."""
        sync = os.fsync
        if self._path is not None:
            self._counted = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)

        def flushed(descriptor: Any) -> None:
            self._one()
            sync(descriptor)

        os.fsync = flushed
        sys.addaudithook(self._heard)

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        is_write = (
            event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES
        )
        if event in _CHANGES or is_write or event == "ctypes.call_function":
            self._one()

    def _one(self) -> None:
        self._seen += 1
        if self._seen == self._at:
            os.kill(os.getpid(), signal.SIGKILL)
        if self._counted >= 0:
            os.pwrite(self._counted, b"%d" % self._seen, 0)


def inputs_of(world: World) -> dict[str, str]:
    """Return hashes of everything that commands read."""
    return tree(world.case)


def case(
    world: World, draw: random.Random, verdict: Verdict, only: Sequence[str] = ()
) -> str:
    """Kill a command once or a few times, look at what is left, run it again.

    Whoever had the old graph open reads on. ``only`` names scenes that are chosen among.
    """
    scene = draw.choice([it for it in scenes() if not only or it.name in only])
    stage = _Stage(world, scene)
    with stage.reading() as reader:
        return _attack(stage, draw, verdict, reader)


def _attack(
    stage: "_Stage", draw: random.Random, verdict: Verdict, reader: "_Reader"
) -> str:
    world, scene, wanted = stage.world, stage.scene, stage.wanted()
    what = f"kills: {scene.name}"
    inputs = inputs_of(world)
    for _ in range(draw.choice((1, 1, 2, 3))):
        place = _kill(stage, draw)
        if place is None:
            break
        verdict.count("kills")
        what += f", {place}"
        left = stage.left()
        verdict.count(f"left_{left}")
        verdict.count(f"{scene.name}: {left}")
        if left == "damaged" or (left == "none" and scene.before):
            verdict.fault("lost", f"{what}: the output is {left}: {stage.shown()}")
            return what
        if inputs_of(world) != inputs:
            verdict.fault("lost", f"{what}: an input was changed")
            return what
        if not reader.reads_on():
            verdict.fault("lost", f"{what}: a reader lost its graph")
            return what
        if scene.next is not None and left == "new":
            break
    reader.close()
    outcome = stage.run()
    if ending(outcome) is not None or outcome.code:
        said = f"the next run: exit {outcome.code}: {outcome.err[-600:]}"
        verdict.fault(ending(outcome) or "lost", f"{what}: {outcome.arguments}: {said}")
    elif stage.content() != wanted:
        verdict.fault("silently_wrong", f"{what}: the next run gives something else")
    elif stage.names() != stage.clean_names():
        verdict.fault("litter", f"{what}: {sorted(stage.names() ^ stage.clean_names())}")
    if inputs_of(world) != inputs:
        verdict.fault("lost", f"{what}: an input was changed")
    verdict.count("cases")
    return what


_known: dict[str, tuple[Any, Any, frozenset[str], int, float, Any]] = {}
"""By scene: new content, old content, names of a clean end, changes, seconds, and the
content at the end."""


class _Reader:
    """A graph that is open while a command is killed, if there is one."""

    def __init__(self, path: Path | None) -> None:
        is_store = path is not None and (path / "graph.json").is_file()
        self._graph = Graph(path) if is_store and path is not None else None
        self._sums = self._read()

    def __enter__(self) -> "_Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the graph go."""
        if self._graph is not None:
            self._graph.close()
            self._graph = None

    def reads_on(self) -> bool:
        """Return whether all edges are read as before."""
        return self._read() == self._sums

    def _read(self) -> Any:
        graph = self._graph
        if graph is None:
            return None
        sums = [
            (int(it.src.sum()), int(it.dst.sum()), it.num_edges)
            for name in graph.manifest.edge_types
            for i, j in graph.buckets(name)
            for it in [graph.bucket(name, i, j)]
        ]
        return graph.fingerprint, sums


class _Stage:
    """A scene in a world."""

    def __init__(self, world: World, scene: Scene) -> None:
        self.world, self.scene = world, scene
        self.then = () if scene.next is None else (scene.next,)
        self.out = world.out / f"new{scene.suffix}"
        if scene.name not in _known:
            _known[scene.name] = self._unbroken()
        self._begin()

    def _begin(self) -> None:
        """Have the old output there, and nothing else."""
        shutil.rmtree(self.world.out)
        shutil.copytree(self._kept(), self.world.out)

    def _kept(self) -> Path:
        return self.world.folder / f"before {self.scene.name}"

    def _unbroken(self) -> tuple[Any, Any, frozenset[str], int, float, Any]:
        for line in self.scene.before:
            self._expect(forked(self._filled(line)))
        shutil.copytree(self.world.out, self._kept())
        old = self.content() if self.scene.before else None
        with self.reading():  # it looks at the files first, as in the cases
            done = forked(self._filled(self.scene.line))
            self._expect(done)
        new = end = self.content()
        for line in self.then:
            self._expect(forked(self._filled(line)))
            end = self.content()
        names = self.names()
        self._begin()
        counted = self.world.folder / "counted"
        self._expect(forked(self._filled(self.scene.line), Killer(None, counted)))
        changes = int(counted.read_bytes())
        if self.content() != new:
            raise SystemExit(f"{self.scene.name} does not give the same twice")
        return new, old, names, changes, done.seconds, end

    def reading(self) -> "_Reader":
        """Return a reader of the old graph, where the output is one."""
        return _Reader(self.out if self.scene.before else None)

    def _filled(self, line: tuple[str, ...]) -> list[str]:
        return [it.format(case=self.world.case, out=self.out) for it in line]

    def _expect(self, outcome: Outcome) -> None:
        if outcome.code:
            raise SystemExit(f"{outcome.arguments} fails: {outcome.err[-2000:]}")

    def start(self, **options: Any) -> Outcome:
        """Run the scene's command, as one that goes on after a kill if need be."""
        line, again = list(self.scene.line), self.scene.again
        is_resumed = "--resume" in again
        left = self.out.exists() or self._states().exists()
        if left and is_resumed and self._is_resumable():
            line += [it for it in again if it not in line]
        elif left and self.scene.next is None:
            line += [] if "--overwrite" in line else ["--overwrite"]
        return forked(self._filled(tuple(line)), **options)

    def run(self) -> Outcome:
        """Run it to its end, where that is not done, and what comes next."""
        if self.scene.next is None:
            return self.start()
        outcome = None if self.left() == "new" else self.start()
        if outcome is None or not outcome.code:
            outcome = forked(self._filled(self.scene.next))
        return outcome

    def _states(self) -> Path:
        return self.out.with_name(self.out.name + ".states")

    def _is_resumable(self) -> bool:
        return (self.out / "run.json").exists() or self._states().exists()

    def wanted(self) -> Any:
        """Return what an unbroken run gives, with what comes next."""
        return _known[self.scene.name][5]

    def clean_names(self) -> frozenset[str]:
        """Return the names that an unbroken run leaves."""
        return _known[self.scene.name][2]

    def changes(self) -> int:
        """Return how often an unbroken run changes the file system."""
        return _known[self.scene.name][3]

    def seconds(self) -> float:
        """Return how long an unbroken run takes."""
        return _known[self.scene.name][4]

    def content(self) -> Any:
        """Return what the output holds."""
        return content(self.out)

    def names(self) -> frozenset[str]:
        """Return the names of everything written, without numbers of versions."""
        return frozenset(_NUMBERS.sub("", name) for name in tree(self.world.out))

    def left(self) -> str:
        """Return what is at the output: old, new, part (to be resumed), none, damaged."""
        new, old, *_ = _known[self.scene.name]
        is_store = "graph.json" in os.listdir(self.out) if self.out.is_dir() else False
        is_run = (self.out / "run.json").is_file()
        if not self.out.exists() or (self.out.is_dir() and not (is_store or is_run)):
            return "none"
        if (is_store or is_run) and not self._is_sound():
            return "damaged"
        found = self.content()
        if found == new:
            return "new"
        if found == old:
            return "old"
        if isinstance(found, tuple) and self._is_pair_of(found, old, new):
            return "new"
        if is_run and not self.scene.before:
            return "part"
        return "damaged"

    def _is_pair_of(self, found: tuple[Any, ...], old: Any, new: Any) -> bool:
        return all(it in (a, b) for it, a, b in zip(found, old or new, new, strict=True))

    def _is_sound(self) -> bool:
        """Whether nothing is wrong but what the killed writer left beside it."""
        told = json.loads(forked(["verify", str(self.out), "--json"]).out or "{}")
        problems = told.get("problems", [{"file": "", "what": "verify fails"}])
        return all(_LEFT.search(it["what"]) for it in problems)

    def shown(self) -> str:
        """Return what is there, for people."""
        return f"{sorted(tree(self.world.out))[:40]}"


def _kill(stage: _Stage, draw: random.Random) -> str | None:
    """Kill the command once; return where, or None if it had ended before.

    The draws are the same on a machine of any speed: where it ended before its moment,
    it is run over what is there, and killed at a change.
    """
    is_at_moment = draw.random() >= 0.6
    most = max(1, stage.changes())
    at = draw.randint(max(1, most - _LAST) if draw.random() < 0.5 else 1, most)
    after = draw.uniform(0, stage.seconds())
    if is_at_moment:
        if stage.start(kill_after_s=after).was_killed:
            return f"killed after {after:.3f} s"
        if stage.scene.next is not None:  # once is all that it can be done
            return None
    is_killed = stage.start(setup=Killer(at)).was_killed
    return f"killed at change {at} of {stage.changes()}" if is_killed else None
