"""Which settings the device's kernels know; all others are refused, never ignored."""

from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from typing import Any, Final

from graphsys.core.errors import ConfigError
from graphsys.core.registry import Registry
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.spec.comparators import COMPARATORS
from graphsys.embedding.spec.losses import LOSSES
from graphsys.embedding.spec.operators import OPERATORS

_KNOWN: Final = {
    "dim",
    "epochs",
    "seed",
    "threads",
    "deterministic",
    "operator",
    "comparator",
    "loss",
    "margin",
    "reciprocal",
    "relations",
    "edge_types",
    "edge_weights",
    "batch_size",
    "num_batch_negatives",
    "num_uniform_negatives",
    "importance_weights",
    "lr",
    "relation_lr",
    "lr_schedule",
    "regularizer",
    "operator_init",
    "init_scale",
    "checkpoint_seconds",
    "eval_every",
    "eval_split",
    "row_dtype",
    "bucket_order",
    "buffer_partitions",
    "prefetch",
    "edge_sets",
    "edge_chunks",
    "preserve_every",
    "eval_fraction",
    "patience",
    "target",
    "stop_at_target",
    "monitor",
    "min_improvement",
    "init_from",
    "init_state",
    "join_partitions",
    "tensorboard",
}
"""Settings that kernels know, or that the host alone takes care of."""

_KNOWN_OF_RELATION: Final = {"operator", "weight"}
_ROW_DTYPES: Final = ("bfloat16", "float32")
_REGISTRIES: Final[dict[str, Registry[Any]]] = {
    "operator": OPERATORS,
    "comparator": COMPARATORS,
    "loss": LOSSES,
}


def require_supported(config: EmbeddingConfig) -> None:
    """Refuse settings that training on a device would have to ignore.

    Raises:
        ConfigError: A setting that is not at its default and that no kernel knows, or a
            value of one that is.
    """
    for name, value in _changed(config, _KNOWN):
        raise _refusal(name, value)
    for name, registry in _REGISTRIES.items():
        _require_kernels(registry, name, getattr(config, name))
    if config.row_dtype not in _ROW_DTYPES:
        raise _refusal("row_dtype", config.row_dtype, _ROW_DTYPES)
    for relation, settings in config.relations.items():
        where = f"relations.{relation}"
        for name, value in _changed(settings, _KNOWN_OF_RELATION):
            raise _refusal(f"{where}.{name}", value)
        if settings.operator is not None:
            _require_kernels(OPERATORS, f"{where}.operator", settings.operator)


def _require_kernels(registry: Registry[Any], where: str, name: str) -> None:
    if not registry.get(name).has_device:
        known = (other for other in registry.names() if registry.get(other).has_device)
        raise _refusal(where, name, tuple(known))


def _changed(settings: Any, known: set[str]) -> Iterator[tuple[str, Any]]:
    """Yield the settings that are neither known nor at their default."""
    for field in fields(settings):
        value = getattr(settings, field.name)
        if field.name not in known and value != _default(field):
            yield field.name, value


def _default(field: Field[Any]) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


def _refusal(name: str, value: Any, allowed: tuple[str, ...] = ()) -> ConfigError:
    has = f"it has {', '.join(allowed)}" if allowed else "it knows only its default"
    return ConfigError(
        f"device='cuda': no kernel for {name} = {value!r}, {has}; change it, or train with "
        "device='cpu'"
    )
