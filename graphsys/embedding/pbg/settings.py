"""PyTorch-BigGraph's settings as ours: every key is taken over, or named with the reason.

What PBG's schema has by default is taken over too (its comparator is ``cos``, its loss
``ranking``), so that a config means here what it means there. Settings that change what
is learnt and have no counterpart are errors; those that only steer PBG's processes are
told and left out. The table for people is PBG.md.

References:
    Lerer et al., "PyTorch-BigGraph: a large-scale graph embedding system", MLSys 2019;
    torchbiggraph 1.0.0 and its last commit, ``config.py``, for names and defaults.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from graphsys.core.config import apply_overrides, from_mapping, with_whole_lists
from graphsys.core.errors import ConfigError, cut_list
from graphsys.datasets.readers.pbg_config import read_pbg_mapping
from graphsys.embedding.config import ANY_RELATION, EmbeddingConfig
from graphsys.embedding.type_configs import RelationConfig

Mapped: TypeAlias = dict[str, Any]
Tell: TypeAlias = Callable[[str], None]

OPERATORS: Final = {
    "none": "identity",
    "diagonal": "diagonal",
    "translation": "translation",
    "linear": "linear",
    "affine": "affine",
    "complex_diagonal": "complex_diagonal",
}

# key -> (type, PBG's default, key here)
_SAME: Final[dict[str, tuple[type, Any, str]]] = {
    "dimension": (int, None, "dim"),
    "init_scale": (float, 1e-3, "init_scale"),
    "max_norm": (float, None, "max_norm"),
    "comparator": (str, "cos", "comparator"),
    "bias": (bool, False, "bias"),
    "loss_fn": (str, "ranking", "loss"),
    "margin": (float, 0.1, "margin"),
    "num_epochs": (int, 1, "epochs"),
    "workers": (int, None, "threads"),
    "batch_size": (int, 1000, "batch_size"),
    "num_batch_negs": (int, 50, "num_batch_negatives"),
    "num_uniform_negs": (int, 50, "num_uniform_negatives"),
    "lr": (float, 1e-2, "lr"),
    "relation_lr": (float, None, "relation_lr"),
}

# key -> (type, PBG's default, why it is left out when it has another value)
_LEFT_OUT: Final[dict[str, tuple[type, Any, str]]] = {
    "eval_num_batch_negs": (int, 1000, "evaluation ranks all nodes, not a sample"),
    "eval_num_uniform_negs": (int, 1000, "evaluation ranks all nodes, not a sample"),
    "max_edges_per_chunk": (
        int,
        1_000_000_000,
        "a bucket's edges stay in mapped files, whatever its size",
    ),
    "background_io": (bool, False, "PBG itself ignores it"),
    "verbose": (int, 0, "progress is shown on a terminal"),
    "hogwild_delay": (float, 2, "workers are threads and start at once"),
    "num_machines": (int, 1, "one machine trains"),
    "num_partition_servers": (int, -1, "partitions not in memory are files"),
    "distributed_init_method": (str, None, "one machine trains"),
    "distributed_tree_init_order": (bool, True, "one machine trains"),
    "num_groups_for_partition_server": (int, 16, "partitions not in memory are files"),
    "num_groups_per_sharded_partition_server": (int, 1, "partitions are files"),
    "partition_shard_size": (int, 250, "partitions not in memory are files"),
    "num_gpus": (int, 0, "the device is an option of the command, --device"),
    "num_sub_partitions": (int, None, "rows of a bucket need no further cut"),
    "half_precision": (bool, False, "rows and arithmetic are float32 here"),
}

_READ: Final[dict[str, tuple[type, Any]]] = {
    "entities": (dict, None),
    "relations": (list, None),
    "global_emb": (bool, True),
    "regularization_coef": (float, 0.0),
    "regularizer": (str, "N3"),
    "entity_path": (str, None),
    "edge_paths": (list, None),
    "checkpoint_path": (str, None),
    "init_path": (str, None),
    "checkpoint_preservation_interval": (int, None),
    "num_edge_chunks": (int, None),
    "bucket_order": (str, "inside_out"),
    "disable_lhs_negs": (bool, False),
    "disable_rhs_negs": (bool, False),
    "eval_fraction": (float, 0.05),
    "dynamic_relations": (bool, False),
}
_LOOP: Final = {
    "init_path": "init_from",
    "num_edge_chunks": "edge_chunks",
    "checkpoint_preservation_interval": "preserve_every",
    "eval_fraction": "eval_fraction",
}
_ENTITY: Final[dict[str, tuple[type, Any]]] = {
    "num_partitions": (int, None),
    "featurized": (bool, False),
    "dimension": (int, None),
}
_RELATION: Final[dict[str, tuple[type, Any]]] = {
    "name": (str, None),
    "lhs": (str, None),
    "rhs": (str, None),
    "weight": (float, 1.0),
    "operator": (str, "none"),
    "all_negs": (bool, False),
}
_NOT_YET: Final = "graphsys has no such setting yet"
_ORDERS: Final = ("random", "affinity", "inside_out", "outside_in")


def ignore(text: str) -> None:
    """Take no note of a setting that is left out."""
    del text


def from_pbg_config(
    config: str | Path | Mapping[str, Any],
    *,
    overrides: Iterable[str] = (),
    tell: Tell = ignore,
) -> EmbeddingConfig:
    """Build our config from one of PyTorch-BigGraph.

    Args:
        config: A Python or JSON file of PBG, which is read and not run, or its content.
        overrides: ``key=value`` settings on top, with the keys of graphsys.
        tell: Receives a line for every setting that is left out, with the reason.

    Raises:
        ConfigError: The file is not such a config; a key is unknown; or a setting changes
            what is learnt and has no counterpart here.
    """
    if isinstance(config, Mapping):
        where, given = "config", dict(config)
    else:
        where, given = Path(config).name, read_pbg_mapping(config)
    mapped = _Conversion(where, given, tell).mapped
    settings = with_whole_lists(EmbeddingConfig, overrides)
    return from_mapping(EmbeddingConfig, apply_overrides(mapped, settings), where=where)


class _Conversion:
    """Carries one config over; ``mapped`` has our keys."""

    def __init__(self, where: str, given: Mapped, tell: Tell) -> None:
        self.where, self.tell = where, tell
        kinds = {key: kind[:2] for key, kind in {**_SAME, **_LEFT_OUT}.items()}
        self.values = self._checked(given, {**_READ, **kinds}, "")
        self.mapped: Mapped = {}
        for key in ("entities", "relations", "dimension"):
            if not self.values[key]:
                raise ConfigError(f"{where}: {key} is missing; PBG needs it")
        for key, (_, _, ours) in _SAME.items():
            if self.values[key] is not None:
                self._set(key, ours, self.values[key])
        for key, (_, default, reason) in _LEFT_OUT.items():
            if self.values[key] != default:
                self.tell(f"{key}={self.values[key]} is left out: {reason}")
        self._relations()
        self._entities()
        self._regularizer()
        self._negatives()
        self._loop()

    def _checked(self, given: Any, known: Mapping[str, Any], path: str) -> Mapped:
        """Return all keys with their values, PBG's defaults where none is given."""
        if not isinstance(given, Mapping):
            raise ConfigError(f"{self.where}: {path}got {given!r}, expected a dictionary")
        result = {key: kind[1] for key, kind in known.items()}
        for name, value in given.items():
            key = "".join(f"_{c.lower()}" if c.isupper() else c for c in str(name))
            if key not in known:
                close = difflib.get_close_matches(key, known, n=1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise ConfigError(
                    f"{self.where}: PBG has no key {path + str(name)!r}{hint}"
                )
            kind = known[key][0]
            result[key] = self._value(value, kind, path + key, known[key][1])
        return result

    def _value(self, value: Any, kind: type, path: str, default: Any) -> Any:
        if value is None and (default is None or path in _LEFT_OUT):
            return default
        if kind is bool and value in (0, 1):
            return bool(value)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        is_bool = isinstance(value, bool) and kind is not bool
        if not isinstance(value, kind) or is_bool:
            names = {int: "an integer", float: "a number", str: "a text", list: "a list"}
            wanted = names.get(kind, "a dictionary" if kind is dict else "true or false")
            raise ConfigError(f"{self.where}: {path}: got {value!r}, expected {wanted}")
        return value

    def _set(self, key: str, ours: str, value: Any) -> None:
        """Take a setting over; values that it starts with anyway are left to ours."""
        if ours not in EmbeddingConfig.__dataclass_fields__:
            if value:
                raise self._refused(key, value, _NOT_YET)
            return
        self.mapped[ours] = value

    def _refused(self, key: str, value: Any, reason: str) -> ConfigError:
        return ConfigError(f"{self.where}: {key}={value!r} cannot be taken over: {reason}")

    def _relations(self) -> None:
        is_dynamic = self.values["dynamic_relations"]
        relations, entities = [], self.values["entities"]
        for number, given in enumerate(self.values["relations"]):
            path = f"relations[{number}]."
            relation = self._checked(given, _RELATION, path)
            for key in ("name", "lhs", "rhs"):
                if not relation[key]:
                    raise ConfigError(f"{self.where}: {path}{key} is missing")
            for side in ("lhs", "rhs"):
                if relation[side] not in entities:
                    raise ConfigError(
                        f"{self.where}: {path}{side}: got {relation[side]!r}, expected "
                        f"one of the entities {cut_list(entities)}"
                    )
            relations.append((relation["name"], self._relation(relation, path)))
        if is_dynamic and len(relations) != 1:
            raise ConfigError(
                f"{self.where}: dynamic_relations with {len(relations)} relations, "
                "expected one, whose settings hold for all"
            )
        self.mapped["reciprocal"] = is_dynamic
        self.mapped["operator"] = relations[0][1].pop("operator")
        rest = [settings.pop("operator", None) for _, settings in relations[1:]]
        operators = [self.mapped["operator"], *rest]
        if len(set(operators)) == 1 and all(s == relations[0][1] for _, s in relations):
            if relations[0][1]:
                self.mapped["relations"] = {ANY_RELATION: relations[0][1]}
            return
        tables: Mapped = {}
        for (name, settings), kind in zip(relations, operators, strict=True):
            table = {"operator": kind, **settings}
            if tables.setdefault(name, table) != table:
                raise ConfigError(
                    f"{self.where}: relations: the name {name!r} is given twice, with "
                    "other settings; a relation is known by its name here"
                )
        self.mapped["relations"] = tables

    def _relation(self, relation: Mapped, path: str) -> Mapped:
        kind = relation["operator"]
        if kind not in OPERATORS:
            close = difflib.get_close_matches(kind, OPERATORS, n=1)
            hint = (
                f"did you mean {close[0]!r}?" if close else "of your own are not run here"
            )
            raise ConfigError(
                f"{self.where}: {path}operator: got {kind!r}, expected one of "
                f"{', '.join(OPERATORS)}; {hint}"
            )
        settings: Mapped = {"operator": OPERATORS[kind]}
        if relation["weight"] != 1.0:
            settings["weight"] = relation["weight"]
        if relation["all_negs"]:
            if "all_negatives" not in RelationConfig.__dataclass_fields__:
                raise self._refused(f"{path}all_negs", True, _NOT_YET)
            settings["all_negatives"] = True
        return settings

    def _entities(self) -> None:
        tables, partitions = {}, {}
        for name, given in self.values["entities"].items():
            path = f"entities.{name}."
            entity = self._checked(given, _ENTITY, path)
            if not entity["num_partitions"] or entity["num_partitions"] < 1:
                raise ConfigError(
                    f"{self.where}: {path}num_partitions: got "
                    f"{entity['num_partitions']!r}, expected an integer >= 1"
                )
            if entity["featurized"]:
                raise self._refused(
                    f"{path}featurized",
                    True,
                    "PBG keeps features in its edge files; "
                    "ingest them as a bag feature of the nodes and name it in a config of "
                    f"graphsys, node_types.{name}.features",
                )
            partitions[name] = entity["num_partitions"]
            if entity["dimension"] not in (None, self.values["dimension"]):
                tables[name] = {"dim": entity["dimension"]}
        if tables and len(partitions) == 1:
            self.mapped["dim"] = next(iter(tables.values()))["dim"]
        elif tables:
            self._set("entities.dimension", "node_types", tables)
        if max(partitions.values()) > 1:
            text = ",".join(f"{name}={count}" for name, count in partitions.items())
            self.tell(f"num_partitions is the graph's: graphsys ingest --partitions {text}")
        is_global = self.values["global_emb"]
        if self.values["dynamic_relations"]:
            is_global = False  # PBG cannot have both, and its default is true
        self._set("global_emb", "global_embedding", is_global)

    def _regularizer(self) -> None:
        coefficient, kind = self.values["regularization_coef"], self.values["regularizer"]
        if kind != "N3":
            raise self._refused(
                "regularizer", kind, "PBG has N3, plug-ins are not run here"
            )
        if coefficient:
            # a static relation of PBG adds it once per edge, ours once per query
            half = 1.0 if self.values["dynamic_relations"] else 0.5
            self.mapped["regularizer"] = half * coefficient

    def _negatives(self) -> None:
        for key, ours in (
            ("disable_lhs_negs", "disable_src_negatives"),
            ("disable_rhs_negs", "disable_dst_negatives"),
        ):
            self._set(key, ours, self.values[key])
        if self.values["num_batch_negs"] == 0:
            self.tell(
                "num_batch_negs=0: the positives of a batch share the uniform negatives "
                "here, in PBG those of every num_uniform_negs positives"
            )

    def _loop(self) -> None:
        order = self.values["bucket_order"].lower()
        if order not in _ORDERS:
            raise ConfigError(
                f"{self.where}: bucket_order: got {order!r}, expected one of "
                f"{', '.join(_ORDERS)}"
            )
        if order != "inside_out":
            self._set("bucket_order", "bucket_order", order)
        for key, ours in _LOOP.items():
            if self.values[key] is not None:
                self.mapped[ours] = self.values[key]
        if self.values["init_path"] is not None:
            self.tell(
                "init_path: a run of graphsys is expected there; make one of PBG's "
                "checkpoint with graphsys.embedding.import_pbg"
            )
        paths = self.values["edge_paths"] or []
        if len(paths) > 1:
            self.tell(
                f"edge_paths: {len(paths)} folders; the graph holds the edges to train on, "
                "ingest them into it"
            )
