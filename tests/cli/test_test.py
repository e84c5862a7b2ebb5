"""`opkit test`: options, exit codes and outputs, with a Python function in the kernel's place."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from opkit.chips import find_chip
from opkit.cli import group
from opkit.cli.console import run_guarded
from opkit.errors import HostRefusal

PROTOTYPE = {
    "op": "Twice",
    "input_desc": [{"name": "x", "type": ["float16", "float32"], "format": ["ND", "ND"]}],
    "output_desc": [{"name": "y", "type": ["float16", "float32"], "format": ["ND", "ND"]}],
}
GOLDEN = "def twice(x):\n    return 2 * x\n"
FEW = "2x3x17"

Kernel = Callable[[Any], Any]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "twice"
    (root / "twice").mkdir(parents=True)
    (root / "twice.json").write_text(json.dumps(PROTOTYPE))
    (root / "twice" / "golden.py").write_text(GOLDEN)
    (root / "pyproject.toml").write_text(
        '[project]\nname = "twice"\n[tool.opkit]\noperators = ["twice.json"]\n'
    )
    return root


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Callable[[Kernel], None]:
    """Put a Python function where building and the emulator would be."""

    def use(function: Kernel) -> None:
        def build(project: Any, **options: Any) -> Any:
            folder = options["out"] or project.root / "build" / "opkit"
            return SimpleNamespace(
                folder=folder, compiled=0, cached=0, seconds=0.0, chip=find_chip(options["chip"])
            )

        def run(op_type: str, inputs: Any, attrs: Any, *, dtypes: Any) -> list[Any]:
            with np.errstate(over="ignore"):
                return [function(*inputs)]

        def configure(chip: str, *, poison: bool, **options: Any) -> None:
            assert poison

        monkeypatch.setattr("opkit.toolchain.build", build)
        monkeypatch.setattr("opkit.runtime.configure", configure, raising=False)
        monkeypatch.setattr(
            "opkit.runtime.open", lambda folder: SimpleNamespace(run=run), raising=False
        )

    use(lambda x: 2 * x)
    return use


UseKernel = Callable[[Kernel], None]


def run(*arguments: str | Path) -> int:
    # In this process, which has the Python function.
    return run_guarded(group, ["test", "--executor", "here", *map(str, arguments)])


def test_a_right_kernel_exits_0_and_prints_every_case(
    project: Path, kernel: UseKernel, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(project, "-k", FEW) == 0
    printed = capsys.readouterr().out
    assert "twice-float16-2x3x17-normal" in printed
    assert "twice: 2 cases by the conditioned standard: 2 pass" in printed


def test_a_wrong_kernel_exits_1_and_shows_the_worst_element(
    project: Path, kernel: UseKernel, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel(lambda x: 3 * x)
    assert run(project, "-k", f"float32 and {FEW}") == 1
    printed = capsys.readouterr().out
    assert "MARE 0.5 (< 0.00122)" in printed
    assert "worst at [" in printed
    assert "again: opkit test --case twice-float32-2x3x17-normal --seed 0" in printed
    assert "cause: opkit debug --case twice-float32-2x3x17-normal -e why" in printed


def test_the_line_that_runs_a_case_again_fails_in_the_same_element(
    project: Path,
    kernel: UseKernel,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel(lambda x: np.where(x > 2, 0, 2 * x).astype(x.dtype))
    assert run(project, "-k", "float32 and 2x4x4x4x33", "--seed", "5") == 1
    first = capsys.readouterr().out
    again = first.partition("again: ")[2].split("\n")[0].split()
    monkeypatch.chdir(project)
    assert run(*again[2:]) == 1
    second = capsys.readouterr().out
    worst = [text.partition("worst ")[2].split("\n")[0] for text in (first, second)]
    assert worst[0] == worst[1] != ""


def test_a_refusal_that_all_cases_share_is_printed_once(
    project: Path, kernel: UseKernel, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(x: Any) -> Any:
        raise HostRefusal("[Twice] its tiling function failed: no room")

    kernel(refuse)
    assert run(project, "-k", "float32") == 1
    printed = capsys.readouterr().out
    assert printed.count("its tiling function failed") == 1
    assert "the same in 19 more cases" in printed


def test_what_is_built_and_what_failed_can_lie_elsewhere(
    project: Path,
    kernel: UseKernel,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    kernel(lambda x: 3 * x)
    place = tmp_path / "elsewhere" / "twice"
    assert run(project, "-k", f"float32 and {FEW}", "--into", place) == 1
    assert not (project / "build").exists()
    assert (place.parent / "opkit-last-test.json").is_file()
    capsys.readouterr()
    assert run(project, "--last-failed", "--into", place, "--json") == 1
    (case,) = json.loads(capsys.readouterr().out)["cases"]
    assert case["name"] == "twice-float32-2x3x17-normal"


def test_a_missing_golden_is_neither_pass_nor_crash_and_exits_1(
    project: Path, kernel: UseKernel, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "twice" / "golden.py").unlink()
    assert run(project, "-k", FEW) == 1
    printed = capsys.readouterr().out
    assert "2 no reference given" in printed
    assert " pass" not in printed.splitlines()[-2]


def test_json_is_one_document_with_every_case(
    project: Path, kernel: UseKernel, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel(lambda x: 3 * x)
    assert run(project, "-k", FEW, "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert document["passed"] is False
    assert [case["verdict"] for case in document["cases"]] == ["fail", "fail"]


def test_junit_is_written_whole_beside_the_table(
    project: Path, kernel: UseKernel, tmp_path: Path
) -> None:
    report = tmp_path / "report.xml"
    assert run(project, "-k", FEW, "--junit", report) == 0
    assert len(ElementTree.parse(report).findall(".//testcase")) == 2
    assert [path.name for path in tmp_path.iterdir() if "report" in path.name] == ["report.xml"]


def test_a_junit_file_that_cannot_be_written_is_a_usage_error(
    project: Path, kernel: UseKernel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(project, "-k", FEW, "--junit", tmp_path / "missing" / "report.xml") == 2
    assert "cannot be written" in capsys.readouterr().err


def test_quiet_leaves_the_summary_only(
    project: Path, kernel: UseKernel, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(project, "-k", FEW, "-q") == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.split("\n", 1)[1].startswith("twice: 2 cases")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("-k", "nothing"), "names look like twice-float16-1-normal"),
        (
            (
                "-k",
                "(",
            ),
            "cannot be read",
        ),
        (("--op", "Twise"), 'did you mean "twice"?'),
        (("--standard", "ecosytem"), 'did you mean "ecosystem"?'),
        (("--seed", "-1"), "--seed"),
    ],
)
def test_a_wrong_option_exits_2_and_says_what_is_right(
    project: Path,
    kernel: UseKernel,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    says: str,
) -> None:
    assert run(project, *arguments) == 2
    assert says in capsys.readouterr().err


def test_a_folder_without_a_project_exits_2(
    tmp_path: Path, kernel: UseKernel, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_edge_values_are_added_on_request(
    project: Path, kernel: UseKernel, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(project, "-k", "edge", "--edge-values") == 0
    assert "twice-float16-4x1024-edge" in capsys.readouterr().out
    assert run(project, "-k", "edge") == 2


@pytest.mark.parametrize("option", ["--junit", "--html"])
def test_reports_go_through_pipes_and_links(
    project: Path, kernel: UseKernel, tmp_path: Path, option: str
) -> None:
    # The path used to be replaced, whatever stood there.
    pipe, link, target = tmp_path / "pipe", tmp_path / "link", tmp_path / "target"
    os.mkfifo(pipe)
    link.symlink_to(target)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    assert run(project, "-k", FEW, option, pipe) == 0
    reader.join()
    assert run(project, "-k", FEW, option, link) == 0
    assert "twice-float16-2x3x17-normal" in read[0]
    assert "twice-float16-2x3x17-normal" in target.read_text()
    assert pipe.is_fifo()
    assert link.is_symlink()
