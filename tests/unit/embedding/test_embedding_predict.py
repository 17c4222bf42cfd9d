"""Scores and predictions against plain Python, in every combination of settings."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from graphsys.cli.main import main
from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.embedding import (
    EmbeddingConfig,
    Embeddings,
    evaluate,
    open_run,
    predict,
    score,
    train,
)
from graphsys.embedding.files.question_files import all_questions, read_questions
from graphsys.storage import Graph
from tests.embedding_codes import OPERATOR_CODES
from tests.ranking_oracle import compare, operate, triples
from tests.runs import reseal
from tests.unit.embedding.triple_graphs import write

MakeRing = Callable[[int], Graph]
RING = [f"e{k:02d}" for k in range(40)]


def train_ring(graph: Graph, out: Path, **settings: Any) -> Embeddings:
    config = EmbeddingConfig(
        dim=6, epochs=1, init_scale=1.0, operator_init="random", **settings
    )
    train(graph, config, out)
    return open_run(out)


def all_scores(run: Embeddings, given: str, relation: str, side: str) -> Any:
    """Score every entity of the ring at one end, by name, in float64."""
    (model,) = run.model
    r = model.relations.index(relation)
    table = run.operators(model).astype(np.float64)
    span, code = slice(model.offsets[r], model.offsets[r + 1]), int(model.codes[r])
    rows = run.lookup(RING).astype(np.float64)
    own = rows[RING.index(given)]
    comparator = run.config.comparator
    if model.num_sides == 2:
        query = operate(code, table[0 if side == "tail" else 2, span], own)
        found = compare(comparator, query, rows)
    elif side == "tail":
        found = compare(comparator, own, operate(code, table[0, span], rows))
    else:
        found = compare(comparator, operate(code, table[0, span], own), rows)
    return -(found**2) if comparator == "squared_l2" else found


@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize("comparator", ["dot", "cos", "l2", "squared_l2"])
@pytest.mark.parametrize("operator", list(OPERATOR_CODES))
def test_predictions_and_scores_equal_plain_python(
    make_ring: MakeRing, tmp_path: Path, operator: Any, comparator: Any, reciprocal: bool
) -> None:
    run = train_ring(
        make_ring(3),
        tmp_path / "run",
        operator=operator,
        comparator=comparator,
        reciprocal=reciprocal,
    )
    questions: dict[str, list[str | None]] = {
        "head": ["e05", None, "e11", None],
        "relation": ["next", "opposite", "next", "before"],
        "tail": [None, "e30", None, "e07"],
    }
    found = predict(run, questions, 40, known="keep").to_pydict()
    assert found["query"] == [q for q in range(4) for _ in range(40)]
    assert found["rank"] == list(range(1, 41)) * 4
    for row in range(4):
        side = "tail" if row in (0, 2) else "head"
        given = questions["head" if side == "tail" else "tail"][row]
        assert given is not None
        wanted = all_scores(run, given, str(questions["relation"][row]), side)
        some = slice(40 * row, 40 * row + 40)
        names = [RING.index(name) for name in found[side][some]]
        assert sorted(names) == list(range(40))
        np.testing.assert_allclose(
            found["score"][some], wanted[names], rtol=2e-5, atol=2e-5
        )
        assert found["score"][some] == sorted(found["score"][some], reverse=True)
        assert set(found["relation"][some]) == {questions["relation"][row]}
    for head, relation, tail in (("e01", "next", "e02"), ("e33", "before", "e04")):
        value = all_scores(run, head, relation, "tail")[RING.index(tail)]
        assert run.score(head, relation, tail) == pytest.approx(value, rel=2e-5, abs=2e-5)


def edges_of(graph: Graph) -> set[tuple[str, str, str]]:
    (kind,) = graph.edge_types
    ids, names = graph.node_ids("entity").to_pylist(), graph.relations(kind)
    assert names is not None
    return {
        (ids[s], names[r], ids[d])
        for split in graph.splits(kind)
        for s, r, d in triples(graph, kind, split)
    }


def test_known_answers_are_dropped_or_marked(make_ring: MakeRing, tmp_path: Path) -> None:
    graph = make_ring(4)
    run, known = train_ring(graph, tmp_path / "run"), edges_of(graph)
    for head, relation, tail in (("e05", "next", None), (None, "opposite", "e07")):
        asked = "tail" if tail is None else "head"
        marked = run.predict(head, relation, tail, k=100, known="mark").to_pydict()
        assert len(marked["id"]) == 40
        for name, is_known in zip(marked["id"], marked["known"], strict=True):
            triple = (head, relation, name) if asked == "tail" else (name, relation, tail)
            assert is_known == (triple in known)
        assert sum(marked["known"]) == 1  # of any split
        dropped = run.predict(head, relation, tail, k=100)
        assert dropped.column_names == ["id", "score"]
        left = [n for n, k in zip(marked["id"], marked["known"], strict=True) if not k]
        assert dropped.column("id").to_pylist() == left
        assert run.predict(head, relation, tail, k=3).equals(dropped.slice(0, 3))


def test_no_block_thread_or_partition_changes_a_prediction(
    make_ring: MakeRing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = pa.table({"head": [f"e{k:02d}" for k in range(40)] * 2})
    names = pa.array(["next", "opposite"] * 40)
    questions = questions.append_column("relation", names)
    results, rows = [], np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
    for partitions in (1, 4):
        out = tmp_path / f"run{partitions}"
        run = train_ring(make_ring(partitions), out, operator="diagonal")
        offsets, ids = run.graph.offsets("entity"), run.graph.node_ids("entity").to_pylist()
        for name in run.state.files:
            if name.startswith("rows/"):
                part = int(name.rsplit("part-")[1].split(".")[0])
                own = ids[offsets[part] : offsets[part + 1]]
                np.save(out / name, rows[[RING.index(key) for key in own]])
            if name.startswith("relations/"):
                table = np.load(out / name)
                table[0] = np.tile(np.linspace(-2, 2, 6), 3)
                np.save(out / name, table)
        reseal(out)
        results.append(predict(out, questions, 5, threads=1))
        monkeypatch.setattr("graphsys.embedding.rows.batch_memory._CANDIDATES", 3)
        monkeypatch.setattr("graphsys.embedding.inference.topk._QUERY_BLOCK", 7)
        monkeypatch.setattr("graphsys.embedding.inference.topk._PAIRS", 50)
        monkeypatch.setattr("graphsys.embedding.data.filtered_queries._BATCH", 9)
        results.append(predict(out, questions, 5, threads=2))
        monkeypatch.undo()
    for other in results[1:]:
        assert other.to_pydict() == results[0].to_pydict()


def test_types_meet_in_one_table(shop: Graph, tmp_path: Path) -> None:
    run = train_ring(shop, tmp_path / "run")
    names = [model.relations[0] for model in run.model]
    questions = {"head": [3, None], "relation": names, "tail": [None, 2]}
    found = predict(run, questions, 4, known="mark")
    assert found.num_rows == 8
    assert found.schema.field("head").type == pa.int64()
    assert found.column("query").to_pylist() == [0] * 4 + [1] * 4
    values = score(run, found.select(["head", "relation", "tail"]))
    wanted = found.column("score").to_numpy()
    np.testing.assert_allclose(values, wanted, rtol=2e-5, atol=1e-6)


def test_wrong_questions_are_errors(make_ring: MakeRing, tmp_path: Path) -> None:
    run = train_ring(make_ring(1), tmp_path / "run")
    with pytest.raises(
        ConfigError, match="row 1 of the questions gives both head and tail"
    ):
        predict(run, {"head": ["e01"] * 2, "relation": ["next"] * 2, "tail": [None, "e02"]})
    with pytest.raises(ConfigError, match="row 0 of the questions gives neither head nor"):
        predict(run, {"relation": ["next"]})
    with pytest.raises(ConfigError, match=r"gives one end, expected a head and a tail"):
        score(run, {"head": ["e01"], "relation": ["next"]})
    with pytest.raises(ConfigError, match=r"has 3 relations \(.*next.*\); say which"):
        predict(run, {"head": ["e01"]})
    with pytest.raises(ConfigError, match="row 1 of the questions gives no relation"):
        predict(run, {"head": ["e01", "e02"], "relation": ["next", None]})
    with pytest.raises(
        UnknownNameError, match=r"unknown relation 'nxt'.*did you mean 'next'"
    ):
        run.predict("e01", "nxt")
    with pytest.raises(
        UnknownNameError, match=r"unknown column 'had'.*did you mean 'head'"
    ):
        predict(run, {"had": ["e01"]})
    with pytest.raises(UnknownNameError, match="node 'nobody' is not among the 40 nodes"):
        run.predict("nobody", "next")
    with pytest.raises(ConfigError, match="k: got 0, expected an int >= 1"):
        run.predict("e01", "next", k=0)
    with pytest.raises(ConfigError, match="known: got 'hide', expected one of drop, mark"):
        run.predict("e01", "next", known="hide")  # type: ignore[arg-type]
    with pytest.raises(
        ConfigError, match="column 'head' of the questions is of type double"
    ):
        predict(run, {"head": [1.5], "relation": ["next"]})
    with pytest.raises(ConfigError, match="column 'head' of the questions mixes types"):
        predict(run, {"head": [1, "a"], "relation": ["next"] * 2})
    assert predict(run, {"head": [], "relation": []}).num_rows == 0


def test_questions_come_from_files(make_ring: MakeRing, tmp_path: Path) -> None:
    run = train_ring(make_ring(2), tmp_path / "run")
    rows = {"head": ["e01", None], "relation": ["next", "before"], "tail": [None, "e02"]}
    wanted = predict(run, rows).to_pydict()
    table = pa.table(rows)
    pa.parquet.write_table(table, tmp_path / "q.parquet")
    with pa.ipc.new_file(tmp_path / "q.arrow", table.schema) as writer:
        writer.write_table(table)
    (tmp_path / "q.csv").write_text("head,relation,tail\ne01,next,\n,before,e02\n")
    (tmp_path / "q.tsv").write_text("tail\thead\trelation\n\te01\tnext\ne02\t\tbefore\n")
    for suffix in ("parquet", "arrow", "csv", "tsv"):
        found = predict(run, read_questions(tmp_path / f"q.{suffix}"))
        assert found.to_pydict() == wanted, suffix
    (tmp_path / "q.txt").write_text("e01\ne02\n")
    (tmp_path / "ids.csv").write_text("id\ne01\ne02\n")
    listed = predict(run, {"head": ["e01", "e02"], "relation": ["next"] * 2})
    for name in ("q.txt", "ids.csv"):
        assert predict(run, read_questions(tmp_path / name, "next")).equals(listed)
    everyone = predict(run, all_questions(run, "next"), 1)
    assert sorted(everyone.column("head").to_pylist()) == RING


def test_files_of_questions_that_are_none(make_ring: MakeRing, tmp_path: Path) -> None:
    run = train_ring(make_ring(1), tmp_path / "run")
    with pytest.raises(ConfigError, match=r"cannot read questions from 'q.xls': .* \.txt"):
        read_questions(tmp_path / "q.xls")
    with pytest.raises(ConfigError, match=r"q\.csv is no file"):
        read_questions(tmp_path / "q.csv")
    (tmp_path / "q.parquet").write_bytes(b"none")
    with pytest.raises(ConfigError, match=r"q\.parquet cannot be read as parquet: "):
        read_questions(tmp_path / "q.parquet")
    (tmp_path / "r.csv").write_text("head,relation\ne01,next\n")
    with pytest.raises(ConfigError, match="has a column relation, and the relation 'next'"):
        read_questions(tmp_path / "r.csv", "next")
    with pytest.raises(ConfigError, match="has 3 relations"):
        all_questions(run)
    with pytest.raises(UnknownNameError, match="unknown relation 'nxt'"):
        all_questions(run, "nxt")


def test_labeled_negatives_are_no_known_answers(tmp_path: Path) -> None:
    splits = {
        "train": [(k, "next", (k + 1) % 12) for k in range(10)],
        "test": [(k, "next", (k + 1) % 12) for k in range(10, 12)],
        "test_negative": [(k, "next", (k + 5) % 12) for k in range(10)],
    }
    ranks = []
    for number, names in enumerate((("train", "test"), tuple(splits))):
        graph = write(tmp_path / f"graph{number}", {name: splits[name] for name in names})
        config = EmbeddingConfig(dim=8, epochs=1, init_scale=1.0, deterministic=True)
        train(graph, config, tmp_path / f"run{number}")
        run = Embeddings(tmp_path / f"run{number}")
        marked = run.predict(3, "next", None, k=12, known="mark")
        assert marked.filter(marked["known"])["id"].to_pylist() == [4]
        ranks.append(evaluate(run)["metrics"])
    assert ranks[0] == ranks[1]
    assert set(ranks[1]["by_category"]) == {"1-1"}


def test_answers_that_are_edges_of_chosen_splits_alone_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ring = [(k, "next", (k + 1) % 12) for k in range(12)]
    splits = {"train": [*ring[:10], (0, "next", 5)], "test": [*ring[10:], (0, "next", 7)]}
    write(tmp_path / "graph", splits)
    config = EmbeddingConfig(dim=8, epochs=1, init_scale=1.0)
    with Graph(tmp_path / "graph") as graph:
        train(graph, config, tmp_path / "run")
    question = {"head": [0], "relation": ["next"]}
    for chosen, left_out in (("all", {1, 5, 7}), ("train", {1, 5}), ("test", {7})):
        found = predict(tmp_path / "run", question, 12, known_splits=chosen)
        assert set(range(12)) - set(found["tail"].to_pylist()) == left_out, chosen
    with pytest.raises(ConfigError, match="known_splits: got 'dev', expected all, or some"):
        predict(tmp_path / "run", question, known_splits="dev")
    (tmp_path / "q.csv").write_text("head,relation,tail\n0,next,\n")
    command = ["predict", str(tmp_path / "run"), "--nodes", str(tmp_path / "q.csv")]
    command += ["-k", "12", "--json", "-o", str(tmp_path / "out.csv"), "--overwrite"]
    assert main(command) == 0
    told = capsys.readouterr()
    assert "leaves out answers that are edges of train, test; to compare" in told.err
    assert json.loads(told.out)["known_splits"] == ["train", "test"]
    assert main([*command, "--known-splits", "train"]) == 0
    told = capsys.readouterr()
    assert "note" not in told.err
    assert json.loads(told.out)["known_splits"] == ["train"]
    assert "7" in (tmp_path / "out.csv").read_text()
