"""Where an operand's address and a copy's length come from, in the source alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from opkit.debugging.provenance import Trail, definition_line, length_line, origins

SOURCE = """\
struct Kernel {
  void Init(GM_ADDR x, GM_ADDR y) {
    xGlobal.SetGlobalBuffer((__gm__ T*)x + first, count);
    yGlobal.SetGlobalBuffer((__gm__ T*)y, count);
  }
  void CopyIn(int row) {
    Load(xQueue, xGlobal[row * columns], 64);
    Load(yQueue, yGlobal[row], 64);
  }
  template <typename U>
  void Load(Queue& queue, const GlobalTensor<U>& source, uint32_t count) {
    LocalTensor<T> local = queue.AllocTensor<T>();
    const DataCopyExtParams copy{1, count * 4, 0, 0, 0};
    DataCopyPad(local, source, copy, pad);
    DataCopy(local, source, count);
  }
};
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.cpp"
    path.write_text(SOURCE)
    return path


def test_a_parameter_leads_to_the_call_with_the_queue_and_on_to_the_buffer(source: Path) -> None:
    found = origins(source, 14, "source", Trail(["yQueue"]))
    assert [(origin.line, origin.kind) for origin in found] == [
        (14, "argument"),
        (8, "argument"),
        (4, "buffer"),
    ]
    assert found[1].text == "yGlobal[row]" and found[1].has_offset
    assert "first" in origins(source, 14, "source", Trail(["xQueue"]))[-1].text


def test_of_several_calls_with_one_tensor_the_tensor_is_known(tmp_path: Path) -> None:
    path = tmp_path / "twice.cpp"
    path.write_text(SOURCE.replace("yGlobal[row]", "xGlobal[row]").replace("yQueue", "xQueue"))
    found = origins(path, 14, "source", Trail(["xQueue"]))
    assert [(origin.line, origin.text) for origin in found][1:2] == [(7, "xGlobal")]
    assert found[-1].line == 3


def test_of_several_calls_none_is_guessed(source: Path) -> None:
    assert [origin.line for origin in origins(source, 14, "source")] == [14]


def test_a_length_in_a_variable_is_decided_where_that_is_defined(source: Path) -> None:
    assert length_line(source, 14, "DataCopyPad", 2) == 13
    assert length_line(source, 15, "DataCopy", 2) == 15


def test_a_name_is_defined_above(source: Path) -> None:
    assert definition_line(source, 14, "copy.blockLen % 32 == 0") == 13
    assert definition_line(source, 14, "nothing == 0") == 0


def test_a_file_that_is_gone_tells_nothing(tmp_path: Path) -> None:
    assert [origin.line for origin in origins(tmp_path / "gone.cpp", 3, "x")] == [3]
