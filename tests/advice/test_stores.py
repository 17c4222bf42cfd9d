"""What is advised about writing, changing and splitting stores leads somewhere right."""

import pytest

from tests.advice.case import Case
from tests.advice.conftest import Follow

TABLES = "ingest --nodes user=users.csv --edges user,trusts,user=more.csv"
USERS = "id,label\na,0\nb,1\nc,0\n"
MORE = "src,dst\na,b\nb,c\nc,x\n"
PAIRS = [(n, m) for n in range(30) for m in (n + 1, n + 2)]
FAMILY = "".join(f"c{n} child c{m}\nc{m} parent c{n}\n" for n, m in PAIRS)
NODES_TABLE = "graphsys/storage/write/node_tables.py"
CASES = {
    "a sum beyond the weights' type": Case(
        files={
            "big.csv": "src,dst,weight\n1,2,1e308\n1,2,1e308\n",
            "less.csv": "src,dst,weight\n1,2,1e300\n1,2,1e300\n",
        },
        command="ingest big.csv -o sums --coalesce",
        advice="(--coalesce): the weights .*; scale the weights down",
        then=("ingest less.csv -o sums {0} --json",),
        told_in="graphsys/storage/write/edge_sort.py",
        expected={"num_edges": 1},
    ),
    "partitions of a type that is not there": Case(
        files={"users.csv": USERS, "more.csv": "src,dst\na,b\n"},
        command=f"{TABLES} -o typed --partitions person=2",
        advice="node type in (--partitions).*known: (user)",
        then=(f"{TABLES} -o typed {{0}} {{1}}=2 --json",),
        told_in="graphsys/storage/ingest/steps.py",
        expected={"num_edges": 1},
    ),
    "coalesce, undirected": Case(
        command="ingest twice.txt -o u --undirected",
        advice=r"pass (--coalesce) to keep",
        then=("ingest twice.txt -o u2 --undirected {0} --json",),
        code=0,
        told_in="graphsys/storage/ingest/quality.py",
        expected={"num_edges": 2},
    ),
    "coalesce": Case(
        files={"a.txt": "1 2\n1 2\n1 2\n"},
        command="ingest a.txt -o u",
        advice=r"pass (--coalesce) to keep",
        then=("ingest a.txt -o u2 {0} --json",),
        code=0,
        told_in="graphsys/storage/ingest/quality.py",
        expected={"num_edges": 1},
    ),
    "a missing column": Case(
        files={"a.csv": "src,dst,kind\n1,2,x\n1,2,y\n1,2,z\n"},
        command="ingest a.csv -o u --columns src,dst",
        code=0,
        advice=r"name it with (--columns), else",
        then=("ingest a.csv -o u2 {0} src=src,dst=dst,relation=kind --json",),
        told_in="graphsys/storage/ingest/quality.py",
        expected={"num_edges": 3},
    ),
    "overwrite a graph, and split": Case(
        uses=("g",),
        command="ingest twice.txt -o g --split 0.5,0,0.5",
        advice=r"pass (--overwrite)",
        then=("ingest twice.txt -o g --split 0.5,0,0.5 --seed 3 {0} --json",),
        told_in="graphsys/storage/transaction.py",
    ),
    "overwrite a graph, and partition": Case(
        uses=("g",),
        command="ingest twice.txt -o g --partitioner ldg --partitions 2",
        advice=r"pass (--overwrite)",
        then=("ingest twice.txt -o g --partitioner ldg --partitions 2 {0} --json",),
        told_in="graphsys/storage/transaction.py",
        expected={"num_edges": 4},
    ),
    "overwrite a graph": Case(
        uses=("g",),
        command="ingest twice.txt -o g",
        advice=r"pass (--overwrite)",
        then=("ingest twice.txt -o g {0} --json",),
        expected={"num_edges": 4},
        told_in="graphsys/storage/transaction.py",
    ),
    "deletes": Case(
        uses=("g",),
        files={"gone.txt": "7 8\n"},
        command="append g --delete gone.txt",
        advice=r"pass (--missing-deletes count)",
        then=("append g --delete gone.txt --json {0}",),
        expected={"num_edges": 4},
        told_in="graphsys/storage/dynamic/deletions.py",
    ),
    "signs appended as weights": Case(
        files={
            "old.csv": "src,dst,weight\n1,2,1\n2,3,-1\n",
            "new.csv": "src,dst,weight\n1,3,-2\n",
        },
        before=("ingest old.csv -o g --signed",),
        command="append g new.csv",
        told_in="graphsys/storage/dynamic/schema.py",
        advice=r"the weight in this graph; pass (--signed)",
        then=("append g new.csv {0} --json",),
        expected={"num_edges": 3},
    ),
    "names appended to integers": Case(
        uses=("g",),
        files={"new.csv": "src,dst\n007,1\n"},
        command="append g new.csv",
        advice=r"the graph has \((--ids) says their kind\)",
        then=("append g new.csv {0} int --json",),
        expected={"num_edges": 5},
        told_in="graphsys/storage/dynamic/node_finder.py",
    ),
    "a comparison": Case(
        uses=("g",),
        command="partition g --partitioner hash",
        advice="give .*, (--compare), or",
        then=("partition g --partitions 2 {0} --json",),
        told_in="graphsys/cli/partition.py",
    ),
    "another graph": Case(
        uses=("g",),
        command="partition g --partitioner hash",
        advice="give (--out) GRAPH2",
        then=("partition g --partitions 2 {0} g2 --json", "info g2 --json"),
        told_in="graphsys/cli/partition.py",
        expected={"num_edges": 4, "partitions": 2},
    ),
    "counts by type": Case(
        uses=("g",),
        command="partition g -o g2 --partitions x",
        told_in="graphsys/cli/options.py",
        advice="(--partitions): got 'x', expected a count .* such as",
        then=("partition g -o g2 {0} 2", "info g2 --json"),
        expected={"partitions": 2},
    ),
    "no graph": Case(
        command="info g",
        advice=r"`(graphsys ingest)` or",
        then=("{0} twice.txt -o g --json",),
        expected={"num_edges": 4},
        told_in="graphsys/storage/manifest.py",
    ),
    "no graph, a data set": Case(
        command="info g",
        advice=r"or `(graphsys dataset) build`",
        then=("{0} build demo -o g --json",),
        told_in="graphsys/storage/manifest.py",
    ),
    "no id column": Case(
        files={"n.csv": "uid,label\na,0\nb,1\n", "e.csv": "src,dst\na,b\n"},
        command="ingest --nodes user=n.csv --edges user,t,user=e.csv -o g",
        advice=r"with (--columns user.id=)NAME",
        expected={"num_nodes": 2},
        then=("ingest --nodes user=n.csv --edges user,t,user=e.csv -o g {0}uid --json",),
        told_in="datasets/table_spec/typed_tables.py",
    ),
    "numbers that no model reads": Case(
        files={"n.csv": "id,age,height\na,3,4\nb,5,6\n", "e.csv": "src,dst\na,b\n"},
        command="ingest --nodes user=n.csv --edges user,t,user=e.csv -o g",
        code=0,
        advice=r"say (--columns user.x=age\+height)",
        expected={"num_nodes": 2},
        then=("ingest --nodes user=n.csv --edges user,t,user=e.csv -o g2 {0} --json",),
        told_in="datasets/table_spec/typed_tables.py",
    ),
    "unknown ends": Case(
        files={"n.csv": "id\na\nb\n", "e.csv": "buyer,seller\na,b\n"},
        command="ingest --nodes user=n.csv --edges user,t,user=e.csv -o g",
        advice=r"with (\S+ t.src=buyer,t.dst=seller)",
        expected={"num_nodes": 2},
        then=("ingest --nodes user=n.csv --edges user,t,user=e.csv -o g2 {0} --json",),
        told_in="datasets/roles.py",
    ),
    "unknown ends with blanks": Case(
        files={"n.csv": "id\na\nb\n", "e.csv": "the buyer,the seller\na,b\n"},
        command="ingest --nodes user=n.csv --edges user,t,user=e.csv -o g",
        advice=r"with (--columns \"[^\"]+\")",
        expected={"num_nodes": 2},
        then=("ingest --nodes user=n.csv --edges user,t,user=e.csv -o g2 {0} --json",),
        told_in="datasets/roles.py",
    ),
    "integers and names": Case(
        files={"n.csv": "id\n7\n8\n", "e.csv": "src,dst\na,b\n"},
        command="ingest --nodes user=n.csv --edges user,t,user=e.csv -o g",
        advice=r"or pass (--ids string)",
        expected={"num_nodes": 4},
        then=("ingest --nodes user=n.csv --edges user,t,user=e.csv -o g {0} --json",),
        told_in="graphsys/storage/ids/id_mapping.py",
    ),
    "no node has a row": Case(
        files={"users.csv": "id\n007\n008\n", "more.csv": "src,dst\n7,8\n"},
        command=f"{TABLES} -o g --missing-nodes drop --ids string",
        advice="pass (--ids int) if 007 and 7 are one",
        then=(f"{TABLES} -o g --missing-nodes drop {{0}} --json",),
        told_in="datasets/missing_nodes.py",
        expected={"num_nodes": 2, "num_edges": 1},
    ),
    "nodes without a row": Case(
        files={"users.csv": USERS, "more.csv": MORE},
        command=f"{TABLES} -o g",
        code=0,
        advice="pass (--missing-nodes drop) to",
        then=(f"{TABLES} -o g2 {{0}} --json",),
        told_in=NODES_TABLE,
        expected={"num_nodes": 3, "num_edges": 2},
    ),
    "nodes that are refused": Case(
        files={"users.csv": USERS, "more.csv": MORE},
        command=f"{TABLES} -o g --missing-nodes refuse",
        advice="pass (--missing-nodes drop) to leave out .*, or (make)",
        then=(f"{TABLES} -o g {{0}}", f"{TABLES} -o g2 --missing-nodes {{1}} --json"),
        told_in=NODES_TABLE,
        expected={"num_nodes": 4, "num_edges": 3},
        quiet=False,
    ),
    "nodes without features": Case(
        files={"users.csv": "id,x0,x1\na,0,1\nb,1,1\nc,0,0\n", "more.csv": MORE},
        command=f"{TABLES} -o g --columns user.x=x0+x1",
        advice="pass (--missing-nodes drop) to leave",
        then=(f"{TABLES} -o g --columns user.x=x0+x1 {{0}} --json",),
        told_in=NODES_TABLE,
        expected={"num_nodes": 3, "num_edges": 2},
    ),
    "inverse relations": Case(
        files={"kg.txt": FAMILY},
        code=0,
        command="ingest kg.txt -o kg --format triples --split .8,.1,.1",
        advice="keep them together with (--inverse together), or",
        then=("ingest kg.txt -o kg2 --format triples --split .8,.1,.1 {0} --json",),
        told_in="graphsys/storage/ingest/split_plan.py",
        expected={"num_edges_by_split": {"train": 96, "valid": 12, "test": 12}},
    ),
    "inverse relations apart": Case(
        files={"kg.txt": FAMILY},
        code=0,
        command="ingest kg.txt -o kg --format triples --split .8,.1,.1",
        advice="or pass (--inverse apart)",
        then=("ingest kg.txt -o kg2 --format triples --split .8,.1,.1 {0} --json",),
        told_in="graphsys/storage/ingest/split_plan.py",
        expected={"num_edges_by_split": {"train": 96, "valid": 12, "test": 12}},
    ),
    "a split by time": Case(
        files={
            "a.csv": "src,dst,when\n" + "".join(f"{n},{n + 1},{n}\n" for n in range(20))
        },
        before=("ingest a.csv -o g",),
        command="split g -o s --by time",
        advice="name it with (--columns time=)NAME when the graph is ingested",
        then=("ingest a.csv -o g2 {0}when", "split g2 -o s --by time --json"),
        told_in="graphsys/storage/ingest/split_plan.py",
        expected={"num_edges_by_split": {"train": 16, "valid": 2, "test": 2}},
    ),
    "files or tables": Case(
        files={"users.csv": USERS, "more.csv": MORE},
        command="ingest -o g",
        advice="tables with (--nodes) and (--edges)",
        then=("ingest {0} user=users.csv {1} user,trusts,user=more.csv -o g --json",),
        told_in="graphsys/cli/ingest.py",
        expected={"num_nodes": 4},
    ),
    "an ingest within too little memory": Case(
        command="$ GRAPHSYS ingest twice.txt -o g --memory 20MB",
        advice=r"give (--memory \w+)",
        then=("$ GRAPHSYS ingest twice.txt -o g {0} --json",),
        expected={"num_edges": 4},
        told_in="graphsys/core/memory.py",
    ),
    "a pipe on a cluster": Case(
        before=("$ mkfifo pipe",),
        command="ingest pipe -o g --format edgelist --cluster local:1",
        advice="leave out --cluster, or",
        then=(
            "$ (cat twice.txt > pipe &) &> /dev/null",
            "ingest pipe -o g --format edgelist --json",
        ),
        told_in="graphsys/cli/ingest.py",
        expected={"num_edges": 4},
    ),
    "counts of a card": Case(
        files={f"kin/{name}.txt": "a r b\nb r c\n" for name in ("train", "valid", "test")},
        command="dataset build wn18rr --from kin -o g",
        advice="or pass (--allow-other-counts)",
        then=("dataset build wn18rr --from kin -o g {0} --json",),
        told_in="datasets/recipes/build.py",
        expected={"num_nodes": 3},
    ),
    "no folder of a card": Case(
        files={f"kin/{name}.txt": "a r b\nb r c\n" for name in ("train", "valid", "test")},
        command="dataset build wn18rr --from none -o g",
        advice=r"(--from) names one with (train.txt, valid.txt, test.txt)",
        then=("dataset build wn18rr {0} kin --allow-other-counts -o g --json",),
        told_in="datasets/recipes/build.py",
        expected={"num_nodes": 3},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_advised_about_stores_leads_somewhere_right(
    name: str, follow: Follow
) -> None:
    follow(CASES[name])
