"""Names of splits: what is said of one that a graph has not."""

from collections.abc import Iterable
from typing import Any

from graphsys.core.caller_warnings import note
from graphsys.core.errors import ConfigError, UnknownNameError, cut_list, unknown_name
from graphsys.core.types import true_splits

_USUAL = frozenset({"train", "valid", "test"})


def unknown_split(
    split: str, known: Iterable[str], *, of_edges: bool, by_time: bool = False
) -> UnknownNameError:
    """Build the error for a split that there is not, with what to do about it.

    Args:
        split: The name.
        known: The splits that there are.
        of_edges: Whether edges are in them, not nodes.
        by_time: Whether the last ones are to be held out.
    """
    last = "--by time " if by_time else ""
    other = (
        f"hold edges out before training, graphsys split GRAPH {last}-o GRAPH2"
        if of_edges
        else "train by the column of nodes that has it, --set split=COLUMN"
    )
    found = unknown_name("split", split, known)
    return UnknownNameError(f"{found}; measure one of these with --split NAME, or {other}")


def require_watched(config: Any, known: Iterable[str]) -> None:
    """Check that the split that is evaluated while training is there, where it is needed.

    What stops a training, or slows it, by evaluations would do nothing without a word. By
    default nothing needs them; a note then says of a split that may be meant.

    Args:
        config: The settings.
        known: The splits that have something to evaluate.

    Raises:
        ConfigError: It is not.
    """
    split, there = config.eval_split, true_splits(known)
    if not config.eval_every or split in there:
        return
    default = type(config).__dataclass_fields__["eval_split"].default
    asked = [
        f"{name}={value}"
        for name, value, is_set in (
            ("patience", config.patience, config.patience > 0),
            ("target", config.target, config.target is not None),
            ("lr_schedule", "plateau", config.lr_schedule == "plateau"),
        )
        if is_set
    ]
    if asked or split != default:
        reason = f" with {' and '.join(asked)}" if asked else ""
        without = (
            f"leave {'them' if len(asked) > 1 else 'it'} out" if asked else "eval_every=0"
        )
        raise ConfigError(
            f"eval_split: got {split!r}{reason}, but the graph has "
            f"{cut_list(there) or 'no splits'}; name one of these with --set "
            f"eval_split=NAME, or {without}"
        )
    if other := [name for name in there if name not in _USUAL]:
        note(
            f"nothing is evaluated while training: no split is called {split!r}; to "
            f"evaluate another: --set eval_split={other[0]}"
        )
