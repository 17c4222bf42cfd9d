"""What the trainer of networks, and what is done with its runs, advise."""

from typing import Any

import pytest

from tests.advice.case import Case
from tests.advice.conftest import Follow

FEW = "--set epochs=1 --set dim=4"
LINKS = f"train gnn g -o links {FEW} --set task=link_prediction"
TGN = "--set model=tgn --set task=temporal_link_prediction --set epochs=1 --set dim=8"
PREDICT = "graphsys/cli/predict.py"
TIMES = "1 2 5\n2 3 6\n3 4 7\n4 5 8\n5 1 9\n1 3 10\n2 4 11\n3 5 12\n4 1 13\n5 2 14\n"


def of_network(command: str, told_in: str, advice: str, *then: str, **given: Any) -> Case:
    """Return a case about the run ``net`` of the graph ``parted``."""
    settings = {"uses": ("parted", "net")} | given
    return Case(command=command, told_in=told_in, advice=advice, then=then, **settings)


def of_links(command: str, told_in: str, advice: str, *then: str, **given: Any) -> Case:
    """Return a case about the run ``links`` of the graph ``g``."""
    return of_network(command, told_in, advice, *then, uses=("g", "links"), **given)


TWO_RELATIONS: dict[str, str | bytes] = {
    "f.csv": "src,relation,dst\na,likes,b\nb,knows,c\nc,likes,a\n"
}
OWN = """
from torch import nn


class Net(nn.Module):
    def __init__(self, num_in, num_out):
        super().__init__()
        self.own = nn.Linear(num_in, num_out)

    def forward(self, rows, x_src, x_dst):
        return self.own(x_dst)
"""


def of_own(command: str, advice: str, *then: str) -> Case:
    """Return a case about a run whose model's file was renamed to ``new.py``."""
    return of_network(
        command,
        "graphsys/gnn/user_models.py",
        advice,
        *then,
        uses=("parted",),
        files={"my.py": OWN},
        before=(
            f"train gnn parted -o own {FEW} --set model=my.py:Net",
            "$ mv my.py new.py",
        ),
    )


CASES = {
    "a column of labels": of_links(
        f"train gnn g -o r {FEW}",
        "graphsys/gnn/data/labels.py",
        "learn to predict edges with (--set task=link_prediction)$",
        f"train gnn g -o r {FEW} {{0}}",
    ),
    "a column of labels by another name": Case(
        files={"kinds.csv": "id,kind,split\na,0,train\nb,1,train\nc,0,test\n"},
        uses=("g",),
        before=("ingest --nodes user=kinds.csv --edges user,trusts,user=trust.csv -o kg",),
        command=f"train gnn kg -o r {FEW}",
        told_in="graphsys/gnn/data/labels.py",
        advice="name one with (--set label=)NAME, or",
        then=(f"train gnn kg -o r {FEW} {{0}}kind",),
    ),
    "labels without a split": Case(
        files={"many.csv": "id,label\n" + "".join(f"{k},{k % 2}\n" for k in range(60))},
        uses=("g",),
        before=(
            "$ printf 'src,dst\\n0,1\\n1,2\\n' > few.csv",
            "ingest --nodes n=many.csv --edges n,e,n=few.csv -o many",
        ),
        command=f"train gnn many -o r {FEW}",
        told_in="graphsys/gnn/data/labels.py",
        advice=r"or draw one and ingest the table again, as CSV: (awk .*) FILE > NEW$",
        then=(
            "$ {0} many.csv > new.csv",
            "ingest --nodes n=new.csv --edges n,e,n=few.csv -o many --overwrite",
            f"train gnn many -o r {FEW}",
        ),
    ),
    "a split by other names": Case(
        files={"odd.csv": "id,label,split,fold\na,0,TRAIN,train\nb,1,TRAIN,train\nc,0,,\n"},
        uses=("g",),
        before=("ingest --nodes user=odd.csv --edges user,trusts,user=trust.csv -o odd",),
        command=f"train gnn odd -o r {FEW}",
        told_in="graphsys/gnn/data/labels.py",
        advice="or name another column with (--set split=)NAME$",
        then=(f"train gnn odd -o r {FEW} {{0}}fold",),
    ),
    "a split that is not there": Case(
        files={"pairs.txt": "".join(f"{k} {(k * 7 + 1) % 40}\n" for k in range(40)) * 3},
        uses=("g",),
        before=(
            "ingest pairs.txt -o pairs --coalesce",
            f"train embedding pairs -o r {FEW}",
        ),
        command="evaluate r",
        told_in="graphsys/embedding/data/held_out.py",
        advice="hold edges out before training, (graphsys split) GRAPH -o GRAPH2$",
        then=(
            "{0} pairs -o pairs2",
            f"train embedding pairs2 -o r2 {FEW}",
            "evaluate r2",
        ),
    ),
    "which relation": Case(
        files=TWO_RELATIONS,
        before=("ingest f.csv -o f", f"train embedding f -o r {FEW}"),
        command="predict r --top-k 1 -o a.csv",
        told_in="graphsys/embedding/files/question_files.py",
        advice="asked about with (--relation) NAME$",
        then=("predict r --top-k 1 {0} knows -o a.csv",),
    ),
    "which relation of questions": Case(
        files=TWO_RELATIONS | {"q.csv": "head,tail\na,\n"},
        before=("ingest f.csv -o f", f"train embedding f -o r {FEW}"),
        command="predict r --nodes q.csv -o a.csv",
        told_in="graphsys/embedding/inference/triples.py",
        advice="in a column relation, or with (--relation) NAME$",
        then=("predict r --nodes q.csv {0} knows -o a.csv",),
    ),
    "edges that no training held out": Case(
        uses=("g",),
        before=(f"train embedding g -o r {FEW}",),
        command="evaluate r --split held_out",
        told_in="graphsys/embedding/data/held_out.py",
        advice="or train with (--set eval_fraction=)F; of each pair",
        then=(
            f"train embedding g -o r2 {FEW} {{0}}0.5",
            "evaluate r2 --split held_out",
        ),
    ),
    "a model's file for embeddings": of_network(
        "nearest run 1 -k 1 --model my.py:Net",
        "graphsys/cli/options.py",
        "(--model) my.py:Net is for runs of networks; leave it out",
        "nearest run 1 -k 1 --json",
        uses=("g", "run"),
    ),
    "where a model's file is": of_own(
        "evaluate own",
        r"say where it is: (--model) FILE\.py:Net",
        "evaluate own {0} new.py:Net --json",
    ),
    "where it is when the training goes on": of_own(
        "train gnn parted -o own --resume --set epochs=2",
        r"for train (--set model=)FILE\.py:Net",
        "train gnn parted -o own --resume --set epochs=2 {0}new.py:Net --json",
    ),
    "a device": of_network(
        f"train gnn parted -o new {FEW} --device tpu",
        "graphsys/gnn/data/device_transfer.py",
        "(--device): got 'tpu', expected (cpu) or cuda",
        f"train gnn parted -o new {FEW} {{0}} {{1}} --json",
    ),
    "walks without weights": of_network(
        f"train gnn parted -o new {FEW} --set model=pinsage --set weighted=true",
        "graphsys/gnn/config_checks.py",
        "its walks take every edge alike; (--set weighted=false)",
        f"train gnn parted -o new {FEW} --set model=pinsage {{0}} --json",
    ),
    "a plateau of evaluations": of_network(
        f"train gnn parted -o new {FEW} --set lr_schedule=plateau --set eval_every=0",
        "graphsys/gnn/config_checks.py",
        "expected evaluations while training; (--set eval_every=1)",
        f"train gnn parted -o new {FEW} --set lr_schedule=plateau {{0}} "
        "--set eval_split=test --json",
    ),
    "memory": of_network(
        f"$ GRAPHSYS train gnn parted -o new {FEW} --memory 40MB",
        "graphsys/gnn/training/api.py",
        r"give (--memory \w+) or more",
        f"$ GRAPHSYS train gnn parted -o new {FEW} {{0}} --json",
    ),
    "a split of links that is not by time": of_network(
        f"train gnn random -o tgn {TGN}",
        "graphsys/gnn/data/events.py",
        "split the store with `(graphsys split) (--by) time`, or ingest it without a split",
        "ingest times.txt -o timed --columns src,dst,time",
        "{0} timed -o ordered {1} time --ratio 0.6,0.2,0.2",
        f"train gnn ordered -o tgn {TGN} --json",
        uses=(),
        files={"times.txt": TIMES},
        before=(
            "ingest times.txt -o t --columns src,dst,time",
            "split t -o random --by random --ratio 0.4,0.3,0.3 --seed 3",
        ),
    ),
    "an index of a network": of_network(
        "nearest net a --index hnsw",
        "graphsys/cli/nearest.py",
        "--index hnsw is for runs of embeddings.*: leave it out",
        "nearest net a --json",
    ),
    "known answers": of_links(
        "predict links --known drop -o p.csv",
        PREDICT,
        "--known drop is about answers; ask for them with (--top-k)",
        "predict links --known drop {0} 2 -o p.csv --json",
    ),
    "splits of known answers": of_links(
        "predict links --known-splits train -o p.csv",
        PREDICT,
        "--known-splits train is about answers; ask for them with (--top-k)",
        "predict links --known-splits train {0} 2 -o p.csv --json",
    ),
    "answers to compare with the test split": of_network(
        "predict run2 --top-k 2 -o p.csv",
        PREDICT,
        "edges of train, .*pass (--known-splits train)",
        "predict run2 --top-k 2 -o q.csv {0} --json",
        code=0,
        uses=(),
        files={"times.txt": TIMES},
        before=(
            "ingest times.txt -o t --columns src,dst,time",
            "split t -o held --ratio 0.6,0.2,0.2",
            f"train embedding held -o run2 {FEW}",
        ),
    ),
    "answers of a classifier": of_network(
        "predict net --top-k 2 -o p.csv",
        "graphsys/gnn/inference/node_rows.py",
        "has no links to predict; leave out --top-k",
        "predict net -o p.csv --json",
    ),
    "operators of a network": of_network(
        "export net -o e.npy --relation-types r.npy",
        "graphsys/cli/export.py",
        "--relation-types writes all of a run of .*; leave it out for a network",
        "export net -o e.npy --json",
    ),
    "a split of nodes that is not there": of_network(
        "evaluate net --split valid --json",
        "graphsys/gnn/data/split_names.py",
        "known: test, train; measure one of these with (--split) NAME, or train by .*",
        "evaluate net {0} test --json",
    ),
    "the column that has a split": of_network(
        "evaluate net --split dev --json",
        "graphsys/gnn/data/split_names.py",
        "or train by the column of nodes that has it, (--set split=)COLUMN$",
        f"train gnn odd -o r {FEW} {{0}}fold",
        "evaluate r --split dev --json",
        uses=("g",),
        files={
            "odd.csv": "id,label,split,fold\na,0,train,train\nb,1,train,dev\n",
            "trust2.csv": "src,dst\na,b\n",
        },
        before=(
            "ingest --nodes user=odd.csv --edges user,trusts,user=trust2.csv -o odd",
            f"train gnn odd -o net {FEW}",
        ),
    ),
    "a split of edges that is not there": of_network(
        "evaluate r --json",
        "graphsys/gnn/data/split_names.py",
        "or hold edges out before training, (graphsys split) GRAPH -o GRAPH2$",
        "{0} pairs -o pairs2",
        f"train gnn pairs2 -o r2 {FEW} --set task=link_prediction",
        "evaluate r2 --json",
        uses=("g",),
        files={"pairs.txt": "".join(f"{k} {(k * 7 + 1) % 40}\n" for k in range(40)) * 3},
        before=(
            "ingest pairs.txt -o pairs --coalesce",
            f"train gnn pairs -o r {FEW} --set task=link_prediction",
        ),
    ),
    "a split of events that is not there": of_network(
        "evaluate r --json",
        "graphsys/gnn/data/split_names.py",
        "hold edges out before training, (graphsys split) GRAPH (--by) time -o GRAPH2$",
        "{0} times {1} time --ratio 0.6,0.2,0.2 -o times2",
        f"train gnn times2 -o r2 {TGN}",
        "evaluate r2 --json",
        uses=(),
        files={"times.txt": TIMES},
        before=(
            "ingest times.txt -o times --columns src,dst,time",
            f"train gnn times -o r {TGN} --set valid_share=0 --set test_share=0",
        ),
    ),
    "a watched split of another name": of_network(
        f"train gnn parted -o r {FEW} --set patience=1",
        "graphsys/gnn/data/split_names.py",
        "name one of these with (--set eval_split=)NAME, or leave it out$",
        f"train gnn parted -o r {FEW} --set patience=1 {{0}}test",
    ),
    "a row per relation": of_network(
        "nearest gatne 1 --json",
        "graphsys/gnn/tasks/multiplex_links.py",
        "a row for each of the relations (one), two; choose one with (--relation)",
        "nearest gatne 1 {1} {0} --json",
        uses=(),
        files={"one.csv": "src,dst\n1,2\n2,3\n3,1\n", "two.csv": "src,dst\n1,3\n3,2\n"},
        before=(
            "ingest --edges node,one,node=one.csv --edges node,two,node=two.csv -o two",
            f"train gnn two -o gatne {FEW} --set model=gatne --set task=link_prediction",
        ),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_network_advises_leads_somewhere_right(name: str, follow: Follow) -> None:
    follow(CASES[name])
