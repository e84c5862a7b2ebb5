"""`opkit profile`: options and outputs with a fixed timeline, and the whole path once."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from opkit.cli import group
from opkit.cli.console import run_guarded
from opkit.errors import KernelFault
from opkit.profiling import CoreTime, LineTime, Timeline, TimelineEvent

Capture = pytest.CaptureFixture[str]

PROTOTYPE = {
    "op": "Twice",
    "input_desc": [{"name": "x", "type": ["float16", "float32"], "format": ["ND", "ND"]}],
    "output_desc": [{"name": "y", "type": ["float16", "float32"], "format": ["ND", "ND"]}],
}
EXAMPLE = Path(__file__).parents[2] / "examples" / "prototypes" / "gelu_custom.json"

TIMELINE = Timeline(
    kernel="twice",
    chip="Ascend910B2",
    block_dim=1,
    clock_mhz=1000.0,
    task_us=2.5,
    launch_us=0.5,
    total_cycles=2000.0,
    cores=(CoreTime(0, 0, "aiv", 0.0, 2000.0, {"V": 1000.0}),),
    lines=(LineTime("twice.cpp", 7, "Muls", "V", 1, 1000.0, 0.0, 0),),
    events=(TimelineEvent(0, 0, 0.0, 1000.0, 0),),
    events_dropped=0,
    gm_read_bytes=0,
    gm_write_bytes=0,
    l2_hit_bytes=0,
    hbm_read_bytes=0,
    hbm_write_bytes=0,
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "twice"
    root.mkdir()
    (root / "twice.json").write_text(json.dumps(PROTOTYPE))
    (root / "pyproject.toml").write_text(
        '[project]\nname = "twice"\n[tool.opkit]\noperators = ["twice.json"]\n'
    )
    return root


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Put a fixed timeline where building and the emulator would be; return what was launched."""
    launched: list[Any] = []

    class Session:
        timelines = (TIMELINE,)

        def __init__(self, *, event_limit: int, lift_limits: bool, timing_only: bool) -> None:
            pass

        def __enter__(self) -> Session:
            return self

        def __exit__(self, *error: object) -> None:
            pass

    def run(op_type: str, inputs: Any, attrs: Any, *, dtypes: Any) -> None:
        launched.append((op_type, [array.shape for array in inputs], dtypes))

    artifact = SimpleNamespace(folder=Path("unused"), compiled=0, cached=0, seconds=0.0)
    monkeypatch.setattr("opkit.toolchain.build", lambda project, **options: artifact)
    library = SimpleNamespace(run=run)
    monkeypatch.setattr("opkit.runtime.open", lambda folder: library, raising=False)
    monkeypatch.setattr(
        "opkit.runtime.configure", lambda chip=None, **settings: None, raising=False
    )
    monkeypatch.setattr("opkit.profiling.Profile", Session, raising=False)
    return launched


def profile(*arguments: str | Path) -> int:
    return run_guarded(group, ["profile", *map(str, arguments)])


def test_the_shape_and_dtype_asked_for_are_launched(project: Path, launches: list[Any]) -> None:
    assert profile(project, "--shape", "3x5", "--dtype", "fp32") == 0
    assert launches == [("Twice", [(3, 5)], ["float32"])]


def test_a_million_elements_of_the_first_dtype_by_default(
    project: Path, launches: list[Any]
) -> None:
    assert profile(project) == 0
    assert launches == [("Twice", [(1048576,)], ["float16"])]


def test_an_operator_that_works_by_row_gets_rows_by_default(
    project: Path, launches: list[Any]
) -> None:
    # The default cases of such an operator include flat shapes: a million elements were one row.
    prototype = json.loads((project / "twice.json").read_text())
    prototype["output_desc"][0]["formula"] = "x - mean(x, axis=-1)"
    (project / "twice.json").write_text(json.dumps(prototype))
    assert profile(project) == 0
    assert launches == [("Twice", [(2048, 4096)], ["float16"])]


def test_it_prints_the_summary(project: Path, launches: list[Any], capsys: Capture) -> None:
    assert profile(project) == 0
    text = capsys.readouterr().out
    assert re.search(r"twice: 2\.50 us ± \d+ % on Ascend910B2", text)
    assert "a model, not a measurement" in text
    assert "twice.cpp:7" in text


def test_json_has_the_figures_without_the_events(
    project: Path, launches: list[Any], capsys: Capture
) -> None:
    assert profile(project, "--json") == 0
    fields = json.loads(capsys.readouterr().out)
    assert (fields["task_us"], fields["bound_by"]) == (2.5, "V")
    assert fields["pipes"][0]["utilisation"] == 0.5
    assert "events" not in fields


def test_a_project_whose_launch_faulted_has_no_time(
    project: Path, launches: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def run(op_type: str, inputs: Any, attrs: Any, *, dtypes: Any) -> None:
        raise KernelFault("DataCopy reads beyond UB", category="OutOfBounds")

    monkeypatch.setattr("opkit.runtime.open", lambda folder: SimpleNamespace(run=run))
    assert profile(project, "--json") == 1
    fields = json.loads(capsys.readouterr().out)
    assert fields["faulted"] is True
    assert "beyond UB" in fields["fault"]
    assert "task_us" not in fields
    assert profile(project) == 1
    assert "beyond UB" in capsys.readouterr().err


def test_the_trace_lands_in_the_file(project: Path, launches: list[Any], tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    assert profile(project, "--trace", trace) == 0
    events = json.loads(trace.read_text())["traceEvents"]
    assert [event["name"] for event in events if event["ph"] == "X"] == ["Muls"]


def test_the_page_and_the_tables_land_where_asked(
    project: Path, launches: list[Any], tmp_path: Path
) -> None:
    page, folder = tmp_path / "page.html", tmp_path / "new" / "csv"
    assert profile(project, "--html", page, "--csv", folder) == 0
    assert "<title>twice on Ascend910B2</title>" in page.read_text()
    assert (folder / "PipeUtilization.csv").read_text().startswith("block_id,sub_block_id,")


def test_a_slower_report_ends_with_one(
    project: Path, launches: list[Any], tmp_path: Path, capsys: Capture
) -> None:
    assert profile(project, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    before, after = tmp_path / "a.json", tmp_path / "b.json"
    before.write_text(json.dumps(report))
    after.write_text(json.dumps({**report, "task_us": 2.6}))
    assert profile("--diff", before, before) == 0
    capsys.readouterr()
    assert profile("--diff", before, after) == 1
    out = capsys.readouterr().out
    assert "2.50 us -> 2.60 us on Ascend910B2, +4.0 %" in out
    assert "slower by more than 2 %" in out
    assert profile("--diff", before, after, "--limit", "5") == 0
    capsys.readouterr()
    assert profile("--diff", before, after, "--json") == 1
    assert json.loads(capsys.readouterr().out)["is_slower"] is True


def test_diff_runs_nothing(project: Path, launches: list[Any], tmp_path: Path) -> None:
    assert profile(project, "--diff", tmp_path / "a", tmp_path / "b") == 2
    assert launches == []


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--shape", "3xx5", "is not a shape"),
        ("--dtype", "int8", "it has float16, float32"),
        ("--op", "twicee", 'did you mean "twice"?'),
    ],
)
def test_a_wrong_option_says_what_would_be_right(
    project: Path, launches: list[Any], capsys: Capture, option: str, value: str, message: str
) -> None:
    assert profile(project, option, value) == 2
    assert message in capsys.readouterr().err
    assert launches == []


@pytest.mark.slow
def test_a_generated_project_is_timed_the_same_on_any_number_of_threads(
    tmp_path: Path, capsys: Capture
) -> None:
    from opkit import runtime

    root = tmp_path / "gelu_custom"
    assert run_guarded(group, ["gen", "-i", str(EXAMPLE), "-o", str(root)]) == 0
    figures = []
    for threads in (1, 2):
        runtime.configure(threads=threads)
        capsys.readouterr()
        assert profile(root, "--shape", "100003", "--json") == 0
        figures.append(json.loads(capsys.readouterr().out))
    runtime.configure(threads=0)
    assert figures[0] == figures[1]
    assert figures[0]["task_us"] > figures[0]["launch_us"] > 0
    assert {pipe["pipe"] for pipe in figures[0]["pipes"]} == {"S", "V", "MTE2", "MTE3"}
    assert any(line["file"].endswith("gelu_custom.cpp") for line in figures[0]["lines"])
