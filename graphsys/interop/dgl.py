"""DGL 1.1.3: its graphs, its DataLoader over our stores, its layers on our blocks.

Needs the extra ``dgl``. What is a copy and what a view is said by each; nodes are known by
their numbers, which ``graph.lookup`` gives for ids.
"""

from graphsys.interop.dgl_blocks import (
    GraphsysBlockSampler,
    block_from_dgl,
    block_to_dgl,
)
from graphsys.interop.dgl_data import (
    GraphsysFeatureStorage,
    GraphsysStorage,
    from_dgl,
    source_of,
    to_dgl,
)

__all__ = [
    "GraphsysBlockSampler",
    "GraphsysFeatureStorage",
    "GraphsysStorage",
    "block_from_dgl",
    "block_to_dgl",
    "from_dgl",
    "source_of",
    "to_dgl",
]
