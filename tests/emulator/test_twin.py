"""Kernels called as functions, by tikicpulib.h: what unit tests of kernels stand on."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from opkit.cli.commands.cc import command
from opkit.cli.console import run_guarded

SOURCES = Path(__file__).parent / "twin"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("twin") / "scale"
    sources = [str(SOURCES / name) for name in ("scale_kernel.cpp", "scale_test.cpp")]
    assert run_guarded(command, ["-O0", *sources, "-o", str(made)]) == 0
    return made


def test_a_kernel_runs_with_its_key_on_memory_of_the_host(program: Path) -> None:
    done = subprocess.run([program], cwd=program.parent, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "right\n")
    assert "GmFree" in done.stderr and "freed before" in done.stderr
    assert (
        "does not fit into the buffer" in done.stderr and "none.bin cannot be read" in done.stderr
    )


def test_a_fault_is_an_exception_with_the_report(program: Path) -> None:
    done = subprocess.run([program, "long"], cwd=program.parent, capture_output=True, text=True)
    assert done.returncode == 1
    assert "behind the end of an allocation of 128 bytes [MEM-BOUNDS]" in done.stdout
    assert "scale_kernel.cpp:18" in done.stdout


def test_headers_of_tests_find_half_in_a_header_of_its_name(tmp_path: Path) -> None:
    # Data helpers and tiling headers of kernel unit tests include it first, and did not compile.
    source = tmp_path / "halves.cpp"
    source.write_text(
        '#include "kernel_fp16.h"\nusing float16_t = half;\n'
        "int main() { return float(float16_t(1.5f) + float16_t(0.25f)) == 1.75f ? 0 : 1; }\n"
    )
    made = tmp_path / "halves"
    assert run_guarded(command, ["-D__CCE_KT_TEST__=1", str(source), "-o", str(made)]) == 0
    assert subprocess.run([made]).returncode == 0
