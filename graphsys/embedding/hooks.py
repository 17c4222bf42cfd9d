"""What others may do while a training runs, without the loop knowing them.

A hook overrides what it needs. Hooks are called on the training's thread, in the order in
which they were given; whatever a hook draws it keys by (seed, epoch, edge type, bucket), so
that a resumed run is equal to an unbroken one.
"""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from graphsys.embedding.schedule import Step

if TYPE_CHECKING:
    from graphsys.embedding.trainer import Trainer


class Hook:
    """Does nothing; the base of all hooks."""

    def before_bucket(
        self, trainer: "Trainer", epoch: int, step: Step, order: npt.NDArray[np.uint32]
    ) -> npt.NDArray[np.uint32]:
        """Choose which edges of a bucket are trained, before they are shuffled.

        Args:
            trainer: The training.
            epoch: Epochs completed.
            step: The bucket.
            order: Positions in the bucket that the hooks before this one left, uint32.

        Returns:
            Those that are to be trained; ``order`` itself for all. The array is shuffled
            in place, so a selection that is kept must be copied.
        """
        return order

    def after_unit(self, trainer: "Trainer") -> None:
        """See a unit trained; it may not be in a checkpoint yet."""

    def after_epoch(self, trainer: "Trainer") -> bool:
        """See an epoch trained; :meth:`Trainer.checkpoint` makes it durable.

        Returns:
            Whether the training is to end here.
        """
        return False


class EvaluateEvery(Hook):
    """Ranks the edges of a split after every so many epochs, and keeps the MRR."""

    def after_epoch(self, trainer: "Trainer") -> bool:
        """Evaluate the checkpoint, if it is time."""
        from graphsys.embedding.evaluation import evaluate

        state, config = trainer.state, trainer.config
        if not config.eval_every or state.epoch % config.eval_every:
            return False
        trainer.checkpoint()
        result = evaluate(
            trainer.path, split=config.eval_split, graph=trainer.graph, breakdown=False
        )
        history = state.metrics.setdefault(f"{config.eval_split}_mrr", [])
        history.append([state.epoch, result["metrics"]["mrr"]])
        trainer.commit()
        return False
