"""Cells of CSV and TSV files that a spreadsheet would take for formulas.

Spreadsheets that open a file compute a text that begins with ``=``, ``+``, ``-``, ``@``, a
tab or a carriage return; ids come from strangers. By default files hold what the data says.
Where ``--safe-cells`` is given, such texts get ``'`` in front, as OWASP advises
(https://owasp.org/www-community/attacks/CSV_Injection).
"""

import os
from typing import Final

import pyarrow as pa

_CHOSEN: Final = "GRAPHSYS_SAFE_CELLS"  # processes that are started here inherit it
_FORMULA: Final = r"^([=+\-@\t\r])"


def choose_safe_cells(is_chosen: bool) -> bool:
    """Choose for the files that this process, and those it starts, write from now on."""
    if is_chosen:
        os.environ[_CHOSEN] = "1"
    else:
        os.environ.pop(_CHOSEN, None)
    return is_chosen


def chosen() -> dict[str, str]:
    """Return the variables of the environment that tell workers elsewhere the choice."""
    return {_CHOSEN: os.environ[_CHOSEN]} if _CHOSEN in os.environ else {}


def cells(table: pa.Table) -> pa.Table:
    """Return a table as its text is to be written.

    Args:
        table: Columns of any type; texts are changed where that was chosen.
    """
    if os.environ.get(_CHOSEN) != "1":
        return table
    import pyarrow.compute as pc

    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            column = pc.replace_substring_regex(
                table.column(place), pattern=_FORMULA, replacement=r"'\1"
            )
            table = table.set_column(place, field, column)
    return table
