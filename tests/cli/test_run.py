"""`opkit run`: programs and scripts under chosen options."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click
import pytest

from opkit import emulator, runtime
from opkit.cli.commands.cc import command as cc
from opkit.cli.commands.check import command as check
from opkit.cli.commands.profile import command as profile
from opkit.cli.commands.run import command
from opkit.cli.console import run_guarded
from opkit.errors import FAULT_IDS, SetupError

PROGRAM = """
#include <cstdio>
#include "acl/acl.h"
#include "kernel_operator.h"

__global__ __vector__ void show() { AscendC::printf("block %d\\n", (int)AscendC::GetBlockIdx()); }

int main(int count, char** arguments)
{
    aclrtSetDevice(0);
    uint8_t* device = nullptr;
    aclrtMalloc((void**)&device, 32, ACL_MEM_MALLOC_HUGE_FIRST);
    std::printf("%s %d %s\\n", aclrtGetSocName(), device[0], count > 1 ? arguments[1] : "-");
    std::fflush(stdout);
    show<<<3, nullptr, nullptr>>>();
    const int error = aclrtSynchronizeStream(nullptr);
    aclrtResetDevice(0);
    return error == 0 ? 5 : 6;
}
"""


LOOP = """
#include <cstdlib>
#include "acl/acl.h"
#include "kernel_operator.h"

__global__ __vector__ void step(int kind)
{
    if (kind == 0) AscendC::printf("no end of this line");
    volatile int turns = 0;
    while (kind == 0) turns = turns + 1;
    AscendC::LocalTensor<half> beyond(AscendC::TPosition::VECIN, 0, 1 << 20);
    AscendC::Duplicate(beyond, half(1), 1 << 20);
}

int main(int count, char** arguments)
{
    aclrtSetDevice(0);
    step<<<1, nullptr, nullptr>>>(std::atoi(arguments[1]));
    const int error = aclrtSynchronizeStream(nullptr);
    aclrtResetDevice(0);
    return error == 0 ? 0 : 6;
}
"""


@pytest.fixture(scope="module")
def faulting(program: Path) -> Path:
    """Return a program whose kernel loops, or faults."""
    (program.parent / "loop.asc").write_text(LOOP)
    loop = program.parent / "loop"
    assert run_guarded(cc, [f"{loop}.asc", "-o", str(loop)]) == 0
    return loop


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        emulator.library_path()
    except SetupError:
        pytest.skip("the emulator's library is not built")
    folder = tmp_path_factory.mktemp("run")
    (folder / "show.asc").write_text(PROGRAM)
    assert run_guarded(cc, [str(folder / "show.asc"), "-o", str(folder / "show")]) == 0
    return folder / "show"


def test_the_programs_exit_code_and_arguments_pass_through(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_guarded(command, [str(program), "--poison"]) == 5
    assert capfd.readouterr().out.splitlines()[0] == "Ascend910B2 0 --poison"


def test_a_name_in_the_working_directory_needs_no_slash(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(program.parent)
    assert run_guarded(command, ["show"]) == 5


def test_options_reach_the_device(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(command, ["--deterministic", "--poison", str(program)]) == 5
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == "Ascend910B2 255 -"
    assert [line.split()[-1] for line in lines[1:]] == ["0", "1", "2"]


def test_a_seed_changes_the_order_of_blocks_and_what_memory_holds_and_repeats_both(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def shown(seed: int) -> tuple[str, ...]:
        assert run_guarded(command, ["--threads", "1", "--seed", str(seed), str(program)]) == 5
        return tuple(
            line.split()[-1 if i else 1]
            for i, line in enumerate(capfd.readouterr().out.splitlines())
        )

    outputs = [shown(seed) for seed in range(5)]
    assert outputs[0] == ("0", "0", "1", "2")
    assert all(sorted(blocks) == ["0", "1", "2"] for _, *blocks in outputs)
    assert len({output[1:] for output in outputs}) > 1
    assert "0" not in {fill for fill, *_ in outputs[1:]}
    assert len({fill for fill, *_ in outputs}) == 5
    assert [shown(seed) for seed in range(5)] == outputs


def test_a_chip_of_another_architecture_is_refused_by_the_launch(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_guarded(command, ["--chip", "Ascend310P3", str(program)]) == 6
    shown = capfd.readouterr()
    assert shown.out.startswith("Ascend310P3 0 -")
    assert "build with --npu-arch=dav-2002" in shown.err


def test_a_command_that_is_a_script_runs_in_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tool").write_text(
        f"#!{sys.executable}\nimport sys\nfrom opkit import runtime\n"
        "print(runtime.configuration().chip, sys.argv[1:])\n"
    )
    (tmp_path / "tool").chmod(0o755)
    (tmp_path / "other").write_text("#!/bin/sh\necho python $1\n")
    (tmp_path / "other").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    before = _configuration()
    try:
        assert run_guarded(command, ["--chip", "Ascend310P3", "tool", "--mine"]) == 0
    finally:
        from opkit.emulator import _emulator

        _emulator.configure(**before)
    assert capsys.readouterr().out == "Ascend310P3 ['--mine']\n"
    assert runtime.find_script(Path("other")) is None


def test_a_script_runs_in_process_under_the_options(
    program: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = _configuration()
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom opkit import runtime\n"
        "now = runtime.configuration()\nprint(now.chip, now.threads, now.poison, sys.argv[1])\n"
        "sys.exit(4)\n"
    )
    try:
        options = ["--chip", "Ascend310P3", "--threads", "2", "--poison"]
        assert run_guarded(command, [*options, str(script), "--mine"]) == 4
    finally:
        from opkit.emulator import _emulator

        _emulator.configure(**before)
    assert capfd.readouterr().out.split() == ["Ascend310P3", "2", "True", "--mine"]


def _configuration() -> dict[str, object]:
    from opkit.emulator import _emulator

    return _emulator.configuration()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gone"], "there is no such program"),
        (["--chip", "Ascend999", "gone"], "not a chip"),
        (["--deterministic", "--threads", "3", "gone"], "leave one of them out"),
    ],
)
def test_wrong_usage_exits_2(
    arguments: list[str], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_guarded(command, arguments) == 2
    assert message in capfd.readouterr().err


def test_a_launch_without_progress_ends_the_program(
    faulting: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_guarded(command, ["--timeout", "0.3", str(faulting), "0"]) == 6
    assert "no core has ended for 0.3 s" in capfd.readouterr().err


@pytest.mark.parametrize("whole", [check, profile])
def test_it_does_under_the_checks_and_the_model_too(
    faulting: Path, whole: click.Command, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_guarded(whole, ["--timeout", "0.3", "--", str(faulting), "0"]) == 1
    assert "no core has ended for 0.3 s" in "".join(capfd.readouterr())


def test_a_program_names_faults_as_every_command_does(
    faulting: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_guarded(command, [str(faulting), "1"]) == 6
    assert "[MEM-BOUNDS]" in capfd.readouterr().err
    import opkit.emulator._emulator as compiled

    named = {name: id for name, id in compiled.fault_ids().items() if name != id}
    assert named == FAULT_IDS
