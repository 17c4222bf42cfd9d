"""Layers: thin modules over the functions of ``graphsys.gnn.functions``.

A layer maps ``(rows, x_src, x_dst)`` to the new rows ``[D, F]``: ``rows`` says where
messages go, ``x_src`` holds all sources, ``x_dst`` the rows' own nodes. RGCN, HGT and
HAN map the same by relation and by node type.
"""

from graphsys.gnn.layers.attention import GAT as GAT
from graphsys.gnn.layers.attention import GATv2 as GATv2
from graphsys.gnn.layers.convolution import GCN as GCN
from graphsys.gnn.layers.convolution import LightGCN as LightGCN
from graphsys.gnn.layers.isomorphism import GIN as GIN
from graphsys.gnn.layers.metapath import HAN as HAN
from graphsys.gnn.layers.pinsage import PinSage as PinSage
from graphsys.gnn.layers.recurrent import NeighborLSTM as NeighborLSTM
from graphsys.gnn.layers.relational import HGT as HGT
from graphsys.gnn.layers.relational import RGCN as RGCN
from graphsys.gnn.layers.sage import SAGE as SAGE
