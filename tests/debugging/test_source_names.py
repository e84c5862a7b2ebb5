"""Names and lines of a kernel's source."""

from __future__ import annotations

from pathlib import Path

from opkit.debugging.source_names import SourceFile, _own_lines

SOURCE = """\
void CopyIn() {
  pipe.InitBuffer(xQueue, 2, 64);
  LocalTensor<half> xLocal = xQueue.template AllocTensor<half>();
  DataCopy(xLocal,
           xGlobal[offset],
           64);
  xQueue.EnQue(xLocal);
  float first = xLocal.GetValue(0);
  Cast<float, half>(wide, xLocal, RoundMode::CAST_NONE, 64);
}
"""


def test_calls_tell_their_operands_and_queues(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(SOURCE)
    source = SourceFile(path)
    assert source.operand_names(4, "DataCopy")[:2] == ("xLocal", "xGlobal[offset]")
    assert source.operand_names(9, "Cast")[:2] == ("wide", "xLocal")
    assert source.operand_names(9, "Muls") == ()
    assert source.buffer_name(2) == "xQueue"
    assert source.queue_call(3) == ("xQueue", "AllocTensor", "xLocal")
    assert source.queue_call(7) == ("xQueue", "EnQue", "xLocal")
    assert source.element_name(8) == "xLocal"
    assert source.line(99) == ""


def test_a_generated_text_has_the_numbers_that_line_directives_give() -> None:
    text = 'one\n#line 7 "program.py"\nother\n#line 2 "kernel.cpp"\ntwo\nthree\n'
    assert _own_lines(text, "kernel.cpp") == "one\ntwo\nthree\n"
    assert _own_lines("", "kernel.cpp") == ""
