"""Embeddings of nodes and relations, trained bucket by bucket; they have a guide."""

from typing import TYPE_CHECKING

from graphsys.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from graphsys.embedding.config import EmbeddingConfig as EmbeddingConfig
    from graphsys.embedding.config import load_config as load_config
    from graphsys.embedding.config import preset_names as preset_names
    from graphsys.embedding.embeddings import Embeddings as Embeddings
    from graphsys.embedding.embeddings import open_run as open_run
    from graphsys.embedding.evaluation.baseline import baselines as baselines
    from graphsys.embedding.evaluation.evaluate import evaluate as evaluate
    from graphsys.embedding.files.export import export as export
    from graphsys.embedding.inference.ann_index import build_index as build_index
    from graphsys.embedding.inference.nearest import nearest as nearest
    from graphsys.embedding.inference.plot import picture as picture
    from graphsys.embedding.inference.predict import predict as predict
    from graphsys.embedding.inference.predict import score as score
    from graphsys.embedding.pbg import export_pbg as export_pbg
    from graphsys.embedding.pbg import from_pbg_config as from_pbg_config
    from graphsys.embedding.pbg import import_pbg as import_pbg
    from graphsys.embedding.pbg import is_pbg_config as is_pbg_config
    from graphsys.embedding.training.api import run_config as run_config
    from graphsys.embedding.training.api import train as train
    from graphsys.embedding.training.drift import drift as drift
    from graphsys.embedding.type_configs import RelationConfig as RelationConfig
    from graphsys.training.callbacks import Callback as Callback
    from graphsys.training.callbacks import Step as Step
    from graphsys.training.callbacks import Training as Training
    from graphsys.training.report import TrainReport as TrainReport

__getattr__ = lazy_exports(__name__)
