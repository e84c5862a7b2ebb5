"""Compile a kernel given as text and check a launch of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkit.errors import KernelFault
from opkit.sanitizer import TOOLS, Check, CheckSettings, Finding, check_program
from opkit.toolchain import parse_driver_arguments, run_driver

CheckKernel = Callable[..., tuple[Finding, ...]]


@pytest.fixture(scope="session")
def check_library(compile_shared: Callable[..., None]) -> CheckKernel:
    """Return a function that compiles a source file with a kernel table and checks one launch."""

    def check(
        source: Path,
        kernel: str,
        arguments: Sequence[np.ndarray],
        *,
        block_dim: int = 1,
        tools: tuple[str, ...] = (),
        notes: bool = False,
        **options: Any,
    ) -> tuple[Finding, ...]:
        library = source.with_suffix(".so")
        if not library.exists():
            compile_shared(source, library, headers=["kernel_operator.h"])
        from opkit.emulator import _emulator

        session = Check(tools, **options)
        try:
            with session:
                _emulator.Kernel(str(library), kernel).launch(list(arguments), block_dim)
        except KernelFault:
            assert session.findings, "a fault that is no finding"
        return session.notes if notes else session.findings

    return check


@pytest.fixture(scope="session")
def check_kernel(
    tmp_path_factory: pytest.TempPathFactory, check_library: CheckKernel
) -> CheckKernel:
    """Return a function that compiles a text with a kernel named `kernel` and checks one launch.

    The kernel has two arguments of 128 floats, or as many as `arrays`, or `inputs`. With `notes`
    it is the notes that are returned. The other options are those of `Check` and the launch.
    """
    folder = tmp_path_factory.mktemp("museum")

    def check(
        text: str,
        *,
        arrays: int = 2,
        inputs: Sequence[np.ndarray] | None = None,
        **options: Any,
    ) -> tuple[Finding, ...]:
        source = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.cpp"
        if not source.exists():
            source.write_text(f"{text}\nOPKIT_KERNEL_TABLE(kernel)\n", encoding="utf-8")
        arguments = list(inputs or [np.zeros(128, np.float32) for _ in range(arrays)])
        return check_library(source, "kernel", arguments, **options)

    return check


@pytest.fixture(scope="session")
def check_text(tmp_path_factory: pytest.TempPathFactory) -> CheckKernel:
    """Return a function that compiles a text with a main() and checks a run of it."""
    folder = tmp_path_factory.mktemp("programs")

    def check(text: str, *, unused: bool = False, padding: bool = False) -> tuple[Finding, ...]:
        stem = hashlib.sha256(text.encode()).hexdigest()[:16]
        source, program = folder / f"{stem}.asc", folder / stem
        if not program.exists():
            source.write_text(text, encoding="utf-8")
            run_driver(parse_driver_arguments(["-g", str(source), "-o", str(program)]))
        settings = CheckSettings(TOOLS, padding=padding)
        report = check_program(program, (), settings=settings, unused=unused)
        assert report.gaps == ()
        return report.findings

    return check
