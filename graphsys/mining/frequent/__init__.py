"""Labeled patterns that are in a graph often enough; see ../README.md."""

from typing import TYPE_CHECKING

from graphsys.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from graphsys.mining.frequent.labeled_pattern import LabeledPattern as LabeledPattern
    from graphsys.mining.frequent.search import FrequentPattern as FrequentPattern
    from graphsys.mining.frequent.search import frequent_patterns as frequent_patterns

__getattr__ = lazy_exports(__name__)
