"""PyG's and PyKEEN's sides of the case ``time_to_quality``, which import no graphsys."""

import time
from collections.abc import Callable
from pathlib import Path

from bench.harness import Outcome

THREADS = 2


def pyg(shared: str, goal: float) -> Outcome:
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

        return _timed(epoch, accuracy, goal, 200)

    train()
    return train()


def pykeen(shared: str, goal: float, lr: float = 0.1) -> Outcome:
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

        return _timed(epoch, mrr, goal, 200)

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
