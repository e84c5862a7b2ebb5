"""Pages in two languages: which belong together, and one source of truth for what is no prose."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path

__all__ = ["CHINESE", "code_of", "english_of", "pages", "with_english_code", "with_links"]

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
CHINESE = "zh"
README = "readme.md"
"""The README among the Chinese pages."""

BLOCK = re.compile(
    r"^<!-- (?P<name>[\w-]+): begin -->\n.*?^<!-- (?P=name): end -->$"  # written by a program
    r"|^```(?P<directive>\{)?.*?^```$"
    r"|(?:(?<=\n\n)|\A)(?: {4}[^\n]*\n)(?:(?: {4}[^\n]*|[ ]*)\n)*(?: {4}[^\n]*)$"
    r"|(?:(?<=\n\n)|\A)(?: {4}[^\n]*)$",
    re.DOTALL | re.MULTILINE,
)
"""Parts between markers, fenced and indented code; directives, whose words are the page's own."""
LINK = re.compile(r"\]\((?P<target>[^)#\s]+\.md)(?P<anchor>#[^)\s]*)?\)")


def english_of(page: Path) -> Path:
    """Return the English page of a Chinese one."""
    name = page.relative_to(DOCS / CHINESE)
    return ROOT / "README.md" if name == Path(README) else DOCS / name


def pages() -> list[tuple[Path, Path]]:
    """Return every English page with the path of its Chinese one, whether that exists or not."""
    chinese = DOCS / CHINESE
    found = [path for path in sorted(DOCS.rglob("*.md")) if not path.is_relative_to(chinese)]
    return [
        (ROOT / "README.md", chinese / README),
        *((path, chinese / path.relative_to(DOCS)) for path in found),
    ]


def code_of(text: str) -> list[str]:
    """Return the blocks of a page that are the same in both languages, in their order."""
    return [text[start:stop] for start, stop in _spans(text)]


def with_english_code(chinese: str, english: str) -> str:
    """Return a Chinese page with the blocks of the English one.

    A block that the English page alone has goes behind the one before it, the first of all to the
    end; one that it has no longer goes away. Prose stays as it is.
    """
    spans = _spans(chinese)
    old = [chinese[start:stop] for start, stop in spans]
    new = code_of(english)
    if not old:
        return "\n\n".join([chinese.rstrip("\n"), *new]) + "\n"
    replaced: list[list[str]] = [[] for _ in old]
    for tag, a, b, c, d in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if tag == "equal":
            for offset in range(b - a):
                replaced[a + offset].append(new[c + offset])
            continue
        for offset, block in enumerate(new[c:d]):
            target = min(a + offset, b - 1) if b > a else max(a - 1, 0)
            replaced[target].append(block)
    text, end = "", 0
    for (start, stop), blocks in zip(spans, replaced, strict=True):
        text += chinese[end:start] + "\n\n".join(blocks)
        end = stop
    return text + chinese[end:]


def with_links(text: str, page: Path) -> str:
    """Return a Chinese page with links to the Chinese pages that exist, else to the English ones.

    A link to the page's own English twin stays.
    """

    def relinked(match: re.Match[str]) -> str:
        if "://" in match["target"]:
            return match[0]
        target = Path(os.path.normpath(page.parent / match["target"]))
        chinese = DOCS / CHINESE
        if target.is_relative_to(chinese):
            if not target.exists() and english_of(target).exists():
                target = english_of(target)
        elif target != english_of(page):
            twins = {english: twin for english, twin in pages() if twin.exists()}
            target = twins.get(target, target)
        return f"]({os.path.relpath(target, page.parent)}{match['anchor'] or ''})"

    return LINK.sub(relinked, text)


def _spans(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in BLOCK.finditer(text) if not match["directive"]]
