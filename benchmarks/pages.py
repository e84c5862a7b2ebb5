"""Pages that opkit makes, in Chromium: what stands on the console, and what axe-core finds.

    python benchmarks/pages.py --axe node_modules/axe-core/axe.min.js --site build/site

Each page is opened at 1600, 1024 and 420 pixels, light and dark. Counted: messages on the console,
findings of axe-core above "minor", pages wider than their window. Exit 1 if there is any.
"""

from __future__ import annotations

import argparse
import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from opkit.service.dash_files import DashFiles
from opkit.service.dash_page import dash_page

WIDTHS = (1600, 1024, 420)
OPTIONS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-sync --enable-logging=stderr"
    " --disable-background-networking --disable-component-update --allow-file-access-from-files"
    " --virtual-time-budget=30000 --dump-dom"
)
PROBE = """
<script src="%s"></script><script>
addEventListener("load", () => axe.run(document, {resultTypes: ["violations"]}).then((found) => {
  const problems = found.violations.filter((item) => item.impact !== "minor").map((item) =>
    `${item.impact} ${item.id} x${item.nodes.length}: ${item.nodes[0].target.join(" ")}`);
  const wide = document.documentElement.scrollWidth - innerWidth;
  const pre = document.createElement("pre");
  pre.id = "opkit-probe";
  pre.textContent = JSON.stringify({problems, wide});
  document.body.append(pre);
}));
</script></body>"""
PROGRAM = """
def norm(x: "float16[M, 512]", weight: "float16[512]"):
    square = (x * x).mean(axis=-1, keepdims=True)
    return x * (square + 1e-6).apply("rsqrt") * weight
"""


def run(*arguments: str, cwd: Path, into: str = "", codes: tuple[int, ...] = (0,)) -> None:
    """Run opkit; what it prints goes into a file where one is named."""
    done = subprocess.run(
        [sys.executable, "-m", "opkit", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=600,
    )
    if done.returncode not in codes:
        raise SystemExit(f"opkit {' '.join(arguments)}: {done.returncode}\n{done.stderr[-2000:]}")
    if into:
        (cwd / into).write_text(done.stdout, "utf-8")


def made_pages(folder: Path) -> list[Path]:
    """Return the pages of a small project: of a right kernel, and of one with two bugs."""
    run("init", "Swish", "--formula", "x * sigmoid(x)", cwd=folder)
    shape = ("--shape", "65536")
    profile = ("profile", "swish", "--json", "--shape")
    run(*profile, "65536", "--html", "profile.html", cwd=folder, into="before.json")
    run("profile", "swish", *shape, "--trace", "trace.json", cwd=folder)
    run("test", "swish", "--html", "test.html", "--json", cwd=folder, into="test.json")
    run("check", "swish", *shape, "--html", "check.html", cwd=folder)
    tune = ("tune", "swish", *shape, "--budget", "12", "--html", "tune.html", "--json")
    run(*tune, cwd=folder, into="tune.json")
    (folder / "norm.py").write_text(PROGRAM, "utf-8")
    run("compile", "norm.py", "--size", "M=2048", "--html", "compile.html", cwd=folder)
    kernel = folder / "swish" / "op_kernel" / "swish.cpp"
    text = kernel.read_text("utf-8")
    for line in (r"\n[^\n]*FreeTensor\([^\n]*", r"\n[^\n]* Adds\([^\n]*"):
        text, count = re.subn(line, "\n", text, count=1)
        assert count == 1, line
    kernel.write_text(text, "utf-8")
    run(*profile, "65536", cwd=folder, into="after.json", codes=(0, 1))
    both = ("--diff", "before.json", "after.json", "--limit", "900")
    run("profile", *both, "--html", "difference.html", cwd=folder)
    run("test", "swish", "--html", "test_failing.html", cwd=folder, codes=(1,))
    checked = ("check", "swish", *shape, "--html", "check_found.html", "--json")
    run(*checked, cwd=folder, into="check.json", codes=(1,))
    state = {"service": None, "files": DashFiles((folder,)).read(), "problem": ""}
    names = [file["name"] for file in state["files"]]
    for at, name in enumerate(names):
        page = dash_page(state).replace(
            "</head>", f'<script>location.hash = "file/{at}";</script></head>'
        )
        (folder / f"dash_{Path(name).stem}.html").write_text(page, "utf-8")
    return sorted(folder.glob("*.html"))


def look(page: Path, axe: Path, width: int, *, dark: bool, user: Path) -> Iterator[str]:
    """Yield what is wrong with a page in a window."""
    probe = PROBE % axe.resolve().as_uri()
    aside = page.with_name(f"{page.stem}.probe.html")
    text = page.read_text("utf-8")
    place = text.rindex("</body>")
    aside.write_text(text[:place] + probe + text[place + len("</body>") :], "utf-8")
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("there is no Chromium")
    options = [*OPTIONS.split(), f"--window-size={width},900", f"--user-data-dir={user}"]
    if dark:
        options.append("--blink-settings=preferredColorScheme=0")
    done = subprocess.run(
        [browser, *options, aside.as_uri()], capture_output=True, text=True, timeout=120
    )
    aside.unlink()
    for line in done.stderr.splitlines():
        if "CONSOLE" in line:
            yield f"console: {line.partition('] ')[2][:200]}"
    found = re.search(r'<pre id="opkit-probe">(.*?)</pre>', done.stdout, re.DOTALL)
    if found is None:
        yield "axe-core did not come to its end"
        return
    result = json.loads(html.unescape(found[1]))
    yield from result["problems"]
    if result["wide"] > 0:
        yield f"wider than its window by {result['wide']} pixels"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--axe", type=Path, required=True, help="axe.min.js of axe-core")
    parser.add_argument("--site", type=Path, help="a built site, whose pages are opened too")
    parser.add_argument("--site-pages", type=int, default=12, help="how many of its pages")
    parser.add_argument("pages", nargs="*", type=Path, help="these instead of opkit's own")
    arguments = parser.parse_args()
    problems = windows = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pages = arguments.pages or made_pages(folder)
        if arguments.site is not None:
            every = sorted(arguments.site.rglob("*.html"), key=lambda page: -page.stat().st_size)
            pages = [*pages, *every[: arguments.site_pages]]
        for page in pages:
            size = page.stat().st_size
            wrong = []
            for width in WIDTHS:
                for dark in (False, True):
                    windows += 1
                    at = f"{width} {'dark' if dark else 'light'}"
                    user = folder / "user"
                    wrong += [
                        f"    {at}: {text}"
                        for text in look(page, arguments.axe, width, dark=dark, user=user)
                    ]
            problems += len(wrong)
            print(f"{page.name}  {size} bytes  {len(wrong)} problems", flush=True)
            print("\n".join(wrong[:12]), end="\n" if wrong else "", flush=True)
    print(f"{len(pages)} pages in {windows} windows: {problems} problems")
    raise SystemExit(1 if problems else 0)


if __name__ == "__main__":
    main()
