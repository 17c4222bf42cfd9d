"""Trains, evaluates and exports with PyTorch-BigGraph; runs in its own environment.

``python pbg_driver.py CONFIG.json OUT``: OUT gets ``entities.tsv``,
``relation_types.tsv`` and ``stats.json``, PBG's ranking of the edges in ``test`` beside
the training edges, against all entities.
"""

import json
import sys
from pathlib import Path


def main(config_path: str, out: str) -> None:
    """Do all three."""
    from torchbiggraph.config import parse_config
    from torchbiggraph.converters.export_to_tsv import make_tsv
    from torchbiggraph.eval import do_eval_and_report_stats
    from torchbiggraph.train import train

    settings = json.loads(Path(config_path).read_text())
    train(parse_config(settings))
    asked = json.loads(Path(config_path).read_text())
    asked["edge_paths"] = [str(Path(asked["edge_paths"][0]).parent / "test")]
    asked["num_uniform_negs"] = 0
    for relation in asked["relations"]:
        relation["all_negs"] = True
    *_, (_, _, stats) = do_eval_and_report_stats(parse_config(asked))
    (Path(out) / "stats.json").write_text(json.dumps(stats.metrics))
    with (
        (Path(out) / "entities.tsv").open("w") as entities,
        (Path(out) / "relation_types.tsv").open("w") as relations,
    ):
        make_tsv(parse_config(settings), entities, relations)


if __name__ == "__main__":
    main(*sys.argv[1:])
