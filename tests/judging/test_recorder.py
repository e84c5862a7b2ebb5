"""What is written down of a program's launches: memory in terms of tensors, whatever lies there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkit.chips import find_chip
from opkit.executor import Folder, bare
from opkit.judging.lockdown import Limits
from opkit.judging.recorder import Recorder
from opkit.judging.recording import Content, KernelText, Number, Output, Recorded, Words
from opkit.judging.recordings import recorded_program
from opkit.judging.worker import RecordRequest
from opkit.schema import OpSpec, load
from opkit.testing import default_cases

TEXT = KernelText("add", "text", None, False, True)


def begun(*inputs: np.ndarray[Any, Any]) -> Recorder:
    recorder = Recorder(Path("/nowhere"))
    recorder.begin([(array.ctypes.data, array.nbytes) for array in inputs])
    return recorder


def test_a_view_of_an_input_is_a_part_of_it() -> None:
    x, y = np.arange(64, dtype=np.float32), np.zeros(32, np.float32)
    recorder = begun(x)
    recorder.launch(TEXT, [x[16:48], y, np.int32(3), b"\1\2", None], 4)
    recording = recorder.end([y.reshape(4, 8)])
    (step,) = recording.steps
    assert step.block_dim == 4
    assert step.arguments == (
        Words(0, 64, 128),
        Words(1, 0, 128),
        Number(b"\3\0\0\0"),
        Number(b"\1\2"),
        None,
    )
    assert step.contents == (Content(Words(1, 0, 128), b"\0"),)
    assert recording.outputs == (Output(Words(1, 0, 128), (4, 8), (32, 4), "<f4"),)


def test_a_copy_is_the_tensor_that_it_is_of() -> None:
    x, y = np.arange(64, dtype=np.float32), np.empty(64, np.float32)
    recorder = begun(x)
    copy = x.copy()
    recorder.launch(TEXT, [copy, y], 1)
    later = y.copy()
    recorder.launch(TEXT, [later, np.empty(64, np.float32)], 1)
    first, second = recorder.end([]).steps
    assert first.contents[0] == Content(Words(1, 0, 256), source=Words(0, 0, 256))
    assert second.contents[0] == Content(Words(3, 0, 256), source=Words(2, 0, 256))


def test_what_the_host_writes_between_launches_is_noted() -> None:
    x, y = np.arange(64, dtype=np.float32), np.empty(64, np.float32)
    recorder = begun(x)
    recorder.launch(TEXT, [x, y], 1)
    recorder.launch(TEXT, [x, y], 1)
    y[...] = 3.0
    recorder.launch(TEXT, [x, y], 1)
    steps = recorder.end([]).steps
    assert steps[1].contents == ()
    assert steps[2].contents == (Content(Words(1, 0, 256), np.float32(3).tobytes() * 64),)


def test_memory_that_grows_keeps_what_a_kernel_has_left_in_it() -> None:
    whole = np.zeros(64, np.float32)
    recorder = begun(np.zeros(4, np.float32))
    recorder.launch(TEXT, [whole[:16]], 1)
    recorder.launch(TEXT, [whole], 1)
    _, second = recorder.end([]).steps
    assert second.contents[-1] == Content(Words(2, 0, 64), source=Words(1, 0, 64))


def test_a_result_that_no_kernel_was_given_is_none() -> None:
    x, y = np.arange(64, dtype=np.float32), np.empty(64, np.float32)
    recorder = begun(x)
    recorder.launch(TEXT, [x, y], 1)
    copy, changed = y.copy(), y.copy()
    changed.view(np.uint32)[3] ^= 1
    found = recorder.end([copy, changed, 2 * x, y[::2]]).outputs
    assert found[0] == Output(Words(1, 0, 256), (64,), (4,), "<f4")
    assert found[1:3] == (None, None)
    assert found[3] == Output(Words(1, 0, 252), (32,), (8,), "<f4")
    y.view(np.uint32)[3] ^= 1
    # The host has added to what the kernel left.
    assert recorder.end([y]).outputs == (None,)


PROTOTYPE = """[{"op": "Judged", "input_desc": [{"name": "x", "type": ["float32"]}],
  "output_desc": [{"name": "y", "type": ["float32"], "formula": "x*2 + 1"}]}]"""
PROGRAM = """import numpy as np
import pypto
@pypto.jit
def axpb(x):
    return x * 2.0 + 1.0
"""


@pytest.fixture
def spec(tmp_path: Path) -> OpSpec:
    (tmp_path / "judged.json").write_text(PROTOTYPE)
    (found,) = load(tmp_path / "judged.json")
    return found


def recorded(tmp_path: Path, spec: OpSpec, text: str, seconds: float = 60.0) -> Recorded:
    folder = tmp_path / "candidate"
    folder.mkdir()
    (folder / "program.py").write_text(text)
    case = next(case for case in default_cases(spec, seed=0) if "255" in case.name)
    calls = [RecordRequest(case, ((case.shape, "float32"),))]
    chip, limits = find_chip("Ascend910B2"), Limits(seconds=seconds)
    found = recorded_program(
        *(Folder(folder), spec, calls, chip, limits), cage=bare, uses_torch=False
    )
    return found[case.name]


def test_a_program_of_pypto_is_recorded_without_a_compiler(tmp_path: Path, spec: OpSpec) -> None:
    one = recorded(tmp_path, spec, f"{PROGRAM}\ndef judged(x):\n    return axpb(x)\n")
    assert one.recording is not None
    assert (one.depends, len(one.recording.steps)) == ("", 1)
    (kernel,) = one.kernels.values()
    assert "program.py" in kernel.source
    assert str(tmp_path) not in kernel.source


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        ("return 2 * x + 1", "HostComputed", "result 0 is no memory"),
        ("return axpb(x if x[0] > x[1] else axpb(x))", "HostComputed", "launches, or"),
        ("raise ValueError('no')", "Raised", "ValueError: no"),
        ("return axpb(x), x", "Raised", "it gives 2 results, where the operator has 1"),
    ],
)
@pytest.mark.sampled(2)
def test_what_is_no_launch_of_kernels_is_named(
    tmp_path: Path, spec: OpSpec, body: str, kind: str, said: str
) -> None:
    one = recorded(tmp_path, spec, f"{PROGRAM}\ndef judged(x):\n    {body}\n")
    assert one.recording is None
    assert one.failure["kind"] == kind
    assert said in str(one.failure["error"])
