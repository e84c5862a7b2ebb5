"""Sample projects, from the folder to the verdict."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from opkit.cli.parts.compat_worker import compat_work
from opkit.compat import Outcome, Verdict, find_samples, plan
from opkit.executor import LocalExecutor

pytestmark = pytest.mark.usefixtures("built_emulator")


def outcomes(folder: Path, *, seconds: float = 120) -> dict[str, Outcome]:
    samples = find_samples(folder)
    work = compat_work(samples, defines=(), seconds=seconds, check=False)
    with LocalExecutor(2).open(work) as crew:
        tried = crew.run(plan(samples))
    found = [one.outcome for one in tried if one.outcome is not None]
    return {f"{outcome.sample} {outcome.scenario}".strip(): outcome for outcome in found}


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_each_sample_gets_its_verdict_and_stays_as_it_is(samples: Path) -> None:
    before = files(samples)
    found = outcomes(samples)
    assert {name: outcome.verdict.value for name, outcome in found.items()} == {
        "doubles SCENARIO_NUM=1": "pass",
        "doubles SCENARIO_NUM=2": "pass",
        "doubles SCENARIO_NUM=3": "unsupported chip",
        "lone": "unverified",
        "missing_name": "build error",
        "out_of_bounds": "fault",
        "says_nothing": "unverified",
    }
    assert files(samples) == before
    assert found["missing_name"].missing == ("WishParams", "Wish")
    assert found["out_of_bounds"].cause.startswith("MEM-BOUNDS: DataCopy writes bytes 0..2048")
    assert "out_of_bounds.asc:12" in found["out_of_bounds"].cause
    assert found["doubles SCENARIO_NUM=1"].cause == "verify_result.py: test pass!"


BEHIND = """
#include <cstdio>
#include "acl/acl.h"
#include "kernel_operator.h"

__global__ __vector__ void first_of_more(GM_ADDR x, GM_ADDR y) {
  AscendC::TPipe pipe;
  AscendC::TBuf<AscendC::TPosition::VECCALC> buffer;
  pipe.InitBuffer(buffer, 16384);
  AscendC::GlobalTensor<float> source, target;
  source.SetGlobalBuffer((__gm__ float*)x);
  target.SetGlobalBuffer((__gm__ float*)y);
  AscendC::LocalTensor<float> tile = buffer.Get<float>();
  AscendC::DataCopy(tile, source, READ);
  AscendC::PipeBarrier<PIPE_ALL>();
  AscendC::DataCopy(target, tile[BEGIN], WRITTEN);
}

int main() {
  float *x = nullptr, *y = nullptr;
  float in[16] = {7}, out[16] = {};
  aclrtSetDevice(0);
  aclrtMalloc((void**)&x, sizeof in, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc((void**)&y, sizeof out, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(x, sizeof in, in, sizeof in, ACL_MEMCPY_HOST_TO_DEVICE);
  first_of_more<<<1, nullptr, nullptr>>>((GM_ADDR)x, (GM_ADDR)y);
  if (aclrtSynchronizeStream(nullptr) != ACL_SUCCESS) return 1;
  aclrtMemcpy(out, sizeof out, y, sizeof out, ACL_MEMCPY_DEVICE_TO_HOST);
  std::puts(out[0] == (BEGIN == 0 ? 7 : 0) ? "test pass" : "test failed");
}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("read", "first", "written", "verdict"),
    [
        (16, 0, 16, "pass"),
        (1024, 0, 16, "pass (behind a tensor)"),
        # What lies there goes into the result: it is not what it should be.
        (1024, 16, 16, "fault"),
        # Whatever is written there overwrites what another has.
        (1024, 0, 1024, "fault"),
    ],
)
def test_a_read_behind_an_allocation_is_told_and_passes_where_nothing_comes_of_it(
    tmp_path: Path, read: int, first: int, written: int, verdict: str
) -> None:
    source = BEHIND
    for name, value in {"READ": read, "BEGIN": first, "WRITTEN": written}.items():
        source = source.replace(name, str(value))
    (tmp_path / "behind.asc").write_text(source)
    (outcome,) = outcomes(tmp_path).values()
    assert outcome.verdict.value == verdict, outcome.cause
    assert ("behind the end of an allocation of 64 bytes" in outcome.cause) == (verdict != "pass")


def changed(samples: Path, file: str, old: str, new: str) -> Outcome:
    """Return what becomes of `doubles` after a change to one file."""
    path = samples / "doubles" / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    (outcome,) = outcomes(samples / "doubles").values()
    return outcome


def one_scenario(samples: Path) -> None:
    cmake = samples / "doubles" / "CMakeLists.txt"
    cmake.write_text(cmake.read_text().replace("[1-3]", "[1]").replace("(1-3)", ""))


@pytest.mark.slow
def test_a_wrong_result_is_not_a_pass(samples: Path) -> None:
    one_scenario(samples)
    outcome = changed(samples, "doubles.asc", "source, source, kCount", "source, source, 8")
    assert outcome.verdict is Verdict.WRONG
    assert outcome.cause.startswith("data index: 8, expected: ")


@pytest.mark.slow
def test_a_check_that_cannot_fail_is_no_check(samples: Path) -> None:
    one_scenario(samples)
    script = samples / "doubles" / "scripts" / "verify_result.py"
    script.write_text("import sys\nwords = sys.argv\n")
    (samples / "doubles" / "README.md").write_text(
        (samples / "doubles" / "README.md").read_text().replace("test pass!", "")
    )
    (outcome,) = outcomes(samples / "doubles").values()
    assert outcome.verdict is Verdict.UNVERIFIED
    assert "says neither pass nor fail" in outcome.cause


def test_a_missing_module_leaves_a_sample_unverified(samples: Path) -> None:
    readme = samples / "doubles" / "README.md"
    lines = readme.read_text().splitlines()
    # The data first: nothing need be built to see that it cannot be made.
    generate = next(line for line in lines if "gen_data" in line)
    lines.remove(generate)
    lines.insert(lines.index("SCENARIO_NUM=1  # choose one") + 1, generate.replace("../", ""))
    readme.write_text("\n".join(lines))
    one_scenario(samples)
    outcome = changed(samples, "scripts/gen_data.py", "import argparse", "import no_such_module_")
    assert outcome.verdict is Verdict.UNVERIFIED
    assert outcome.cause == "needs the Python module no_such_module_"


def test_a_value_that_the_samples_cmake_refuses_is_no_scenario(samples: Path) -> None:
    cmake = samples / "doubles" / "CMakeLists.txt"
    text = cmake.read_text()
    # The description promises a scenario 4, which a plain message then refuses.
    text = text.replace("(1-3)", "(1-4)").replace('MATCHES "^[1-3]$"', "LESS 9")
    refusal = 'message(FATAL_ERROR "SCENARIO_NUM: there is no ${SCENARIO_NUM}")\n'
    cmake.write_text(text.replace("add_executable", refusal + "add_executable", 1))
    found = outcomes(samples / "doubles")
    assert {name: outcome.verdict.value for name, outcome in found.items()} == {
        # The README's own value is not ours to leave out.
        "doubles SCENARIO_NUM=1": "build error",
        "doubles SCENARIO_NUM=3": "unsupported chip",
    }


def test_a_step_over_its_limit_is_a_timeout(samples: Path) -> None:
    readme = samples / "says_nothing" / "README.md"
    readme.write_text("```bash\npython3 wait.py\ncmake ..\n./demo\n```\n")
    (samples / "says_nothing" / "wait.py").write_text("import signal\nsignal.pause()\n")
    (outcome,) = outcomes(samples / "says_nothing", seconds=1).values()
    assert outcome.verdict is Verdict.TIMEOUT
    assert outcome.cause == "python3 wait.py took more than 1 s"


def test_a_tool_that_is_not_here_leaves_a_sample_unverified(samples: Path) -> None:
    readme = samples / "says_nothing" / "README.md"
    readme.write_text("```bash\ncmake ..\natc --model=x\n./demo\n```\n")
    (outcome,) = outcomes(samples / "says_nothing").values()
    assert (outcome.verdict, outcome.cause) == (Verdict.UNVERIFIED, "needs atc, which is not here")


def test_a_sample_runs_behind_the_one_that_installs_its_operators(tmp_path: Path) -> None:
    cmake = "cmake_minimum_required(VERSION 3.16)\nproject(x NONE)\n# find_package(ASC)\n"
    blocks = {
        "operators": "```bash\ncmake -S . -B build\nsh pack.sh\n./mine.run\n```\n",
        "caller": "[first](../operators)\n```bash\ncmake -S . -B build\nsh call.sh\n```\n",
    }
    for name, block in blocks.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "CMakeLists.txt").write_text(f"{cmake}set(home $ENV{{ASCEND_HOME_PATH}})\n")
        (folder / "README.md").write_text(f"{block}\n```text\nSUCCESS\n```\n")
    install = 'mkdir -p "$ASCEND_OPP_PATH" && echo SUCCESS > "$ASCEND_OPP_PATH/told"'
    (tmp_path / "operators" / "pack.sh").write_text(
        f"printf '#!/bin/sh\\n%s; echo SUCCESS' '{install}' > mine.run; chmod +x mine.run\n"
    )
    (tmp_path / "caller" / "call.sh").write_text('cat "$ASCEND_OPP_PATH/told"\n')
    found = outcomes(tmp_path)
    assert {name: outcome.verdict for name, outcome in found.items()} == {
        "operators": Verdict.PASS,
        "caller": Verdict.PASS,
    }
    (tmp_path / "operators" / "pack.sh").write_text("echo no; exit 3\n")
    found = outcomes(tmp_path / "caller")
    assert found["caller"].verdict is Verdict.UNVERIFIED
    assert found["caller"].cause == "needs operators, which ends in fault: sh exited with 3: no"


def test_a_copy_is_made_of_whatever_a_folder_holds(tmp_path: Path) -> None:
    folder = tmp_path / 'two words "quoted"'
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text("set(home $ENV{ASCEND_HOME_PATH})\n")
    (folder / "README.md").write_text("```bash\ncmake -P CMakeLists.txt\nsh run.sh\n```\n")
    (folder / "run.sh").write_text("echo more > run.sh; test ! -e pipe && echo test pass\n")
    os.mkfifo(folder / "pipe")
    (folder / "absent").symlink_to("/nonexistent")
    (folder / "loop").symlink_to(".")
    (folder / "run.sh").chmod(0o444)
    (outcome,) = outcomes(tmp_path).values()
    assert (outcome.verdict, outcome.cause) == (Verdict.PASS, "the program: test pass")
    assert outcome.sample == 'two words "quoted"'


def test_a_program_that_a_signal_ends_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text("set(home $ENV{ASCEND_HOME_PATH})\n")
    (tmp_path / "README.md").write_text("```bash\ncmake -P CMakeLists.txt\nsh run.sh\n```\n")
    # A signal without a name of its own.
    (tmp_path / "run.sh").write_text("kill -36 $$\n")
    (outcome,) = outcomes(tmp_path).values()
    assert outcome.verdict is Verdict.FAULT
    assert outcome.cause.startswith("sh was ended by a signal: ")
