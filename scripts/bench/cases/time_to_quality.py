"""Case ``time_to_quality``: how long a training takes until valid reaches a target.

Two works: GCN on Cora until .78 of valid are right, beside PyG, and ComplEx on UMLS until
the filtered valid MRR is .90, beside PyKEEN, which has an environment of its own
(scripts/bench/peer_environments). Each system evaluates after every epoch; the time is
that of the epochs alone, evaluations and compiling left out, and ends with the epoch whose
evaluation reached the target (MLPerf's time to quality). A run that does not reach it is
wrong. GCN has the same layers, dropout, optimizer and penalty in both. ComplEx has rank 100
in both, reciprocal relations and all nodes as negatives; ours has the preset's Adagrad,
PyKEEN's Adam with the rate that reached the target soonest of .3, .1, .03, .01 and .003.
"""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench import output
from bench.child import in_child
from bench.environments import peer_python
from bench.harness import OURS, Contender, Outcome, Work, WrongResultError
from bench.limits import Limits

MODULE = "bench.cases.time_to_quality"
PEERS = {"PyG": "torch_geometric", "PyKEEN": "pykeen"}
ACCURACY, MRR = 0.78, 0.90
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
        ("PyG", in_child(f"{MODULE}:pyg", shared=shared)),
        missing,
    )
    peer = peer_python("pykeen")
    yield _work(
        f"UMLS, ComplEx, valid MRR {MRR}",
        in_child(f"{MODULE}:our_embedding", shared=shared, folder=folder),
        ("PyKEEN", peer and in_child(f"{MODULE}:pykeen", python=peer, shared=shared)),
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


def pyg(shared: str) -> Outcome:
    """Train PyG's own example of GCN."""
    import torch
    from torch.nn import functional
    from torch_geometric.io import read_planetoid_data
    from torch_geometric.nn import GCNConv
    from torch_geometric.transforms import NormalizeFeatures

    torch.set_num_threads(THREADS)
    data = NormalizeFeatures()(read_planetoid_data(str(Path(shared) / "planetoid"), "cora"))

    class Gcn(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = GCNConv(data.num_features, 16, cached=True)
            self.second = GCNConv(16, int(data.y.max()) + 1, cached=True)

        def forward(self) -> torch.Tensor:
            x = functional.dropout(data.x, training=self.training)
            x = self.first(x, data.edge_index).relu()
            x = functional.dropout(x, training=self.training)
            return self.second(x, data.edge_index)

    def train() -> Outcome:
        torch.manual_seed(0)
        network = Gcn()
        groups = [
            {"params": network.first.parameters(), "weight_decay": 5e-4},
            {"params": network.second.parameters()},
        ]
        optimizer = torch.optim.Adam(groups, lr=0.01)

        def epoch() -> None:
            network.train()
            optimizer.zero_grad()
            rows = network()[data.train_mask]
            functional.cross_entropy(rows, data.y[data.train_mask]).backward()
            optimizer.step()

        def accuracy() -> float:
            network.eval()
            with torch.no_grad():
                right = network()[data.val_mask].argmax(1) == data.y[data.val_mask]
            return float(right.float().mean())

        return _timed(epoch, accuracy, ACCURACY, 200)

    train()
    return train()


def pykeen(shared: str, lr: float = 0.01) -> Outcome:
    """Train PyKEEN's ComplEx with all nodes as negatives."""
    import torch
    from pykeen.evaluation import RankBasedEvaluator
    from pykeen.models import ComplEx
    from pykeen.training import LCWATrainingLoop
    from pykeen.triples import TriplesFactory

    torch.set_num_threads(THREADS)
    folder = Path(shared) / "umls"
    training = TriplesFactory.from_path(folder / "train.txt", create_inverse_triples=True)
    known = {
        "entity_to_id": training.entity_to_id,
        "relation_to_id": training.relation_to_id,
    }
    valid = TriplesFactory.from_path(folder / "valid.txt", **known)
    test = TriplesFactory.from_path(folder / "test.txt", **known)

    def train() -> Outcome:
        model = ComplEx(
            triples_factory=training, embedding_dim=100, loss="crossentropy", random_seed=0
        )
        optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        loop = LCWATrainingLoop(model=model, triples_factory=training, optimizer=optimizer)
        evaluator = RankBasedEvaluator(filtered=True)
        done = 0

        def epoch() -> None:
            nonlocal done
            done += 1
            loop.train(
                training,
                num_epochs=done,
                batch_size=200,
                use_tqdm=False,
                use_tqdm_batch=False,
                continue_training=done > 1,
                label_smoothing=0.0,
                sampler=None,
            )

        def mrr() -> float:
            found = evaluator.evaluate(
                model,
                valid.mapped_triples,
                additional_filter_triples=[training.mapped_triples, test.mapped_triples],
                use_tqdm=False,
            )
            return float(found.get_metric("mrr"))

        return _timed(epoch, mrr, MRR, 200)

    train()
    return train()


def _timed(
    epoch: Callable[[], None], evaluate: Callable[[], float], target: float, most: int
) -> Outcome:
    """Train epochs until an evaluation reaches the target; the epochs alone are timed."""
    seconds = cpu = 0.0
    for number in range(1, most + 1):
        began, began_cpu = time.perf_counter(), time.process_time()
        epoch()
        seconds += time.perf_counter() - began
        cpu += time.process_time() - began_cpu
        if evaluate() >= target:
            return Outcome(
                seconds=seconds,
                result={"figures": {"epochs": number, "cpu_seconds": round(cpu, 3)}},
            )
    return Outcome(seconds=seconds, result={"figures": {"epochs": 0, "cpu_seconds": cpu}})
