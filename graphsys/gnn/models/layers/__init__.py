"""Layers: thin modules over the functions of ``graphsys.gnn.ops.functional``.

A layer maps ``(rows, x_src, x_dst)`` to the new rows ``[D, F]``: ``rows`` says where
messages go, ``x_src`` holds all sources, ``x_dst`` the rows' own nodes. RGCN, HGT and
HAN map the same by relation and by node type.
"""

from graphsys.gnn.models.layers.gat import GAT as GAT
from graphsys.gnn.models.layers.gat import GATv2 as GATv2
from graphsys.gnn.models.layers.gcn import GCN as GCN
from graphsys.gnn.models.layers.gcn import LightGCN as LightGCN
from graphsys.gnn.models.layers.gin import GIN as GIN
from graphsys.gnn.models.layers.han import HAN as HAN
from graphsys.gnn.models.layers.lstm import NeighborLSTM as NeighborLSTM
from graphsys.gnn.models.layers.pinsage import PinSage as PinSage
from graphsys.gnn.models.layers.relational import HGT as HGT
from graphsys.gnn.models.layers.relational import RGCN as RGCN
from graphsys.gnn.models.layers.sage import SAGE as SAGE
