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
from opkit.profiling.page_data import launch_data
from opkit.profiling.shown import read_timeline

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")

# What a user does, written as a script behind the page's own; its findings end in the title.
ACTIONS = """
const canvas = document.getElementById("opkit-timeline"), found = {rows: opkitTimeline.rows()};
const at = canvas.getBoundingClientRect();
const mouse = (kind, x, y, more) => {
  const Kind = kind === "wheel" ? WheelEvent : PointerEvent;
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
mouse("pointerdown", 300, 10);
mouse("pointermove", 200, 10);
mouse("pointerup", 200, 10);
found.moved = opkitTimeline.view();
document.getElementById("opkit-fit").click();
mouse("wheel", 600, 10, {deltaY: -100});
found.scrolled = opkitTimeline.view();
mouse("wheel", 600, 10, {deltaY: -100, ctrlKey: true});
found.wheeled = opkitTimeline.view();
document.getElementById("opkit-fit").click();
mouse("pointermove", canvas.clientWidth - 100, 8);
found.tip = document.getElementById("opkit-tip").textContent;
document.title = JSON.stringify(found);
"""


def test_the_page_needs_nothing_from_anywhere(record: dict[str, Any]) -> None:
    page = html_page(read_timeline(record))
    # The chart's library says in its comments where it comes from.
    shown = re.sub(r"/\*!.*?\*/", "", page, flags=re.DOTALL)
    assert not re.search(r"(src|href)\s*=\s*[\"']|https?://|@import|url\(", shown)
    assert "Permission is hereby granted" in page


def test_every_section_is_there(record: dict[str, Any]) -> None:
    page = html_page(read_timeline(record))
    titles = set(re.findall(r"<h2[^>]*>(.*?)</h2>", page))
    assert titles >= {
        *("Timeline", "Memory and L2 over time", "Roofline", "Memory traffic", "Cores"),
        "Hottest lines",
    }
    assert "3.00 us ± " in page
    assert "a model, not a measurement" in page


def test_its_elements_are_closed(record: dict[str, Any]) -> None:
    class Tags(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.open: list[str] = []

        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag not in ("meta", "circle", "rect", "line", "input", "br"):
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
    assert page.count("</script>") == html_page(read_timeline(record)).count("<script")


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
    # Without Ctrl the wheel is the page's.
    assert found["scrolled"] == [-1000, 2000]
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
        [0, pipe, "data", "MTE2", 100.0, 200.0, 1, -1],
        [0, "MTE2", "buffer", pipe, 400.0, 480.0, -1, -1],
    ]
    record["scalar"] = [[0, 140.0, 160.0]]
    page = html_page(read_timeline(record))
    extra = open_page(page, width=1200, script=PLACES)["extra"]
    texts = [text for row in extra["texts"] for text in row]
    assert extra["arrows"] == 2
    assert sum(text.startswith("launch: ") for text in texts) == len(extra["texts"])
    assert any(f"{pipe} waits for MTE2, which makes what it reads" in text for text in texts)
    assert any(text.endswith("before Add  gelu.cpp:20") for text in texts)
    assert any(f"MTE2 waits for {pipe}, which still has its buffer" in text for text in texts)
    assert "S issues instructions" in texts


# What a user does by keys, from a source line to the timeline and back.
KEYS = """
window.opkitLook = () => {
  const key = (key, target) => (target ?? document.body).dispatchEvent(
    new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
  const found = {}, canvas = document.getElementById("opkit-timeline");
  const told = document.getElementById("opkit-told");
  const marked = () => document.querySelector("tr.chosen .text")?.textContent ?? "";
  key("w"); found.zoomed = opkitTimeline.view();
  key("d"); found.moved = opkitTimeline.view();
  key("s"); key("0"); found.all = opkitTimeline.view();
  document.querySelectorAll("tr[data-lines] button")[1].click();
  found.chosen = opkitTimeline.chosen();
  found.source = marked();
  key("Escape"); found.nothing = [opkitTimeline.chosen(), marked()];
  const find = document.getElementById("opkit-find");
  find.value = "mte2 copy"; find.dispatchEvent(new Event("input"));
  found.count = document.getElementById("opkit-found").textContent;
  key("w", find); found.typed = opkitTimeline.view();
  key("n"); found.next = opkitTimeline.chosen(); found.back = marked();
  key("0");
  const at = canvas.getBoundingClientRect();
  const mouse = (kind, x) => canvas.dispatchEvent(new PointerEvent(kind, {
    clientX: at.left + x, clientY: at.top + 8, shiftKey: true, pointerId: 1, bubbles: true}));
  const half = 150 + (canvas.clientWidth - 150) / 3;
  const end = canvas.clientWidth - 1;
  mouse("pointerdown", half); mouse("pointermove", end); mouse("pointerup", end);
  found.measured = told.textContent;
  const finger = (kind, x, pointerId) => canvas.dispatchEvent(new PointerEvent(kind, {
    clientX: at.left + x, clientY: at.top + 8, pointerType: "touch", pointerId, bubbles: true}));
  key("Escape");
  finger("pointerdown", 400, 1); finger("pointerdown", 500, 2); finger("pointermove", 600, 2);
  found.pinched = opkitTimeline.view();
  finger("pointerup", 400, 1); finger("pointerup", 600, 2);
  document.dispatchEvent(new Event("DOMContentLoaded"));
  document.querySelector(".opkit-theme").click();
  found.theme = getComputedStyle(document.body).backgroundColor;
  found.chart = document.querySelectorAll("#opkit-memory canvas").length;
  return found;
};
"""


def test_keys_source_lines_search_measure_and_fingers(
    record: dict[str, Any], open_page: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    source = tmp_path / "gelu.cpp"
    texts = [f"// line {number}" for number in range(1, 31)]
    texts[11], texts[19] = "DataCopy(local, global, count);", "Add(y, x, x, count);"
    source.write_text("\n".join(texts), "utf-8")
    for line in record["lines"]:
        line["file"] = str(source)
    record["lines"][1]["wait_cycles"] = 400.0
    page = html_page(read_timeline(record))
    assert "0.20 us" in page, "what the line was held, mean of the two cores"
    found = open_page(page, width=1200, script=KEYS)["extra"]
    assert found["zoomed"] == [-500, 1500]
    assert found["moved"] == [-200, 1800]
    assert found["all"] == [-1000, 2000]
    assert found["chosen"].startswith("Add  gelu.cpp:20")
    assert found["source"] == "Add(y, x, x, count);"
    assert found["nothing"] == [None, ""]
    assert found["count"] == "1 found"
    assert found["typed"] == [-1000, 2000]
    assert found["next"].startswith("DataCopy  gelu.cpp:12")
    assert found["back"] == "DataCopy(local, global, count);"
    assert "V 75 %" in found["measured"] and "MTE2 50 %" in found["measured"]
    first, last = found["pinched"]
    assert last - first == pytest.approx(1500)
    assert found["theme"] == "rgb(13, 17, 23)"
    assert found["chart"] == 1


def test_the_page_of_a_program_has_its_longest_launches(
    record: dict[str, Any], open_page: Callable[..., dict[str, Any]]
) -> None:
    short = {**record, "kernel": "short", "task_us": 1.0, "launch_us": 0.5}
    long = read_timeline(record)
    many = [read_timeline(short) for _ in range(10)]
    page = html_page(long, launches=[many[0], long, *many[1:]])
    script = """
    window.opkitLook = () => {
      const chooser = document.getElementById("opkit-launch"), shown = () =>
        [...document.querySelectorAll(".launch:not([hidden]) h1")].map((head) => head.textContent);
      const found = {before: shown(), names: [...chooser.options].map((item) => item.textContent)};
      chooser.value = "0"; chooser.dispatchEvent(new Event("change"));
      return {...found, after: shown(), view: opkitTimeline.view()};
    };
    """
    found = open_page(page, width=1200, script=script)["extra"]
    assert found["before"] == ["gelu_custom"] and found["after"] == ["short"]
    assert found["names"][:2] == ["launch 1: short, 1.00 us", "launch 2: gelu_custom, 3.00 us"]
    assert found["view"][0] == -500


def test_ten_thousand_instructions_stand_one_by_one_and_more_are_merged(
    record: dict[str, Any],
) -> None:
    def made(count: int) -> dict[str, Any]:
        cores = 20
        events = [
            (core, 1, 7.0 * at, 7.0 * at + 5, 0)
            for core in range(cores)
            for at in range(count // cores)
        ]
        waits = [
            (core, "V", "data", "MTE2", start + 5, start + 7, 1, -1)
            for core, _, start, _, _ in events
        ]
        end = 7.0 * count / cores
        return {
            **record,
            "cores": [{**record["cores"][0], "block": core} for core in range(cores)],
            "events": events,
            "waits": waits,
            "total_cycles": end,
        }

    page = html_page(read_timeline(made(10_000)))
    assert len(page.encode()) < 1_500_000
    data = launch_data(read_timeline(made(10_000)))
    assert not data["merged"]
    merged = launch_data(read_timeline(made(200_000)))
    assert merged["merged"]
    size = len(html_page(read_timeline(made(200_000))).encode())
    assert size < 2_000_000
    rows: Any = merged["rows"]
    # What is merged is counted, and its time is the time of all of them.
    assert sum(sum(row["events"]["count"]) for row in rows) == 200_000
    assert sum(sum(row["events"]["busy"]) for row in rows) == 200_000 * 5 * 10


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
