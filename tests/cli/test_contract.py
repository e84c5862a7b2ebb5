"""What every command keeps to: whose fault an exit code is, what stdout holds, no hanging."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from opkit.cli import COMMANDS, group
from opkit.cli.console import run_guarded
from opkit.toolchain import OPKIT_COMMAND

PROTOTYPE = {
    "op": "Plus",
    "input_desc": [{"name": "x", "type": ["float32"]}],
    "output_desc": [{"name": "y", "type": ["float32"], "formula": "x + 1"}],
}
LOOP = "volatile bool goesOn = true; while (goesOn) {}"
PRINT = 'AscendC::printf("from the kernel\\n");'


def opkit(*arguments: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    command = [*OPKIT_COMMAND, *map(str, arguments)]
    settings = {"capture_output": True, "text": True, "check": False, "timeout": 300, **options}
    return subprocess.run(command, **settings)  # type: ignore[call-overload, no-any-return]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("contract")
    (folder / "plus.json").write_text(json.dumps([PROTOTYPE]))
    assert (
        run_guarded(
            group, ["gen", "-q", "-i", str(folder / "plus.json"), "-o", str(folder / "plus")]
        )
        == 0
    )
    return folder / "plus"


@pytest.fixture
def project(generated: Path, tmp_path: Path) -> Path:
    import shutil

    root = tmp_path / "plus"
    shutil.copytree(generated, root)
    return root


def insert(project: Path, text: str) -> None:
    """Put a statement at the start of the kernel's Compute."""
    path = project / "op_kernel" / "plus.cpp"
    source = path.read_text()
    at = source.index("{", source.index("void Compute(")) + 1
    path.write_text(source[:at] + f"\n    {text}\n" + source[at:])


FEW = ("-k", "plus-float32-15-normal or plus-float32-7-normal", "--op", "plus")


@pytest.mark.slow
def test_a_looping_kernel_is_named_and_ends_test_check_and_profile(project: Path) -> None:
    insert(project, LOOP)
    tested = opkit("test", project, *FEW, "--timeout", "1")
    assert tested.returncode == 1, tested.stderr
    assert "plus-float32-7-normal: fault" in tested.stdout
    assert "no core has ended for 1 s" in tested.stdout
    checked = opkit("check", project, *FEW, "--timeout", "1")
    assert checked.returncode == 1
    assert "plus-float32-7-normal was not run to its end: no core has ended" in checked.stdout
    profiled = opkit("profile", project, "--shape", "64", "--timeout", "1")
    assert profiled.returncode == 1
    assert "no core has ended for 1 s" in profiled.stderr


@pytest.mark.slow
def test_the_first_interrupt_ends_the_test_of_a_looping_kernel(project: Path) -> None:
    insert(project, LOOP)
    assert opkit("build", project).returncode == 0
    run = subprocess.Popen(
        [*OPKIT_COMMAND, "test", str(project), *FEW],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    time.sleep(8)
    run.send_signal(signal.SIGINT)
    _, printed = run.communicate(timeout=60)
    assert run.returncode == 130, printed


@pytest.mark.slow
def test_under_json_stdout_holds_the_document_alone(project: Path) -> None:
    insert(project, PRINT)
    golden = project / "plus" / "golden.py"
    golden.write_text(golden.read_text() + "\nprint('from the golden')\n")
    for arguments in (("test", project, *FEW), ("check", project, *FEW)):
        done = opkit(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        json.loads(done.stdout)
        assert "from the kernel" in done.stderr
        assert "from the golden" in done.stderr
    profiled = opkit("profile", project, "--shape", "64", "--json")
    json.loads(profiled.stdout)
    assert "from the kernel" in profiled.stderr


@pytest.mark.slow
def test_a_crash_of_host_code_is_the_operators_in_profile_and_in_test(project: Path) -> None:
    host = project / "op_host" / "plus.cpp"
    source = host.read_text()
    at = source.index("{", source.index("TilingFunc(")) + 1
    host.write_text(source[:at] + "\n    *reinterpret_cast<volatile int*>(8) = 1;\n" + source[at:])
    assert opkit("test", project, *FEW).returncode == 1
    done = opkit("profile", project, "--shape", "64")
    assert done.returncode == 1, done.stderr


def test_a_golden_that_exits_fails_the_run(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    golden = project / "plus" / "golden.py"
    golden.write_text("import sys\nsys.exit(0)\n")
    assert run_guarded(group, ["test", str(project)]) == 1
    assert "golden.py:2: it calls sys.exit(0)" in capsys.readouterr().err


def test_a_shape_that_no_machine_holds_is_wrong_usage(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from types import SimpleNamespace

    artifact = SimpleNamespace(
        compiled=0, cached=0, folder=project, chip=SimpleNamespace(name="Ascend910B2")
    )
    monkeypatch.setattr("opkit.toolchain.build", lambda *a, **k: artifact)
    monkeypatch.setattr("opkit.runtime.open", lambda folder: None)
    assert run_guarded(group, ["profile", str(project), "--shape", "1000000000000"]) == 2
    assert "1000000000000 take 3,725.3 GiB" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("module", "extra", "code"),
    [("torch", "torch", 3), ("safetensors.numpy", "graph", 3), ("operator_of_mine", None, 70)],
)
def test_a_missing_extra_is_the_machines(
    module: str,
    extra: str | None,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def raise_fault() -> None:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    assert run_guarded(click.Command("probe", callback=raise_fault), []) == code
    assert extra is None or f"pip install 'opkit[{extra}]'" in capsys.readouterr().err


def test_a_task_without_torch_is_the_machines(tmp_path: Path) -> None:
    (tmp_path / "proto.yaml").write_text(
        "operator: {name: Twice, inputs: [{name: x, dtype: [float32]}],"
        " outputs: [{name: y, dtype: [float32]}]}\n"
    )
    (tmp_path / "cases.yaml").write_text(
        "cases: [{case_id: 1, input_shape: [[8]], dtype: [float32], value_range: [[0, 1]]}]\n"
    )
    (tmp_path / "golden.py").write_text("def twice(x):\n    return x + x\n")
    hidden = (
        "import sys; sys.modules['torch'] = None\n"
        f"from opkit.cli import main; main(['compile', {str(tmp_path)!r}, '-o', 'project'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", hidden], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "opkit[torch]" in done.stderr) == (3, True), done.stderr


def test_a_full_stdout_is_the_machines() -> None:
    with Path("/dev/full").open("w") as full:
        for arguments in (("targets",), ("targets", "--json"), ("--help",)):
            done = opkit(*arguments, stdout=full, stderr=subprocess.PIPE, capture_output=False)
            assert done.returncode == 3, (arguments, done.stderr)
            assert "standard output cannot be written" in done.stderr


def test_a_closed_stdout_is_the_machines() -> None:
    command = " ".join(f"'{word}'" for word in (*OPKIT_COMMAND, "targets"))
    done = subprocess.run(
        ["sh", "-c", f"{command} >&-"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert "it is closed" in done.stderr


@pytest.mark.parametrize("code", ["ENOSPC", "EROFS", "EDQUOT"])
def test_a_disk_that_cannot_be_written_is_the_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: str
) -> None:
    import errno

    number = getattr(errno, code)

    def refuse(self: Path, *arguments: object, **options: object) -> None:
        raise OSError(number, os.strerror(number), str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    (tmp_path / "plus.json").write_text(json.dumps([PROTOTYPE]))
    arguments = ["-i", str(tmp_path / "plus.json"), "-o", str(tmp_path / "plus")]
    assert run_guarded(group, ["gen", *arguments]) == 3
    told = capsys.readouterr().err
    assert os.strerror(number) in told
    assert ("free some space" in told) == (code != "EROFS")


def test_a_folder_that_is_not_utf8_works_or_is_said(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(folder)  # noqa: PTH102
    (tmp_path / "plus.json").write_text(json.dumps([PROTOTYPE]))
    generated = opkit("gen", "-q", "-i", tmp_path / "plus.json", "-o", "plus", cwd=folder)
    assert generated.returncode in (0, 3), generated.stderr
    listed = opkit("targets", "--json", cwd=folder)
    assert listed.returncode == 0
    if generated.returncode == 0:
        tested = opkit("test", "plus", *FEW, "--json", cwd=folder)
        assert tested.returncode in (0, 3), tested.stdout + tested.stderr


def test_generated_files_go_through_no_link(
    tmp_path: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (project / "op_kernel").rename(elsewhere)
    (project / "op_kernel").symlink_to(elsewhere)
    before = {path.name: path.read_text() for path in elsewhere.iterdir()}
    prototype = tmp_path / "plus.json"
    prototype.write_text(json.dumps([PROTOTYPE]).replace("x + 1", "x + 2"))
    assert run_guarded(group, ["gen", "-i", str(prototype), "-o", str(project)]) == 2
    assert "is a link to" in capsys.readouterr().err
    assert {path.name: path.read_text() for path in elsewhere.iterdir()} == before


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("opkit targets Asc", "Ascend910B2"),
        ("opkit explain RACE", "RACE-RAW"),
        ("opkit test --standard eco", "ecosystem"),
    ],
)
def test_the_shell_completes_names(words: str, expected: str) -> None:
    variables = {
        **os.environ,
        "_OPKIT_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    done = opkit(env=variables)
    assert expected in done.stdout.replace("plain,", "").split()


def test_the_shell_completes_cases_of_the_project(generated: Path) -> None:
    words = f"opkit test {generated} --case plus-float32-20"
    variables = {
        **os.environ,
        "_OPKIT_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    assert "plain,plus-float32-2047-normal" in opkit(env=variables).stdout.split()


def test_a_checkout_does_not_shadow_the_installed_package(tmp_path: Path) -> None:
    # It used to: the folder's own opkit/, which has no compiled parts, came first.
    import opkit as package

    source = Path(package.__file__).parent
    installed = tmp_path / "site" / "opkit"
    (installed / "emulator").mkdir(parents=True)
    (installed / "__init__.py").write_text((source / "__init__.py").read_text())
    (installed / "marker.py").write_text("here = 'installed'\n")
    from importlib.machinery import EXTENSION_SUFFIXES

    (installed / "emulator" / f"_emulator{EXTENSION_SUFFIXES[0]}").touch()
    checkout = tmp_path / "checkout" / "opkit"
    checkout.mkdir(parents=True)
    (checkout / "__init__.py").write_text((source / "__init__.py").read_text())
    text = "import opkit, opkit.marker; print(opkit.marker.here, opkit.__file__)"
    variables = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(
        [sys.executable, "-S", "-c", text],
        cwd=checkout.parent,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["installed", str(installed / "__init__.py")], done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("call", ["exit(0)", "_exit(0)"])
def test_a_kernel_that_exits_fails_its_cases_and_no_command_ends_with_0(
    project: Path, tmp_path: Path, call: str
) -> None:
    # It used to end the command itself: exit code 0, no case, no JSON, no JUnit.
    path = project / "op_kernel" / "plus.cpp"
    path.write_text("#include <cstdlib>\n#include <unistd.h>\n" + path.read_text())
    insert(project, f"{call};")
    junit = tmp_path / "junit.xml"
    few = ("-k", "plus-float32-7-normal or plus-float32-0-normal", "--op", "plus")
    # 1 where the emulator hears of it.
    lost = "the process that ran it ended by exit code"
    tested = opkit("test", project, *few, "--json", "--junit", junit)
    assert tested.returncode == 1, tested.stderr
    verdicts = {case["name"]: case["verdict"] for case in json.loads(tested.stdout)["cases"]}
    assert verdicts == {"plus-float32-0-normal": "pass", "plus-float32-7-normal": "fault"}
    assert lost in junit.read_text()
    checked = opkit("check", project, *few, "--json", "--junit", junit)
    assert checked.returncode == 1, checked.stderr
    assert [gap["kernel"] for gap in json.loads(checked.stdout)["gaps"]] == [
        "plus-float32-7-normal"
    ]
    assert 'errors="1"' in junit.read_text()
    for command in (
        ("profile", "--shape", "64"),
        ("debug", "-e", "why"),
        ("test", *few, "--explain"),
    ):
        done = opkit(command[0], project, *command[1:])
        assert done.returncode == 1, (command, done.stdout, done.stderr)
        assert "ended by exit code" in done.stdout + done.stderr


CHANGES_ITS_JUDGE = """
#include <dlfcn.h>
static bool change_judge() {
  auto ensure = (int (*)())dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
  auto run = (int (*)(const char*))dlsym(RTLD_DEFAULT, "PyRun_SimpleString");
  auto release = (void (*)(int))dlsym(RTLD_DEFAULT, "PyGILState_Release");
  const int state = ensure();
  run("import gc, opkit.testing as t, opkit.testing.run as r\\n"
      "r._verdict = lambda outputs: r.Verdict.PASS\\n"
      "t.Golden.reference = lambda self, kernel, inputs, attrs: tuple(i + 2 for i in inputs)");
  release(state);
  return true;
}
"""


@pytest.mark.slow
def test_host_code_reaches_neither_golden_nor_verdict(project: Path, tmp_path: Path) -> None:
    # They were in its process: Python run by the tiling function made every wrong result pass.
    kernel = project / "op_kernel" / "plus.cpp"
    kernel.write_text(kernel.read_text().replace(" 1.0f", " 2.0f"))
    host = project / "op_host" / "plus.cpp"
    text = host.read_text()
    at = text.index("{", text.index("TilingFunc(")) + 1
    call = "\n    static const bool changed = change_judge();\n    (void)changed;\n"
    host.write_text(CHANGES_ITS_JUDGE + text[:at] + call + text[at:])
    tested = opkit("test", project, *FEW, "--json")
    assert tested.returncode == 1, tested.stderr
    assert {case["verdict"] for case in json.loads(tested.stdout)["cases"]} == {"fail"}
    # Where a debugger is to stop in both, they share it: the cheat is one.
    together = opkit("test", project, *FEW, "--json", "--executor", "here")
    assert together.returncode == 0, together.stdout


@pytest.mark.slow
def test_a_golden_that_exits_where_it_is_loaded_is_an_error(project: Path) -> None:
    golden = project / "plus" / "golden.py"
    golden.write_text(golden.read_text() + "\nimport os\nos._exit(0)\n")
    done = opkit("test", project, *FEW, "--json")
    assert done.returncode == 1
    error = json.loads(done.stdout)["error"]
    assert error["message"].startswith("the process in which kernels run has ended by exit code 0")


@pytest.mark.slow
def test_a_kernel_that_only_prints_is_ended_by_the_time_limit(project: Path) -> None:
    # Stops were looked for at instructions only, and it has none: it went on for minutes.
    insert(project, 'for (;;) AscendC::printf("x\\n");')
    done = opkit("test", project, *FEW, "--timeout", "1")
    assert done.returncode == 1, done.stderr
    assert "no core has ended for 1 s" in done.stdout

    # In a call that blocks and starts again behind every signal it went on for 130 s, three times.
    launch = """
import os, sys
from pathlib import Path
import numpy as np
from opkit.testing.apart import LaunchLost, LibraryApart
os.dup2(os.pipe()[1], 1)  # Nobody reads what the kernel prints.
library = LibraryApart(Path(sys.argv[1]), "Ascend910B2", timeout_seconds=1)
try:
    library.run("Plus", [np.ones(1, np.float32)], {}, dtypes=["float32"])
except LaunchLost as error:
    print(error, file=sys.stderr)
"""
    argv = [sys.executable, "-c", launch, str(project / "build" / "opkit")]
    blocked = subprocess.run(argv, stderr=subprocess.PIPE, text=True, timeout=100, check=True)
    assert "a call of this machine that does not come back" in blocked.stderr
    assert "ended by the limit of its time" in blocked.stderr


# What each command does while a kernel goes on for ever; empty: it launches none.
LONG = {
    "test": ("test", "{project}", *FEW, "--timeout", "0"),
    "check": ("check", "{project}", *FEW, "--timeout", "0"),
    "profile": ("profile", "{project}", "--shape", "64", "--timeout", "0"),
    "debug": ("debug", "{project}", "--case", "plus-float32-7-normal", "-e", "why"),
    "tune": (),  # its workers are those of test
    "compat": (),  # tests/compat: steps are programs, ended by their limits
    "run": (),  # the program's own: it gets the signal
    "serve": (),  # tests/cli/test_serve.py: calls that are under way are answered
    "demo": (),  # runs the commands above
    **dict.fromkeys(("gen", "compile", "build", "explain", "dash", "cc", "targets"), ()),
    "judge": (),  # tests/judging: a candidate's processes end with their sandbox
    "mcp": (),  # runs the commands above
    **dict.fromkeys(("init", "upgrade-project", "doctor", "log", "isa"), ()),
}


def test_it_is_known_of_each_command_whether_it_may_go_on_for_ever() -> None:
    assert set(LONG) == set(COMMANDS)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("name", [name for name, command in LONG.items() if command])
def test_signals_end_a_command_and_its_processes_at_once(
    project: Path, tmp_path: Path, name: str, number: int
) -> None:
    # SIGTERM was not looked at by launches, and a golden's or reference's code took it for its own.
    started = tmp_path / "started"
    # The host code says that it is about to launch: a kernel has no files.
    path = project / "op_host" / "plus.cpp"
    head, brace, rest = path.read_text().partition("TilingContext* context)\n{\n")
    path.write_text(
        f"#include <cstdio>\n#include <unistd.h>\n{head}{brace}"
        f'if (FILE* f = fopen("{started}.part", "w")) {{ fprintf(f, "%d", getpid()); fclose(f);'
        f' rename("{started}.part", "{started}"); }}\n{rest}'
    )
    insert(project, 'for (;;) AscendC::printf("x\\n");')
    command = [word.format(project=project) for word in LONG[name]]
    process = subprocess.Popen(
        [*OPKIT_COMMAND, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    while not started.exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(number)
    _, printed = process.communicate(timeout=60)
    assert process.returncode == 128 + number, printed
    assert b"Traceback" not in printed
    # Whoever adopts the orphan takes a moment to reap it.
    launching, until = int(started.read_text()), time.monotonic() + 2
    with pytest.raises(ProcessLookupError):
        while time.monotonic() < until:
            os.kill(launching, 0)
            time.sleep(0.02)


@pytest.mark.slow
def test_a_golden_does_not_take_sigterm_for_its_own(project: Path, tmp_path: Path) -> None:
    # It was told as "it calls sys.exit(143)", and the next cases ran.
    started = tmp_path / "started"
    golden = project / "plus" / "golden.py"
    golden.write_text(
        f"def plus(x):\n    open({str(started)!r}, 'w').close()\n    while True:\n        pass\n"
    )
    process = subprocess.Popen(
        [*OPKIT_COMMAND, "test", str(project), *FEW, "--executor", "here"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while not started.exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    output, printed = process.communicate(timeout=60)
    assert process.returncode == 143, printed
    assert b"sys.exit" not in output + printed
