"""The steps of case ``billion``: what is typed, what it leaves, which rate bounds it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.limits import Limits
from graphsys.core.memory import parse_bytes

EDGE_FACTOR: Final = 16
ITERATIONS: Final = 5
DIM: Final = 64
SEEDS: Final = 1 << 16
GEMM: Final = (500, DIM, 1000)
_TRAINING: Final = (
    f"dim={DIM}",
    "epochs=1",
    "num_batch_negatives=50",
    "num_uniform_negatives=50",
    "checkpoint_seconds=600",
)
_GNN: Final = (
    "task=link_prediction",
    "model=sage",
    "dim=16",
    "learned_rows=disk",
    "fanouts=[10, 5]",
    "batch_size=4096",
    "epoch_batches=64",
    "epochs=1",
    "eval_every=0",
)

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a run is of.

    Attributes:
        folder: Where its files are.
        scale: Logarithm of the nodes.
        memory: Budget of every command, empty for none.
    """

    folder: Path
    scale: int
    memory: str

    @property
    def num_edges(self) -> int:
        """Edges, directed."""
        return EDGE_FACTOR << self.scale

    @property
    def partitions(self) -> int:
        """Partitions of the store: four pairs of tables fit the budget."""
        tables = (DIM * 4 + 4) << self.scale
        budget = parse_bytes(self.memory) if self.memory else 8 * 10**9
        partitions = 4
        while 6 * tables // partitions > budget // 2:
            partitions *= 2
        return partitions

    @property
    def limit(self) -> list[str]:
        """The option that gives the budget."""
        return ["--memory", self.memory] if self.memory else []

    def work(self, name: str) -> str:
        """Return the name of a step's row."""
        return f"{name}, scale {self.scale}, {self.memory or 'no budget'}"

    def at(self, name: str) -> str:
        """Return the path of a file of the run."""
        return str(self.folder / name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command.

    Attributes:
        words: What is typed, of a setting.
        makes: What it leaves, by which it is known to be done.
        bound: Seconds that the rate which bounds it would take, of a setting, the limits
            and the row.
        after: What it needs is made by these steps.
        removes: What nobody needs after it.
        amount: How often it goes over all edges; 0: it tells of how many, or of none.
        is_training: Whether torch may come on top of the budget.
        peer: The system whose step this is, where it is not ours; only ``--peers`` runs it.
    """

    words: Callable[[Setting], list[str]]
    makes: str
    bound: Callable[[Setting, Limits, Row], tuple[str, float]]
    after: tuple[str, ...] = ("build",)
    removes: tuple[str, ...] = ()
    amount: int = 1
    is_training: bool = False
    peer: str = ""


def _disk(setting: Setting, limits: Limits, row: Row) -> tuple[str, float]:
    """Reading and writing what was read and written."""
    written = row["written_bytes"] / limits.disk_write_bandwidth
    return "disk", row["read_bytes"] / limits.disk_read_bandwidth + written


def _mapped(setting: Setting, limits: Limits, row: Row) -> tuple[str, float]:
    """Reading the whole store, from the page cache where it is there."""
    size = sum(it.stat().st_size for it in Path(setting.at("graph")).rglob("*.arrow"))
    return "cached read", size / limits.cached_read_bandwidth


def _gathers(times: float) -> Callable[[Setting, Limits, Row], tuple[str, float]]:
    def bound(setting: Setting, limits: Limits, row: Row) -> tuple[str, float]:
        return "gather", times * setting.num_edges / limits.gather_rate_large

    return bound


def _gemm(setting: Setting, limits: Limits, row: Row) -> tuple[str, float]:
    """Scores and gradients of an edge against 100 negatives, both sides."""
    flops = setting.num_edges * 2 * 3 * 2 * 100 * DIM
    return "GEMM", flops / limits.gemm_rate["x".join(map(str, GEMM))]


def _run(name: str, *params: str) -> Callable[[Setting], list[str]]:
    def words(setting: Setting) -> list[str]:
        given = [word for param in params for word in ("--param", param)]
        if name == "bfs":
            given = ["--param", f"source={_hub(setting)}"]
        out = ["-o", setting.at(f"{name}.parquet"), "--overwrite", "--json"]
        return ["run", name, setting.at("graph"), *given, *out, *setting.limit]

    return words


def _hub(setting: Setting) -> int:
    """Return the node with the largest rank."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    best, node = -1.0, 0
    with pq.ParquetFile(setting.at("pagerank.parquet")) as file:
        for batch in file.iter_batches(1 << 20):
            place = pc.index(batch["value"], pc.max(batch["value"])).as_py()
            if batch["value"][place].as_py() > best:
                best, node = batch["value"][place].as_py(), batch["id"][place].as_py()
    return int(node)


def _build(setting: Setting) -> list[str]:
    params = [f"scale={setting.scale}", f"edge_factor={EDGE_FACTOR}", "directed=true"]
    given = [word for param in params for word in ("--param", param)]
    more = ["--partitions", str(setting.partitions), "--overwrite", "--json"]
    return [
        "dataset",
        "build",
        "rmat",
        *given,
        "-o",
        setting.at("graph"),
        *more,
        *setting.limit,
    ]


def _train(setting: Setting) -> list[str]:
    given = [word for pair in _TRAINING for word in ("--set", pair)]
    out = ["-o", setting.at("run"), "--overwrite", "--json"]
    return ["train", "embedding", setting.at("graph"), *given, *out, *setting.limit]


def _gnn(setting: Setting) -> list[str]:
    given = [word for pair in _GNN for word in ("--set", pair)]
    out = ["-o", setting.at("gnn"), "--overwrite", "--json"]
    return ["train", "gnn", setting.at("graph"), *given, *out, *setting.limit]


def _predict(setting: Setting) -> list[str]:
    """Ask for rows of a few nodes, from all neighbors of their neighbors."""
    import pyarrow.parquet as pq

    nodes = Path(setting.at("nodes.txt"))
    with pq.ParquetFile(setting.at("pagerank.parquet")) as file:
        some = next(file.iter_batches(64, columns=["id"]))["id"].to_pylist()
    nodes.write_text("".join(f"{node}\n" for node in some))
    out = ["-o", setting.at("predicted.parquet"), "--overwrite"]
    return ["predict", setting.at("gnn"), "--nodes", str(nodes), *out, *setting.limit]


def _nearest(setting: Setting) -> list[str]:
    return ["nearest", setting.at("run"), str(_hub(setting)), "-k", "10", "--json"]


def _profile(setting: Setting) -> list[str]:
    run = ["run", "wcc", setting.at("graph"), "-o", setting.at("again.parquet")]
    page = ["profile", "-o", setting.at("report.html"), "--overwrite", "--"]
    return [*page, *run, "--overwrite", *setting.limit]


def _sample(kind: str) -> Callable[[Setting], list[str]]:
    def words(setting: Setting) -> list[str]:
        out = setting.at(f"{kind}.json")
        return ["-m", "bench.billion_sampling", kind, setting.at("graph"), str(SEEDS), out]

    return words


def _peer(what: str) -> Callable[[Setting], list[str]]:
    """Return the command of a peer's step, of module ``billion_peers``."""

    def words(setting: Setting) -> list[str]:
        folder = str(setting.folder)
        given = {
            "edges": [setting.at("graph"), folder],
            "pbg": [folder, str(setting.scale), str(setting.partitions)],
        }.get(what, [folder, setting.memory])
        return ["-m", "bench.billion_peers", what, *given]

    return words


STEPS: Final[Mapping[str, Step]] = {
    "build": Step(words=_build, makes="graph", bound=_disk, after=()),
    "verify": Step(
        words=lambda it: ["verify", it.at("graph"), "--json"], makes="", bound=_mapped
    ),
    "pagerank": Step(
        words=_run("pagerank", f"iterations={ITERATIONS}"),
        makes="pagerank.parquet",
        bound=_gathers(ITERATIONS),
        amount=ITERATIONS,
    ),
    "bfs": Step(
        words=_run("bfs"),
        makes="bfs.parquet",
        bound=_gathers(1),
        after=("build", "pagerank"),
        removes=("bfs.parquet",),
    ),
    "wcc": Step(words=_run("wcc"), makes="wcc.parquet", bound=_gathers(1)),
    "degree_statistics": Step(
        words=_run("degree_statistics"), makes="degree_statistics.parquet", bound=_mapped
    ),
    "edges_duckdb": Step(
        words=_peer("edges"), makes="edges.duckdb", bound=_disk, peer="DuckDB"
    ),
    "degrees_duckdb": Step(
        words=_peer("degrees"),
        makes="",
        bound=_disk,
        peer="DuckDB",
        after=("degree_statistics", "edges_duckdb"),
    ),
    "wcc_duckdb": Step(
        words=_peer("wcc"),
        makes="",
        bound=_disk,
        peer="DuckDB",
        after=("wcc", "edges_duckdb"),
        removes=("edges.duckdb",),
    ),
    "triangle_count": Step(
        words=_run("triangle_count"),
        makes="triangle_count.parquet",
        bound=_mapped,
        removes=("triangle_count.parquet",),
    ),
    "sage": Step(words=_sample("sage"), makes="sage.json", bound=_mapped, amount=0),
    "pinsage": Step(
        words=_sample("pinsage"), makes="pinsage.json", bound=_mapped, amount=0
    ),
    "gnn": Step(words=_gnn, makes="gnn", bound=_disk, amount=0, is_training=True),
    "predict": Step(
        words=_predict,
        makes="predicted.parquet",
        bound=_disk,
        amount=0,
        after=("pagerank", "gnn"),
        removes=("predicted.parquet",),
        is_training=True,
    ),
    "profile": Step(
        words=_profile,
        makes="report.html",
        bound=_gathers(1),
        removes=("again.parquet",),
    ),
    "embedding": Step(words=_train, makes="run", bound=_gemm, is_training=True),
    "embedding_pbg": Step(
        words=_peer("pbg"), makes="", bound=_gemm, peer="PyTorch-BigGraph"
    ),
    "nearest": Step(
        words=_nearest, makes="", bound=_disk, after=("pagerank", "embedding"), amount=0
    ),
}
"""In the order in which they run."""
