"""Patterns: counted, listed, found often; they have a guide."""

from typing import TYPE_CHECKING

from graphsys.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from graphsys.mining.approximate import Estimate as Estimate
    from graphsys.mining.approximate import estimate as estimate
    from graphsys.mining.count_plan import CountPlan as CountPlan
    from graphsys.mining.count_plan import plan_count as plan_count
    from graphsys.mining.counting import count as count
    from graphsys.mining.counting import count_all as count_all
    from graphsys.mining.explain import explain_all as explain_all
    from graphsys.mining.explain import explain_count as explain_count
    from graphsys.mining.feature_store import store_with_orbits as store_with_orbits
    from graphsys.mining.frequent.search import FrequentPattern as FrequentPattern
    from graphsys.mining.frequent.search import frequent_patterns as frequent_patterns
    from graphsys.mining.listing import exists as exists
    from graphsys.mining.listing import matches as matches
    from graphsys.mining.listing import write_matches as write_matches
    from graphsys.mining.loops import visit_matches as visit_matches
    from graphsys.mining.motifs import motif_census as motif_census
    from graphsys.mining.motifs import orbits as orbits
    from graphsys.mining.pattern import Pattern as Pattern
    from graphsys.mining.simple_graph import SimpleGraph as SimpleGraph

__getattr__ = lazy_exports(__name__)
