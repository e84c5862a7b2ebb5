"""Folders in msopgen's layout, of which only the OpDefs say what their operators are."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from opkit.cli.app import group
from opkit.cli.console import run_guarded

Capture = pytest.CaptureFixture[str]
PROJECTS = Path(__file__).parent / "msopgen"
GOLDEN = ("--golden", "np.asarray(x) * gamma * scale")
CASES = 'golden: "np.asarray(x) * gamma * scale"\ngenerated: false\ncases:\n'
# What the host code takes: whole data blocks, gamma of one row.
TAKEN = {f"row_scale-float32-{s}-normal-shapes1" for s in ("16x64", "4x16x64", "256x512")}


def run(*arguments: str | Path) -> int:
    return run_guarded(group, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose operator no function of NumPy or torch is named like."""
    root = tmp_path_factory.mktemp("opdef") / "row_scale"
    shutil.copytree(PROJECTS / "row_scale", root)
    return root


@pytest.fixture
def own(folder: Path, tmp_path: Path) -> Path:
    """A copy of it, built, for tests that write into it."""
    root = tmp_path / "row_scale"
    shutil.copytree(folder, root)
    (root / "tests").mkdir(exist_ok=True)
    return root


def test_test_and_check_run_the_same_cases(folder: Path, capsys: Capture) -> None:
    # check had no cases, and said to leave out a --shape that nobody had given.
    assert run("test", folder, *GOLDEN, "--json") == 0
    tested = json.loads(capsys.readouterr().out)["cases"]
    passed = {case["name"] for case in tested if case["verdict"] == "pass"}
    assert passed > TAKEN
    assert run("check", folder, *GOLDEN, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert {case["name"] for case in report["cases"]} == passed


def test_profile_times_the_largest_case_that_the_host_code_takes(
    folder: Path, capsys: Capture
) -> None:
    # It ended in an IndexError: the project had no operators before it was built.
    assert run("profile", folder, *GOLDEN) == 0
    assert capsys.readouterr().out.startswith("row_scale-float32-256x512-normal-shapes1\n")
    assert run("profile", folder, *GOLDEN, "--shape", "4x64") == 2
    assert "its tiling function failed" in capsys.readouterr().err


def test_debug_records_a_case_that_the_host_code_takes(folder: Path, capsys: Capture) -> None:
    # It said that names of cases look like none.
    assert run("debug", folder, *GOLDEN, "-e", "where") == 0
    printed = capsys.readouterr()
    assert "row_scale.cpp:" in printed.out
    assert any(name in printed.err for name in TAKEN)


def test_tune_finds_a_number_of_buffers(own: Path, capsys: Capture) -> None:
    assert run("tune", own, *GOLDEN, "--knob", "buffers=0,2") == 0
    assert "best   buffers=2" in capsys.readouterr().out
    assert re.search(
        r'TUNED\("Ascend910B2", ge::DT_FLOAT, 256, 512, 2\)',
        (own / "op_host" / "row_scale_tuning.inc").read_text(),
    )


def test_check_says_what_an_atomic_write_adds_to(own: Path, capsys: Capture) -> None:
    kernel = own / "op_kernel" / "row_scale.cpp"
    text = kernel.read_text()
    store = "    DataCopy(to[row * data.columns], done, data.columns);\n"
    added = f"    SetAtomicAdd<float>();\n{store}    SetAtomicNone();\n"
    zeros = "    Duplicate(out, 0.0f, data.columns);\n    PipeBarrier<PIPE_ALL>();\n"
    zeros += store.replace("done", "out") + "    PipeBarrier<PIPE_ALL>();\n"
    multiplies = "    Mul(out, local, scales, data.columns);\n"
    for before, found in (("", ["INIT-READ"]), (zeros, [])):
        kernel.write_text(text.replace(store, added).replace(multiplies, before + multiplies))
        assert run("check", own, *GOLDEN, "--json") == len(found)
        findings = json.loads(capsys.readouterr().out)["findings"]
        assert [each["id"] for each in findings] == found


def test_tune_takes_no_candidate_that_writes_to_its_input(own: Path, capsys: Capture) -> None:
    # The golden stood in the kernel's process, and saw what the kernel had made of the inputs.
    kernel = own / "op_kernel" / "row_scale.cpp"
    text = kernel.read_text()
    store = "    DataCopy(to[row * data.columns], done, data.columns);\n"
    kernel.write_text(text.replace(store, store + store.replace("to[", "from[")))
    assert run("tune", own, *GOLDEN, "--knob", "buffers=0,2") == 1
    assert "writes to its input x" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["test", "profile", "debug", "tune"])
def test_without_a_reference_each_command_says_how_to_give_one(
    folder: Path, command: str, capsys: Capture
) -> None:
    assert run(command, folder) == 2
    printed = capsys.readouterr().err
    assert "nothing says what RowScale computes" in printed
    assert "--golden" in printed


def test_check_needs_no_reference_and_says_which_shapes_it_takes(
    folder: Path, capsys: Capture
) -> None:
    # gamma is a row: the host code takes no shape that both inputs have.
    assert run("check", folder) == 2
    printed = capsys.readouterr().err
    assert "RowScale: without a reference all inputs have one shape" in printed
    assert "--golden" in printed
    assert "the host code of " in printed and "refuses all" in printed


def test_the_cases_of_the_folder_are_those_of_each_command(own: Path, capsys: Capture) -> None:
    # A file of cases was refused with "help: one of " and nothing behind it.
    text = CASES + "  - {name: mine, shape: [3, 16], shapes: {gamma: [16]}}\n"
    (own / "tests" / "cases.yaml").write_text(text)
    for command in ("test", "check"):
        assert run(command, own, "--json") == 0
        assert [case["name"] for case in json.loads(capsys.readouterr().out)["cases"]] == ["mine"]
    assert run("profile", own) == 0
    assert capsys.readouterr().out.startswith("mine\n")
    assert run("debug", own, "-e", "where") == 0
    assert "mine" in capsys.readouterr().err


def test_cases_and_the_artifact_folder_may_lie_elsewhere(
    folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    cases = tmp_path / "more.yaml"
    cases.write_text("cases:\n  - {name: other, shape: [2, 8], shapes: {gamma: [8]}}\n")
    into = tmp_path / "artifacts"
    options = ("--cases", cases, "--into", into, *GOLDEN)
    for command in ("test", "check"):
        assert run(command, folder, *options, "--json") == 0
        assert [c["name"] for c in json.loads(capsys.readouterr().out)["cases"]] == ["other"]
    assert run("profile", folder, *options) == 0
    assert capsys.readouterr().out.startswith("other\n")
    assert run("debug", folder, *options, "-e", "where") == 0
    assert "other" in capsys.readouterr().err
    assert (into / "manifest.json").is_file()


def test_a_reference_of_the_command_line_is_that_of_a_files_cases(
    folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    # --golden beside --cases was passed over: "no reference given".
    cases = tmp_path / "more.yaml"
    cases.write_text("cases:\n  - {name: other, shape: [2, 8], shapes: {gamma: [8]}}\n")
    assert run("test", folder, "--cases", cases, "--golden", "x + gamma") == 1
    assert "1 fail" in capsys.readouterr().out


@pytest.mark.slow
def test_the_last_failure_is_what_debug_takes(own: Path, capsys: Capture) -> None:
    # Cases in place of refused ones were not among those that it chose from.
    kernel = own / "op_kernel" / "row_scale.cpp"
    text = kernel.read_text()
    changed = text.replace("data.scale, data.columns)", "data.scale, data.columns - 1)")
    assert changed != text
    kernel.write_text(changed)
    assert run("test", own, *GOLDEN) == 1
    printed = capsys.readouterr().out
    (again,) = {line for line in printed.splitlines() if "cause:" in line and "-16x64-" in line}
    assert "--golden" in again
    assert run("debug", own, *GOLDEN, "-e", "why") == 0
    assert "x[0, 63]" in capsys.readouterr().out
    assert run("test", own, *GOLDEN, "--last-failed") == 1
    assert "5 cases" in capsys.readouterr().out


@pytest.mark.slow
def test_a_result_that_changes_from_run_to_run_is_told_with_its_race(
    own: Path, capsys: Capture
) -> None:
    # It passed alone, on one thread, and what an earlier launch had left was blamed.
    host, kernel = own / "op_host" / "row_scale.cpp", own / "op_kernel" / "row_scale.cpp"
    host.write_text(host.read_text().replace("SetBlockDim(1)", "SetBlockDim(2)"))
    text = kernel.read_text()
    # Both blocks write every row.
    changed = text.replace("out, data.scale,", "out, data.scale + GetBlockIdx(),")
    assert changed != text
    kernel.write_text(changed)
    assert run("test", own, *GOLDEN) == 1
    printed = capsys.readouterr().out
    assert "changes from run to run" in printed
    assert "opkit check names the race:" in printed
    assert "[RACE-" in printed and "row_scale.cpp:34" in printed
    assert "earlier launch" not in printed


@pytest.mark.slow
def test_mutants_of_a_folder_are_killed(own: Path, capsys: Capture) -> None:
    text = CASES + "  - {name: mine, shape: [3, 16], shapes: {gamma: [16]}}\n"
    (own / "tests" / "cases.yaml").write_text(text)
    assert run("check", own, "--mutate") == 0
    assert "14 of 14 mutants killed" in capsys.readouterr().out
