"""The dashboard: what it reads, that it needs nothing, and that it works in a browser."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkit.errors import UsageError
from opkit.service import Client, DashLimits, make_app
from opkit.service.dash_files import DashFiles, read_dash_file
from opkit.service.dash_history import History
from opkit.service.dash_page import dash_page
from opkit.service.dash_server import make_dash

NOW = float(int(time.time()))
X = np.arange(4, dtype=np.float32)

PROFILE = {
    "kernel": "gelu<b>",
    "chip": "Ascend910B2",
    "task_us": 2.5,
    "band_percent": 14,
    "bound_by": "V",
    "block_dim": 2,
    "pipes": [{"name": "V", "mean_us": 1.0, "max_us": 1.0, "utilisation": 0.5}],
    "advice": [],
    "lines": [
        {"file": "a/b.cpp", "line": 7, "instruction": "Mul", "pipe": "V", "cycles": 9, "count": 2}
    ],
}
TEST = {
    "project": "gelu",
    "standard": "conditioned",
    "passed": False,
    "counts": {"pass": 1, "fail": 1, "fault": 0},
    "cases": [
        {"name": "one", "verdict": "pass", "seconds": 0.001, "message": ""},
        {"name": "two", "verdict": "fail", "seconds": 0.002, "message": "missed"},
    ],
}
CHECK = {
    "project": "gelu",
    "clean": False,
    "suppressed": 0,
    "cases": [{"name": "one", "findings": ["RACE-WAR"]}],
    "findings": [
        {
            "id": "RACE-WAR",
            "message": "<script>alert(1)</script>",
            "help": "wait",
            "kernel": "k",
            "location": {"file": "k.cpp", "line": 3},
            "count": 2,
        }
    ],
}
TRIAL = {"values": {"tile": 1024}, "task_us": 3.0, "wrong": "", "findings": []}
TUNE = [
    {
        "name": "gelu 4096",
        "chip": "Ascend910B2",
        "ratio": 0.5,
        "searched": "all",
        "space": {"size": 2, "knobs": {"tile": [1024, 2048]}},
        "start": TRIAL,
        "best": {**TRIAL, "task_us": 1.5, "values": {"tile": 2048}},
        "relief": None,
        "trials": [TRIAL, {**TRIAL, "task_us": None, "wrong": "missed"}, {**TRIAL, "task_us": 1.5}],
    }
]
TRACE = {
    "traceEvents": [
        {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {"name": "aiv block 0"}},
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": 1, "args": {"name": "V"}},
        {
            "ph": "X",
            "name": "Mul",
            "pid": 0,
            "tid": 1,
            "ts": 0.5,
            "dur": 1.0,
            "args": {"where": "a/k.cpp:7"},
        },
    ],
    "otherData": {"kernel": "k", "chip": "Ascend910B2", "task_us": 2.0, "block_dim": 1},
}
FILES = {"profile": PROFILE, "test": TEST, "check": CHECK, "tune": TUNE, "trace": TRACE}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, value in FILES.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(value))
    return tmp_path


def test_each_kind_of_file_is_known(folder: Path) -> None:
    found = {item["name"]: item for item in DashFiles((folder,)).read()}
    assert {name: found[f"{name}.json"]["kind"] for name in FILES} == {n: n for n in FILES}
    assert found["profile.json"]["lines"][0]["where"] == "b.cpp:7"
    assert [case["name"] for case in found["test.json"]["cases"]] == ["two", "one"]
    assert found["check.json"]["findings"][0]["where"] == "k.cpp:3"
    (tuned,) = found["tune.json"]["reports"]
    assert (tuned["best_us"], tuned["ratio"], tuned["candidates"]) == (1.5, 0.5, 3)
    assert [trial["task_us"] for trial in tuned["trials"]] == [1.5, 3.0, None]
    timeline = found["trace.json"]["timeline"]
    (row,) = timeline["rows"]
    assert (row["core"], row["pipe"], timeline["mhz"]) == (0, "V", 1000)
    # Tenths of a cycle, which is a nanosecond here: 0.5 us + 1 us.
    assert row["events"] == {"start": [5000], "length": [10000], "line": [0]}
    assert timeline["lines"] == [{"name": "Mul", "where": "k.cpp:7", "pipe": "V"}]


def test_a_file_is_read_again_when_it_changes(folder: Path) -> None:
    files = DashFiles((folder / "test.json",))
    assert files.read()[0]["passed"] is False
    (folder / "test.json").write_text(json.dumps({**TEST, "passed": True, "seed": 12}))
    assert files.read()[0]["passed"] is True
    (folder / "test.json").unlink()
    assert "No such file" in files.read()[0]["problem"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[]", "none of opkit's"),
        ('{"a": 1}', "none of opkit's"),
        ('{"task_us": 1, "pipes": 2, "lines": 3}', "looks like profile and is not"),
        ('[{"start": 1, "best": 2, "trials": 3, "space": 4}]', "looks like tune and is not"),
        ('{"traceEvents": [{"ph": "X"}]}', "looks like trace and is not"),
    ],
)
def test_files_that_are_none_say_why(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        read_dash_file(path)
    assert message in DashFiles((path,)).read()[0]["problem"]


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no"):
        DashFiles((Path("nowhere.json"),))


def test_it_shows_a_service_and_files(
    open_service: Callable[..., Any], serve: Callable[[Any], str], folder: Path
) -> None:
    service = serve(make_app(open_service({"v1": "good"})))
    with Client(serve(make_dash([folder], service=service))) as client:
        state = client.get("/api/state")
    assert state["service"]["operators"][0]["operator"] == "twice"
    assert len(state["files"]) == 5
    assert state["problem"] == ""


def test_a_service_that_does_not_answer_is_said_so(serve: Callable[[Any], str]) -> None:
    with Client(serve(make_dash([], service="http://127.0.0.1:1"))) as client:
        state = client.get("/api/state")
    assert state["service"] is None
    assert "http://127.0.0.1:1 does not answer" in state["problem"]


def reported(answers: int, failures: int, **version: Any) -> dict[str, Any]:
    """A service's report as far as its history reads it."""
    figures = {"answers": answers, "failures": {"fault": failures} if failures else {}}
    row = {"version": "v1", "problem": "", "breaker": "closed", "breaker_reason": ""}
    row |= {"p99_us": 900.0, "memory_bytes": 3 << 20, **figures, **version}
    reference = {"answers": 0, "failures": {}, "available": True, "ready": True, "problem": ""}
    return {"operators": [{"operator": "twice", "versions": [row], "reference": reference}]}


def test_figures_are_kept_over_time_and_over_restarts(tmp_path: Path, folder: Path) -> None:
    database = tmp_path / "history.sqlite"
    files = DashFiles((folder / "profile.json", folder / "test.json"))
    history = History(database)
    for second, answers in ((0, 10), (2, 15), (10, 60)):
        service = reported(answers, 0)
        history.note({"service": service, "files": files.read(), "problem": ""}, NOW + second)
    history.close()
    found = {row["name"]: row for row in History(database).series()}
    assert found["profile.json: modelled time"]["values"] == (2.5,)
    assert found["profile.json: modelled time"]["unit"] == "us"
    assert found["test.json: cases that do not pass"]["values"] == (1,)
    # What is asked for every second is kept each five.
    assert found["twice: p99 latency"]["times"] == (NOW, NOW + 10)
    assert found["twice: answers a second"]["values"] == (5.0,)
    assert found["twice: memory of the workers"]["values"] == (3.0, 3.0)


def test_old_points_go_and_many_are_joined_by_their_largest() -> None:
    history = History()
    for second in range(0, 50_000, 10):
        report = reported(second, 0, p99_us=1e6 if second == 25_000 else 5.0)
        history.note({"service": report, "files": [], "problem": ""}, NOW + second)
    (row,) = (row for row in history.series() if row["name"] == "twice: p99 latency")
    assert 300 < len(row["values"]) <= 401
    assert sorted(set(row["values"])) == [5.0, 1e6]
    history.note({"service": reported(0, 0), "files": [], "problem": ""}, NOW + 3e6)
    assert {len(row["times"]) for row in history.series()} == {1}


def test_what_deserves_a_look_is_an_alert(folder: Path) -> None:
    files, history = DashFiles((folder,)), History()
    limits = DashLimits(slower_percent=10, failures_percent=1)

    def alerts(report: dict[str, Any] | None = None, problem: str = "", at: float = 0) -> list[str]:
        state = {"service": report, "files": files.read(), "problem": problem}
        history.note(state, NOW + at)
        return [alert["text"] for alert in history.alerts(state, limits)]

    assert alerts() == ["check.json: 1 findings", "test.json: cases of gelu fail"]
    (folder / "check.json").unlink()
    (folder / "test.json").write_text(json.dumps({**TEST, "passed": True}))
    assert alerts() == []
    (folder / "profile.json").write_text(json.dumps({**PROFILE, "task_us": 2.7}))
    assert alerts() == []
    (folder / "profile.json").write_text(json.dumps({**PROFILE, "task_us": 3.24}))
    assert alerts() == ["profile.json: 2.7 us became 3.24 us, 20 % more"]
    (folder / "profile.json").unlink()
    assert alerts(problem="nobody answers") == ["nobody answers"]
    assert alerts(reported(100, 0)) == []
    assert alerts(reported(198, 2), at=10) == ["twice: 2 % of the calls fail"]
    assert alerts(reported(298, 2), at=20) == []
    out = reported(300, 2, breaker="open", breaker_reason="3 wrong results")
    assert alerts(out, at=30) == ["twice v1 is out: 3 wrong results"]


def test_a_file_that_is_no_history_is_refused_and_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("no database, and longer than a header of one has to be: " * 9)
    before = other.read_bytes()
    with pytest.raises(UsageError, match="keeps no history"):
        make_dash([], history=other)
    assert other.read_bytes() == before
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("/dev/null"), tmp_path / "pipe", tmp_path):
        with pytest.raises(UsageError, match="no regular file"):
            make_dash([], history=path)


def test_the_history_is_served_and_kept_while_no_page_is_open(
    serve: Callable[[Any], str], folder: Path, tmp_path: Path
) -> None:
    database = tmp_path / "history.sqlite"
    with Client(serve(make_dash([folder], history=database))) as client:
        wait_until(lambda: client.get("/api/history"))
        names = [row["name"] for row in client.get("/api/history")]
        alerts = client.get("/api/state")["alerts"]
    assert "profile.json: modelled time" in names
    assert {alert["level"] for alert in alerts} == {"bad"}
    assert database.stat().st_size > 0


def wait_until(holds: Callable[[], Any], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_the_page_needs_nothing_from_anywhere() -> None:
    page = dash_page()
    assert not re.search(r"""(src|href)\s*=\s*["']?(http|//)|@import|url\(""", page)


def some_state(open_service: Callable[..., Any], folder: Path) -> dict[str, Any]:
    service = open_service(
        {"v1": "good", "v2": "wrong", "v3": "good"},
        deployment={"shares": {"v3": 0.5}, "by": "request", "shadow": {"v2": 1.0}},
    )
    for _ in range(50):
        service.call("twice", [X])
    service.call("twice", [X], version="v2")
    service.settle()
    state = {"service": service.report(), "files": DashFiles((folder,)).read(), "problem": ""}
    history = History()
    history.note(state)
    return {**state, "alerts": history.alerts(state, DashLimits()), "series": history.series()}


LOOK = """
window.opkitLook = () => {
  const found = {};
  const files = [0, 1, 2, 3, 4].map((index) => `file/${index}`);
  const views = ["operators", "operator/twice", "events", "files", "alerts/", "history/week"];
  for (const view of [...views, ...files]) {
    location.hash = view;
    window.dispatchEvent(new HashChangeEvent("hashchange"));
    const isDrawn = window.opkitTimeline && !document.getElementById("drawing").hidden;
    found[view] = {
      text: document.getElementById("content").textContent,
      wide: document.documentElement.scrollWidth - window.innerWidth,
      focus: document.activeElement.id,
      charts: document.querySelectorAll("#charts:not([hidden]) canvas").length,
      timeline: isDrawn ? window.opkitTimeline.rows() : 0,
    };
  }
  const links = [...document.querySelectorAll("a, button")];
  found.reachable = links.every((item) => item.tabIndex >= 0);
  found.named = links.every((item) => item.textContent.trim() !== "");
  window.dispatchEvent(new KeyboardEvent("keydown", {key: "p"}));
  found.paused = document.getElementById("pause").getAttribute("aria-pressed");
  found.alerted = document.querySelectorAll("#content script").length;
  return found;
};
"""


def luminance(colour: str) -> float:
    red, green, blue = (int(part) / 255 for part in re.findall(r"\d+", colour)[:3])
    return 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2


@pytest.mark.parametrize(
    ("width", "dark"),
    [
        pytest.param(1300, False, marks=pytest.mark.slow),
        (1300, True),
        pytest.param(500, False, marks=pytest.mark.slow),
    ],
)
def test_every_view_works_in_a_browser(
    open_page: Callable[..., dict[str, Any]],
    open_service: Callable[..., Any],
    folder: Path,
    width: int,
    dark: bool,
) -> None:
    state = some_state(open_service, folder)
    page = dash_page(state, state["series"])
    look = open_page(page, width=width, dark=dark, script=LOOK)
    found = look["extra"]
    assert "twice" in found["operators"]["text"]
    detail = found["operator/twice"]["text"]
    for text in (
        "Versions",
        "A/B",
        "Shadow calls",
        "CPU reference",
        "misses the conditioned",
        "not decided",
    ):
        assert text in detail
    assert found["history/week"]["charts"] == len(state["series"]) >= 5
    assert "check.json: 1 findings" in found["alerts/"]["text"]
    assert "breaker_open" in found["events"]["text"]
    assert "check.json" in found["files"]["text"]
    # Findings are text, whatever they say.
    assert "<script>alert(1)</script>" in unescape(found["file/0"]["text"])
    assert "gelu<b>" in unescape(found["file/1"]["text"])
    assert "two" in found["file/2"]["text"]
    assert found["file/3"]["timeline"] == 1
    assert "tile 1024" in found["file/4"]["text"]
    assert found["file/4"]["timeline"] == 0
    assert max(view["wide"] for name, view in found.items() if "/" in name) <= 0
    assert all(view["focus"] == "content" for name, view in found.items() if "/" in name)
    assert (found["reachable"], found["named"], found["paused"]) == (True, True, "true")
    assert found["alerted"] == 0
    paper, ink = luminance(look["paper"]), luminance(look["ink"])
    assert (paper < ink) is dark
    assert (max(paper, ink) + 0.05) / (min(paper, ink) + 0.05) > 7
