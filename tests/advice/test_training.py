"""What trainings and their runs advise leads somewhere right."""

from typing import Any

import pytest

from tests.advice.case import Case
from tests.advice.conftest import Follow

FEW = "--set epochs=1 --set dim=4"
TRAIN = f"train embedding g {FEW} -o run"
FOLDER = "graphsys/storage/runs/run_folder.py"


def of_run(command: str, told_in: str, advice: str, *then: str, **given: Any) -> Case:
    """Return a case about the run ``run`` of the graph ``g``."""
    settings = {"uses": ("g", "run")} | given
    return Case(command=command, told_in=told_in, advice=advice, then=then, **settings)


WORDS = """\
import scipy.sparse as s
rows, words = range(8), [k % 3 for k in range(8)]
s.save_npz("words.npz", s.csr_array(([1.0] * 8, ([*rows], words))))
"""
BAGS = """\
[[nodes]]
count = 8
bags = { words = "words.npz" }
[[edges]]
file = "ring.csv"
header = true
"""
CASES = {
    "features in one table": of_run(
        "train embedding two -o e --config words.toml",
        "graphsys/embedding/rows/node_rows.py",
        "partition again with (--partitions node=1)",
        "partition two {0} -o one",
        "train embedding one -o e --config words.toml --json",
        uses=(),
        files={
            "words.py": WORDS,
            "bags.toml": BAGS,
            "ring.csv": "src,dst\n" + "".join(f"{k},{(k + 1) % 8}\n" for k in range(8)),
            "words.toml": 'dim = 4\nepochs = 1\n[node_types.node]\nfeatures = "words"\n',
        },
        before=("$ {python} words.py", "ingest bags.toml --partitions 2 -o two"),
    ),
    "states of another optimizer": of_run(
        "train embedding g -o e --set dim=4 --set init_from=run --set optimizer=adam",
        "graphsys/embedding/training/warm_start.py",
        "leave them there with (--set init_state=false)",
        f"train embedding g -o e {FEW} --set init_from=run --set optimizer=adam {{0}} "
        "--json",
    ),
    "fewer groups": of_run(
        "train embedding four -o e --set partition_groups=3",
        "graphsys/embedding/training/api.py",
        "(--set partition_groups=2), or",
        f"train embedding four -o e {FEW} {{0}} --json",
        uses=(),
        before=("ingest twice.txt -o four --partitions 4",),
    ),
    "relations by products": of_run(
        "train embedding g -o e --set relation_prediction=1 --set operator=diagonal --set "
        "comparator=cos",
        "graphsys/embedding/config.py",
        "expected dot; (--set comparator=dot)",
        f"train embedding g -o e {FEW} --set relation_prediction=1 --set operator=diagonal "
        "{0} --json",
    ),
    "relations that differ": of_run(
        "train embedding g -o e --set relation_prediction=1",
        "graphsys/embedding/config.py",
        "the same for all relations; (--set operator=complex_diagonal)",
        f"train embedding g -o e {FEW} --set relation_prediction=1 {{0}} --json",
    ),
    "all nodes alone": of_run(
        "train embedding g -o e --set num_batch_negatives=0 --set num_uniform_negatives=0",
        "graphsys/embedding/config.py",
        r"or all nodes for every relation: (--set '[^']+')",
        f"train embedding g -o e {FEW} --set num_batch_negatives=0 "
        "--set num_uniform_negatives=0 {0} --json",
    ),
    "a loss of all nodes": of_run(
        "train embedding g -o e --set mode=1vsall --set loss=ranking",
        "graphsys/embedding/config.py",
        r"expected softmax; (--set loss=softmax), or with other losses (--set '\S+') "
        r"(--set mode=sampled)",
        f"train embedding g -o e {FEW} --set mode=1vsall {{0}} --json",
        f"train embedding g -o all {FEW} --set loss=ranking {{1}} {{2}} --json",
    ),
    "labels of all nodes": of_run(
        "train embedding g -o e --set label_smoothing=0.1",
        "graphsys/embedding/config.py",
        "with mode sampled, expected all nodes; (--set mode=1vsall)",
        f"train embedding g -o e {FEW} --set label_smoothing=0.1 {{0}} --json",
    ),
    "negatives beside all nodes": of_run(
        "train embedding g -o e --set mode=1vsall --set loss=softmax --set "
        "mask_known_edges=false --set 'negatives=[{kind=\"uniform\", num=9}]'",
        "graphsys/embedding/config.py",
        "leave one of them out, or (--set mode=sampled)",
        f"train embedding g -o e {FEW} --set loss=softmax --set "
        "'negatives=[{{kind=\"uniform\", num=9}}]' {0} --json",
    ),
    "questions of weighted edges": of_run(
        "train embedding weighted -o e --set mode=kvsall",
        "graphsys/embedding/training/bucket_trainer.py",
        "train without them: (--set edge_weights=false), or edge by edge: "
        "(--set mode=1vsall)",
        f"train embedding weighted -o e {FEW} --set mode=kvsall {{0}} --json",
        f"train embedding weighted -o edges {FEW} {{1}} --json",
        uses=(),
        files={"w.csv": "src,dst,weight\n1,2,0.5\n2,3,2\n"},
        before=("ingest w.csv -o weighted",),
    ),
    "dropout of questions": of_run(
        "train embedding g -o e --set dropout=0.1",
        "graphsys/embedding/config.py",
        "no candidates at once; (--set reciprocal=true)",
        f"train embedding g -o e {FEW} --set dropout=0.1 {{0}} --json",
    ),
    "penalty of compared rows": of_run(
        "train embedding g -o e --set regularizer_kind=dura",
        "graphsys/embedding/config.py",
        "the row of every question; (--set reciprocal=true)",
        f"train embedding g -o e {FEW} --set regularizer_kind=dura {{0}} --json",
    ),
    "groups of no plane": of_run(
        "train embedding g -o e --set partition_groups=6",
        "graphsys/embedding/config.py",
        "as one: (--set join_partitions=true)",
        f"train embedding g -o e {FEW} {{0}} --json",
    ),
    "memory of joined partitions": of_run(
        f"$ GRAPHSYS {TRAIN} --overwrite --set join_partitions=true --memory 20MB",
        "graphsys/embedding/training/plan.py",
        r"give (--memory \w+), or train partition by partition: "
        "(--set join_partitions=false)",
        f"$ GRAPHSYS {TRAIN} --overwrite {{0}} {{1}} --json",
    ),
    "more partitions": of_run(
        "$ GRAPHSYS train embedding wide -o e --set dim=1024 --set epochs=1 --memory 400MB",
        "graphsys/embedding/training/plan.py",
        r"with more partitions: "
        r"`(graphsys partition) (\S+) (--partitions) (\d+) -o GRAPH2`",
        "{0} {1} {2} {3} -o wide2",
        "$ GRAPHSYS train embedding wide2 -o e --set dim=1024 --set epochs=1 "
        "--memory 400MB --json",
        uses=(),
        before=(
            "$ seq 0 60000 | awk '{print $1, $1 + 1}' > path.txt",
            "ingest path.txt -o wide",
        ),
    ),
    "groups": of_run(
        "train embedding g -o e --set partition_groups=3",
        "graphsys/embedding/training/api.py",
        r"`(graphsys partition \S+ --partitioner hash --partitions 9) -o GRAPH2`",
        "{0} -o g9",
        f"train embedding g9 -o e --set partition_groups=3 {FEW} --json",
    ),
    "a run is there": of_run(
        TRAIN, FOLDER, r"or replace it with (--overwrite)", f"{TRAIN} {{0}} --json"
    ),
    "a run to go on with": of_run(
        TRAIN, FOLDER, r"continue it with (--resume)", f"{TRAIN} {{0}} --json"
    ),
    "no run to go on with": of_run(
        f"train embedding g {FEW} -o new --resume",
        FOLDER,
        r"train without --resume",
        f"train embedding g {FEW} -o new --json",
    ),
    "an empty folder": of_run(
        f"train embedding g {FEW} -o new",
        FOLDER,
        r"remove it or pass (--overwrite)",
        f"train embedding g {FEW} -o new {{0}} --json",
        before=("$ mkdir new",),
    ),
    "no run": of_run(
        "evaluate none",
        "graphsys/embedding/run.py",
        r"(graphsys train) embedding",
        f"{{0}} embedding g -o none {FEW} --json",
    ),
    "rows of the best epoch alone": of_run(
        "train embedding ring -o e --resume --set epochs=9",
        "graphsys/embedding/training/api.py",
        r"`(graphsys train) embedding GRAPH -o NEW (--config \S+) "
        r"(--set init_from=\S+)`",
        "{0} embedding ring -o new {1} {2} --set patience=0 --json",
        uses=(),
        files={"ring.csv": "src,dst\n" + "".join(f"{k},{k + 1}\n" for k in range(30))},
        before=(
            "ingest ring.csv --split 0.6,0.2,0.2 -o ring",
            (
                "train embedding ring -o e --set dim=4 --set epochs=8 --set eval_every=1 "
                "--set patience=1 --set min_improvement=2"
            ),
        ),
    ),
    "what early stopping ended": of_run(
        "train gnn parted -o n --resume --set epochs=12",
        "graphsys/gnn/training/api.py",
        r"also give a larger one or (--set patience=0)",
        "train gnn parted -o n --resume --set epochs=12 {0} --json",
        uses=("parted",),
        before=(
            (
                "train gnn parted -o n --set epochs=9 --set dim=4 --set patience=1 "
                "--set lr=1e-9 --set eval_split=test"
            ),
        ),
        expected={"epochs": 12},
    ),
    "a device": of_run(
        f"{TRAIN} --overwrite --device tpu",
        "graphsys/embedding/training/api.py",
        r"(--device): got 'tpu', expected (cpu) or cuda",
        f"{TRAIN} --overwrite {{0}} {{1}} --json",
    ),
    "relations of a run": of_run(
        "nearest run 1 --relation edge",
        "graphsys/cli/options.py",
        r"--relation edge: .*; leave it out",
        "nearest run 1 --json",
    ),
    "memory": of_run(
        f"$ GRAPHSYS {TRAIN} --overwrite --memory 20MB",
        "graphsys/embedding/training/plan.py",
        r"give (--memory \w+)",
        f"$ GRAPHSYS {TRAIN} --overwrite {{0}} --json",
    ),
    "negative weights": of_run(
        f"train embedding signed {FEW} -o signs",
        "graphsys/embedding/training/bucket_trainer.py",
        r"train without them: (--set edge_weights=false)",
        f"train embedding signed {FEW} -o signs2 {{0}} --json",
        files={"signed.txt": "1 2 -1\n2 3 1\n"},
        before=("ingest signed.txt -o signed",),
    ),
    "where signs are": of_run(
        "ingest bare.csv -o signed --signed",
        "datasets/signed_edges.py",
        r"say which it is with (--columns), such as",
        "ingest bare.csv -o signed --signed {0} weight=vote,src=src,dst=dst --json",
        files={"bare.csv": "src,dst,vote\n1,2,-1\n2,3,1\n"},
    ),
    "signs of edges with relations": of_run(
        "ingest kinds.csv -o kinds --signed",
        "datasets/signed_edges.py",
        r"leave out (--signed), or the column relation",
        "ingest kinds.csv -o kinds --json",
        files={"kinds.csv": "src,dst,relation,weight\n1,2,a,1\n2,3,b,1\n"},
    ),
    "signs as relations": of_run(
        f"train embedding signed {FEW} -o signs",
        "graphsys/embedding/training/bucket_trainer.py",
        r"or have their sign as relation: (graphsys ingest) (--signed)",
        "ingest signed.txt -o again {1}",
        f"train embedding again {FEW} -o signs2 --json",
        files={"signed.txt": "1 2 -1\n2 3 1\n"},
        before=("ingest signed.txt -o signed",),
    ),
    "types of relations of some rows": of_run(
        "export run -o e.npy --relation-types r.npy --node-type node",
        "graphsys/cli/export.py",
        r"leave it out for a network, and with (--node-type)",
        "export run -o e.npy {0} node --json",
    ),
    "a network has no index": of_run(
        "export run -o e.npy --relation-types r.npy --memory 1GB",
        "graphsys/cli/export.py",
        r"--memory does not .*; leave it out",
        "export run -o e --relation-types r --json",
        quiet=False,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_training_advises_leads_somewhere_right(name: str, follow: Follow) -> None:
    follow(CASES[name])
