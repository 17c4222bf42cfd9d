"""What a graph of any size would take; it has a guide."""

from typing import TYPE_CHECKING

from graphsys.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from graphsys.planning.predict import Plan as Plan
    from graphsys.planning.predict import plan as plan
    from graphsys.planning.rates import Rate as Rate
    from graphsys.planning.rates import Rates as Rates
    from graphsys.planning.rates import calibrate as calibrate
    from graphsys.planning.task import Outlook as Outlook

__getattr__ = lazy_exports(__name__)
