"""Depfiles as gcc and clang write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from opkit.toolchain.building.depfile import parse_depfile


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("unit: a.cpp b.h\n", ("a.cpp", "b.h")),
        ("unit: a.cpp \\\n  b.h \\\r\n  c.h\n", ("a.cpp", "b.h", "c.h")),
        ("unit: my\\ file.cpp a\\#b.h cash$$.h\n", ("my file.cpp", "a#b.h", "cash$.h")),
        ("unit: a.cpp a.cpp\nunit: b.h\n", ("a.cpp", "b.h")),
        ("unit:\n", ()),
        ("", ()),
    ],
)
def test_prerequisites_come_in_order_and_once(text: str, names: tuple[str, ...]) -> None:
    assert parse_depfile(text) == names


def test_what_the_compiler_writes_for_odd_names_is_read_back(tmp_path: Path) -> None:
    import subprocess

    from opkit.errors import SetupError
    from opkit.toolchain import find_compiler

    try:
        compiler = find_compiler()
    except SetupError:
        pytest.skip("no C++ compiler")
    header = tmp_path / "a b#c$d.h"
    header.write_text("")
    source = tmp_path / "s.cpp"
    source.write_text(f'#include "{header.name}"\n')
    argv = [*compiler.argv, "-MD", "-MF", "out.d", "-MT", "unit", "-c", "s.cpp", "-o", "s.o"]
    subprocess.run(argv, cwd=tmp_path, check=True)
    assert header.name in parse_depfile((tmp_path / "out.d").read_text())
