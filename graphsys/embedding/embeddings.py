"""A run's rows, and the questions that they answer: neighbors, links, a picture.

What answers is loaded when it is asked: numba takes half a second, which the rows do not
need.
"""

from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from graphsys.datasets.temporary import GraphLike
from graphsys.embedding.checkpoints import find_checkpoint
from graphsys.embedding.rows.trained_rows import TrainedEmbedding
from graphsys.training.history import run_table


class Embeddings(TrainedEmbedding):
    """The last checkpoint of a run, with the names of its graph, and what can be asked.

    Rows are mapped from the run's files, not read.

    Args:
        path: The run's folder.
        graph: The graph it was trained on; opened from the recorded path if not given.
        content: Whether to compare files with their checksums, too, not their sizes alone.
        checkpoint: State and settings of a checkpoint that the caller has pinned, whose
            files are compared by their sizes alone; the last one, pinned here, if not
            given.

    Raises:
        ConfigError: There is no run, its graph is gone, or another was given.
        CorruptStoreError: A file of the checkpoint is missing or damaged.
    """

    def _repr_html_(self) -> str:
        return run_table(self.path)

    def nearest(self, node: Any, k: int = 10, **options: Any) -> pa.Table:
        """Find the nodes closest to one; see :func:`graphsys.embedding.nearest`."""
        from graphsys.embedding.inference.nearest import nearest

        return nearest(self, node, k, **options)

    def score(self, head: Any, relation: str | None, tail: Any) -> float:
        """Score a triple; see :func:`graphsys.embedding.score`.

        Args:
            head: Id of the head.
            relation: Name of the relation; None where the run has one.
            tail: Id of the tail.
        """
        from graphsys.embedding.inference.predict import score

        return float(
            score(self, {"head": [head], "relation": [relation], "tail": [tail]})[0]
        )

    def predict(
        self,
        head: Any,
        relation: str | None = None,
        tail: Any = None,
        *,
        k: int = 10,
        known: Literal["drop", "mark", "keep"] = "drop",
    ) -> pa.Table:
        """Answer (head, relation, None) or (None, relation, tail).

        For many questions at once see :func:`graphsys.embedding.predict`.

        Args:
            head: Id of the head, or None to ask for it.
            relation: Name of the relation; None where the run has one.
            tail: Id of the tail, or None to ask for it.
            k: Answers wanted.
            known: Answers that are edges of any split: ``drop``, ``mark`` or ``keep``.

        Returns:
            Columns ``id``, ``score`` and, with ``mark``, ``known``; best first.
        """
        from graphsys.embedding.inference.predict import predict

        question = {"head": [head], "relation": [relation], "tail": [tail]}
        found = predict(self, question, k, known=known)
        columns = {"id": found.column("head" if head is None else "tail")}
        columns |= {name: found.column(name) for name in found.column_names[5:]}
        return pa.table(columns)

    def picture(self, out: str | Path, **options: Any) -> Path:
        """Draw the nodes in a plane; see :func:`graphsys.embedding.inference.plot`."""
        from graphsys.embedding.inference.plot import picture

        return picture(self, out, **options)


def open_run(
    path: str | Path, *, graph: GraphLike | None = None, epoch: int | None = None
) -> Embeddings:
    """Open a run for use; see :class:`Embeddings`.

    Args:
        path: The run's folder.
        graph: The graph it was trained on, if it is not where it was.
        epoch: Open the checkpoint preserved after so many epochs, not the last one.
    """
    path = Path(path)
    return Embeddings(path if epoch is None else find_checkpoint(path, epoch), graph=graph)
