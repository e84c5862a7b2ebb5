"""Article 001: the extension of PyTorch with EXEC_NPU_CMD, built both ways, and its kernel."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import opkit
from opkit.cli import group
from opkit.cli.console import run_guarded
from opkit.cli.vendor import run_tool

Shell = Callable[..., "subprocess.CompletedProcess[str]"]
torch = pytest.importorskip("torch")

STAND_IN = Path(opkit.__file__).parent / "torch_npu" / "stand_in"
MATERIAL = Path(__file__).parent / "gelu_extension"
KERNEL = Path("csrc") / "kernel" / "gelu_custom.cpp"
SPELLINGS = {
    "set_global_buffer": "SetGlobalBuffer",
    "init_buffer": "InitBuffer",
    "alloc_tensor": "AllocTensor",
    "enque": "EnQue",
    "deque": "DeQue",
    "free_tensor": "FreeTensor",
    "get_value": "GetValue",
    "set_value": "SetValue",
}
GRADIENT = """
import torch, torch_npu, gelu_extension
x = torch.randn(4, 1000, dtype=torch.float16, device="npu", requires_grad=True)
gelu_extension.GeluCustomFunction.apply(x).backward(torch.ones_like(x))
wide = x.detach().cpu().float().requires_grad_()
torch.nn.functional.gelu(wide, approximate="tanh").sum().backward()
assert (x.grad.cpu().float() - wide.grad).abs().max().item() < 2e-3
cases = ((torch.ones(3), "must be NPU tensor"), (torch.ones(3, device="npu"), "only support FP16"))
for wrong, says in cases:
    try:
        gelu_extension.gelu_custom(wrong)
    except RuntimeError as error:
        assert says in str(error)
    else:
        raise AssertionError(says)
"""
NO_OPERATOR = """
import torch, torch_npu, gelu_extension
try:
    gelu_extension.gelu_custom(torch.ones(3, dtype=torch.float16, device="npu"))
except RuntimeError as error:
    print(error)
"""


def in_ascend_c(text: str) -> str:
    """Return the kernel with the names and literals that the errors tell."""
    for wrong, right in SPELLINGS.items():
        text = re.sub(rf"\b{wrong}\b", right, text)
    return re.sub(r"(\d+\.\d+)h\b", r"half(\1f)", text)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("gelu") / "pytorch_gelu_custom"
    shutil.copytree(MATERIAL, root)
    return root


@pytest.fixture(scope="module")
def operators(tree: Path) -> Path:
    """Return the built operators, from the article's msopgen line and an ordinary build."""
    folder = tree / "gelu_custom_op"
    options = ["-i", str(tree / "gelu_custom.json"), "-c", "ai_core-Ascend910B"]
    assert run_tool("msopgen", ["gen", *options, "-o", str(folder), "-t", "cpp", "-q"]) == 0
    assert run_guarded(group, ["build", str(folder), "-q"]) == 0
    return folder / "build" / "opkit"


@pytest.fixture(scope="module")
def extension(tree: Path, operators: Path, shell: Shell) -> Path:
    """Return the folder of the extension, built by the article's CMake."""
    kernel = tree / KERNEL
    kernel.write_text(in_ascend_c(kernel.read_text()))
    prefix = torch.utils.cmake_prefix_path
    shell(
        "mkdir -p build && cd build\n"
        f"cmake .. -DCMAKE_PREFIX_PATH={prefix} -DPython3_EXECUTABLE=$(which python3)\n"
        "make -j2\n"
        "mkdir module && cp libgelu_extension.so module/gelu_extension.so\n",
        tree,
    )
    return tree / "build" / "module"


def variables(extension: Path, operators: Path) -> dict[str, str]:
    return {"PYTHONPATH": f"{STAND_IN}:{extension}", "ASCEND_CUSTOM_OPP_PATH": str(operators)}


@pytest.mark.slow
def test_the_kernels_own_spelling_gets_the_real_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "kernel.o"
    assert (
        run_guarded(group, ["cc", "-x", "asc", "-c", str(MATERIAL / KERNEL), "-o", str(target)])
        == 1
    )
    printed = capsys.readouterr().err
    for wrong, right in SPELLINGS.items():
        line = next(line for line in printed.splitlines() if f"'{wrong}'" in line)
        assert right in line
    assert "Ascend C has no literal of half: write half(1.0f)" in printed


@pytest.mark.slow
def test_the_articles_test_runs_on_the_device(
    tree: Path, extension: Path, operators: Path, shell: Shell
) -> None:
    done = shell("python3 test/test_gelu.py", tree, variables(extension, operators))
    for way in ("Direct call", "Autograd", "Torch ops"):
        error = re.search(rf"{way} error: ([\d.]+)", done.stdout)
        # tanh against erf, and one rounding to half.
        assert error is not None and float(error[1]) < 4e-3
    assert "Speedup" in done.stdout


@pytest.mark.slow
def test_the_gradient_is_right_and_wrong_inputs_are_refused(
    tree: Path, extension: Path, operators: Path, shell: Shell
) -> None:
    (tree / "gradient.py").write_text(GRADIENT)
    shell("python3 gradient.py", tree, variables(extension, operators))


@pytest.mark.slow
def test_an_operator_that_is_not_installed_is_named(
    tree: Path, extension: Path, shell: Shell
) -> None:
    (tree / "none.py").write_text(NO_OPERATOR)
    printed = shell("python3 none.py", tree, variables(extension, tree / "nowhere")).stdout
    assert "there is no function aclnnGeluCustomGetWorkspaceSize" in printed
    assert "nowhere/op_api/lib/libcust_opapi.so" in printed


@pytest.mark.slow
def test_setup_py_builds_the_same_extension(
    tree: Path, extension: Path, operators: Path, shell: Shell
) -> None:
    pytest.importorskip("setuptools")
    build = "python3 build/setup.py -q build_ext --build-lib site --build-temp temp"
    shell(f"CFLAGS='-O0 -g0' {build}", tree)
    shell("python3 gradient.py", tree, variables(tree / "site", operators))
