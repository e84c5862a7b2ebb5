"""Article 002: the matrix product over td::mm, its scripts and the tools that it names."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from opkit.cli.vendor import run_tool

Shell = Callable[..., "subprocess.CompletedProcess[str]"]
torch = pytest.importorskip("torch")

MATERIAL = Path(__file__).parent / "custom_matmul"
AUTHORS_LIBRARY = "/usr/local/Ascend/ascend-toolkit/7.0.RC1/lib64/libascend_custom_ops.so"
HERE = (
    "CMAKE_LIBRARY_PATH=$ASCEND_HOME_PATH/lib64 CPATH=$ASCEND_HOME_PATH/include PATH=$PWD/bin:$PATH"
)
LEAK = '''
import torch
import torch_npu
import gc

def check_memory_leak():
    """检测内存泄漏"""
    initial_memory = torch.npu.memory_allocated()
    for _ in range(100):
        x = torch.randn(1024, 1024, device='npu')
        y = torch.randn(1024, 1024, device='npu')
        z = torch.mm(x, y)
        if KEPT is not None:
            KEPT.append(z)
        del x, y, z
    gc.collect()
    torch.npu.empty_cache()
    final_memory = torch.npu.memory_allocated()
    leak = final_memory - initial_memory
    if leak > 1024 * 1024:
        print(f"检测到内存泄漏: {leak / 1024 / 1024:.2f} MB")
        torch.npu.memory_dump_snapshot("memory_leak.snapshot")
    else:
        print("内存使用正常")
'''
DEBUGGER = '''
import torch

class PrecisionDebugger:
    """精度调试工具"""

    @staticmethod
    def compare_precision(cpu_result, npu_result, tolerance=1e-4):
        if npu_result.device.type == 'npu':
            npu_cpu = npu_result.cpu()
        else:
            npu_cpu = npu_result
        diff = torch.abs(cpu_result - npu_cpu)
        max_diff = torch.max(diff).item()
        mean_diff = torch.mean(diff).item()
        print(f"最大差异: {max_diff:.6e}")
        print(f"平均差异: {mean_diff:.6e}")
        if max_diff > tolerance:
            print("精度差异超过阈值")
            max_idx = torch.argmax(diff.view(-1))
            print(f"最大差异位置: {max_idx.item()}")
            print(f"CPU值: {cpu_result.view(-1)[max_idx].item()}")
            print(f"NPU值: {npu_cpu.view(-1)[max_idx].item()}")
            return False
        else:
            print("精度符合要求")
            return True

layer = torch.nn.Linear(64, 32)
x = torch.randn(16, 64)
expected = layer(x).detach()
found = layer.to("npu")(x.to("npu")).detach()
assert PrecisionDebugger.compare_precision(expected, found)
found[3, 5] += 1
assert not PrecisionDebugger.compare_precision(expected, found)
'''
APPLICATION = """
import torch

x = torch.randn(256, 256, device="npu")
for _ in range(3):
    x = torch.nn.functional.gelu(torch.mm(x, x) / 100)
torch.i0(x)
"""
PANDAS = """
import pandas as pd
data = pd.read_csv('./profiler_report/operator_summary.csv')
print('Top 10耗时算子:')
print(data.nlargest(10, 'Duration(us)'))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, shell: Shell) -> Path:
    """Return the material, built and installed by its own build.sh."""
    root = tmp_path_factory.mktemp("matmul") / "custom_matmul"
    shutil.copytree(MATERIAL, root)
    (root / "bin").mkdir()
    sudo = root / "bin" / "sudo"
    sudo.write_text('#!/bin/sh\nexec "$@"\n')
    sudo.chmod(0o755)
    script = root / "build.sh"
    script.write_text(script.read_text().replace("PREFIX=/usr/local", f"PREFIX={root}/prefix"))
    shell(f"{HERE} bash build.sh", root)
    return root


@pytest.mark.slow
def test_the_library_is_installed_where_its_cmake_says(built: Path) -> None:
    assert (built / "prefix" / "lib" / "libcustom_matmul.so").is_file()


@pytest.mark.slow
def test_the_python_file_multiplies_on_the_device(built: Path, shell: Shell) -> None:
    library = built / "prefix" / "lib" / "libcustom_matmul.so"
    script = built / "custom_matmul.py"
    text = script.read_text()
    assert AUTHORS_LIBRARY in text
    script.write_text(text.replace(AUTHORS_LIBRARY, str(library)))
    printed = shell("python3 custom_matmul.py", built).stdout
    assert "Using device: npu" in printed
    error = re.search(r"最大误差: ([\d.]+)", printed)
    # Sums of 512 products in float32, in two orders.
    assert error is not None and float(error[1]) < 1e-3
    assert "torch.Size([1024, 256])" in printed
    assert "GFLOPS" in printed


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_odd_sizes_and_both_types_are_right(built: Path, shell: Shell, dtype: str) -> None:
    check = f"""
import ctypes, torch
library = ctypes.CDLL("{built}/prefix/lib/libcustom_matmul.so")
a = torch.randn(33, 70, dtype=torch.{dtype}, device="npu")
b = torch.randn(70, 129, dtype=torch.{dtype}, device="npu")
c = torch.empty(33, 129, dtype=torch.{dtype}, device="npu")
pointers = [ctypes.c_void_p(t.data_ptr()) for t in (a, b, c)]
sizes = [ctypes.c_int64(n) for n in (33, 70, 129)]
library.custom_matmul_forward(*pointers, *sizes, {int(dtype == "float16")})
expected = a.cpu().double() @ b.cpu().double()
torch.testing.assert_close(c.cpu().double(), expected, rtol=2e-3, atol=2e-2)
"""
    (built / f"check_{dtype}.py").write_text(check)
    shell(f"python3 check_{dtype}.py", built)


@pytest.mark.slow
def test_the_last_line_of_setup_env_finds_a_device(tmp_path: Path, shell: Shell) -> None:
    line = (
        "import torch; import torch_npu; print(f'PyTorch: {torch.__version__}'); "
        "print(f'torch_npu: {torch_npu.__version__}'); "
        "print(f'NPU available: {torch.npu.is_available()}')"
    )
    printed = shell(
        f'export CANN_PATH="$ASCEND_HOME_PATH"\nsource $CANN_PATH/set_env.sh\npython3 -c "{line}"',
        tmp_path,
    ).stdout
    assert f"PyTorch: {torch.__version__}" in printed
    assert "+opkit." in printed
    assert "NPU available: True" in printed


@pytest.mark.slow
def test_check_memory_leak_finds_a_leak_and_only_a_leak(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "leak.py").write_text(
        f"{LEAK}\nKEPT = None\ncheck_memory_leak()\nKEPT = []\ncheck_memory_leak()\n"
    )
    printed = shell("python3 leak.py", tmp_path).stdout.splitlines()
    assert printed == ["内存使用正常", "检测到内存泄漏: 400.00 MB"]
    assert (tmp_path / "memory_leak.snapshot").stat().st_size > 0


@pytest.mark.slow
def test_the_precision_debugger_judges_results_of_the_device(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "debugger.py").write_text(DEBUGGER)
    printed = shell("python3 debugger.py", tmp_path).stdout
    assert "精度符合要求" in printed
    assert "最大差异位置: 101" in printed


@pytest.mark.slow
def test_the_profiler_variables_write_tables_at_the_end(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "your_application.py").write_text(APPLICATION)
    script = (
        "export ASCEND_PROFILER_ENABLE=1\n"
        "export ASCEND_PROFILER_OUTPUT_PATH=./profiler_data\n"
        "python your_application.py\n"
    )
    shell(script, tmp_path)
    _check_tables(tmp_path / "profiler_data")


@pytest.mark.slow
def test_msprof_and_the_line_with_pandas(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "your_application.py").write_text(APPLICATION)
    script = (
        "python -m opkit.cli.vendor msprof --export=on --output=./profiler_report "
        "--application=your_application.py --model=your_model\n"
    )
    done = shell(script, tmp_path)
    assert "--model has no effect" in done.stderr
    _check_tables(tmp_path / "profiler_report")
    pytest.importorskip("pandas")
    printed = shell(f'python -c "{PANDAS}"', tmp_path).stdout
    assert "aten::mm" in printed


@pytest.mark.slow
def test_opkit_profile_writes_the_same_tables(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text(APPLICATION)
    shell("python -m opkit profile --csv tables -- train.py", tmp_path)
    _check_tables(tmp_path / "tables")
    monkeypatch.chdir(tmp_path)
    assert run_tool("msprof", ["--output=tables"]) == 0


def _check_tables(folder: Path) -> None:
    with (folder / "operator_summary.csv").open(encoding="utf-8") as file:
        summary = list(csv.DictReader(file))
    with (folder / "kernel_details.csv").open(encoding="utf-8") as file:
        details = list(csv.DictReader(file))
    products = next(row for row in summary if row["Op Name"] == "aten::mm")
    assert products["Count"] == "3"
    own = [float(row["Duration(us)"]) for row in details if row["Name"] == "aten::mm"]
    assert float(products["Duration(us)"]) == pytest.approx(sum(own), abs=0.01)
    assert {row["Accelerator Core"] for row in details} >= {"AI_CORE", "AI_VECTOR_CORE"}
    # What the CPU served is there, without a time.
    bessel = next(row for row in summary if "i0" in row["Op Name"])
    assert (bessel["Core Type"], bessel["Duration(us)"]) == ("HOST_CPU", "")
