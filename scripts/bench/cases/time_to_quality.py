"""Case ``time_to_quality``: how long a training takes until valid reaches a target.

Two works: GCN on Cora until .78 of valid are right, beside PyG, and ComplEx on UMLS until
the filtered valid MRR is .80, beside PyKEEN, which has an environment of its own
(scripts/bench/peer_environments). Each system evaluates after every epoch; the time is
that of the epochs alone, evaluations and compiling left out, and ends with the epoch whose
evaluation reached the target (MLPerf's time to quality). A run that does not reach it is
wrong. GCN has the same layers, dropout, optimizer and penalty in both. ComplEx has rank 100
in both, reciprocal relations and all nodes as negatives; ours has the preset's Adagrad and
penalty, PyKEEN's Adam with the rate that did best of .3, .1, .03 and .01, looked at
every six epochs. Without a penalty it comes to .83 or so; the preset to .96.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench import output
from bench.child import in_child
from bench.environments import peer_python
from bench.harness import OURS, Contender, Outcome, Work, WrongResultError
from bench.limits import Limits

MODULE = "bench.cases.time_to_quality"
PEER = "bench.cases.time_to_quality_peers"
PEERS = {"PyG": "torch_geometric", "PyKEEN": "pykeen"}
ACCURACY, MRR = 0.78, 0.80
THREADS = 2


def works(
    *, quick: bool, folder: Path, limits: Limits, missing: list[str]
) -> Iterator[Work]:
    """Yield the works whose data lie in the shared folder."""
    shared = Path(os.environ.get("GRAPHSYS_SHARED", output.ROOT.parent / "shared")) / "data"
    if not shared.exists():
        missing.append("the shared data")
        return
    yield _work(
        f"Cora, GCN, valid accuracy {ACCURACY}",
        in_child(f"{MODULE}:our_network", shared=shared, folder=folder),
        ("PyG", in_child(f"{PEER}:pyg", shared=shared, goal=ACCURACY)),
        missing,
    )
    peer = peer_python("pykeen")
    yield _work(
        f"UMLS, ComplEx, valid MRR {MRR}",
        in_child(f"{MODULE}:our_embedding", shared=shared, folder=folder),
        (
            "PyKEEN",
            peer and in_child(f"{PEER}:pykeen", python=peer, shared=shared, goal=MRR),
        ),
        missing,
    )


def _work(
    name: str,
    ours: Callable[[], Outcome],
    peer: tuple[str, Callable[[], Outcome] | None],
    missing: list[str],
) -> Work:
    system, run = peer
    contenders = [Contender(system=OURS, run=ours)]
    if run is not None and system not in missing:
        contenders.append(Contender(system=system, run=run))

    def verify(results: Any) -> None:
        for who, result in results.items():
            if not result["figures"]["epochs"]:
                raise WrongResultError(f"{who} did not reach the target of {name}")

    return Work(
        name=name, amount=1, unit="trainings/s", contenders=contenders, verify=verify
    )


def our_network(shared: str, folder: str) -> Outcome:
    """Train GCN from the store by the preset."""
    from graphsys import gnn

    graph = _store("cora", Path(shared) / "planetoid", Path(folder))
    settings = [f"target={ACCURACY}", "stop_at_target=true", "monitor=metric"]
    settings += ["eval_every=1", f"threads={THREADS}"]
    config = gnn.load_config(preset="cora-gcn", overrides=settings)
    return _ours(gnn.train, graph, config, Path(folder))


def our_embedding(shared: str, folder: str) -> Outcome:
    """Train ComplEx from the store by the preset."""
    from graphsys import embedding

    graph = _store("umls", Path(shared) / "umls", Path(folder))
    settings = [f"target={MRR}", "stop_at_target=true", "eval_every=1"]
    settings.append(f"threads={THREADS}")
    config = embedding.load_config(preset="umls-complex", overrides=settings)
    return _ours(embedding.train, graph, config, Path(folder))


def _ours(train: Any, graph: Any, config: Any, folder: Path) -> Outcome:
    """Train twice, for the first one compiles; the second is measured."""
    for number in range(2):
        report = train(graph, config, folder / f"run{number}", overwrite=True)
    seconds = report.metrics.get("seconds_to_target") or report.seconds
    epochs = report.metrics.get("epochs_to_target") or 0
    cpu = report.metrics.get("cpu_seconds_to_target") or 0
    return Outcome(
        seconds=seconds, result={"figures": {"epochs": epochs, "cpu_seconds": cpu}}
    )


def _store(name: str, source: Path, folder: Path) -> Any:
    import graphsys
    from graphsys.datasets import recipes

    path = folder / name
    if not path.exists():
        recipes.build(name, path, folder=source)
    return graphsys.open(path)
