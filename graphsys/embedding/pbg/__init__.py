"""Coming from PyTorch-BigGraph: its configs, its checkpoints, its exports; see PBG.md."""

from graphsys.datasets.readers.pbg_config import is_pbg_config as is_pbg_config
from graphsys.embedding.pbg.export import export_pbg as export_pbg
from graphsys.embedding.pbg.import_model import import_pbg as import_pbg
from graphsys.embedding.pbg.settings import from_pbg_config as from_pbg_config
