"""Tables that add columns to nodes that another table lists."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.errors import ConfigError, InputError
from graphsys.datasets.table_spec.rows import Table


class Joined:
    """The rows of one such table, looked up by id.

    Args:
        table: The table; read as a whole.
        node_type: Type of its nodes, for messages.

    Raises:
        InputError: a line does not fit, or a node has two rows.
    """

    def __init__(self, table: Table, node_type: str) -> None:
        self._table = table
        self._node_type = node_type
        parts = list(table.read())
        names = [name for name in parts[0].columns if name != "id"]
        ids = [_plain(part.columns["id"]) for part in parts]
        self._rows = np.concatenate(
            [part.first + np.arange(len(it)) for part, it in zip(parts, ids, strict=True)]
        )
        self._ids = pa.chunked_array(ids).combine_chunks()
        self._columns = {
            name: _concatenate([part.columns[name] for part in parts]) for name in names
        }
        self._is_used = np.zeros(len(self._ids), dtype=bool)
        self._refuse_doubled()

    @property
    def names(self) -> list[str]:
        """The columns that it adds."""
        return list(self._columns)

    def _refuse_doubled(self) -> None:
        codes = self._ids.dictionary_encode().indices.to_numpy()
        first = np.unique(codes, return_index=True)[1]
        if len(first) == len(codes) or self._table.card.where:
            return
        is_first = np.zeros(len(codes), dtype=bool)
        is_first[first] = True
        row = int(np.flatnonzero(~is_first)[0])
        raise InputError(
            f"{self._table.line(row)}: node {self._ids[row].as_py()!r} is listed a second "
            "time; keep one row of each"
        )

    def take(self, ids: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the columns and the features of some nodes; null where there is no row.

        Raises:
            InputError: a node has no features.
        """
        wanted = _plain(ids)
        if wanted.type != self._ids.type:
            raise InputError(
                f"{self._table.file.name}: ids are {self._ids.type}, but {wanted.type} in "
                f"the table that lists {self._node_type!r}; give both ids = 'string'"
            )
        places = pc.index_in(wanted, value_set=self._ids)
        found = places.drop_null().to_numpy(zero_copy_only=False)
        self._is_used[found] = True
        columns: dict[str, Any] = {}
        features: dict[str, Any] = {}
        for name, values in self._columns.items():
            if isinstance(values, np.ndarray):
                if places.null_count:
                    lost = wanted.filter(places.is_null())[0].as_py()
                    raise InputError(
                        f"{self._table.file.name}: no row for node {lost!r}, expected "
                        f"features {name!r} for each {self._node_type}"
                    )
                features[name] = values[found]
            else:
                columns[name] = values.take(places)
        return columns, features

    def check(self) -> None:
        """Look for rows of nodes that nothing lists.

        Raises:
            InputError: there is one.
        """
        if self._is_used.all():
            return
        place = int(np.flatnonzero(~self._is_used)[0])
        count = int((~self._is_used).sum())
        raise InputError(
            f"{self._table.line(int(self._rows[place]))}: unknown node "
            f"{self._ids[place].as_py()!r}, which no table of {self._node_type!r} lists "
            f"({count} such row{'s' * (count > 1)}); remove it, or list the node"
        )


def _plain(ids: Any) -> pa.Array:
    """Return ids as int64 or as strings."""
    if isinstance(ids, np.ndarray):
        return pa.array(ids)
    if pa.types.is_dictionary(ids.type):
        ids = ids.dictionary_decode()
    return ids.cast(pa.string())


def _concatenate(parts: list[Any]) -> npt.NDArray[Any] | pa.Array:
    if isinstance(parts[0], np.ndarray) and parts[0].ndim == 2:
        return np.concatenate(parts)
    plain = []
    for part in parts:
        array = part if isinstance(part, pa.Array) else pa.array(part, from_pandas=True)
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        plain.append(array)
    return pa.concat_arrays(plain)


def refuse_same_columns(joins: list[Joined], node_type: str) -> None:
    """Refuse two tables that add the same column.

    Raises:
        ConfigError: names it.
    """
    names = [name for join in joins for name in join.names]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(
                f"two tables of {node_type!r} have a column {name!r}; leave one out with "
                "'_', or call it differently"
            )
