"""What is advised where workers do not do what one machine does leads to a result."""

from typing import Any

import pytest

from tests.advice.case import Case
from tests.advice.conftest import Follow

TWO = "--cluster local:2"
FEW = "--set epochs=1 --set dim=4"
EMBEDDING, NETWORK = (
    "graphsys/distributed/embedding/training.py",
    "graphsys/distributed/gnn/training.py",
)
RUN = "graphsys/distributed/run.py"
OWN = """\
import graphsys as gs


class Kept(gs.VertexProgram):
    simple = True
    heard = gs.edge_state("float64")
    x = gs.state("float64", default=1.0)
    schedule, stores, combine, max_supersteps = "all", "heard", gs.sum, 2

    def message(self, src, edge):
        return src.x + edge.heard

    def update(self, node, message):
        return message


class Length(gs.VertexProgram):
    x = gs.state("float64", default=0.0)
    combine, max_supersteps, edge_columns = gs.sum, 2, ("miles",)

    def message(self, src, edge):
        return edge.miles

    def update(self, node, message):
        return message
"""
RING = "".join(f"{n} {(n + 1) % 20}\n" for n in range(20))


def of_cluster(command: str, told_in: str, advice: str, *then: str, **given: Any) -> Case:
    """Return a case about the graph ``g``, of one partition."""
    settings = {"uses": ("g",)} | given
    return Case(command=command, told_in=told_in, advice=advice, then=then, **settings)


def of_training(kind: str, setting: str, told_in: str, advice: str, then: str) -> Case:
    """Return a case about a setting of a training that does not go with ``--cluster``."""
    words = f"train {kind} four -o new {FEW}"
    more = "" if kind == "embedding" else " --set task=link_prediction"
    return of_cluster(
        f"{words}{more} {setting} {TWO}",
        told_in,
        advice,
        f"{words}{more} {then} --json",
        uses=(),
        files={"ring.txt": RING},
        before=("ingest ring.txt -o four --partitions 4",),
        expected={"epochs": 1},
    )


CASES = {
    "a program of a native algorithm": of_cluster(
        f"run leiden g -o r.csv {TWO}",
        RUN,
        "which is what a cluster runs; leave out --cluster",
        "run leiden g -o r.csv --json",
        expected={"algorithm": "leiden"},
    ),
    "a native implementation": of_cluster(
        f"run wcc g -o r.csv {TWO} --implementation native",
        RUN,
        "vertex programs; leave out --implementation native or --cluster",
        "run wcc g -o r.csv --json",
        expected={"algorithm": "wcc"},
    ),
    "states of edges": of_cluster(
        f"run own.py:Kept g -o r.csv {TWO}",
        RUN,
        "which workers cannot; leave out --cluster",
        "run own.py:Kept g -o r.csv --json",
        files={"own.py": OWN},
    ),
    "columns of edges": of_cluster(
        f"run own.py:Length miles -o r.csv {TWO}",
        RUN,
        "they read weight, time and relation; leave out --cluster",
        "run own.py:Length miles -o r.csv --json",
        files={"own.py": OWN, "m.csv": "src,dst,miles\n1,2,3\n2,3,4\n"},
        before=("ingest m.csv -o miles --columns src,dst,miles",),
    ),
    "an order that looks at the whole graph": of_cluster(
        f"ingest twice.txt -o new --order rcm {TWO}",
        "graphsys/distributed/ingestion/api.py",
        "the whole graph, which --cluster does not; leave out --cluster, or partition",
        "ingest twice.txt -o new --order rcm --json",
        expected={"num_edges": 4},
    ),
    "questions to embeddings": of_cluster(
        f"predict run -o p.csv {TWO}",
        "graphsys/cli/predict.py",
        "--cluster: .* is a run of embeddings.*; leave it out",
        "predict run -o p.csv --json",
        uses=("g", "run"),
    ),
    "a network of all rows at once": of_cluster(
        f"predict whole -o p.csv {TWO}",
        "graphsys/distributed/inference/network_run.py",
        "workers share the nodes of layers; leave out --cluster",
        "predict whole -o p.csv --json",
        uses=("parted",),
        before=(f"train gnn parted -o whole {FEW} --set model=gcn --set batch_size=0",),
    ),
    "a device of embeddings": of_training(
        "embedding",
        "--device cuda",
        EMBEDDING,
        "device: got cuda with --cluster, .*; leave out one of them",
        "",
    ),
    "numbers of embeddings": of_training(
        "embedding",
        "--set numbers=true",
        EMBEDDING,
        "numbers: got true with --cluster, .*; leave out one of them",
        "",
    ),
    "a plateau of embeddings": of_training(
        "embedding",
        "--set lr_schedule=plateau --set eval_every=1 --set eval_split=train",
        EMBEDDING,
        "got plateau with --cluster, .*; leave out one of them",
        "--set lr_schedule=plateau --set eval_every=1 --set eval_split=train",
    ),
    "the same bits from embeddings": of_training(
        "embedding",
        "--set deterministic=true",
        EMBEDDING,
        "the clock; take (--cluster) local:1 or leave out --cluster",
        "--set deterministic=true",
    ),
    "a device of networks": of_training(
        "gnn",
        "--device cuda",
        NETWORK,
        "device: got cuda with --cluster, .*; leave out one of them",
        "",
    ),
    "rows on disk": of_training(
        "gnn",
        "--set learned_rows=disk",
        NETWORK,
        "learned_rows: got disk with --cluster.*; expected memory, or leave out --cluster",
        "--set learned_rows=disk",
    ),
    "all of a graph at once": of_training(
        "gnn",
        "--set batch_size=0",
        NETWORK,
        "a model that samples, or leave out --cluster",
        "--set batch_size=0",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_workers_do_not_do_is_done_as_advised(name: str, follow: Follow) -> None:
    follow(CASES[name])
