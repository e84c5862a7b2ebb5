"""The vendor's commands: flags, files and exit codes, and stepping aside for the real ones."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from opkit.cli.vendor import TOOLS, find_real, run_tool

ROOT = Path(__file__).parents[3]
DISTRIBUTION = ROOT / "distributions" / "vendor_commands"
PROTOTYPE = {
    "op": "Twice",
    "input_desc": [{"name": "x", "type": "float16", "format": "ND"}],
    "output_desc": [{"name": "y", "type": "float16", "format": "ND", "formula": "x + x"}],
}
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder, with no real tool on PATH and no process on a device."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.delenv("OPKIT_NPU_COUNT", raising=False)
    return tmp_path


@pytest.fixture
def prototype(here: Path) -> Path:
    path = here / "twice.json"
    path.write_text(json.dumps(PROTOTYPE))
    return path


@pytest.fixture(scope="session")
def add_one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a program with two kernels, one of which has a race, linked by opkit cc."""
    from opkit.cli import group
    from opkit.cli.console import run_guarded

    program = tmp_path_factory.mktemp("program") / "add_one"
    source = Path(__file__).parent / "data" / "add_one.asc"
    assert run_guarded(group, ["cc", "--npu-arch=dav-2201", str(source), "-o", str(program)]) == 0
    return program


def fake(folder: Path, name: str, text: str = '#!/bin/sh\necho real "$@"\nexit 7\n') -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_the_distribution_installs_every_command_and_nothing_else() -> None:
    text = (DISTRIBUTION / "pyproject.toml").read_text()
    scripts = re.findall(r'^([\w-]+) = "opkit\.cli\.vendor:main"$', text, re.MULTILINE)
    assert scripts == sorted(TOOLS)
    assert text.count("opkit.cli.vendor") == len(TOOLS)


@pytest.mark.slow
def test_the_installed_scripts_run(here: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [*command, "--target", str(here / "site"), str(DISTRIBUTION)], check=True, timeout=300
    )
    script = here / "site" / "bin" / "npu-smi"
    done = subprocess.run([script, "info"], capture_output=True, text=True, check=True)
    assert "No running processes found in NPU 0" in done.stdout


@pytest.mark.parametrize("name", TOOLS)
def test_each_command_has_help(name: str, capsys: Capture) -> None:
    assert run_tool(name, ["--help"]) == 0
    assert f"Usage: {name}" in capsys.readouterr().out.replace("Usage: msprof", f"Usage: {name}", 1)


def test_the_real_command_runs_where_it_is_on_path(here: Path) -> None:
    fake(here / "bin", "msopgen")
    done = subprocess.run(
        [sys.executable, "-m", "opkit.cli.vendor", "msopgen", "gen", "-i", "x.json"],
        env={**os.environ, "PATH": f"{here / 'bin'}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 7
    assert done.stdout == "real gen -i x.json\n"
    assert "steps aside" in done.stderr


def test_opkits_own_scripts_are_not_taken_for_the_real_ones(here: Path) -> None:
    fake(here / "ours", "msopgen", "#!/bin/python\nfrom opkit.cli.vendor import main\nmain()\n")
    real = fake(here / "theirs", "msopgen")
    assert find_real("msopgen", str(here / "ours")) is None
    assert find_real("msopgen", f"{here / 'ours'}:{here / 'theirs'}") == real


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ("-i none.json -c ai_core-Ascend910B", 13, "no such file"),
        ("-i table.xlsx -c ai_core-Ascend910B", 13, "reads JSON"),
        ("-i broken.json -c ai_core-Ascend910B", 107, "not JSON"),
        ("-i empty.json -c ai_core-Ascend910B", 112, "op"),
        ("-i twice.json -f caffe -c ai_core-Ascend910B", 11, "-f caffe"),
        ("-i twice.json -c ai_cpu", 14, "AI CPU"),
        ("-i twice.json -c ai_core-Ascend999", 14, "Ascend999"),
        ("-i twice.json -c Ascend910B", 14, "ai_core-CHIP"),
        ("-i twice.json -c ai_core-Ascend910B -m 2", 15, "-m 2"),
        ("-i twice.json -c ai_core-Ascend910B -op Thrice", 16, "Twice"),
        ("-i twice.json -c ai_core-Ascend910B -out twice.json", 12, "no folder"),
        ("-i twice.json -c ai_core-Ascend910B -lan py", 112, "-lan"),
    ],
)
def test_msopgen_has_the_documented_exit_codes(
    prototype: Path, here: Path, arguments: str, code: int, says: str, capsys: Capture
) -> None:
    (here / "broken.json").write_text("{")
    (here / "empty.json").write_text("{}")
    assert run_tool("msopgen", ["gen", *arguments.split()]) == code
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        "-i twice.json -f tf -c ai_core-Ascend910B -lan cpp -out project",
        "-i twice.json -c ai_core-Ascend910B -o project -t cpp",
        "--input=twice.json --compute_unit=ai_core-ascend910b1,ai_core-ascend910b2 -out project",
        "-i twice.json -f pytorch -c vectorcore-Ascend910B2 -m 0 -op Twice -out project -q",
    ],
)
def test_msopgen_writes_a_project(prototype: Path, here: Path, arguments: str) -> None:
    assert run_tool("msopgen", ["gen", *arguments.split()]) == 0
    for name in ("CMakeLists.txt", "op_host/twice.cpp", "op_kernel/twice.cpp"):
        assert (here / "project" / name).is_file(), name


def test_msopgen_says_which_plug_in_it_leaves_out(prototype: Path, capsys: Capture) -> None:
    arguments = ["-i", str(prototype), "-f", "onnx", "-c", "ai_core-Ascend910B", "-out", "project"]
    assert run_tool("msopgen", ["gen", *arguments]) == 0
    assert "-f onnx: opkit writes the operator and no plug-in" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "arguments", "option"),
    [
        ("msopgen", "sim -c core0 -d dump -out x", "sim"),
        ("msopgen", "compile -i x -c /usr/local/Ascend", "-c"),
        ("msopst", "ascendc_test -i case.json -kernel k.cpp", "ascendc_test"),
        ("msopst", "create -i x.cpp -m model.pb", "-m"),
        ("msopst", "run -i x.json -soc Ascend910B2 -conf msopst.ini", "-conf"),
        ("mssanitizer", "--check-cross-npu-races ./app", "--check-cross-npu-races"),
        ("msprof", "op --config=x.json", "--config"),
        ("msprof", "op simulator --export=dump", "--export"),
        ("msprof", "--dynamic=on --pid=1", "--dynamic"),
        ("npu-smi", "set -t reset -i 0", "set"),
        ("npu-smi", "info -t ecc -i 0", "-t ecc"),
        ("npu-smi", "info -t board -i 7", "-i 7"),
        ("npu-smi", "info -t board -i 0 -c 1", "-c 1"),
    ],
)
def test_what_opkit_cannot_do_is_refused_by_name(
    name: str, arguments: str, option: str, capsys: Capture
) -> None:
    assert run_tool(name, arguments.split()) == 2
    assert option in capsys.readouterr().err


def test_an_option_without_effect_is_told_and_taken(add_one: Path, capsys: Capture) -> None:
    assert run_tool("mssanitizer", ["-t", "racecheck", "--cache-size", "100", str(add_one)]) == 0
    assert "--cache-size has no effect" in capsys.readouterr().err


def test_mssanitizer_finds_the_race_and_logs_it(add_one: Path, here: Path, capsys: Capture) -> None:
    options = ["--tool=racecheck", "--log-file", "race.log", "--kernel-name", "add"]
    assert run_tool("mssanitizer", [*options, "--", str(add_one)]) == 0
    assert run_tool("mssanitizer", [*options, str(add_one), "twice"]) == 1
    assert "RACE-RAW" in capsys.readouterr().out
    assert "RACE-RAW" in (here / "race.log").read_text()


def test_msprof_op_writes_the_vendors_tables(add_one: Path, here: Path) -> None:
    options = ["--kernel-name=add*|none", "--launch-count=5", "--output=out"]
    assert run_tool("msprof", ["op", *options, str(add_one), "twice"]) == 0
    (folder,) = (here / "out").iterdir()
    assert folder.name.startswith("OPPROF_")
    assert len(list(folder.rglob("PipeUtilization.csv"))) == 2
    skipped = ["op", "--launch-skip-before-match=1", "--output=one", str(add_one), "twice"]
    assert run_tool("msprof", skipped) == 0
    (folder,) = (here / "one").iterdir()
    assert {"OpBasicInfo.csv", "Memory.csv"} <= {path.name for path in folder.iterdir()}


def test_msprof_op_simulator_writes_a_trace(add_one: Path, here: Path) -> None:
    arguments = ["op", "simulator", "--soc-version=Ascend910B2", "--output=out", str(add_one)]
    assert run_tool("msprof", arguments) == 0
    (folder,) = (here / "out").iterdir()
    assert json.loads((folder / "simulator" / "trace.json").read_text())
    assert (folder / "simulator" / "instr_exe.csv").is_file()


def test_msprof_says_which_kernels_there_are(add_one: Path, capsys: Capture) -> None:
    assert run_tool("msprof", ["op", "--kernel-name=matmul", str(add_one)]) == 2
    assert "add_one" in capsys.readouterr().err


def test_msprof_writes_a_row_an_operator(add_one: Path, here: Path) -> None:
    application = f"--application={add_one} twice"
    assert run_tool("msprof", ["--export=on", "--output=report", application]) == 0
    summary = (here / "report" / "operator_summary.csv").read_text().splitlines()
    assert summary[0].startswith("Op Name,OP Type,Core Type,Count,Duration(us)")
    assert sum(int(line.split(",")[3]) for line in summary[1:]) == 2
    details = (here / "report" / "kernel_details.csv").read_text().splitlines()
    assert len(details) == 3
    assert run_tool("msprof", ["--export=on", "--output=report"]) == 0
    assert run_tool("msprof", ["--export=on", "--output=nothing"]) == 2


@pytest.mark.slow
def test_msopst_creates_cases_and_runs_them(prototype: Path, here: Path) -> None:
    options = ["gen", "-i", str(prototype), "-c", "ai_core-Ascend910B", "-out", "twice", "-q"]
    assert run_tool("msopgen", options) == 0
    assert run_tool("msopst", ["create", "-i", "twice/op_host/twice.cpp", "-out", "cases"]) == 0
    (cases,) = (here / "cases").glob("Twice_case_*.json")
    chosen = ["-c", "Test_Twice_001", "-out", "result"]
    assert run_tool("msopst", ["run", "-i", str(cases), "-soc", "Ascend910B2", *chosen]) == 0
    (report,) = (here / "result").glob("*/st_report.json")
    assert json.loads(report.read_text())["summary"]["failed count"] == 0
    assert run_tool("msopgen", ["compile", "-i", "twice", "-q"]) == 0

    kernel = here / "twice" / "op_kernel" / "twice.cpp"
    text, changes = re.subn(r"\bAdd\((\w+), (\w+), \2,", r"Sub(\1, \2, \2,", kernel.read_text())
    assert changes == 1
    kernel.write_text(text)
    assert run_tool("msopst", ["run", "-i", str(cases), "-soc", "Ascend910B2"]) == 1


def test_msadvisor_reads_a_report(here: Path, capsys: Capture) -> None:
    advice = {
        "pattern": "single-buffer",
        "finding": "copies wait",
        "change": "use two buffers",
        "where": "gelu.cpp:7",
        "gain_us": 3.0,
        "gain_percent": 25.0,
    }
    report = {
        "kernel": "gelu",
        "chip": "Ascend910B2",
        "task_us": 12.0,
        "band_percent": 10.0,
        "bound_by": "V",
        "advice": [advice],
    }
    (here / "model.json").write_text(json.dumps(report))
    assert run_tool("msadvisor", ["--model=./model.json"]) == 0
    shown = capsys.readouterr().out
    assert "single-buffer at gelu.cpp:7: 3.00 us (25 %)" in shown
    (here / "model.json").write_text("[1]")
    assert run_tool("msadvisor", ["--model=./model.json"]) == 2


def test_npu_smi_shows_what_scripts_parse(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("OPKIT_NPU_COUNT", "2")

    def shown(*arguments: str) -> str:
        assert run_tool("npu-smi", ["info", *arguments]) == 0
        return capsys.readouterr().out

    table = shown()
    assert len({len(line) for line in table.splitlines()}) == 1
    assert table.count("| OK ") == 2
    assert "No running processes found in NPU 1" in table
    assert "Total Count                    : 2" in shown("-l")
    assert shown("-m").splitlines()[2].split() == ["1", "0", "1", "Ascend", "910B2"]
    assert "Chip Name                      : Ascend910B2" in shown("-t", "board", "-i", "1")
    assert "HBM Capacity(MB)               : 65536" in shown("-t", "memory", "-i", "0", "-c", "0")
    assert "HBM Usage Rate(%)              : 0" in shown("-t", "usages", "-i", "0")
    assert "No process in device." in shown("-t", "proc-mem", "-i", "0")
    assert "Health                         : OK" in shown("-t", "health", "-i", "0")
    for kind in ("temp", "power"):
        assert shown("-t", kind, "-i", "0").splitlines()[1].endswith(": NA")


def test_a_debugger_or_page_that_is_not_there_is_said(
    monkeypatch: pytest.MonkeyPatch, here: Path, capsys: Capture
) -> None:
    from opkit.cli.app import COMMANDS

    monkeypatch.delitem(COMMANDS, "dash", raising=False)
    assert run_tool("profdash", ["--port=8080"]) == 3
    assert "no command dash" in capsys.readouterr().err
    assert run_tool("ascend-dbg", ["--kernel=gelu_custom"]) == 2
    assert "gelu_custom" in capsys.readouterr().err


def test_asys_collects_the_log_and_what_doctor_says(here: Path) -> None:
    assert run_tool("asys", ["collect", "--output=report"]) == 0
    (folder,) = (here / "report").iterdir()
    assert "compiler" in (folder / "doctor.txt").read_text()


def test_asys_shows_devices(capsys: Capture) -> None:
    assert run_tool("asys", ["info", "-r", "status"]) == 0
    assert "npu-smi" in capsys.readouterr().out
