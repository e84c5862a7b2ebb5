"""Names that are nearly Ascend C's get its spelling beside the compiler's message."""

from __future__ import annotations

from pathlib import Path

import pytest

from opkit.toolchain.source.diagnostics import parse_diagnostics
from opkit.toolchain.source.spelling import spelling_hint


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("'class Tensor' has no member named 'set_global_buffer'", "SetGlobalBuffer"),
        ("no member named 'init_buffer' in 'AscendC::TPipe'", "InitBuffer"),
        ("use of undeclared identifier 'data_copy'", "DataCopy"),
        ("'alloc_tensor' was not declared in this scope", "AllocTensor"),
        ("invalid suffix 'h' on floating constant", "half(1.0f)"),
        ("unable to find numeric literal operator 'operator\"\"h'", "half(1.0f)"),
    ],
)
def test_messages_of_both_compilers_get_the_real_name(
    tmp_path: Path, message: str, name: str
) -> None:
    (tmp_path / "k.cpp").write_text("x\n")
    (found,) = parse_diagnostics(f"k.cpp:1:1: error: {message}", root=tmp_path)
    assert found.message.startswith(message)
    assert name in found.message.removeprefix(message)


@pytest.mark.parametrize(
    "message",
    [
        "'class Kernel' has no member named 'fast_tanh'",
        "'class Tensor' has no member named 'set_value'; did you mean 'SetValue'?",
        "expected ';' before '}' token",
    ],
)
def test_other_messages_stay_as_they_are(message: str) -> None:
    assert spelling_hint(message) == ""
