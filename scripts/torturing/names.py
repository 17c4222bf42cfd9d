"""Hostile names: of types, relations, splits, columns, features, files and outputs."""

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from graphsys.core.types import EdgeType
from graphsys.storage import EdgeChunk, NodeChunk, Source
from torturing.judge import Verdict, ending, facts, tree
from torturing.processes import Outcome, forked, installed
from torturing.world import World

NAMES: Final = (
    "..",
    ".",
    "",
    " ",
    "a/b",
    "/etc",
    "../../evil",
    "a\\b",
    "a\nb",
    "a\tb",
    "a\rb",
    "a\0b",
    "%",
    "%2F",
    "%2E%2E",
    "-o",
    "--help",
    "=",
    "a=b",
    "a,b",
    "a:b",
    "*",
    "?",
    "[x]",
    "{of}",
    "$(touch evil)",
    "`touch evil`",
    "'",
    '"',
    "#",
    "graph.json",
    ".lock",
    "gen-1",
    "gen-2",
    "run.json",
    "config.toml",
    "train",
    "part-0.arrow",
    "id",
    "src",
    "dst",
    "weight",
    "__metadata__",
    "__class__",
    "NaN",
    "null",
    "true",
    "0",
    "-1",
    "1e400",
    "\u00fc",
    "\u202e",
    "\ufeff",
    "\u2028",
    "\U0001f984",
    "n" * 300,
    "n" * 5000,
    "NUL",
    "a.",
    "a ",
)


class Named(Source):
    """A small graph whose names are given."""

    name = "named"

    def __init__(self, given: list[str]) -> None:
        self.given = given

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        kind, other, relation, column, feature, split = self.given
        rng = np.random.default_rng(1)
        for each in dict.fromkeys((kind, other)):
            x = rng.normal(size=(40, 4)).astype(np.float32)
            yield NodeChunk(
                ids=np.arange(40),
                node_type=each,
                columns={column: pa.array(["v"] * 40)},
                features={feature: x},
            )
        for place in ("train", split):
            src, dst = rng.integers(0, 40, (2, 150))
            yield EdgeChunk(
                src=src, dst=dst, edge_type=EdgeType(kind, relation, other), split=place
            )


def case(world: World, draw: random.Random, verdict: Verdict) -> str:
    """Try a graph of odd names, or files of odd names."""
    outside = set(os.listdir(world.folder)) | {"evil"}
    what = (
        _graph(world, draw, verdict)
        if draw.random() < 0.6
        else _files(world, draw, verdict)
    )
    for name in set(os.listdir(world.folder)) - outside:
        verdict.fault("lost", f"{what}: {name} was written outside")
    for place in (Path("evil"), Path("/etc/evil"), world.folder / "evil"):
        if place.exists():
            verdict.fault("lost", f"{what}: {place} was made")
    verdict.count("cases")
    return what


def _graph(world: World, draw: random.Random, verdict: Verdict) -> str:
    given = [draw.choice(NAMES) for _ in range(6)]
    what = f"names: {given!a}"
    graph, run = world.out / "graph", world.out / "run"
    made = _made(Named(given), graph, draw.choice((1, 2)))
    _look(verdict, made, what)
    if made.code:
        return what
    told = forked(["info", str(graph), "--json"])
    _look(verdict, told, what)
    if told.code == 0 and given[0] not in facts(told.out)["node_types"]:
        verdict.fault("silently_wrong", f"{what}: info names other types: {told.out[:300]}")
    train = ["--set", "epochs=1", "--set", "dim=4", "--set", "threads=1"]
    for line in (
        ["verify", str(graph)],
        ["run", "wcc", str(graph), "-o", str(world.out / "x.csv")],
        ["partition", str(graph), "--partitioner", "ldg", "-o", str(world.out / "cut")],
        ["train", "embedding", str(graph), "-o", str(run), *train],
        ["evaluate", str(run)],
        ["export", str(run), "-o", str(world.out / "rows.safetensors")],
        ["export", str(run), "-o", str(world.out / "rows.tsv")],
        ["nearest", str(run), "1", "--node-type", given[0]],
        ["predict", str(run), "-o", str(world.out / "y.csv"), "--relation", given[2]],
    ):
        outcome = forked(line)
        _look(verdict, outcome, what)
        if line[0] == "verify" and outcome.code:
            verdict.fault(
                "lost", f"{what}: a store that was just made: {outcome.out[:300]}"
            )
    return what


def _made(source: Source, graph: Path, partitions: int) -> Outcome:
    """Ingest in a fork, as the command would: it has no way to give such names."""

    def ingest() -> None:
        import graphsys.cli.main as cli
        from graphsys.storage import ingest as write

        def run(_: list[str]) -> tuple[int, None]:
            write(source, graph, partitions=partitions)
            return 0, None

        cli._run = run

    return forked(["ingest"], ingest)


def _files(world: World, draw: random.Random, verdict: Verdict) -> str:
    given = [it for it in NAMES if "\0" not in it and not it.startswith(("..", "/"))]
    name = draw.choice(given)
    folder = world.out / "files"
    folder.mkdir()
    source = folder / f"{name}.tsv"
    what = f"names: a file {name!a}"
    try:
        source.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(world.case / "edges.tsv", source)
    except OSError:
        return what
    before = tree(folder)
    out = world.out / f"{name}.d"
    run = forked if draw.random() < 0.9 else installed
    for line in (
        ["ingest", str(source), "-o", str(out)],
        ["info", str(out), "--json"],
        ["run", "wcc", str(out), "-o", str(world.out / f"{name}.parquet")],
        ["run", "wcc", str(world.case / "plain"), "-o", str(world.out / f"{name}.csv")],
        ["export", str(world.case / "erun"), "-o", str(world.out / f"{name}.npy")],
        ["ingest", f"{name}.tsv", "-o", name],
        ["info", name],
        ["run", name, str(world.case / "plain")],
        [
            "run",
            "bfs",
            str(world.case / "plain"),
            "--param",
            f"source={name}",
            "-o",
            "no.csv",
        ],
        ["nearest", str(world.case / "erun"), name],
    ):
        _look(verdict, run(line), what)
    if {k: v for k, v in tree(folder).items() if k in before} != before:
        verdict.fault("lost", f"{what}: an input was changed")
    return what


def _look(verdict: Verdict, outcome: Outcome, what: str) -> None:
    verdict.count("commands")
    kind = ending(outcome)
    if kind is not None:
        said = f"{outcome.arguments!a:.300}: exit {outcome.code}: {outcome.err[-900:]}"
        verdict.fault(kind, f"{what}; {said}")
    else:
        verdict.count("refused" if outcome.code else "right")
