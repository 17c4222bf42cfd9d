"""Filling a template of the package: all that pages have in common."""

from typing import Any

from graphsys.analysis.page.colors import properties, rules
from graphsys.analysis.page.text import number_text
from graphsys.core.memory import format_bytes


def filled(template: str, **values: Any) -> str:
    """Return a template's text with values in it, escaped unless they are markup.

    Args:
        template: Its file in ``graphsys/analysis/templates``.
        values: By the names that it has for them.
    """
    from jinja2 import Environment, PackageLoader, select_autoescape

    loader = PackageLoader("graphsys.analysis", "templates")
    environment = Environment(
        loader=loader,
        autoescape=select_autoescape(default=True),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": number_text,
        "bytes": format_bytes,
        "percent": percent,
        "milliseconds": milliseconds,
        "millions": _millions,
    }
    colors = {"light": properties(0), "dark": properties(1), "rules": rules()}
    return environment.get_template(template).render(colors=colors, **values)


def percent(share: float | None) -> str:
    """Write a share for people."""
    return "" if share is None else f"{100 * share:.1f} %"


def milliseconds(seconds: float | None) -> str:
    """Write seconds as milliseconds."""
    return "" if seconds is None else f"{1e3 * seconds:,.3f}"


def _millions(amount: int | None) -> str:
    return "" if amount is None else number_text(amount / 1e6)
