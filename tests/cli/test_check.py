"""`opkit check` and `opkit explain`: exit codes, files, and a bug in a real project found."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from opkit import emulator
from opkit.cli import group
from opkit.cli.console import run_guarded
from opkit.sanitizer import CLASSES, find_class

Capture = pytest.CaptureFixture[str]

EXAMPLE = Path(__file__).parents[2] / "examples" / "gelu_custom"
PROTOTYPES = sorted((EXAMPLE.parent / "prototypes").glob("*.json"))
KERNEL = Path("op_kernel", "gelu_custom_tuned.cpp")
TUNED = ("--op", "gelu_custom_tuned", "--shape", "100003")


def check(*arguments: str | Path) -> int:
    return run_guarded(group, ["check", *map(str, arguments)])


def explain(*arguments: str) -> int:
    return run_guarded(group, ["explain", *arguments])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "gelu_custom"
    shutil.copytree(EXAMPLE, root, ignore=shutil.ignore_patterns("build"))
    return root


@pytest.fixture
def leaking(project: Path) -> Path:
    """Return the project with FreeTensor deleted behind the last copy of its tuned kernel."""
    path = project / KERNEL
    lines = path.read_text().splitlines()
    last = max(number for number, line in enumerate(lines) if "yQueue.FreeTensor" in line)
    lines[last] = ""
    path.write_text("\n".join(lines))
    return project


@pytest.mark.slow
def test_a_project_without_bugs_is_clean(project: Path, capsys: Capture) -> None:
    assert check(project, *TUNED) == 0
    assert "no findings" in capsys.readouterr().out


@pytest.mark.slow
def test_a_bug_exits_1_and_is_in_every_report(
    leaking: Path, tmp_path: Path, capsys: Capture
) -> None:
    sarif, junit = tmp_path / "check.sarif", tmp_path / "check.xml"
    assert check(leaking, *TUNED, "--sarif", sarif, "--junit", junit, "--json") == 1
    fields = json.loads(capsys.readouterr().out)
    assert [found["id"] for found in fields["findings"]] == ["LEAK-TENSOR"]
    assert fields["findings"][0]["location"]["file"] == KERNEL.as_posix()
    (run,) = json.loads(sarif.read_text())["runs"]
    assert [result["ruleId"] for result in run["results"]] == ["LEAK-TENSOR"]
    assert "LEAK-TENSOR" in junit.read_text()


@pytest.mark.slow
def test_a_baseline_hides_the_bug_next_time(leaking: Path, tmp_path: Path, capsys: Capture) -> None:
    known = tmp_path / "known.txt"
    assert check(leaking, *TUNED, "--write-baseline", known) == 0
    assert check(leaking, *TUNED, "--suppressions", known) == 0
    assert "1 suppressed" in capsys.readouterr().out


@pytest.mark.slow
def test_the_print_limit_leaves_the_count(leaking: Path, capsys: Capture) -> None:
    assert check(leaking, *TUNED, "--print-limit", "0") == 1
    text = capsys.readouterr().out
    assert "1 more findings" in text
    assert "[LEAK-TENSOR]" not in text


def test_a_wrong_tool_exits_2_before_anything_is_built(capsys: Capture) -> None:
    assert check(EXAMPLE, "--tool", "memchek") == 2
    assert "memcheck" in capsys.readouterr().err


def test_a_wrong_shape_exits_2(capsys: Capture) -> None:
    assert check(EXAMPLE, "--shape", "many") == 2
    assert "2048x4096" in capsys.readouterr().err


def test_explain_shows_the_bug_and_its_fix(capsys: Capture) -> None:
    assert explain("race-raw") == 0
    text = capsys.readouterr().out
    assert "A smallest kernel with it" in text
    assert "WaitFlag<HardEvent::MTE2_V>" in text


def test_explain_lists_every_class(capsys: Capture) -> None:
    assert explain() == 0
    text = capsys.readouterr().out
    assert [row.id for row in CLASSES if row.id not in text] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gelu_custom", "rmsnorm"])
def test_the_examples_have_no_findings_in_any_case(
    name: str, tmp_path: Path, capsys: Capture
) -> None:
    root = tmp_path / name
    shutil.copytree(EXAMPLE.parent / name, root, ignore=shutil.ignore_patterns("build"))
    assert check(root) == 0
    assert "no findings" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("path", PROTOTYPES, ids=lambda path: path.stem)
def test_generated_kernels_have_no_findings_in_any_case(
    path: Path, tmp_path: Path, capsys: Capture
) -> None:
    root = tmp_path / "project"
    assert run_guarded(group, ["gen", "-i", str(path), "-o", str(root)]) == 0
    has_formula = '"formula"' in path.read_text(encoding="utf-8")
    # Without a formula the kernel has a gap, and copies out what nothing has computed: in each
    # case, so one is enough.
    assert check(root, *(() if has_formula else ("-k", "17-normal"))) == (0 if has_formula else 1)
    told = capsys.readouterr().out
    assert ("no findings" if has_formula else "[INIT-COPY-OUT]") in told


@pytest.mark.slow
@pytest.mark.parametrize("call", ["xQueue.EnQue", "yQueue.EnQue", "xQueue.Free", "yQueue.Free"])
def test_a_queue_call_deleted_from_a_right_kernel_is_found(project: Path, call: str) -> None:
    path = project / KERNEL
    lines = path.read_text().splitlines()
    number = next(number for number, line in enumerate(lines) if call in line)
    path.write_text("\n".join([*lines[:number], "", *lines[number + 1 :]]))
    assert check(project, *TUNED) == 1


def museum(id: str, folder: Path) -> Path:
    """Build a class's example, a program, with debug information."""
    source = folder / f"{id}.asc"
    source.write_text(find_class(id).example())
    assert run_guarded(group, ["cc", "-g", str(source), "-o", str(folder / id)]) == 0
    return folder / id


def test_a_program_is_checked_behind_dashes(tmp_path: Path, capfd: Capture) -> None:
    program = museum("MEM-FREE", tmp_path)
    capfd.readouterr()
    assert check("--json", "--", program) == 1
    report = json.loads(capfd.readouterr().out)
    (finding,) = report["findings"]
    assert finding["id"] == "MEM-FREE"
    assert "double free" in finding["message"]
    assert "aclrtFree(memory);" in finding["location"]["source"]
    assert report["exit_code"] == 0


NOTED = """
#include "acl/acl.h"
#include "kernel_operator.h"
__global__ __vector__ void inverse() {
  AscendC::LocalTensor<float> a(AscendC::TPosition::VECCALC, 0, 64);
  AscendC::Duplicate(a, 2.0f, 64);
  AscendC::Reciprocal(a, a, 64);
}
int main() {
  aclrtSetDevice(0);
  inverse<<<1, nullptr, nullptr>>>();
  return aclrtSynchronizeStream(nullptr);
}
"""


def test_notes_are_shown_and_leave_the_exit_code(tmp_path: Path, capfd: Capture) -> None:
    source, sarif = tmp_path / "noted.asc", tmp_path / "noted.sarif"
    source.write_text(NOTED)
    program = tmp_path / "noted"
    assert run_guarded(group, ["cc", str(source), "-o", str(program)]) == 0
    capfd.readouterr()
    assert check("--sarif", sarif, "--json", "--", program) == 0
    report = json.loads(capfd.readouterr().out)
    assert report["clean"]
    assert report["findings"] == []
    assert [note["id"] for note in report["notes"]] == ["NOTE-ACCURACY"]
    (run,) = json.loads(sarif.read_text())["runs"]
    assert [(row["ruleId"], row["level"]) for row in run["results"]] == [("NOTE-ACCURACY", "note")]
    assert check("--", program) == 0
    told = capfd.readouterr().out
    assert "note: Reciprocal may be off by more than 1/10000" in told
    assert "no findings, 1 note" in told


def test_suppressions_hide_findings_of_programs(tmp_path: Path, capfd: Capture) -> None:
    program = museum("LEAK-DEVICE", tmp_path)
    known = tmp_path / "known.txt"
    assert check("--write-baseline", known, "--", program) == 0
    assert check("--suppressions", known, "--", program) == 0
    assert "1 suppressed" in capfd.readouterr().out


def test_a_file_without_dashes_is_refused_with_the_way_to_write_it(
    tmp_path: Path, capfd: Capture
) -> None:
    (tmp_path / "script.py").write_text("")
    assert check(tmp_path / "script.py") == 2
    assert 'write "opkit check -- ' in capfd.readouterr().err


def test_a_program_that_opkit_has_not_linked_is_refused(capfd: Capture) -> None:
    assert check("--", "true") == 2
    assert "nothing was checked" in capfd.readouterr().err


SCRIPT = """
import sys
import numpy as np
from opkit.emulator import _emulator
_emulator.Kernel(sys.argv[1], "kernel").launch([np.zeros(128, np.float32)] * 2, 1)
raise SystemExit(int(sys.argv[2]))
"""


def test_a_script_is_checked_and_its_exit_code_counts(tmp_path: Path, capfd: Capture) -> None:
    text = find_class("SYNC-UNPAIRED").example() + "OPKIT_KERNEL_TABLE(kernel)\n"
    kernel, library, script = (tmp_path / name for name in ("k.cpp", "k.so", "launch.py"))
    kernel.write_text(text)
    script.write_text(SCRIPT)
    include = emulator.include_dir()
    flags = ["-shared", "-fPIC", "-fvisibility=hidden", "-isystem", str(include)]
    assert run_guarded(group, ["cc", *flags, str(kernel), "-o", str(library)]) == 0
    capfd.readouterr()
    assert check("--json", "--", script, library, "0") == 1
    report = json.loads(capfd.readouterr().out)
    assert [finding["id"] for finding in report["findings"]] == ["SYNC-UNPAIRED"]
    assert check("-q", "--tool", "racecheck", "--", script, library, "0") == 0
    assert check("-q", "--tool", "racecheck", "--", script, library, "4") == 1
    assert "ended with code 4" in capfd.readouterr().err


@pytest.mark.slow
def test_mutants_of_a_correct_kernel_are_killed(project: Path, capsys: Capture) -> None:
    case = "gelu_custom_tuned-float16-15-normal"
    assert check("--mutate", project, "--op", "gelu_custom_tuned", "-k", case, "--json") == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert report["name"] == "gelu_custom"
    assert 0 < report["killed"] <= report["total"]
    deleted = [mutant for mutant in report["mutants"] if mutant["kind"] == "delete sync"]
    # Tiles that are whole are not in this case, so some mutants are never executed.
    assert {"check", "neither"} == {mutant["caught"] for mutant in deleted}


def test_mutants_want_a_project(capsys: Capture) -> None:
    assert check("--mutate", "--", "true") == 2
