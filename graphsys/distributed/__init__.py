"""The same commands on many machines, by Ray; see the guide of clusters."""

from typing import TYPE_CHECKING

from graphsys.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from graphsys.distributed.cluster import Cluster as Cluster
    from graphsys.distributed.cluster import connected as connected
    from graphsys.distributed.cluster import describe_cluster as describe_cluster
    from graphsys.distributed.embedding.training import train_embedding as train_embedding
    from graphsys.distributed.gnn.training import train_gnn as train_gnn
    from graphsys.distributed.inference.network_run import NetworkRun as NetworkRun
    from graphsys.distributed.inference.network_run import opened_network as opened_network
    from graphsys.distributed.inference.run_questions import evaluate as evaluate
    from graphsys.distributed.inference.run_questions import export as export
    from graphsys.distributed.inference.run_questions import nearest as nearest
    from graphsys.distributed.ingestion.api import ingest as ingest
    from graphsys.distributed.mining_run import ClusterCounts as ClusterCounts
    from graphsys.distributed.mining_run import count_on_cluster as count_on_cluster
    from graphsys.distributed.run import ClusterResult as ClusterResult
    from graphsys.distributed.run import ClusterRun as ClusterRun
    from graphsys.distributed.train_report import ClusterTrainReport as ClusterTrainReport

__getattr__ = lazy_exports(__name__)
