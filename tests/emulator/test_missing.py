"""Names that opkit lacks fail at compile time, by name; names that it has are not on that list."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from opkit import emulator
from opkit.toolchain import find_compiler

LIST = (emulator.include_dir() / "opkit" / "isa" / "missing.inc").read_text()
LISTED = re.findall(r"^OPKIT_MISSING\((\w+)\)$", LIST, re.M)
VALUES = re.findall(r"^OPKIT_MISSING_VALUE\((\w+)\)$", LIST, re.M)
BUILTINS = re.findall(r"^OPKIT_MISSING_BUILTIN\((\w+)\)$", LIST, re.M)


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
        "InitDump(1, 2)",
        "InitDump<float, half>(1)",
        "InitDump<float, half, 3>(1)",
        "InitDump<2>(1)",
    ],
)
def test_a_call_of_a_missing_name_says_so(tmp_path, call) -> None:
    text = diagnostics(tmp_path, f"void f() {{ AscendC::{call}; }}")
    assert "InitDump is not implemented in opkit; see `opkit isa --missing`" in text


def test_a_call_of_a_missing_builtin_says_so(tmp_path) -> None:
    text = diagnostics(tmp_path, f"void f(float* p) {{ {BUILTINS[0]}(p, p, 1); }}")
    assert f"{BUILTINS[0]} is not implemented in opkit; see `opkit isa --missing`" in text


def test_a_kernels_own_function_goes_before_a_missing_builtin(tmp_path) -> None:
    own = f"int {BUILTINS[0]}(long value); int f() {{ return {BUILTINS[0]}(1); }}"
    assert diagnostics(tmp_path, own) == ""


def test_a_use_of_a_missing_constant_names_it(tmp_path) -> None:
    text = diagnostics(tmp_path, f"int f() {{ return AscendC::{VALUES[0]} + 1; }}")
    assert f"{VALUES[0]}_is_not_implemented_in_opkit" in text


def test_no_listed_name_is_implemented(tmp_path) -> None:
    names = [f"AscendC::{name}" for name in LISTED + VALUES] + [f"::{name}" for name in BUILTINS]
    for part in (LISTED, VALUES, BUILTINS):
        assert sorted(set(part), key=str.casefold) == part
    uses = "\n".join(f"using {name};" for name in names)
    text = diagnostics(tmp_path, uses, "-DOPKIT_NO_MISSING_NAMES")
    refused = {int(line) - 2 for line in re.findall(r"kernel\.cpp:(\d+):\d+: error:", text)}
    assert [name for i, name in enumerate(names) if i not in refused] == []


def test_a_kernel_that_calls_none_of_them_compiles(tmp_path) -> None:
    assert diagnostics(tmp_path, "void f() { AscendC::DisableDmaAtomic(); }") == ""
