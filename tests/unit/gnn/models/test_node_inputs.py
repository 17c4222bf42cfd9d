"""Features of nodes in models that follow events, where ends are of two types."""

from pathlib import Path

import numpy as np
import torch

from graphsys.core.types import EdgeType
from graphsys.gnn.data.events import read_events
from graphsys.gnn.models.node_memory import NodeInputs
from graphsys.storage import EdgeChunk, NodeChunk, ingest
from tests.stores import ListSource
from tests.unit.gnn.event_stores import config_of


def test_each_type_adds_its_own_features_and_others_nothing(tmp_path: Path) -> None:
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    items = NodeChunk(ids=np.array([10, 11, 12]), node_type="item", features={"x": x})
    edges = EdgeChunk(
        src=np.array([1, 2, 1]),
        dst=np.array([10, 11, 12]),
        edge_type=EdgeType("user", "buys", "item"),
        columns={"time": np.array([1, 2, 3])},
    )
    with ingest(ListSource([items, edges]), tmp_path / "g").graph as graph:
        events = read_events(graph, config_of("tgn", valid_share=0, test_share=0))
        inputs = NodeInputs(events, 4)
        (layer,) = inputs.layers
        places = graph.lookup("item", [10, 11, 12]).astype(np.int64)
        nodes = np.concatenate([[0, 1], events.numbers("item", places)])
        found = inputs.add_to(torch.zeros(5, 4), torch.from_numpy(nodes))
        wanted = layer(torch.from_numpy(x))
    assert torch.equal(found[:2], torch.zeros(2, 4))
    assert torch.allclose(found[2:], wanted)
