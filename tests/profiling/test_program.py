"""Programs and scripts: every launch of theirs is timed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opkit.cli.commands.cc import command as cc
from opkit.cli.commands.profile import command as profile
from opkit.cli.console import run_guarded
from opkit.errors import UsageError
from opkit.profiling import profile_program, profile_script

PROGRAM = """
#include <cstdio>
#include <cstdlib>
#include "acl/acl.h"
#include "kernel_operator.h"
using namespace AscendC;

__global__ __vector__ void work(GM_ADDR x, int times) {
  GlobalTensor<half> in;
  in.SetGlobalBuffer((__gm__ half*)x, 4096);
  LocalTensor<half> local(TPosition::VECIN, 0, 4096);
  for (int i = 0; i < times; ++i) DataCopy(local, in, 4096);
}

__global__ __vector__ void other() { PipeBarrier<PIPE_ALL>(); }

int main(int count, char** arguments) {
  aclInit(nullptr);
  aclrtSetDevice(0);
  uint8_t* device = nullptr;
  aclrtMalloc((void**)&device, 8192, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtStream stream = nullptr;
  aclrtCreateStream(&stream);
  work<<<2, nullptr, stream>>>(device, 1);
  work<<<2, nullptr, stream>>>(device, 9);
  other<<<1, nullptr, stream>>>();
  aclrtSynchronizeStream(stream);
  std::printf("done\\n");
  return count > 1 ? std::atoi(arguments[1]) : 0;
}
"""
SCRIPT = "import sys\nprint(sys.argv[1])\nsys.exit(3)\n"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("profiled")
    (folder / "work.asc").write_text(PROGRAM)
    assert run_guarded(cc, [str(folder / "work.asc"), "-o", str(folder / "work")]) == 0
    return folder / "work"


def test_each_launch_of_a_program_is_timed_in_order(program: Path) -> None:
    timelines, code = profile_program(program, [])
    assert code == 0
    assert [timeline.kernel for timeline in timelines] == ["work", "work", "other"]
    first, second, _ = timelines
    assert second.task_us > first.task_us
    assert first.lines[0].where == "work.asc:12"
    assert second.lines[0].count == 18
    assert second.lifted_cycles


def test_only_launches_of_the_kernel_asked_for_count(program: Path) -> None:
    timelines, _ = profile_program(program, [], kernel="o*")
    assert [timeline.kernel for timeline in timelines] == ["other"]
    with pytest.raises(UsageError, match='matches "x"') as caught:
        profile_program(program, [], kernel="x")
    assert "work, other" in str(caught.value)


def test_a_program_runs_on_the_chip_asked_for(program: Path) -> None:
    timelines, _ = profile_program(program, [], chip="Ascend910B4")
    assert {timeline.chip for timeline in timelines} == {"Ascend910B4"}


def test_its_exit_code_and_output_are_its_own(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert profile_program(program, ["7"])[1] == 7
    assert capfd.readouterr().out == "done\n"


def test_a_program_that_opkit_has_not_linked_is_refused() -> None:
    with pytest.raises(UsageError, match="left no times"):
        profile_program(Path("/bin/true"), [])


def test_a_script_that_launches_nothing_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    with pytest.raises(UsageError, match=r"script\.py launched no kernel"):
        profile_script(script, ["hello"])


FAULTY = """
#include "kernel_operator.h"
#include "acl/acl.h"
using namespace AscendC;
__global__ __aicore__ void faulty(GM_ADDR x) {
  GlobalTensor<half> in;
  in.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(x), 64);
  LocalTensor<half> local(TPosition::VECCALC, 0, 4096);
  DataCopy(local, in, 4096);
}
int main() {
  aclInit(nullptr);
  aclrtSetDevice(0);
  aclrtStream stream = nullptr;
  aclrtCreateStream(&stream);
  void* x = nullptr;
  aclrtMalloc(&x, 128, ACL_MEM_MALLOC_HUGE_FIRST);
  faulty<<<1, nullptr, stream>>>(reinterpret_cast<uint8_t*>(x));
  aclrtSynchronizeStream(stream);
  return 0;
}
"""


def test_a_launch_that_faulted_has_no_time(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source, program = tmp_path / "faulty.asc", tmp_path / "faulty"
    source.write_text(FAULTY)
    assert run_guarded(cc, [str(source), "-o", str(program)]) == 0
    capfd.readouterr()
    assert run_guarded(profile, ["--json", "--", str(program)]) == 1
    shown = json.loads(capfd.readouterr().out)
    assert shown["faulted"] is True
    assert shown["kernel"] == "faulty"
    assert "task_us" not in shown
