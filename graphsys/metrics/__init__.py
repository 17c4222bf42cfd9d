"""What scores, ranks and times come to: areas, F1, means of ranks, overlap."""

from graphsys.metrics.areas import f1 as f1
from graphsys.metrics.areas import pair_metrics as pair_metrics
from graphsys.metrics.areas import roc_auc as roc_auc
from graphsys.metrics.areas import roc_auc_of as roc_auc_of
from graphsys.metrics.overlap import Overlap as Overlap
from graphsys.metrics.overlap import overlap_alpha as overlap_alpha
from graphsys.metrics.ranking import by_group as by_group
from graphsys.metrics.ranking import degree_bins as degree_bins
from graphsys.metrics.ranking import intervals as intervals
from graphsys.metrics.ranking import means as means
from graphsys.metrics.ranking import ranking_metrics as ranking_metrics
