"""The site of the documents: what its pages are made of; .ci/run builds it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def docs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    for name in ("source_pages", "build_site"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_the_api_page_names_what_packages_export(docs: None) -> None:
    text = importlib.import_module("source_pages").api_page(ROOT)
    assert "## opkit.testing" in text
    assert "| `assert_close(" in text
    assert "| `profile(" in text


def test_the_page_of_headers_has_their_first_sentences(docs: None) -> None:
    text = importlib.import_module("source_pages").headers_page(ROOT)
    assert "| `kernel_operator.h` |" in text
    assert "| `acl/acl.h` |" in text


def test_links_out_of_the_documents_lead_to_pages_or_are_named(docs: None) -> None:
    site = importlib.import_module("build_site")
    text = (
        "[tour](../README.md) `[code](../x.md)` [a row](../opkit/log.py) [here](cases.md#two)\n"
        "```\n[code](../README.md)\n```\n"
    )
    assert site.staged_text(text, ROOT / "docs" / "check.md", Path("check.md")) == (
        "[tour](readme.md) `[code](../x.md)` a row (`opkit/log.py`) [here](cases.md#two)\n"
        "```\n[code](../README.md)\n```\n"
    )
