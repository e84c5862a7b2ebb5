"""Compiler commands, as text; nothing is run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from opkit.chips import find_chip
from opkit.errors import UsageError
from opkit.toolchain import Compiler, Project, Toolkit, load_project
from opkit.toolchain.building.command import (
    kernel_units,
    kernel_variants,
    library_units,
    skipped_bindings,
)
from opkit.toolchain.building.unit import compile_argv, link_argv

GCC = Compiler(argv=("g++",), family="gcc", version="12.2.0", identity="g")
CLANG = Compiler(argv=("clang++",), family="clang", version="16.0.0", identity="c")
B2 = find_chip("910B2")


@pytest.fixture
def project(tmp_path: Path, make_project: Callable[[Path], None]) -> Project:
    make_project(tmp_path / "twice")
    return load_project(tmp_path / "twice")


@pytest.fixture
def toolkit(tmp_path: Path) -> Toolkit:
    return Toolkit(tmp_path / "include", tmp_path / "lib" / "libopkit_emulator.so")


def test_a_variant_is_named_after_kernel_arch_and_dtypes(project: Project) -> None:
    files = [variant.file for variant in kernel_variants(project.operators[0], "dav-2201")]
    assert files == [
        "twice.dav-2201.float16-float16.so",
        "twice.dav-2201.float32-float32.so",
    ]


def test_a_kernel_is_compiled_with_the_types_of_its_variant(
    project: Project, toolkit: Toolkit
) -> None:
    half, single = kernel_units(project, B2, toolkit, GCC)
    for flag in ("-DDTYPE_X=half", "-DORIG_DTYPE_X=DT_FLOAT16", "-DFORMAT_X=FORMAT_ND"):
        assert flag in half.flags
    for flag in ("-DDTYPE_Y=float", "-DORIG_DTYPE_Y=DT_FLOAT", "-DFORMAT_Y=FORMAT_ND"):
        assert flag in single.flags


@pytest.mark.parametrize(
    ("chip", "macros"),
    [
        ("910B2", ("-D__CCE_AICORE__=220", "-D__NPU_ARCH__=2201")),
        ("310P3", ("-D__CCE_AICORE__=200", "-D__NPU_ARCH__=2002")),
    ],
)
def test_a_kernel_sees_the_macros_of_its_chip(
    project: Project, toolkit: Toolkit, chip: str, macros: tuple[str, ...]
) -> None:
    unit = kernel_units(project, find_chip(chip), toolkit, GCC)[0]
    assert set(macros) <= set(unit.flags)


def test_a_kernel_unit_includes_the_users_file_and_ends_in_its_table(
    project: Project, toolkit: Toolkit
) -> None:
    unit = kernel_units(project, B2, toolkit, GCC)[0]
    assert unit.text is not None
    assert unit.text.splitlines()[:2] == [
        '#include "opkit/kernel_constants.h"',
        '#include "op_kernel/twice.cpp"',
    ]
    assert unit.text.splitlines()[-1] == "OPKIT_KERNEL_TABLE(twice)"


def test_results_do_not_depend_on_contraction_or_fast_maths(
    project: Project, toolkit: Toolkit
) -> None:
    objects, _ = library_units(project, toolkit, GCC)
    for unit in (*kernel_units(project, B2, toolkit, GCC), *objects):
        assert "-ffp-contract=off" in unit.flags
        assert "-fno-strict-aliasing" in unit.flags
        assert "-ffast-math" not in unit.flags


def test_flags_that_only_gcc_knows_go_to_gcc_only(project: Project, toolkit: Toolkit) -> None:
    assert "-fno-gnu-unique" in kernel_units(project, B2, toolkit, GCC)[0].flags
    assert "-fno-gnu-unique" not in kernel_units(project, B2, toolkit, CLANG)[0].flags


def test_the_emulator_is_linked_by_name_after_the_source_and_without_an_rpath(
    project: Project, toolkit: Toolkit
) -> None:
    unit = kernel_units(project, B2, toolkit, GCC)[0]
    paths = {"source": Path("s.cpp"), "output": Path("o.so"), "depfile": Path("d")}
    argv = compile_argv(GCC, unit, **paths)
    assert argv[0] == "g++"
    assert argv.index("-lopkit_emulator") > argv.index("s.cpp")
    assert not any("rpath" in word for word in argv)


def test_objects_of_a_library_are_linked_in_the_order_of_their_names(
    project: Project, toolkit: Toolkit
) -> None:
    (project.root / "op_host" / "another.cpp").write_text("")
    objects, (host,) = library_units(project, toolkit, GCC)
    assert [unit.name for unit in objects] == ["op_host.another.o", "op_host.twice.o"]
    argv = link_argv(GCC, host, objects=[Path("a.o"), Path("b.o")], output=Path("libop_host.so"))
    assert host.name == "libop_host.so"
    assert argv.index("a.o") < argv.index("b.o") < argv.index("-lopkit_emulator")


def test_bindings_are_built_where_the_project_has_them(project: Project, toolkit: Toolkit) -> None:
    folder = project.root / "numpy_ext"
    folder.mkdir()
    (folder / "twice_module.cpp").write_text("")
    objects, links = library_units(project, toolkit, GCC)
    unit = next(unit for unit in objects if unit.kind == "numpy_ext")
    assert any(flag.endswith("pybind11/include") for flag in unit.flags)
    assert any(link.name.startswith("_numpy.") for link in links)


def test_without_torch_its_binding_is_skipped_with_a_reason(
    project: Project, toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project.root / "torch_ext").mkdir()
    (project.root / "torch_ext" / "twice_torch.cpp").write_text("")
    monkeypatch.setattr("opkit.toolchain.building.command._torch_folder", lambda: None)
    _, links = library_units(project, toolkit, GCC)
    assert "_torch.so" not in [link.name for link in links]
    assert skipped_bindings(project) == (("_torch.so", "torch is not installed here"),)


def test_with_torch_its_binding_is_built_for_the_stable_interface(
    project: Project, toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project.root / "torch_ext").mkdir()
    (project.root / "torch_ext" / "twice_torch.cpp").write_text("")
    monkeypatch.setattr(
        "opkit.toolchain.building.command._torch_folder", lambda: Path("/site/torch")
    )
    objects, links = library_units(project, toolkit, GCC)
    unit = next(unit for unit in objects if unit.kind == "torch_ext")
    assert "-DTORCH_TARGET_VERSION=0x020a000000000000" in unit.flags
    link = next(link for link in links if link.name == "_torch.so")
    # zig's linker refused --unresolved-symbols, which no linker needs for a shared library.
    assert not any("unresolved" in flag for flag in link.flags)
    assert skipped_bindings(project) == ()


def test_a_missing_kernel_is_named(project: Project, toolkit: Toolkit) -> None:
    project.kernel_source(project.operators[0]).unlink()
    with pytest.raises(UsageError, match=r"Twice has no kernel: op_kernel/twice\.cpp is missing"):
        kernel_units(project, B2, toolkit, GCC)


def test_missing_host_code_is_named(project: Project, toolkit: Toolkit) -> None:
    (project.root / "op_host" / "twice.cpp").unlink()
    with pytest.raises(UsageError, match="op_host/ has no"):
        library_units(project, toolkit, GCC)


def test_variants_that_differ_in_format_only_have_files_of_their_own(project: Project) -> None:
    # They used to be refused: both would have had one file name.
    prototype = json.loads((project.root / "twice.json").read_text())
    for tensor in (*prototype[0]["input_desc"], *prototype[0]["output_desc"]):
        tensor.update(type=["fp16", "fp16", "fp16"], format=["ND", "NCHW", "ND"])
    (project.root / "twice.json").write_text(json.dumps(prototype))
    (spec,) = load_project(project.root).operators
    first, second = kernel_variants(spec, "dav-2201")
    assert (first.file, first.callable) == ("twice.dav-2201.float16-float16.so", True)
    assert (second.file, second.callable) == (
        "twice.dav-2201.float16-float16.NCHW-NCHW.so",
        False,
    )
