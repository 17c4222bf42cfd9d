"""How well classes of nodes are told, in the field's usual figures."""

from typing import Any

import torch


def class_metrics(
    scores: torch.Tensor, target: torch.Tensor, *, is_multi: bool
) -> dict[str, float]:
    """Return the metrics of a classification.

    Args:
        scores: Logits ``[n, C]``.
        target: Classes ``[n]``, or with several a node 0 and 1 ``[n, C]``.
        is_multi: Whether a node may have several classes.
    """
    from torch.nn import functional
    from torchmetrics.functional import classification

    num_classes = scores.shape[1]
    if is_multi:
        whole = target.long()
        options: dict[str, Any] = {"num_labels": num_classes}
        loss = functional.binary_cross_entropy_with_logits(scores, target)
        chosen = torch.sigmoid(scores)
        exact = ((chosen > 0.5).long() == whole).all(dim=1).float().mean()
        found = {
            "accuracy": exact,
            "f1_micro": classification.multilabel_f1_score(
                chosen, whole, average="micro", **options
            ),
            "f1_macro": classification.multilabel_f1_score(
                chosen, whole, average="macro", **options
            ),
            "roc_auc": classification.multilabel_auroc(chosen, whole, **options),
        }
        return {name: float(value) for name, value in (found | {"loss": loss}).items()}
    loss = functional.cross_entropy(scores, target)
    options = {"num_classes": num_classes}
    found = {
        "accuracy": classification.multiclass_accuracy(
            scores, target, average="micro", **options
        ),
        "f1_micro": classification.multiclass_f1_score(
            scores, target, average="micro", **options
        ),
        "f1_macro": classification.multiclass_f1_score(
            scores, target, average="macro", **options
        ),
        "loss": loss,
    }
    if num_classes == 2:
        second = torch.softmax(scores, dim=1)[:, 1]
        found["roc_auc"] = classification.binary_auroc(second, target)
    return {name: float(value) for name, value in found.items()}
