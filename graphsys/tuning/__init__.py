"""Settings of a training are searched; it has a guide."""

from typing import TYPE_CHECKING

from graphsys.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from graphsys.tuning.search import SettingsSearch as SettingsSearch
    from graphsys.tuning.search import read_search as read_search
    from graphsys.tuning.trials import TuneReport as TuneReport
    from graphsys.tuning.trials import search_report as search_report
    from graphsys.tuning.trials import tune as tune

__getattr__ = lazy_exports(__name__)
