"""Graph neural networks, trained on samples or on a whole graph; they have a guide."""

from typing import TYPE_CHECKING

from graphsys.core.lazy_exports import lazy_exports
from graphsys.core.threads import rest_where_others_work

if TYPE_CHECKING:
    from graphsys.gnn.config import GnnConfig as GnnConfig
    from graphsys.gnn.config import load_config as load_config
    from graphsys.gnn.config import preset_names as preset_names
    from graphsys.gnn.inference.evaluate import evaluate as evaluate
    from graphsys.gnn.inference.fold_average import average_folds as average_folds
    from graphsys.gnn.inference.node_rows import export as export
    from graphsys.gnn.inference.node_rows import nearest as nearest
    from graphsys.gnn.inference.predict import predict as predict
    from graphsys.gnn.inference.recommend import recommend as recommend
    from graphsys.gnn.inference.trained_model import OpenedRun as OpenedRun
    from graphsys.gnn.inference.trained_model import open_run as open_run
    from graphsys.gnn.models import layers as layers
    from graphsys.gnn.ops.adjacency import SparseRows as SparseRows
    from graphsys.gnn.ops.adjacency import kernel_threads as kernel_threads
    from graphsys.gnn.ops.functional import attention_scores as attention_scores
    from graphsys.gnn.ops.functional import sddmm as sddmm
    from graphsys.gnn.ops.functional import segment_softmax as segment_softmax
    from graphsys.gnn.ops.functional import spmm as spmm
    from graphsys.gnn.ops.functional import spmm_with_own as spmm_with_own
    from graphsys.gnn.ops.message_passing import apply_edges as apply_edges
    from graphsys.gnn.ops.message_passing import copy_u as copy_u
    from graphsys.gnn.ops.message_passing import u_mul_e as u_mul_e
    from graphsys.gnn.ops.message_passing import update_all as update_all
    from graphsys.gnn.training.api import run_config as run_config
    from graphsys.gnn.training.api import train as train
    from graphsys.training.callbacks import Callback as Callback
    from graphsys.training.callbacks import Step as Step
    from graphsys.training.callbacks import Training as Training
    from graphsys.training.report import TrainReport as TrainReport

rest_where_others_work()
__getattr__ = lazy_exports(__name__)
