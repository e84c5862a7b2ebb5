"""Build the documents as a site that needs no network, and check every link in it.

    pip install --group docs
    python docs/build_site.py build/site                      # open build/site/index.html
    python docs/build_site.py build/site --zip opkit-docs.zip

The sources stay Markdown that is readable without it. A warning of Sphinx, such as one of a link
to nowhere, ends it with exit 1.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from source_pages import api_page, headers_page

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
OUTSIDE = {"README.md": "readme.md", "CONTRIBUTING.md": "contributing.md"}
"""Documents at the top of the repository, and their names on the site."""
TOKENS = re.compile(
    r"(?P<code>^(?:```|~~~).*?^(?:```|~~~))"
    r"|(?P<image>!?)\[(?P<words>[^\]]*)\]\((?P<target>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)"
    r"|(?P<span>`[^`\n]+`)",
    re.DOTALL | re.MULTILINE,
)
"""Code, in which nothing is a link, and links."""


def main() -> int:
    """Build what the command line says; return the exit code."""
    parser = argparse.ArgumentParser(description="Build the documents as a site.")
    parser.add_argument("folder", type=Path, help="where the pages go")
    parser.add_argument("--zip", type=Path, help="also pack the pages, to be read offline")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        sources = Path(scratch) / "docs"
        stage(sources)
        command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-E", "-b", "html"]
        command += ["-d", f"{scratch}/doctrees", str(sources), str(arguments.folder)]
        if subprocess.run(command, check=False).returncode:
            return 1
    search = (arguments.folder / "_static" / "language_data.js").read_text("utf-8")
    stemmer = re.search(r"window\.Stemmer = (\w+);", search)
    if stemmer is None or f"{stemmer[1]}=function" not in search:
        print("the script of the search has no stemmer", file=sys.stderr)
        return 1
    if arguments.zip:
        base = arguments.zip.with_suffix("")
        shutil.make_archive(str(base), "zip", arguments.folder.parent, arguments.folder.name)
    return 0


def stage(folder: Path) -> None:
    """Copy the documents into a new folder, with the links that they have there."""
    shutil.copytree(DOCS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name, staged in OUTSIDE.items():
        shutil.copy(ROOT / name, folder / staged)
    (folder / "api.md").write_text(api_page(ROOT), encoding="utf-8")
    (folder / "headers.md").write_text(headers_page(ROOT), encoding="utf-8")
    for page in folder.rglob("*.md"):
        source = source_of(page.relative_to(folder))
        text = page.read_text(encoding="utf-8")
        page.write_text(staged_text(text, source, page.relative_to(folder)), encoding="utf-8")


def source_of(page: Path) -> Path:
    """Return the file in the repository that a page of the site is made from."""
    for name, staged in OUTSIDE.items():
        if page == Path(staged):
            return ROOT / name
    return DOCS / page


def staged_text(text: str, source: Path, page: Path) -> str:
    """Return a document's text with links that lead to pages of the site.

    What lies in the repository and is no page is named by its path in place of a link.
    """

    def relinked(match: re.Match[str]) -> str:
        target = match["target"]
        if target is None or "://" in target:
            return match[0]
        path = Path(os.path.normpath(source.parent / target))
        words = match["words"]
        if path.is_relative_to(DOCS):
            staged = path.relative_to(DOCS)
        elif path.is_relative_to(ROOT) and str(path.relative_to(ROOT)) in OUTSIDE:
            staged = Path(OUTSIDE[str(path.relative_to(ROOT))])
        elif path.exists() and path.is_relative_to(ROOT):
            name = str(path.relative_to(ROOT))
            return f"`{name}`" if words.strip("`") in name else f"{words} (`{name}`)"
        else:
            return match[0]
        link = os.path.relpath(staged, page.parent)
        return f"{match['image']}[{words}]({link}{match['anchor'] or ''})"

    return TOKENS.sub(relinked, text)


if __name__ == "__main__":
    sys.exit(main())
