"""Names that opkit lacks fail at compile time, by name; names that it has are not on that list."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from opkit import emulator
from opkit.toolchain import find_compiler

LISTED = re.findall(
    r"^OPKIT_MISSING\((\w+)\)$",
    (emulator.include_dir() / "opkit" / "isa" / "missing.inc").read_text(),
    re.M,
)


def diagnostics(tmp_path: Path, text: str, *flags: str) -> str:
    source = tmp_path / "kernel.cpp"
    source.write_text(f'#include "kernel_operator.h"\n{text}\n')
    command = [
        *(*find_compiler().argv, "-std=c++17", "-fsyntax-only", *flags),
        *("-I", str(emulator.include_dir()), str(source)),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


@pytest.mark.parametrize(
    "call",
    [
        "DataCopyUB2GMImpl(1, 2)",
        "DataCopyUB2GMImpl<float, half>(1)",
        "DataCopyUB2GMImpl<float, half, 3>(1)",
        "DataCopyUB2GMImpl<2>(1)",
    ],
)
def test_a_call_of_a_missing_name_says_so(tmp_path, call) -> None:
    text = diagnostics(tmp_path, f"void f() {{ AscendC::{call}; }}")
    assert "DataCopyUB2GMImpl is not implemented in opkit; see `opkit isa --missing`" in text


def test_no_listed_name_is_implemented(tmp_path) -> None:
    assert sorted(set(LISTED), key=str.casefold) == LISTED
    uses = "\n".join(f"using AscendC::{name};" for name in LISTED)
    text = diagnostics(tmp_path, uses, "-DOPKIT_NO_MISSING_NAMES")
    refused = {int(line) - 2 for line in re.findall(r"kernel\.cpp:(\d+):\d+: error:", text)}
    assert [name for i, name in enumerate(LISTED) if i not in refused] == []


def test_a_kernel_that_calls_none_of_them_compiles(tmp_path) -> None:
    assert diagnostics(tmp_path, "void f() { AscendC::DisableDmaAtomic(); }") == ""
