"""The documents in two languages: the same pages, the same code, and how code gets into both."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


def load_languages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("languages", ROOT / "docs" / "languages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


languages = load_languages()
PAGES = languages.pages()


def test_both_languages_have_the_same_pages() -> None:
    chinese = sorted((ROOT / "docs" / languages.CHINESE).rglob("*.md"))
    assert sorted(page for _, page in PAGES) == chinese


@pytest.mark.parametrize("pair", PAGES, ids=lambda pair: str(pair[1].relative_to(ROOT)))
def test_a_page_has_the_same_code_in_both_languages(pair: tuple[Path, Path]) -> None:
    if "cookbook" in pair[1].parts:
        return  # written in each language from one table, by docs/generate.py
    english, chinese = (languages.code_of(page.read_text(encoding="utf-8")) for page in pair)
    assert chinese == english, f"{pair[1].name}: run python docs/generate.py"


def test_new_code_of_the_english_page_goes_behind_the_code_before_it() -> None:
    english = "one\n\n```py\na\n```\n\ntwo\n\n    b\n    c\n\nthree\n"
    chinese = "一\n\n```py\nold\n```\n\n三\n"
    both = languages.with_english_code(chinese, english)
    assert languages.code_of(both) == ["```py\na\n```", "    b\n    c"]
    assert both == "一\n\n```py\na\n```\n\n    b\n    c\n\n三\n"


def test_code_that_the_english_page_has_no_longer_goes_away() -> None:
    chinese = "一\n\n    a\n\n二\n\n    b\n"
    assert languages.code_of(languages.with_english_code(chinese, "x\n\n    b\n")) == ["    b"]


def test_the_first_code_of_a_page_goes_to_its_end() -> None:
    assert languages.with_english_code("一\n", "one\n\n    a\n") == "一\n\n    a\n"
    assert languages.with_english_code("一\n", "one\n") == "一\n"


def test_marked_parts_are_copied() -> None:
    english = "<!-- limits: begin -->\nnew\n<!-- limits: end -->\n"
    chinese = "<!-- limits: begin -->\nold\n<!-- limits: end -->\n"
    assert languages.with_english_code(chinese, english) == english


def test_links_lead_to_chinese_pages_that_exist_else_to_english_ones() -> None:
    page = ROOT / "docs" / languages.CHINESE / "tutorials" / "first_kernel.md"
    text = "[a](../glossary.md) [b](../generate.md) [c](../../glossary.md) [d](../none.md#x)"
    assert languages.with_links(text, page) == (
        "[a](../glossary.md) [b](../generate.md) [c](../glossary.md) [d](../none.md#x)"
    )
    twin = "[English](../../tutorials/first_kernel.md)"
    assert languages.with_links(twin, page) == twin
