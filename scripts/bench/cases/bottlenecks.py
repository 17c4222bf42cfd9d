"""Case ``bottlenecks``: the study of Xu, Jeon and Annavaram (IISWC 2014) on this engine.

The paper's twelve graph applications, as vertex programs, and four controls that are no
graph work, each profiled at level L1: kernel launches and the work of each, lanes at work
by mapping, variation of warps and CTAs, balance of SMs, coalescing and conflicts. Seconds
are those of the supersteps on this CPU; nothing here ran on a GPU. The figures of each run
are kept beside its times; ``scripts/bench/run bottlenecks_table`` prints them as tables.

Two applications differ from the paper's: APSP is SSSP from four sources, and survey
propagation is belief propagation, whose messages travel the same way.
"""

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.controls.catalog import CONTROLS
from bench.harness import OURS, Contender, Outcome, Work, WrongResultError
from bench.limits import Limits

PEERS: dict[str, str] = {}
COUNTS_ONLY = True
KINDS = ("rmat", "road", "uniform")
SIZES = ("1e4", "1e5", "1e6")
"""Entries of the rows, about; ``--inputs rmat-1e7`` and ``-1e8`` for larger ones."""
INPUTS = (
    *(f"{kind}-{size}" for size in SIZES for kind in KINDS),
    "wiki-Vote",
    "brightkite",
)
QUICK_INPUTS = ("rmat-1e4", "road-1e4", "uniform-1e4")
CONTROL_SIZES = (10_000, 100_000, 1_000_000)
QUICK_CONTROL_SIZES = (10_000,)
"""Values of the controls' inputs: about as many as the graphs have entries."""
SHAPES: dict[str, tuple[int, int, int, int]] = {
    # log2 of R-MAT's nodes and its edges per node; the lattice's rows and columns
    "1e4": (10, 5, 50, 50),
    "1e5": (13, 6, 112, 128),
    "1e6": (16, 8, 512, 528),
    "1e7": (19, 10, 1600, 1600),
    "1e8": (22, 12, 5000, 5000),
}
"""Lattices and uniform graphs of 1e5 and 1e6 entries have 256 nodes for every CTA that an
M2050 and an H100 hold at once, so that there are launches which fill them exactly."""
FILES = {
    "wiki-Vote": "wiki-Vote/wiki-Vote.txt",
    "brightkite": "kcore-repo-graphs/soc-brightkite.txt",
}
KNOWN_INPUTS = (*(f"{kind}-{size}" for size in SHAPES for kind in KINDS), *FILES)
"""What ``--inputs`` takes: larger ones, too, which nobody gets unasked."""
LARGE = 500_000
SMALL_ONLY = ("APSP", "CCL", "GCO", "GCU", "MST")
"""Applications that are left out above :data:`LARGE` entries: thousands of supersteps."""
HUGE = 2_000_000
SMALLER_ONLY = (*SMALL_ONLY, "SP")
"""Those left out above :data:`HUGE`: a hundred supersteps of messages both ways."""
WIDE_ONLY = ("SSSP",)
"""Besides, on roads above :data:`HUGE`: thousands of supersteps of most of the nodes."""
SAMPLED_SMS = 8
"""SMs whose requests stand for all above :data:`HUGE`; the error is among the figures."""
SHARED = Path(
    os.environ.get("GRAPHSYS_SHARED", Path(__file__).resolve().parents[4] / "shared")
)
NUM_SOURCES = 4

APPLICATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    # the paper's name: our algorithm, and its parameters
    "APSP": ("sssp", {}),
    "AGM": ("matching", {}),
    "BFS": ("bfs", {}),
    "CCL": ("wcc", {}),
    "GCL": ("clustering", {}),
    "GCO": ("coloring", {}),
    "GCU": ("min_cut", {}),
    "MIS": ("mis", {}),
    "MST": ("mst", {}),
    "PR": ("pagerank", {"iterations": 10}),
    "SP": ("survey_propagation", {"tolerance": 0.01}),
    "SSSP": ("sssp", {}),
}
GPUS = ("h100", "m2050")
MAPPINGS = ("thread", "sub-warp", "warp", "block", "twc", "edge", "merge-path", "auto")
LANES = {
    "lane_utilization": MAPPINGS,
    "intra_task_waste": ("thread", "warp"),
    "inter_task_waste": ("thread", "warp"),
    "value_sectors_per_request": ("thread", "warp", "edge"),
    "coalescing_efficiency": ("thread", "warp", "edge"),
    "conflicts_per_request": ("thread", "edge"),
    "warp_variance": ("thread", "warp"),
}
"""What is kept of the first GPU, by mapping."""
BALANCE = {
    "cta_variance": ("thread", "auto"),
    "ctas_per_sm": ("thread", "auto"),
    "sm_imbalance": ("thread", "auto"),
}
"""What is kept of every GPU."""


def works(
    *,
    quick: bool,
    folder: Path,
    limits: Limits,
    missing: list[str],
    inputs: Sequence[str] = (),
) -> Iterator[Work]:
    """Yield the twelve applications on every graph, then the controls."""
    for name in inputs or (QUICK_INPUTS if quick else INPUTS):
        topology = load(name)
        if topology is None:
            print(f"{name}: its file is not in {SHARED.name}; left out")
            continue
        for application in APPLICATIONS:
            if application in left_out(name, topology.num_edges):
                continue
            graph = formula(topology.num_edges) if application == "SP" else topology
            run = functools.partial(run_application, application, graph)
            title = f"{application}, {name}, {graph.num_edges / 1e6:.3g}M edges"
            sms = SAMPLED_SMS if graph.num_edges > HUGE else 0
            profiled = Profiled(run, facts=degree_facts(graph), sampled_sms=sms)
            yield _work(title, graph.num_edges, profiled, "edges/s")
    if inputs:  # some graphs anew: the controls are as they were
        return
    for size in QUICK_CONTROL_SIZES if quick else CONTROL_SIZES:
        for name, control in CONTROLS.items():
            amount, run = control.bind(size)
            title = f"control {name}, {amount / 1e6:.3g}M values"
            profiled = Profiled(run, ("thread", "auto"), facts={"entries": float(amount)})
            yield _work(title, amount, profiled, "values/s")


def left_out(name: str, num_edges: int) -> tuple[str, ...]:
    """Return the applications that are not run on a graph of so many entries."""
    if num_edges > HUGE:
        return (*SMALLER_ONLY, *(WIDE_ONLY if name.startswith("road") else ()))
    return SMALL_ONLY if num_edges > LARGE else ()


def load(name: str) -> Any:
    """Return a graph by name; None where its file is not at hand."""
    import numpy as np

    from graphsys.engine.topology import Topology

    if name not in FILES:
        from graphsys.storage.source import EdgeChunk

        chunks = [c for c in drawn(name).chunks() if isinstance(c, EdgeChunk)]
        src = np.concatenate([np.asarray(chunk.src) for chunk in chunks])
        dst = np.concatenate([np.asarray(chunk.dst) for chunk in chunks])
    else:
        path = SHARED / "data" / FILES[name]
        if not path.exists():
            return None
        pairs = np.loadtxt(path, dtype=np.int64, comments=("#", "%"), usecols=(0, 1))
        _, numbers = np.unique(pairs, return_inverse=True)
        src, dst = numbers.reshape(-1, 2).T
    keep = src != dst
    src, dst = np.ascontiguousarray(src[keep]), np.ascontiguousarray(dst[keep])
    num_nodes = int(max(src.max(), dst.max())) + 1
    rng = np.random.default_rng(7)
    return Topology.from_edges(
        src, dst, num_nodes, weight=rng.integers(1, 64, len(src)) / 4, directed=False
    )


def formula(num_edges: int) -> Any:
    """Return the graph of a random 3-SAT formula of ratio 4 with about so many edges."""
    return drawn_formula(max(num_edges // 12, 3), 4.0, seed=1)


def drawn_formula(num_variables: int, ratio: float, seed: int) -> Any:
    """Return the graph of a random 3-SAT formula: variables, then clauses."""
    import numpy as np

    from graphsys.datasets import generators
    from graphsys.engine.topology import Topology
    from graphsys.storage.source import EdgeChunk

    source = generators.ksat(num_variables, ratio, seed=seed)
    chunks = [it for it in source.chunks() if isinstance(it, EdgeChunk)]
    src, dst = (np.concatenate([getattr(c, end) for c in chunks]) for end in ("src", "dst"))
    weight = np.concatenate([np.asarray(c.columns["weight"]) for c in chunks])
    num_nodes = num_variables + int(num_variables * ratio)
    return Topology.from_edges(src, dst, num_nodes, weight=weight)


def drawn(name: str) -> Any:
    """Return where the edges of a graph by kind and size come from.

    Raises:
        ConfigError: no such kind, or no such size.
    """
    from bench.cases.engine_graphs import _source
    from graphsys.core.errors import unknown_name
    from graphsys.datasets import generators

    kind, _, size = name.partition("-")
    if not size:
        return _source(name)
    if kind not in KINDS or size not in SHAPES:
        known = [f"{kind}-{size}" for kind in KINDS for size in SHAPES]
        raise unknown_name("graph", name, [*known, *FILES])
    scale, factor, rows, columns = SHAPES[size]
    if kind == "rmat":
        return generators.rmat(scale, factor, seed=1)
    if kind == "road":
        return generators.road(rows, columns, seed=1)
    return generators.uniform(rows * columns, 2 * rows * columns, seed=1)


def degree_facts(topology: Any) -> dict[str, float]:
    """Return nodes, entries, and sigma / mu of the degrees."""
    import numpy as np

    degrees = np.asarray(topology.out_degree, dtype=np.float64)
    return {
        "nodes": float(len(degrees)),
        "entries": float(topology.num_edges),
        "degree_variation": float(degrees.std() / degrees.mean()),
    }


def sources_of(topology: Any) -> list[int]:
    """Return the nodes of largest degree, by number, ties to the smallest."""
    import numpy as np

    degrees = np.asarray(topology.out_degree)
    return np.argsort(-degrees, kind="stable")[:NUM_SOURCES].tolist()  # type: ignore[no-any-return]


def run_application(application: str, topology: Any) -> None:
    """Run one of the twelve."""
    from graphsys.engine import algorithms

    name, options = APPLICATIONS[application]
    first, *others = sources_of(topology)
    run = algorithms.get(name)
    if application == "APSP":
        for source in (first, *others):
            run(topology, implementation="program", source=source)
        return
    if "source" in run.parameters("program"):
        options = {**options, "source": first}
    if "target" in run.parameters("program"):
        options = {**options, "target": others[-1]}
    run(topology, implementation="program", **options)


class Profiled:
    """Profiles a run: every time at level L0, once for each GPU at level L1.

    What the model says does not change from round to round, so it is asked in the first.

    Args:
        run: The work.
        mappings: Who may walk its rows; a control's threads are its own.
        facts: Figures of the input, kept with the others.
        sampled_sms: SMs whose requests stand for all; 0: all are counted.
    """

    def __init__(
        self,
        run: Callable[[], Any],
        mappings: Sequence[str] = MAPPINGS,
        facts: Mapping[str, float] | None = None,
        sampled_sms: int = 0,
    ) -> None:
        self.sampled_sms = sampled_sms
        self.run, self.mappings = run, mappings
        self.facts = dict(facts or {})
        self.modelled: dict[str, float] = {}

    def __call__(self) -> Outcome:
        """Return the supersteps' time, and the figures as the result."""
        from graphsys.analysis.profile import profile

        with profile(level="L0") as timed:
            self.run()
        host = {metric["name"]: metric["value"] for metric in timed.report["metrics"]}
        if not self.modelled:
            for gpu in GPUS:
                with profile(
                    level="L1", gpu_model=gpu, sampled_sms=self.sampled_sms
                ) as modelled:
                    self.run()
                self.modelled |= gpu_figures(gpu, modelled.report, self.mappings)
        names = (
            "kernel_invocations",
            "supersteps",
            "thread_imbalance",
            "transfer_count",
            "transfer_bytes",
        )
        figures = {name: host[name] for name in names if host[name] is not None}
        seconds = host["superstep_seconds"] or host["wall_seconds"]
        result = {"figures": {**self.facts, **figures, **self.modelled}}
        return Outcome(seconds=float(seconds), result=result)


def gpu_figures(
    gpu: str, report: Mapping[str, Any], known: Sequence[str] = MAPPINGS
) -> dict[str, float]:
    """Return a report's figures of the model, by names that say GPU and mapping.

    Lanes and requests are the same on every GPU with warps of 32: they are kept once.
    """
    metrics = {metric["name"]: metric["value"] for metric in report["metrics"]}
    wanted = dict(BALANCE)
    if gpu == GPUS[0]:
        wanted |= LANES
    found = {f"{gpu} work_per_invocation": metrics["work_per_invocation"]}
    for name, mappings in wanted.items():
        for mapping in (it for it in mappings if it in known):
            suffix = "" if mapping == "auto" else f".{mapping}"
            found[f"{gpu} {name} {mapping}"] = metrics.get(f"{name}{suffix}")
    error = f"{gpu} request_sampling_error"
    found[error] = metrics.get("request_sampling_error")
    for style in ("host-driven", "ours", "unified"):
        for name in ("count", "bytes", "seconds"):
            predicted = f"predicted_transfer_{name}.{style}"
            found[f"{gpu} {predicted}"] = metrics.get(predicted)
    for filling, means in report["gpu"]["mappings"]["thread"]["fillings"].items():
        found |= {f"{gpu} {filling} {name}": value for name, value in means.items()}
    return {name: float(value) for name, value in found.items() if value is not None}


def _work(name: str, amount: float, run: Profiled, unit: str) -> Work:
    def verify(results: Mapping[str, Any]) -> None:
        figures = results[OURS]["figures"]
        for mapping in MAPPINGS:
            share = figures.get(f"h100 lane_utilization {mapping}", 1.0)
            if not 0 < share <= 1:
                raise WrongResultError(
                    f"{name}: {mapping} has {share} of its lanes at work"
                )

    return Work(
        name=name,
        amount=amount,
        unit=unit,
        contenders=[Contender(system=OURS, run=run)],
        verify=verify,
    )
