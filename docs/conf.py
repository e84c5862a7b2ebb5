"""Sphinx's settings for the site that docs/build_site.py builds."""

from __future__ import annotations

import logging
from typing import Any

import jieba
from pygments.lexers.special import TextLexer
from sphinx.search.zh import SearchChinese

jieba.setLogLevel(logging.WARNING)
project = "opkit"
author = "the opkit authors"
extensions = ["myst_parser"]
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]
html_theme = "furo"
html_title = "opkit"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
templates_path = ["_templates"]
# Splits Chinese into words, by jieba, and stems English ones.
html_search_language = "zh"
highlight_language = "text"
PLAIN = ("formulas", "implied", "refused")
"""Languages of blocks that tests read, and that Pygments does not know."""
CHINESE = "zh/"


def add_other_language(
    app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Give a page's template the same page in the other language, if there is one."""
    chinese = pagename.startswith(CHINESE)
    other = pagename[len(CHINESE) :] if chinese else CHINESE + pagename
    if other in app.env.found_docs:
        context["other_language"] = other
        context["other_language_name"] = "English" if chinese else "中文"


class Search(SearchChinese):
    """Sphinx calls the stemmer by the language's name, and Chinese has English's: under its own
    name the script of the search ended at its first line."""

    language_name = "English"


def setup(app: Any) -> None:
    """Connect what templates need, and name the languages of blocks."""
    app.add_search_language(Search)
    for name in PLAIN:
        app.add_lexer(name, TextLexer)
    app.connect("html-page-context", add_other_language)
