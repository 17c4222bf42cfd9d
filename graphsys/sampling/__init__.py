"""Samplers that return blocks of numpy arrays, and features for them; they have a guide."""

from graphsys.sampling.adjacency import PartitionedCsr as PartitionedCsr
from graphsys.sampling.adjacency import message_rows as message_rows
from graphsys.sampling.adjacency import rows_of as rows_of
from graphsys.sampling.blocks import Block as Block
from graphsys.sampling.blocks import Sample as Sample
from graphsys.sampling.features import BagTable as BagTable
from graphsys.sampling.features import FeatureTable as FeatureTable
from graphsys.sampling.labor import LaborSampler as LaborSampler
from graphsys.sampling.metapath_rows import metapath_rows as metapath_rows
from graphsys.sampling.negatives import (
    ConditionalNegativeSampler as ConditionalNegativeSampler,
)
from graphsys.sampling.negatives import NegativeSampler as NegativeSampler
from graphsys.sampling.neighbors import NeighborSampler as NeighborSampler
from graphsys.sampling.pinsage import ImportanceSampler as ImportanceSampler
from graphsys.sampling.recent import RecentRows as RecentRows
from graphsys.sampling.recent import recent_rows as recent_rows
from graphsys.sampling.relation_rows import relation_name as relation_name
from graphsys.sampling.relation_rows import relation_names as relation_names
from graphsys.sampling.relation_rows import relation_rows as relation_rows
from graphsys.sampling.row_cache import CachedFeatures as CachedFeatures
from graphsys.sampling.row_cache import degree_scores as degree_scores
from graphsys.sampling.row_cache import importance_scores as importance_scores
from graphsys.sampling.temporal import TemporalSampler as TemporalSampler
from graphsys.sampling.traverse import EdgeBatch as EdgeBatch
from graphsys.sampling.traverse import traverse_edges as traverse_edges
from graphsys.sampling.traverse import traverse_nodes as traverse_nodes
from graphsys.sampling.walks import walk as walk
from graphsys.storage.write.feature_encoding import quantize as quantize

# names of before, for one version more
NeighborRows = PartitionedCsr
FeatureRows, BagRows, CachedRows = FeatureTable, BagTable, CachedFeatures
