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
TYPES = re.findall(r"^OPKIT_MISSING_TYPE\((\w+)\)$", LIST, re.M)
TEMPLATES = re.findall(r"^OPKIT_MISSING_TEMPLATE\((\w+)\)$", LIST, re.M)
BUILTINS = re.findall(r"^OPKIT_MISSING_BUILTIN\((\w+)\)$", LIST, re.M)


KERNEL, HOST = "kernel_operator.h", "tiling/tiling_api.h"


def diagnostics(tmp_path: Path, text: str, *flags: str, header: str = KERNEL) -> str:
    source = tmp_path / "kernel.cpp"
    source.write_text(f'#include "{header}"\n{text}\n')
    command = [
        *(*find_compiler().argv, "-std=c++17", "-fsyntax-only", *flags),
        *("-I", str(emulator.include_dir()), str(source)),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


@pytest.mark.sampled(2)
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


@pytest.mark.parametrize("header", [KERNEL, HOST])
def test_a_call_of_every_listed_name_says_so(tmp_path, header) -> None:
    """Once without and once with template arguments."""
    calls = [f"AscendC::{name}(1); AscendC::{name}<float>(2, 3);" for name in LISTED]
    text = diagnostics(tmp_path, f"void f() {{ {' '.join(calls)} }}", header=header)
    said = re.findall(r"(\w+) is not implemented in opkit; see `opkit isa --missing`", text)
    assert {name: said.count(name) for name in LISTED} == dict.fromkeys(LISTED, 2)


def test_a_variable_of_a_missing_type_says_so(tmp_path) -> None:
    plain = [f"AscendC::{name} plain_{name};" for name in TYPES]
    filled = [f"AscendC::{name}<float> filled_{name};" for name in TEMPLATES]
    text = diagnostics(tmp_path, f"void f() {{ {' '.join(plain + filled)} }}")
    for name in TYPES + TEMPLATES:
        assert f"{name} is not implemented in opkit; see `opkit isa --missing`" in text


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
    parts = (LISTED, TYPES, TEMPLATES, VALUES, BUILTINS)
    for part in parts:
        assert sorted(set(part), key=str.casefold) == part
    names = [f"{'' if part is BUILTINS else 'AscendC'}::{name}" for part in parts for name in part]
    uses = "\n".join(f"using {name};" for name in names)
    for header in (KERNEL, HOST):
        text = diagnostics(tmp_path, uses, "-DOPKIT_NO_MISSING_NAMES", header=header)
        refused = {int(line) - 2 for line in re.findall(r"kernel\.cpp:(\d+):\d+: error:", text)}
        assert [name for i, name in enumerate(names) if i not in refused] == []


def test_a_kernel_that_calls_none_of_them_compiles(tmp_path) -> None:
    assert diagnostics(tmp_path, "void f() { AscendC::DisableDmaAtomic(); }") == ""
