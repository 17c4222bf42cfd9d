"""The codes of operators, comparators and losses of ours, by name."""

from typing import Final

from graphsys.embedding.spec.comparators import COMPARATORS
from graphsys.embedding.spec.losses import LOSSES
from graphsys.embedding.spec.operators import OPERATORS

_OPERATORS: Final = {name: OPERATORS.get(name).code for name in OPERATORS.names()}
OPERATOR_CODES: Final = {k: v for k, v in _OPERATORS.items() if v is not None}
COMPARATOR_CODES: Final = {name: COMPARATORS.get(name).code for name in COMPARATORS.names()}
LOSS_CODES: Final = {name: LOSSES.get(name).code for name in LOSSES.names()}
