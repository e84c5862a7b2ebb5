"""The static half: names used against names declared."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from opkit.compat import api_names, find_kernels, read_declared, scan
from opkit.errors import UsageError


def kernel(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_the_list_has_each_name_once() -> None:
    texts = [name.text for name in api_names()]
    assert len(set(texts)) == len(texts) > 600
    assert {name.tier for name in api_names()} == {"T1", "T2", "T3"}


def test_declared_names_are_those_of_the_headers(tmp_path: Path) -> None:
    (tmp_path / "kernel_operator.h").write_text(
        """
        #define ASSERT(x) (x)
        namespace AscendC {
        template <typename T> struct LocalTensor { T GetValue(int i); };
        template <typename T> void Add(T a);
        enum pipe_t { PIPE_V };
        }
        """
    )
    declared = read_declared(["OnlyHere", "Add"], include_dir=tmp_path)
    ours = {name.text for name in api_names()} & declared.names
    # What `opkit build` defines for each operator is always there.
    assert ours == {"ASSERT", "LocalTensor", ".GetValue", "Add", "PIPE_*", "DTYPE_*", "FORMAT_*"}
    assert "OnlyHere" not in declared


def test_what_is_known_of_headers_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = tmp_path / "kernel_operator.h"
    header.write_text("namespace AscendC { void Add(); }")
    first = read_declared(["Mine"], include_dir=tmp_path)
    with monkeypatch.context() as without:
        without.setattr(subprocess, "run", None)
        assert read_declared(["Mine"], include_dir=tmp_path) == first
        assert "Mine" not in read_declared([], include_dir=tmp_path)
    header.write_text("namespace AscendC { void Add(); void Mine(); }")
    assert read_declared(["Mine"], include_dir=tmp_path).names == first.names | {"Mine"}


def test_the_installed_headers_declare_what_every_kernel_needs() -> None:
    declared = read_declared(["SurelyNowhere"])
    for name in ("Add", "DataCopy", "LocalTensor", ".EnQue", "GM_ADDR", "PIPE_*", "GetBlockIdx"):
        assert name in declared, name
    assert "SurelyNowhere" not in declared


def test_kernels_of_an_operator_repository(tmp_path: Path) -> None:
    kernel(tmp_path, "add/op_kernel/add.cpp", "")
    kernel(tmp_path, "add/op_kernel/arch35/add.cpp", "")
    kernel(tmp_path, "add/op_host/add.cpp", "")
    kernel(tmp_path, "add/tests/ut/op_kernel/test_add.cpp", "")
    found = [path.relative_to(tmp_path).as_posix() for path in find_kernels(tmp_path)]
    assert found == ["add/op_kernel/add.cpp"]


def test_a_scan_tells_who_misses_what(tmp_path: Path) -> None:
    kernel(tmp_path, "a/op_kernel/a.cpp", '#include "a.h"\nvoid f() { AscendC::Add(x, y, z, 8); }')
    kernel(tmp_path, "a/op_kernel/a.h", "void g() { AscendC::NotThere(x); }")
    kernel(tmp_path, "b/op_kernel/b.cpp", "void f() { AscendC::NotThere(AscendC::NorThis(x)); }")
    kernel(tmp_path, "c/op_kernel/c.cpp", "void f() { AscendC::DataCopy(x, y, 8); }")
    kernel(tmp_path, "d/op_kernel/d.cpp", '#include "arch35/d.h"\n')
    report = scan(tmp_path)
    assert [(name.kernel, name.missing) for name in report.kernels] == [
        ("a/op_kernel/a.cpp", ("NotThere",)),
        ("b/op_kernel/b.cpp", ("NorThis", "NotThere")),
        ("c/op_kernel/c.cpp", ()),
    ]
    assert report.complete == 1
    assert report.other_chips == ("d/op_kernel/d.cpp",)
    assert [(want.name, want.wanted_by, want.alone) for want in report.missing] == [
        ("NotThere", 2, 1),
        ("NorThis", 1, 0),
    ]


def test_a_tree_without_kernels_is_refused(tmp_path: Path) -> None:
    kernel(tmp_path, "main.cpp", "int main() {}")
    with pytest.raises(UsageError, match="no kernel sources"):
        scan(tmp_path)
