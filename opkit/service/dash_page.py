"""The dashboard's page, one text that needs nothing else: no network, no font, no library."""

from __future__ import annotations

import json
from pathlib import Path

from opkit.profiling import page_parts

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


def dash_page(state: object = None) -> str:
    """Return the page; it asks /api/state each second, unless it is given a state to show."""
    here = Path(__file__)
    shared = page_parts()
    style = here.with_name("dash.css").read_text("utf-8")
    script = here.with_name("dash.js").read_text("utf-8")
    parts = {"state": state, "timeline": shared.timeline, "timelineScript": shared.script}
    data = json.dumps(parts, allow_nan=False).replace("<", "\\u003c")
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>opkit</title><style>{shared.style}\n{style}</style></head>",
            '<body class="opkit">',
            '<a class="skip" href="#content">to the content</a>',
            '<header><h1>opkit</h1><nav id="nav" aria-label="views"></nav>',
            '<span id="live" role="status"></span>',
            '<button id="pause" aria-pressed="false" title="key p">pause</button></header>',
            '<main id="content" tabindex="-1"><p>Loading …</p></main>',
            '<div id="drawing" hidden></div>',
            f'<script type="application/json" id="opkit-dash-data">{data}</script>',
            f"<script>{script}</script>",
            "</body></html>\n",
        )
    )
