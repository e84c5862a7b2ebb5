"""`opkit debug`: projects, programs and scripts, in batch mode; exit codes; what cannot be done."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from opkit.cli import group
from opkit.cli.console import run_guarded

Capture = pytest.CaptureFixture[str]

EXAMPLE = Path(__file__).parents[2] / "examples" / "gelu_custom"
TUNED = ("--op", "gelu_custom_tuned")

PROGRAM = """\
#include "acl/acl.h"
#include "kernel_operator.h"
#include <cstdio>

__global__ __vector__ void fill(GM_ADDR y, int count) {
  AscendC::GlobalTensor<float> output;
  output.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y), 64);
  AscendC::LocalTensor<float> ones(AscendC::TPosition::VECOUT, 0, 64);
  for (int i = 0; i < count; ++i) AscendC::Duplicate(ones, float(i), 64);
  AscendC::PipeBarrier<PIPE_ALL>();
  AscendC::DataCopy(output, ones, WIDTH);
}

int main() {
  aclrtSetDevice(0);
  void* memory = nullptr;
  aclrtMalloc(&memory, 256, ACL_MEM_MALLOC_HUGE_FIRST);
  fill<<<1, nullptr, nullptr>>>(static_cast<uint8_t*>(memory), 2);
  fill<<<1, nullptr, nullptr>>>(static_cast<uint8_t*>(memory), COUNT);
  aclrtSynchronizeStream(nullptr);
  std::puts("done");
  aclrtFree(memory);
  aclrtResetDevice(0);
  return 3;
}
"""


def debug(*arguments: str | Path) -> int:
    return run_guarded(group, ["debug", *map(str, arguments)])


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The program as it should be; with a copy past its tensor, many instructions, and a race."""
    folder = tmp_path_factory.mktemp("programs")
    found = {}
    barrier = "  AscendC::PipeBarrier<PIPE_ALL>();\n"
    for name, width, count, between in (
        ("right", 64, 5, barrier),
        ("faulty", 128, 5, barrier),
        ("huge", 64, 20000, barrier),
        ("racing", 64, 5, ""),
    ):
        source = folder / f"{name}.asc"
        text = PROGRAM.replace("WIDTH", str(width)).replace("COUNT", str(count))
        source.write_text(text.replace(barrier, between))
        program = folder / name
        assert run_guarded(group, ["cc", "-g", str(source), "-o", str(program)]) == 0
        found[name] = program
    return found


def test_a_program_is_recorded_launch_by_launch(programs: dict[str, Path], capfd: Capture) -> None:
    lines = ("-e", "break Duplicate", "-e", "run", "-e", "end", "-e", "print output[0]")
    assert debug("--json", *lines, "--launch", "2", "--", programs["right"]) == 0
    out = capfd.readouterr().out
    report = json.loads(out[out.index("{") :])
    results = {row["line"]: row["result"] for row in report["results"]}
    assert results["break Duplicate"]["places"] == 5
    assert results["run"]["line"] == 9
    assert results["print output[0]"]["values"] == [4.0]


def test_a_faulting_program_is_stood_at_its_fault(
    programs: dict[str, Path], capfd: Capture
) -> None:
    assert debug("-e", "run", "-e", "why", "--", programs["faulty"]) == 0
    out = capfd.readouterr().out
    assert "[OutOfBounds]" in out
    assert "faulty.asc:11" in out


def test_a_program_stops_at_a_finding_of_the_checks(
    programs: dict[str, Path], capfd: Capture
) -> None:
    lines = ("-e", "break finding RACE", "-e", "run", "-e", "why", "--launch", "2")
    assert debug(*lines, "--", programs["racing"]) == 0
    out = capfd.readouterr().out
    assert "racing.asc:10" in out
    assert "[RACE" in out
    assert debug("-e", "break finding", "--", programs["right"]) == 2
    assert "opkit check finds nothing" in capfd.readouterr().err


def test_a_launch_beyond_the_limit_is_cut_and_says_so(
    programs: dict[str, Path], capfd: Capture
) -> None:
    lines = ("-e", "run", "-e", "print ones[0]")
    assert debug(*lines, "--limit", "0.01", "--launch", "2", "--", programs["huge"]) == 0
    captured = capfd.readouterr()
    assert "cut at the limit" in captured.err
    assert "the recording ends here" in captured.out


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("--launch", "9"), 2, "no kernel that could be recorded"),
        (("--kernel", "nothing"), 2, "no kernel that could be recorded"),
        (("-e", "break 900"), 2, "the last line with one is 11"),
        (("-e", "nonsense"), 2, 'there is no command "nonsense"'),
    ],
)
def test_what_cannot_be_done_with_a_program_exits_2(
    programs: dict[str, Path], arguments: tuple[str, ...], code: int, text: str, capfd: Capture
) -> None:
    given = arguments if "-e" in arguments else (*arguments, "-e", "run")
    assert debug(*given, "--", programs["right"]) == code
    assert text in capfd.readouterr().err


def test_an_error_ends_a_batch_and_stands_in_the_json(
    programs: dict[str, Path], tmp_path: Path, capfd: Capture
) -> None:
    script = tmp_path / "steps.txt"
    script.write_text("# a comment\nstep\n\nprint nothing\nstep\n")
    assert debug("--commands", script, "--json", "--", programs["right"]) == 2
    out = capfd.readouterr().out
    rows = json.loads(out[out.index("{") :])["results"]
    assert [row["line"] for row in rows] == ["step", "print nothing"]
    assert "nothing" in rows[1]["error"]["message"]


def test_a_script_is_recorded(tmp_path: Path, capfd: Capture) -> None:
    (tmp_path / "twice.cpp").write_text(
        '#include "kernel_operator.h"\nusing namespace AscendC;\n'
        'extern "C" __global__ __aicore__ void twice(GM_ADDR x, GM_ADDR y) {\n'
        "  GlobalTensor<float> from, to;\n"
        "  from.SetGlobalBuffer((__gm__ float*)x);\n"
        "  to.SetGlobalBuffer((__gm__ float*)y);\n"
        "  LocalTensor<float> local(TPosition::VECIN, 0, 64);\n"
        "  DataCopy(local, from, 64);\n"
        "  PipeBarrier<PIPE_ALL>();\n"
        "  Muls(local, local, 2.0f, 64);\n"
        "  PipeBarrier<PIPE_ALL>();\n"
        "  DataCopy(to, local, 64);\n"
        "}\n"
    )
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\nimport numpy as np\n"
        "from opkit import runtime, toolchain\n"
        "image = toolchain.compile_kernel(Path(__file__).with_name('twice.cpp'))\n"
        "x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)\n"
        "runtime.Kernel(image).launch([x, y])\n"
        "sys.exit(int(y[3] != 6))\n"
    )
    assert debug("-e", "break Muls", "-e", "run", "-e", "why to[3]", "--", script) == 0
    out = capfd.readouterr().out
    assert "to (argument 1[3]) = 6" in out


def test_the_protocol_on_streams_is_not_mixed_with_what_a_program_prints(
    programs: dict[str, Path],
) -> None:
    def message(command: str) -> bytes:
        raw = json.dumps({"seq": 1, "type": "request", "command": command}).encode()
        return b"Content-Length: %d\r\n\r\n" % len(raw) + raw

    argv = [sys.executable, "-m", "opkit", "debug", "--dap", "--", str(programs["right"])]
    given = b"".join(map(message, ("initialize", "launch", "configurationDone", "disconnect")))
    done = subprocess.run(argv, input=given, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert b"done" in done.stderr and b"done\n" not in done.stdout
    rest, events = done.stdout, []
    while rest:
        head, _, rest = rest.partition(b"\r\n\r\n")
        length = int(head.partition(b":")[2])
        events.append(json.loads(rest[:length]).get("event"))
        rest = rest[length:]
    assert {"initialized", "stopped", "terminated"} <= set(events)


def test_a_project_and_a_program_are_not_given_together(capfd: Capture) -> None:
    assert debug(EXAMPLE, "--", "./program") == 2
    assert "not both" in capfd.readouterr().err


def test_json_is_no_form_of_the_protocol(capfd: Capture) -> None:
    assert debug(EXAMPLE, "--port", "0", "--json") == 2
    assert "protocol" in capfd.readouterr().out + capfd.readouterr().err


def test_ctrl_c_ends_a_recording(programs: dict[str, Path], tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, time\n"
        "try:\n    print('ready', flush=True)\n    while True:\n        time.sleep(0.1)\n"
        "except KeyboardInterrupt:\n    sys.exit('interrupted')\n"
    )
    argv = [sys.executable, "-m", "opkit", "debug", "-e", "run", "--", str(script)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "has launched no kernel" in errors
    assert "Traceback" not in errors


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "gelu_custom"
    ignored = shutil.ignore_patterns("build", "torch_ext", "numpy_ext", ".vscode")
    shutil.copytree(EXAMPLE, root, ignore=ignored)
    return root


def test_an_unknown_case_is_told_with_one_like_it(capfd: Capture) -> None:
    assert debug(EXAMPLE, "--case", "gelu_custom-float16-7918-normal", "-e", "run") == 2
    assert "has no case" in capfd.readouterr().err


def test_launch_json_is_written_for_a_project(project: Path, capfd: Capture) -> None:
    assert debug(project, "--vscode") == 0
    document = json.loads((project / ".vscode" / "launch.json").read_text())
    names = [entry["name"] for entry in document["configurations"]]
    assert "opkit: gelu_custom_tuned" in names
    assert debug(project, "--vscode") == 0
    assert "identical" in capfd.readouterr().err


def test_without_gdb_the_host_part_says_what_is_missing(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    found = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "gdb" else found(name))
    assert debug(project, *TUNED, "--host") == 3
    assert "gdb, which is not installed" in capfd.readouterr().err


@pytest.mark.slow
def test_a_planted_bug_of_a_project_is_named(project: Path, capfd: Capture) -> None:
    path = project / "op_kernel" / "gelu_custom_tuned.cpp"
    text = path.read_text()
    line = "DataCopy(xLocal, xGlobal[at], tileLength);"
    number = text[: text.index(line)].count("\n") + 1
    path.write_text(text.replace(line, line.replace("tileLength)", "tileLength - 32)")))
    case = ("--case", "gelu_custom_tuned-float16-1000003-normal")
    assert debug(project, *case, "--json", "-e", "why", "-e", "watch y golden", "-e", "run") == 0
    rows = json.loads(capfd.readouterr().out)["results"]
    first = rows[0]["result"]["first"]
    assert (Path(first["file"]).name, first["line"]) == (path.name, number)
    assert rows[2]["result"]["reason"] == "breakpoint"
