"""PyTorch-BigGraph's side of the case ``embedding``; runs in its own environment."""

import json
import logging
import re
import shutil
import time
from pathlib import Path

from bench.harness import Outcome

_DONE = re.compile(r"(?:Processed|Trained) (\d+) edges in ([\d.]+) s.*io: ([\d.]+) s")


class Times(logging.Handler):
    """Adds up what PBG reports after every bucket: time of training, and of files."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.num_edges, self.train_s, self.io_s = 0, 0.0, 0.0

    def emit(self, record: logging.LogRecord) -> None:
        """Read one line of the log."""
        found = _DONE.search(record.getMessage())
        if found:
            self.num_edges += int(found[1])
            self.train_s += float(found[2])
            self.io_s += float(found[3])


def train(config: str) -> Outcome:
    """Train as the command ``torchbiggraph_train`` does; the time is PBG's own."""
    began = time.perf_counter()
    from torchbiggraph.config import parse_config
    from torchbiggraph.train import train_and_report_stats

    load_s = time.perf_counter() - began
    settings = json.loads(Path(config).read_text())
    shutil.rmtree(settings["checkpoint_path"], ignore_errors=True)
    times, log = Times(), logging.getLogger("torchbiggraph")
    log.setLevel(logging.INFO)
    log.addHandler(times)
    losses = 0.0
    began = time.perf_counter()
    for _, _, stats, _ in train_and_report_stats(parse_config(settings)):
        losses += stats.metrics["loss"] * stats.count
    return Outcome(
        seconds=times.train_s,
        load_s=load_s,
        result={
            "loss": losses / max(times.num_edges, 1),
            "num_edges": times.num_edges,
            "figures": {"io_s": times.io_s, "wall_s": time.perf_counter() - began},
        },
    )
