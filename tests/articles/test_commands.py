"""Every command line of the articles, in one table: what it does here, or which test runs it."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from opkit.cli.app import COMMANDS
from opkit.cli.vendor import TOOLS, run_tool

BY_TEST = re.compile(r"[./]*test_\w+\.\w+$")
HERE = Path(__file__).parent
PROTOTYPE = {
    "op": "GELUCustom",
    "input_desc": [{"name": "x", "type": "float16", "format": "ND", "dynamic_shape": True}],
    "output_desc": [{"name": "y", "type": "float16", "format": "ND", "dynamic_shape": True}],
    "attr": [],
    "kernel_name": "gelu_custom",
    "need_check_supported": True,
}
REPORT = {
    "kernel": "gelu_custom",
    "chip": "Ascend910B2",
    "task_us": 15.0,
    "band_percent": 14.0,
    "bound_by": "launch",
    "advice": [],
}


@dataclass(frozen=True)
class Line:
    """One command line of an article."""

    article: str
    text: str
    done_by: str
    """The test that runs it, or `here` for a command of the vendor that this file runs, or the
    reason why opkit has nothing to do with it, in words."""
    says: str = ""
    """Of a command that runs here: part of what it prints."""


LINES = (
    Line(
        "001",
        "msopgen gen -i gelu_custom.json -c ai_core-Ascend910B -o ./gelu_custom_op -t cpp",
        "here",
        "gelu_custom_op is ready",
    ),
    Line("001", "msadvisor --model=./model.json", "here", "gelu_custom: 15.00 us"),
    Line("001", "profdash --port=8080", "here", "dash --port 8080"),
    Line("001", "ascend-dbg --kernel=gelu_custom", "here", "debug"),
    Line("001", "npu-smi info", "here", "No running processes found in NPU 0"),
    Line("001", "cannlog --level=ERROR", "here", "a kernel faulted"),
    Line("001", "cmake .. && make (CMakeLists.txt)", "test_gelu_extension.extension"),
    Line("001", "python setup.py", "test_gelu_extension.test_setup_py_builds_the_same_extension"),
    Line("001", "python test_gelu.py", "test_gelu_extension.test_the_articles_test_runs"),
    Line("002", "export CANN_VERSION=... CANN_PATH=...", "test_custom_matmul.test_the_last_line"),
    Line("002", "source $CANN_PATH/set_env.sh", "test_custom_matmul.test_the_last_line"),
    Line("002", "pip3 install torch==2.3.1 torchvision==0.18.1", "opkit's device needs torch 2.10"),
    Line("002", "pip3 install torch-npu==2.3.1 -i ...", "that is the real one: opkit steps aside"),
    Line(
        "002",
        'python3 -c "import torch; import torch_npu; ..."',
        "test_custom_matmul.test_the_last_line",
    ),
    Line("002", "python custom_matmul.py", "test_custom_matmul.test_the_python_file_multiplies"),
    Line("002", "mkdir -p build && cd build", "test_custom_matmul.built"),
    Line("002", "cmake .. -DCMAKE_BUILD_TYPE=Release ...", "test_custom_matmul.built"),
    Line("002", "make -j$(nproc)", "test_custom_matmul.built"),
    Line("002", "sudo make install", "test_custom_matmul.built"),
    Line("002", "export LD_LIBRARY_PATH=/usr/local/lib:...", "test_custom_matmul.built"),
    Line("002", "export ASCEND_SLOG_PRINT_TO_STDOUT=1", "../test_log.test_lines_go_to_the_screen"),
    Line("002", "export ASCEND_AICPU_PATH=...", "opkit has no AI CPU: the variable means nothing"),
    Line(
        "002",
        "nsys profile -o profile_report python test_performance.py",
        "a tool of another vendor for other chips: opkit profile -- test_performance.py",
    ),
    Line("002", "export ASCEND_PROFILER_ENABLE=1", "test_custom_matmul.test_the_profiler"),
    Line(
        "002",
        "export ASCEND_PROFILER_OUTPUT_PATH=./profiler_data",
        "test_custom_matmul.test_the_profiler",
    ),
    Line("002", "python your_application.py", "test_custom_matmul.test_the_profiler"),
    Line(
        "002",
        "msprof --export=on --output=./profiler_report --application=your_application.py"
        " --model=your_model",
        "test_custom_matmul.test_msprof_and_the_line_with_pandas",
    ),
    Line(
        "002", 'python -c "import pandas as pd ..."', "test_custom_matmul.test_msprof_and_the_line"
    ),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working folder with what the lines name, and a log with one error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("ASCEND_PROCESS_LOG_PATH", str(tmp_path / "log"))
    monkeypatch.delenv("ASCEND_GLOBAL_LOG_LEVEL", raising=False)
    (tmp_path / "gelu_custom.json").write_text(json.dumps(PROTOTYPE))
    (tmp_path / "model.json").write_text(json.dumps(REPORT))
    from opkit import log

    log.error("EMULATOR", "a kernel faulted")
    return tmp_path


@pytest.mark.parametrize(
    "line", [line for line in LINES if line.done_by == "here"], ids=lambda line: line.text
)
def test_a_line_does_its_job(
    line: Line,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name, *arguments = shlex.split(line.text)
    if name == "ascend-dbg":
        assert run_tool("msopgen", shlex.split(LINES[0].text)[1:]) == 0
    called: list[str] = []
    # What would serve a page, or wait for a user, is looked at on its way there.
    handed = {"profdash": "opkit.cli.vendor.profdash", "ascend-dbg": "opkit.cli.vendor.ascend_dbg"}
    if name in handed:
        monkeypatch.setitem(COMMANDS, {"profdash": "dash", "ascend-dbg": "debug"}[name], "")
        monkeypatch.setattr(
            f"{handed[name]}.hand_over", lambda *words: called.extend(map(str, words))
        )
    assert run_tool(name, arguments) == 0
    assert line.says in f"{capsys.readouterr().out} {' '.join(called)}"


@pytest.mark.parametrize(
    "line",
    [line for line in LINES if BY_TEST.match(line.done_by)],
    ids=lambda line: line.text,
)
def test_a_line_is_run_by_the_test_that_the_table_names(line: Line) -> None:
    module, _, name = line.done_by.rpartition(".")
    text = (HERE / f"{module}.py").read_text(encoding="utf-8")
    assert re.search(rf"^def {name}\w*\(", text, re.MULTILINE), line.done_by


def test_no_other_vendors_tool_is_taken_over() -> None:
    assert "nsys" not in TOOLS


def test_a_line_needs_a_test_or_a_reason() -> None:
    reasons = [line for line in LINES if line.done_by != "here" and not BY_TEST.match(line.done_by)]
    assert [line.text.split()[0] for line in reasons] == ["pip3", "pip3", "export", "nsys"]
