"""Runs killed at random moments lose no more than the supersteps since the checkpoint."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from graphsys.engine.programs.pagerank import PageRank
from graphsys.engine.run import run
from graphsys.storage import EdgeChunk
from tests.stores import make_store

EVERY = 2
CHILD = """
import sys
import pyarrow.parquet as pq
from graphsys.core.progress import Progress
from graphsys.engine.programs.pagerank import PageRank
from graphsys.engine.run import run

class Told(Progress):
    def advance(self, steps, **figures):
        print("superstep", flush=True)

graph, checkpoint, out = sys.argv[1:]
print("ready", flush=True)
done = run(PageRank(iterations=150), graph, checkpoint=checkpoint, checkpoint_every=2,
           resume=True, num_threads=1, progress=Told())
pq.write_table(done.table, out)
"""


def superstep_of(checkpoint: Path) -> int:
    path = checkpoint / "checkpoint.json"
    if not path.exists():
        return 0
    content: dict[str, Any] = json.loads(path.read_text())["content"]
    return int(content["position"]["superstep"])


@pytest.mark.kill
def test_a_killed_run_resumes_to_the_same_result(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    ends = rng.integers(0, 40_000, (2, 400_000))
    make_store(tmp_path / "graph", EdgeChunk(src=ends[0], dst=ends[1]), partitions=2)
    expected = run(PageRank(iterations=150), tmp_path / "graph", num_threads=1).table
    checkpoint, out = tmp_path / "checkpoint", tmp_path / "out.parquet"
    paths = (tmp_path / "graph", checkpoint, out)
    command = [sys.executable, "-c", CHILD, *map(str, paths)]
    draw = random.Random(0)
    kills, resumed_at = 0, 0
    while not out.exists():
        began = superstep_of(checkpoint)
        assert began >= resumed_at
        resumed_at = began
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            seen = 0
            if kills < 5:
                # some kills between supersteps, some in the middle of a checkpoint
                for _ in range(draw.randint(1, 9)):
                    seen += child.stdout.readline() == "superstep\n"
                time.sleep(draw.random() * 0.02)
                child.send_signal(signal.SIGKILL)
                kills += 1
            seen += child.stdout.read().count("superstep")
            assert child.wait() in (0, -signal.SIGKILL)
        # the superstep under way and those since the last multiple of EVERY may be lost
        assert superstep_of(checkpoint) >= began + seen - EVERY
    assert kills == 5
    assert pq.read_table(out).equals(expected)
