"""Which settings of an embedding have no effect on a graph."""

from graphsys.core.caller_warnings import note
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.model import RelationSet
from graphsys.embedding.spec.losses import loss_of
from graphsys.storage.reader import GraphReader
from graphsys.training.config import unread


def note_unread(
    config: EmbeddingConfig, model: list[RelationSet], graph: GraphReader
) -> None:
    """Say which settings that are not at their defaults nothing reads.

    Args:
        config: The settings.
        model: The relations that are trained.
        graph: The graph as it is stored.
    """
    has_operators = any(relations.offsets[-1] for relations in model)
    is_whole = max(map(graph.num_partitions, graph.node_types)) == 1
    no_run = config.init_from is None
    one = "the graph has one partition"
    reasons = (
        ("relation_lr", not has_operators, "no relation has an operator with parameters"),
        ("operator_init", not has_operators, "no relation has an operator with parameters"),
        ("init_state", no_run, "no run is begun with, by init_from"),
        (
            "threads",
            config.deterministic and config.threads > 1,
            "deterministic=true takes one worker",
        ),
        ("bucket_order", is_whole, one),
        ("buffer_partitions", is_whole, one),
        ("join_partitions", is_whole, one),
        ("prefetch", is_whole, one),
    )
    # a loss of another package may read what it likes
    parts = {"loss": () if loss_of(config.loss).is_custom else (config.loss,)}
    where = f"loss {config.loss}, mode {config.mode} and operator {config.operator}"
    for text in unread(config, reasons, parts, where):
        note(text)
