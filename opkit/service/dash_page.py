"""The dashboard's page, one text that needs nothing else: no network, no font, no library."""

from __future__ import annotations

from opkit.profiling import page_parts
from opkit.templating import render_template

__all__ = ["PAGE_HEADERS", "dash_page"]

PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline';"
        " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}
"""What goes out with pages: they load nothing, and nobody frames them."""


def dash_page(state: object = None, history: object = None) -> str:
    """Return the page; it asks /api/state each second, unless it is given a state to show, and
    /api/history where that is looked at, unless it is given one."""
    shared = page_parts()
    data = {
        "state": state,
        "history": history,
        "timeline": shared.timeline,
        "timelineScript": shared.script,
    }
    return render_template("pages/dash.html.jinja", {"data": data})
