"""Graph neural networks, trained on samples or on a whole graph; see README.md."""

from graphsys.gnn import layers as layers
from graphsys.gnn.config import GnnConfig as GnnConfig
from graphsys.gnn.config import load_config as load_config
from graphsys.gnn.config import preset_names as preset_names
from graphsys.gnn.evaluation import evaluate as evaluate
from graphsys.gnn.functions import attention_scores as attention_scores
from graphsys.gnn.functions import sddmm as sddmm
from graphsys.gnn.functions import segment_softmax as segment_softmax
from graphsys.gnn.functions import spmm as spmm
from graphsys.gnn.functions import spmm_with_own as spmm_with_own
from graphsys.gnn.messages import apply_edges as apply_edges
from graphsys.gnn.messages import copy_u as copy_u
from graphsys.gnn.messages import u_mul_e as u_mul_e
from graphsys.gnn.messages import update_all as update_all
from graphsys.gnn.opened import OpenedRun as OpenedRun
from graphsys.gnn.opened import open_run as open_run
from graphsys.gnn.predicting import predict as predict
from graphsys.gnn.sparse_rows import SparseRows as SparseRows
from graphsys.gnn.sparse_rows import kernel_threads as kernel_threads
from graphsys.gnn.training import TrainReport as TrainReport
from graphsys.gnn.training import run_config as run_config
from graphsys.gnn.training import train as train
