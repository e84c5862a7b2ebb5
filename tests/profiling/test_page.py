"""The HTML page: what is in it, and that it works in a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from opkit.profiling import compare_reports, difference_page, html_page
from opkit.profiling.shown import read_timeline

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")

# What a user does, written as a script behind the page's own; its findings end in the title.
ACTIONS = """
const canvas = document.getElementById("opkit-timeline"), found = {rows: opkitTimeline.rows()};
const at = canvas.getBoundingClientRect();
const mouse = (kind, x, y, more) => {
  const Kind = kind === "wheel" ? WheelEvent : MouseEvent;
  const place = {clientX: at.left + x, clientY: at.top + y, bubbles: true, cancelable: true};
  canvas.dispatchEvent(new Kind(kind, {...place, ...more}));
};
const ink = () => {
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let count = 0;
  for (let i = 0; i < pixels.length; i += 4) count += pixels[i + 3] > 0 && pixels[i] < 128;
  return count;
};
found.ink = ink();
found.all = opkitTimeline.view();
document.getElementById("opkit-in").click();
found.zoomed = opkitTimeline.view();
mouse("mousedown", 300, 10);
mouse("mousemove", 200, 10);
window.dispatchEvent(new MouseEvent("mouseup"));
found.moved = opkitTimeline.view();
document.getElementById("opkit-fit").click();
mouse("wheel", 600, 10, {deltaY: -100});
found.wheeled = opkitTimeline.view();
document.getElementById("opkit-fit").click();
mouse("mousemove", canvas.clientWidth - 100, 8);
found.tip = document.getElementById("opkit-tip").textContent;
document.title = JSON.stringify(found);
"""


def test_the_page_needs_nothing_from_anywhere(record: dict[str, Any]) -> None:
    page = html_page(read_timeline(record))
    assert not re.search(r"(src|href)\s*=|https?://|@import|url\(", page)


def test_every_section_is_there(record: dict[str, Any]) -> None:
    page = html_page(read_timeline(record))
    for title in ("Timeline", "Roofline", "Memory traffic", "Cores", "Hottest lines"):
        assert f"<h2>{title}</h2>" in page
    assert "3.00 us ± " in page
    assert "a model, not a measurement" in page


def test_its_elements_are_closed(record: dict[str, Any]) -> None:
    class Tags(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.open: list[str] = []

        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag not in ("meta", "circle", "rect", "line"):
                self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            if tag not in ("circle", "rect", "line"):
                assert self.open.pop() == tag

    tags = Tags()
    tags.feed(html_page(read_timeline(record)))
    assert tags.open == []


def test_names_cannot_break_out_of_the_page(record: dict[str, Any]) -> None:
    record["kernel"] = "<script>alert(1)</script>"
    record["lines"][0]["file"] = "</script><b>.cpp"
    page = html_page(read_timeline(record))
    assert "<script>alert" not in page
    assert page.count("</script>") == 2


def test_a_launch_of_nothing_has_a_page(record: dict[str, Any]) -> None:
    nothing = {**record, "cores": [], "lines": [], "events": [], "total_cycles": 0.0}
    assert "The launch moved or computed nothing." in html_page(read_timeline(nothing))


def test_a_notebook_shows_times_and_lines(record: dict[str, Any]) -> None:
    shown = read_timeline(record)._repr_html_()
    assert "gelu_custom" in shown
    assert "gelu.cpp:20" in shown
    assert "<script" not in shown


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_the_timeline_draws_zooms_moves_and_names_instructions_in_a_browser(
    record: dict[str, Any], tmp_path: Path
) -> None:
    page = html_page(read_timeline(record))
    path = tmp_path / "page.html"
    path.write_text(page.replace("</body>", f"<script>{ACTIONS}</script></body>"), "utf-8")
    options = "--headless --no-sandbox --disable-gpu --no-first-run --disable-sync --disable-quic"
    options += " --disable-background-networking --disable-component-update --dump-dom"
    assert CHROMIUM is not None
    done = subprocess.run(
        [CHROMIUM, *options.split(), f"--user-data-dir={tmp_path / 'user'}", path.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    title = re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL)
    assert title is not None
    found = json.loads(title[1])
    assert found["rows"] == 2
    assert found["ink"] > 1000
    # The launch comes before the first cycle.
    assert found["all"] == [-1000, 2000]
    assert found["zoomed"] == [-250, 1250]
    assert found["moved"][0] > -250
    assert found["moved"][1] - found["moved"][0] == pytest.approx(1500)
    assert found["wheeled"][1] - found["wheeled"][0] == pytest.approx(2400)
    assert found["tip"].startswith("Add  gelu.cpp:20\n0.500 us + 1.500 us, 1500 cycles")


@pytest.mark.parametrize(("width", "dark"), [(500, False), (900, True), (1600, False)])
def test_the_page_opens_without_errors_and_fits(
    record: dict[str, Any], open_page: Callable[..., dict[str, Any]], width: int, dark: bool
) -> None:
    page = html_page(read_timeline(record), case="gelu_custom-float16-4096", made="2026-01-01")
    assert len(page.encode()) < 1_000_000
    assert "gelu_custom-float16-4096" in page and "2026-01-01" in page
    found = open_page(page, width=width, dark=dark)
    assert found["wide"] <= 0, "the page is wider than its window"
    assert found["paper"] == ("rgb(13, 17, 23)" if dark else "rgb(255, 255, 255)")


# Where the launch, a wait, what the scalar pipe does and nothing stand, by their cycles.
PLACES = """
window.opkitLook = () => {
  const canvas = document.getElementById("opkit-timeline"), [first, last] = opkitTimeline.view();
  const x = (cycle) => 150 + (cycle - first) / (last - first) * (canvas.clientWidth - 150);
  const rows = opkitTimeline.rows();
  const texts = [];
  for (let row = 0; row < rows; ++row) {
    texts.push([-500, 150, 450, 1950].map((cycle) => opkitTimeline.textAt(x(cycle), 8 + 14 * row)));
  }
  return {arrows: opkitTimeline.arrows(), texts};
};
"""


def test_waits_tell_their_reason_and_the_launch_is_on_the_axis(
    record: dict[str, Any], open_page: Callable[..., dict[str, Any]]
) -> None:
    record["cores"] = record["cores"][:1]
    record["events"] = [event for event in record["events"] if event[0] == 0]
    pipe = "V"
    record["waits"] = [
        [0, pipe, "data", "MTE2", 100.0, 200.0],
        [0, "MTE2", "buffer", pipe, 400.0, 480.0],
    ]
    record["scalar"] = [[0, 140.0, 160.0]]
    page = html_page(read_timeline(record))
    extra = open_page(page, width=1200, script=PLACES)["extra"]
    texts = [text for row in extra["texts"] for text in row]
    assert extra["arrows"] == 2
    assert sum(text.startswith("launch: ") for text in texts) == len(extra["texts"])
    assert any(f"{pipe} waits for MTE2, which makes what it reads" in text for text in texts)
    assert any(f"MTE2 waits for {pipe}, which still has its buffer" in text for text in texts)
    assert "S issues instructions" in texts


def test_two_runs_stand_side_by_side(
    record: dict[str, Any], open_page: Callable[..., dict[str, Any]]
) -> None:
    timeline = read_timeline(record)
    report = {
        **{key: value for key, value in record.items() if key not in ("events", "lines")},
        "pipes": [{"name": time.name, "mean_us": time.mean_us} for time in timeline.pipes()],
        "lines": record["lines"],
    }
    slower = {**report, "task_us": 2 * record["task_us"]}
    page = difference_page(
        compare_reports(report, slower), ("<before>", "after"), made="2026-01-01"
    )
    assert "<before>" not in page and "&lt;before&gt;" in page
    assert "+100.0 %" in page and "2026-01-01" in page
    for width in (500, 1600):
        assert open_page(page, width=width)["wide"] <= 0
