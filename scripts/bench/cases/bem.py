"""Correct rows of a knowledge graph by a behavior graph, and rank with and without it.

    scripts/bench/run bem [--shared ../shared] [--only lastfm] [--seeds 1,2,3]
        [--set key=value]... [--again] [--save]

codex-s and fb15k237: half of the training triples train ComplEx; the pairs of the other
half, without their relations, are the behavior graph (generated: nobody measured it). The
figure is the filtered MRR of the test triples by ComplEx's own operators, with the rows as
they are, and corrected. lastfm is a real pair: who listens to whom is the knowledge about
users, whom they trust their behavior. The figure is the MRR of a tenth of the trust, held
out, by the cosine of rows. --save writes results/bem_<hardware>_<yyyymm>.json row by row,
and a later call goes on with those that are missing.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

import graphsys
from bench import output
from bench.load import LoadMeter
from graphsys import embedding, gnn
from graphsys.gnn.layerwise_inference import infer

NAME = "bem"
Rows = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
FOLDERS = {"codex-s": "codex-s", "fb15k237": "fb15k237-ids", "lastfm": "lightgcn-lastfm"}
PRESETS = {"codex-s": "codex-s-complex", "fb15k237": "fb15k237-complex"}
PLAIN: dict[str, Any] = {
    "dim": 64,
    "epochs": 30,
    "loss": "softmax",
    "num_batch_negatives": 100,
    "num_uniform_negatives": 100,
    "lr": 0.1,
}
BEM: dict[str, Any] = {
    "model": "bem",
    "task": "link_prediction",
    "layers": 1,
    "dim": 256,
    "epochs": 30,
    "batch_size": 1024,
    "num_negatives": 1,
    "lr": 0.003,
    "prior": "knowledge",
    "eval_every": 0,
    "keep": "last",
}


def read_triples(folder: Path) -> dict[str, Ints]:
    """Return head, relation and tail of every split, by number, int64 ``[n, 3]``."""
    found, numbers = {}, [dict[str, int](), dict[str, int]()]
    for split in ("train", "valid", "test"):
        path = folder / f"{split}.txt"
        is_counted = not path.exists()  # a number of lines first, and the relation last
        lines = (folder / f"{split}2id.txt" if is_counted else path).read_text().split("\n")
        rows = [line.split() for line in lines[is_counted:] if line.strip()]
        if is_counted:
            rows = [[head, relation, tail] for head, tail, relation in rows]
        found[split] = np.array(
            [
                [numbers[k % 2].setdefault(cell, len(numbers[k % 2])) for k, cell in cells]
                for cells in (list(enumerate(row)) for row in rows)
            ]
        )
    return found


def train_rows(pairs: Ints, size: int, path: Path, seed: int) -> Rows:
    """Return rows of nodes that embed pairs of them."""
    graph = make_graph(path / "behavior", pairs, size)
    config = embedding.EmbeddingConfig(**PLAIN, seed=seed)
    embedding.train(graph, config, path / "behavior-run")
    return embedding.open_run(path / "behavior-run").lookup(np.arange(size))


def make_graph(out: Path, pairs: Ints, size: int, **features: Rows) -> Any:
    """Write pairs of nodes, and perhaps rows of them, as a graph."""
    nodes = {"id": np.arange(size)}
    nodes |= {name: list(rows) for name, rows in features.items()}
    table = pa.table({"src": pairs[:, 0], "dst": pairs[:, 1]})
    graphsys.ingest(
        nodes={"node": pa.table(nodes)}, edges={("node", "meets", "node"): table}, out=out
    )
    return graphsys.open(out)


def correct(
    knowledge: Rows, behavior: Rows, pairs: Ints, path: Path, config: gnn.GnnConfig
) -> tuple[Rows, dict[str, Any]]:
    """Return corrected rows, and what the training took."""
    both = make_graph(
        path / "both", pairs, len(behavior), knowledge=knowledge, behavior=behavior
    )
    run = path / f"bem-{config.corrected}"
    report = gnn.train(both, config, run)
    opened = gnn.open_run(run)
    rows = np.empty_like(found := infer(opened.context, "node"))
    rows[np.asarray(opened.graph.node_ids("node"))] = found
    return rows, {
        "bem_cpu_seconds": round(opened.state.cpu_seconds, 1),
        "peak_memory_bytes": report.metrics["peak_memory_bytes"],
    }


def mean_reciprocal_rank(scores: torch.Tensor, answers: Ints, known: list[Ints]) -> float:
    """Return the filtered MRR of one answer per row of scores; ties count half."""
    own = scores[torch.arange(len(answers)), torch.from_numpy(answers)].clone()
    for row, nodes in enumerate(known):
        scores[row, torch.from_numpy(nodes)] = -torch.inf
    higher = (scores > own[:, None]).sum(1) + 0.5 * (scores == own[:, None]).sum(1)
    return float((1 / (1 + higher)).mean())


def rank_triples(rows: Rows, operators: list[Rows], triples: dict[str, Ints]) -> float:
    """Return the MRR of the test triples, of both ends, by ComplEx."""
    table, found = torch.from_numpy(rows), []
    half = rows.shape[1] // 2
    everything = np.concatenate(list(triples.values()))
    for parameters, (given, asked) in zip(operators, ((0, 2), (2, 0)), strict=True):
        order = np.lexsort((everything[:, 1], everything[:, given]))
        keys = everything[order][:, [given, 1]]
        answers_of: dict[tuple[int, int], list[int]] = {}
        for (node, relation), row in zip(keys.tolist(), order.tolist(), strict=True):
            answers_of.setdefault((node, relation), []).append(int(everything[row, asked]))
        p = torch.from_numpy(parameters.reshape(-1, rows.shape[1]))
        for chunk in np.array_split(triples["test"], len(triples["test"]) // 1000 + 1):
            x, r = table[chunk[:, given]], p[chunk[:, 1]]
            re = x[:, :half] * r[:, :half] - x[:, half:] * r[:, half:]
            im = x[:, :half] * r[:, half:] + x[:, half:] * r[:, :half]
            scores = torch.cat([re, im], 1) @ table.T
            known = [
                np.array(answers_of[node, relation])
                for node, relation in chunk[:, [given, 1]].tolist()
            ]
            found += [mean_reciprocal_rank(scores, chunk[:, asked], known)] * len(chunk)
    return float(np.mean(found))


def measure_triples(work: str, folder: Path, path: Path, seed: int, config: Any) -> Any:
    """Correct the rows of half of a knowledge graph by the other half's pairs."""
    triples = read_triples(folder)
    size = int(max(part[:, [0, 2]].max() for part in triples.values())) + 1
    is_known = np.random.default_rng(seed).random(len(triples["train"])) < 0.5
    facts, pairs = triples["train"][is_known], triples["train"][~is_known][:, [0, 2]]
    table = pa.table(
        {
            "src": facts[:, 0],
            "relation": pa.array([f"r{r}" for r in facts[:, 1]]),
            "dst": facts[:, 2],
        }
    )
    nodes = pa.table({"id": np.arange(size)})
    edges = {("node", "fact", "node"): table}
    graphsys.ingest(nodes={"node": nodes}, edges=edges, out=path / "facts")
    chosen = embedding.load_config(preset=PRESETS[work], overrides=[f"seed={seed}"])
    with graphsys.open(path / "facts") as graph:
        embedding.train(graph, chosen, path / "facts-run")
    run = embedding.open_run(path / "facts-run")
    names = list(run.graph.relations(run.graph.edge_types[0]))
    wanted = [f"r{r}" for r in range(int(triples["train"][:, 1].max()) + 1)]
    known = run.operators(run.model[0]).reshape(4, len(names), -1)
    operators = [np.zeros((len(wanted), known.shape[2]), np.float32) for _ in range(2)]
    for place, name in enumerate(names):
        for side in (0, 1):
            operators[side][wanted.index(name)] = known[2 * side, place]
    before = run.lookup(np.arange(size))
    behavior = train_rows(pairs, size, path, seed)
    after, took = correct(before, behavior, pairs, path, config("prior"))
    return {
        "knowledge": round(rank_triples(before, operators, triples), 4),
        "corrected": round(rank_triples(after, operators, triples), 4),
        **took,
    }


def measure_trust(folder: Path, path: Path, seed: int, config: Any) -> Any:
    """Rank held-out trust by rows of tastes, of trust, and of corrected tastes."""
    tastes = np.loadtxt(folder / "data1.txt", dtype=np.int64, usecols=(0, 1))
    trust = np.loadtxt(folder / "trustnetwork.txt", dtype=np.int64)
    once = np.unique(np.sort(trust, axis=1), axis=0)  # it is written both ways
    trust = np.concatenate([once, once[:, ::-1]])
    size = int(max(tastes[:, 0].max(), trust.max())) + 1
    is_held_out = np.random.default_rng(seed).random(len(once)) < 0.1
    pairs, test = once[~is_held_out], once[is_held_out]
    edges = {
        ("user", "hears", "artist"): pa.table({"src": tastes[:, 0], "dst": tastes[:, 1]})
    }
    users = pa.table({"id": np.arange(size)})
    graphsys.ingest(nodes={"user": users}, edges=edges, out=path / "tastes")
    chosen = embedding.EmbeddingConfig(**PLAIN, seed=seed)
    with graphsys.open(path / "tastes") as graph:
        embedding.train(graph, chosen, path / "tastes-run")
    run = embedding.open_run(path / "tastes-run")
    knowledge = run.lookup(np.arange(size), node_type="user")
    behavior = train_rows(pairs, size, path, seed)
    after, took = correct(knowledge, behavior, pairs, path, config("observed"))
    known = [trust[trust[:, 0] == user, 1] for user in test[:, 0]]

    def rank(rows: Rows) -> float:
        unit = torch.nn.functional.normalize(torch.from_numpy(rows))
        scores = unit[test[:, 0]] @ unit.T
        scores[torch.arange(len(test)), torch.from_numpy(test[:, 0])] = -torch.inf
        return round(mean_reciprocal_rank(scores, test[:, 1], known), 4)

    beside = np.concatenate([knowledge, behavior], axis=1)
    return {
        "knowledge": rank(knowledge),
        "behavior": rank(behavior),
        "both_side_by_side": rank(beside),
        "corrected": rank(after),
        **took,
    }


def main(arguments: list[str]) -> int:
    parser = output.parser_of(__doc__)
    parser.add_argument("--shared", type=Path, default=output.ROOT.parent / "shared")
    parser.add_argument("--only", choices=sorted(FOLDERS), action="append")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--again", action="store_true")
    options = output.parsed(parser, arguments)
    known = output.known_rows(NAME) if options.save else {}
    command = " ".join(["scripts/bench/run", NAME, *arguments])
    for work in options.only or FOLDERS:
        for seed in map(int, options.seeds.split(",")):
            name = f"{work}, seed {seed}"
            if name in known and not options.again:
                continue

            def config(corrected: str, seed: int = seed) -> gnn.GnnConfig:
                settings = [f"corrected={corrected}", f"seed={seed}", *options.overrides]
                texts = [f"{key}={json.dumps(value)}" for key, value in BEM.items()]
                return gnn.load_config(overrides=[*texts, *settings])

            folder = options.shared / "data" / FOLDERS[work]
            with tempfile.TemporaryDirectory(prefix="bem-") as path, LoadMeter() as load:
                if work == "lastfm":
                    row = measure_trust(folder, Path(path), seed, config)
                else:
                    row = measure_triples(work, folder, Path(path), seed, config)
            row |= {"overrides": options.overrides, "load_average": load.load_average}
            known[name] = {"work": name, **output.stamp(command), **row}
            print(json.dumps({"work": name, **row}), flush=True)
            if options.save:
                output.keep_record(NAME, list(known.values()))
    return 0
