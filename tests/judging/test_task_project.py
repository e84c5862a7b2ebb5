"""A benchmark's task as a project: what it holds, what it refuses, and that it builds and runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkit.cli import main
from opkit.errors import UsageError
from opkit.judging import Question, compile_task, judge, task_project
from opkit.toolchain import find_home, home_variables

pytestmark = pytest.mark.torch

_PROTO = """
operator:
  name: Blend
  attrs:
  - {name: factor, type: float, default: 2.0}
  - {name: axes, type: 'List[int]', default: [-1]}
  - {name: shift, type: int}
  inputs:
  - {name: x, dtype: [float16, float32]}
  - {name: bias, dtype: [float16, float32], optional: true}
  outputs:
  - {name: y, dtype: [float16, float32]}
  - {name: place, dtype: [int64]}
"""
_CASES = """
cases:
- {case_id: 1, input_shape: [[6, 40], [40]], dtype: [float32, float32],
   attrs: {factor: 1.5}, value_range: [[-1, 2], [0, 1]]}
- {case_id: 2, input_shape: [[3, 24]], dtype: [float16], attrs: {factor: .nan},
   value_range: [-1, 1]}
- {case_id: 3, input_shape: [[5, 16], [16]], dtype: [float32, float32],
   attrs: {factor: 9.0}, value_range: [[-1, 2], [0, 1]]}
"""
_GOLDEN = '''
"""Rows blended."""
import torch


def blend(x, bias=None, factor: float = 2.0, axes=(-1,), shift: int = 0):
    if factor == 9.0:
        return torch.linalg.eigvals(x[:, :5].float()).abs(), x.argmax(axes[0])
    y = torch.ones_like(x) if factor != factor else x * factor
    if bias is not None:
        y = y + bias + torch.ones(40, 40).triu().sum(0).to(x.dtype) + x @ x.T @ x
    return y, x.argmax(axes[0])
'''


_SIGNATURE = "def blend(x, bias=None, factor=2.0, axes=(-1,), shift=0):\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "blend"
    folder.mkdir()
    (folder / "proto.yaml").write_text(_PROTO)
    (folder / "cases.yaml").write_text(_CASES)
    (folder / "golden.py").write_text(_GOLDEN)
    return folder


def _compiled(
    capsys: pytest.CaptureFixture[str], *words: str | Path
) -> tuple[int | str | None, str, str]:
    """Return the exit code of `opkit compile` and what it wrote."""
    with pytest.raises(SystemExit) as leaving:
        main(["compile", *map(str, words)])
    captured = capsys.readouterr()
    return leaving.value.code, captured.out, captured.err


def test_a_task_becomes_a_project(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "project"
    code, text, _ = _compiled(capsys, folder, "-o", out, "--json")
    assert code == 0
    found = json.loads(text)
    assert found["cases"] == ["blend-1", "blend-2"]
    (left,) = found["left_out"]
    # Which operator, and on which line of the golden.
    assert left["case"] == "blend-3"
    assert "linalg_eig" in left["reason"] and "golden.py:8" in left["reason"]
    host = (out / "csrc" / "blend.cpp").read_text()
    assert "x_rank == 2 && AreSame(x_shape, 6, 40)" in host
    assert "bias == nullptr" in host and "axes_count == 1 && AreSame(axes, -1)" in host
    assert "IsSame<double>(factor, NAN)" in host
    # 1 to 40 as words of float32.
    assert "Constant(0)" in host
    package = (out / "cann_bench" / "__init__.py").read_text()
    assert "def blend(x, bias=None, factor=2.0, axes=(-1,), shift=0):" in package
    assert (out / "build.sh").is_file()


def test_macros_stay_before_what_they_tell(folder: Path) -> None:
    (folder / "golden.py").write_text(_SIGNATURE + "    return x @ x.T, x.argmax(-1)\n")
    files = compile_task(folder, chip="Ascend910B2").files
    (product,) = (text for text in files.values() if "#define ASCENDC_CUBE_ONLY" in text)
    assert product.index("#define ASCENDC_CUBE_ONLY") < product.index("#include")


def test_lists_of_any_length_have_kernels(folder: Path) -> None:
    (folder / "golden.py").write_text(_SIGNATURE + "    return [sum(x), x[0].argmax(-1)]\n")
    (folder / "cases.yaml").write_text(
        "cases:\n"
        "- {case_id: 1, input_shape: [[[6, 40], [40], [1]]], dtype: [float32]}\n"
        "- {case_id: 2, input_shape: [[[6, 40]]], dtype: [float32]}\n"
    )
    found = compile_task(folder, chip="Ascend910B2")
    assert found.cases == ("blend-1", "blend-2") and found.left_out == ()
    table = found.files["cann_bench/cases.py"]
    assert "((((6, 40), 'float32'), ((40,), 'float32'), ((1,), 'float32')), None)" in table
    assert "(0, True, (((6, 40), 'float32')" in table


def test_kernels_of_the_same_source_are_one(folder: Path) -> None:
    more = folder / "cases.yaml"
    more.write_text(
        "cases:\n"
        "- {case_id: 1, input_shape: [[6, 40]], dtype: [float32], attrs: {factor: 2.0}}\n"
        "- {case_id: 2, input_shape: [[7, 41]], dtype: [float32], attrs: {factor: 2.0}}\n"
    )
    one = compile_task(folder, chip="Ascend910B2")
    assert len(one.cases) == 2
    alone = more.read_text().splitlines()[:2]
    more.write_text("\n".join(alone))
    assert one.kernels == compile_task(folder, chip="Ascend910B2").kernels


@pytest.mark.parametrize(
    "words",
    [
        np.arange(40, dtype=np.float32),
        np.arange(4000, dtype=np.int32).reshape(8, 500).T,
        np.tile(np.arange(7, dtype=np.int32), 300)[3:],
        np.triu(np.ones((90, 90), np.int8)),
        np.ones(1, np.float16),
        np.arange(2, dtype=np.int32),
        np.random.default_rng(1).integers(0, 1 << 31, 999, np.int32),
    ],
    ids=["counted", "across", "repeated", "mask", "short", "two", "noise"],
)
def test_parts_of_a_constant_are_the_constant(words: np.ndarray[Any, Any]) -> None:
    data = words.tobytes()
    parts = task_project._parts(data)
    steps = [np.repeat(*np.tile(rows, (times, 1)).T[::-1]) for times, rows in parts]
    back = np.cumsum(np.concatenate(steps), dtype=np.uint32).tobytes()
    assert back[: len(data)] == data and len(back) - len(data) < 4
    if len(words) == 500:
        assert sum(len(rows) for _, rows in parts) < 8


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("return x if x.sum() > 0 else -x, x.argmax(-1)", "golden.py:6"),
        ("return torch.rand_like(x), x.argmax(-1)", "golden.py:6: rand_like"),
        ("return torch.dropout(x, 0.5, True), x.argmax(-1)", "draws random numbers"),
        ("return x, x.argmax(-1)", "returns an input"),
    ],
)
def test_a_golden_without_kernels_is_refused(folder: Path, line: str, said: str) -> None:
    text = _GOLDEN.split("    if factor")[0].lstrip()
    (folder / "golden.py").write_text(f"{text}    {line}\n")
    with pytest.raises(UsageError, match=said):
        compile_task(folder, chip="Ascend910B2")


def test_a_folder_of_a_task_takes_no_stage(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = _compiled(capsys, folder, "--explain")
    assert code == 2 and "-o FOLDER" in err


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("proto.yaml", None, "proto.yaml, golden.py and cases.yaml"),
        ("golden.py", None, "proto.yaml, golden.py and cases.yaml"),
        ("golden.py", "import torch\n\ndef blend(:\n", "golden.py:3"),
        ("golden.py", "import torch\nblend = torch.nothing\n", "golden.py:2"),
        ("golden.py", "blend = 3\n", "there is no function blend"),
        ("cases.yaml", "cases: 3\n", "expected a list"),
    ],
)
def test_a_bad_folder_is_named(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    file: str,
    text: str | None,
    said: str,
) -> None:
    if text is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(text)
    code, _, err = _compiled(capsys, folder, "-o", tmp_path / "project")
    assert code == 2 and said in err and "Traceback" not in err
    assert not (tmp_path / "project").exists()


_CALL = """
import torch, torch_npu, cann_bench
x, bias = torch.randn(6, 40), torch.rand(40)
y, place = cann_bench.blend(x.npu(), bias.npu(), factor=1.5)
assert place.dtype == torch.int64 and torch.equal(place.cpu(), x.argmax(-1))
torch.testing.assert_close(y.cpu(), x * 1.5 + bias + torch.arange(1.0, 41) + x @ x.T @ x)
line = torch.randn(1, 20000)
assert torch.equal(cann_bench.blend(line.npu(), factor=float("nan"))[1].cpu(), line.argmax(-1))
y, _ = cann_bench.blend(torch.rand(3, 24).half().npu(), factor=float("nan"))
assert torch.equal(y.cpu(), torch.ones(3, 24).half())
try:
    cann_bench.blend(x[:2].npu())
except ValueError as err:
    assert "(2, 40)" in str(err)
else:
    raise SystemExit("a shape without kernels is taken")
"""


@pytest.mark.slow
def test_the_project_builds_installs_and_runs(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "project"
    # Its kernel is a function of the library alone: several cores share a line.
    long = "- {case_id: 4, input_shape: [[1, 20000]], dtype: [float32], attrs: {factor: .nan}}\n"
    (folder / "cases.yaml").write_text(_CASES + long)
    for name, text in compile_task(folder, chip="Ascend910B2").files.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(text)
    environment = {**os.environ, **home_variables(find_home(), os.environ)}
    subprocess.run(["bash", "build.sh"], cwd=out, env=environment, check=True)
    (wheel,) = (out / "dist").glob("cann_bench*.whl")
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(site)]
    subprocess.run([*pip, str(wheel)], check=True)
    environment["PYTHONPATH"] = str(site)
    subprocess.run([sys.executable, "-c", _CALL], cwd=tmp_path, env=environment, check=True)


@pytest.mark.slow
def test_the_project_is_a_candidate_of_its_task(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "project"
    for name, text in compile_task(folder, chip="Ascend910B2").files.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(text)
    found = judge(out, Question(folder, expression="not blend-3"))
    assert found.is_accepted, found
