"""What follows an epoch: evaluation, early stopping, checkpoints that stay."""

from pathlib import Path

from graphsys.embedding import checkpoints
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.data.held_out_split import HELD_OUT, GraphWithHeldOut
from graphsys.embedding.run import EmbeddingRunState
from graphsys.embedding.training.hook import Hook, Training
from graphsys.embedding.training.hooks.stopping import (
    HELD_OUT_LOSS,
    is_waiting_over,
    take_value,
)
from graphsys.embedding.training_log import TrainingLog
from graphsys.storage.grouped.merged_view import stored_graph


class EpochEnd(Hook):
    """Evaluates, decides whether to stop, and preserves checkpoints.

    All of it is done on a committed checkpoint, and its outcome is committed at once: a
    kill in between does it again, to the same effect.

    Args:
        log: The run's log.
    """

    def __init__(self, log: TrainingLog) -> None:
        self._log = log

    def after_epoch(self, trainer: Training) -> bool:
        """Do what is due; return whether the training is to end."""
        config, state = trainer.context.config, trainer.context.state
        evaluates = bool(config.eval_every) and state.epoch % config.eval_every == 0
        by_loss = bool(config.patience) and config.monitor == HELD_OUT_LOSS
        stays = bool(config.preserve_every) and state.epoch % config.preserve_every == 0
        if not (evaluates or by_loss or stays):
            return False
        trainer.checkpoint()
        if evaluates:
            self._evaluate(trainer)
        is_best = False
        if config.patience and (evaluates or by_loss):
            is_best = take_value(config, state, self._value(trainer))
        state.closed_epochs = state.epoch
        is_over = is_waiting_over(config, state)
        if is_over and not state.is_stopped:
            self._log.write("stopped", epoch=state.epoch, best=dict(state.best))
        state.is_stopped |= is_over
        if stays or is_best:
            checkpoints.preserve(trainer.context.path, state)
        trainer.commit()
        prune_best(trainer.context.path, config, state)
        return is_over

    def after_training(self, trainer: Training) -> None:
        """Put the best checkpoint in the place of the last one."""
        config, state = trainer.context.config, trainer.context.state
        if config.patience and state.best:
            best = state.best["epoch"]
            if best != state.epoch:
                checkpoints.restore(trainer.context.path, state, best)
            state.metrics["best_epoch"] = best
            state.metrics[f"best_{config.monitor}"] = state.best["value"]
            state.metrics["stopped_early"] = state.is_stopped

    def _evaluate(self, trainer: Training) -> None:
        from graphsys.embedding.evaluation.evaluate import evaluate

        config, state = trainer.context.config, trainer.context.state
        graph = stored_graph(trainer.context.graph)
        if config.eval_split == HELD_OUT:
            graph = GraphWithHeldOut(graph, config)
        result = evaluate(
            trainer.context.path, split=config.eval_split, graph=graph, breakdown=False
        )
        metrics = result["metrics"]
        names = {"mrr"}
        if config.patience and config.monitor != HELD_OUT_LOSS:
            names.add(config.monitor)
        for name in sorted(names):
            history = state.metrics.setdefault(f"{config.eval_split}_{name}", [])
            history.append([state.epoch, metrics[name]])
        self._log.write(
            "evaluation", epoch=state.epoch, split=config.eval_split, metrics=metrics
        )

    def _value(self, trainer: Training) -> float:
        config, metrics = trainer.context.config, trainer.context.state.metrics
        name = config.monitor
        if name != HELD_OUT_LOSS:
            name = f"{config.eval_split}_{name}"  # type: ignore[assignment]
        return float(metrics[name][-1][1])


def prune_best(path: Path, config: EmbeddingConfig, state: EmbeddingRunState) -> None:
    """Remove best checkpoints of before, but none that was to be preserved.

    The best checkpoint of a complete run is the run itself.
    """
    if not config.patience:
        return
    keep = {state.best["epoch"]} if state.best and not state.is_complete else set()
    if config.preserve_every:
        keep |= set(range(0, state.epoch + 1, config.preserve_every))
    checkpoints.prune(path, keep)
