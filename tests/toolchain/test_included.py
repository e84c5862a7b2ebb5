"""What sources include, read as text."""

from __future__ import annotations

from pathlib import Path

from opkit.toolchain.source.included import folders_of, structs_in

KERNEL = '#include "../near/tiling.h"\n#include <far.h>\n#include "kernel_operator.h"\n'


def test_a_kernel_that_names_its_own_struct_has_it_from_its_headers(tmp_path: Path) -> None:
    (tmp_path / "near").mkdir()
    (tmp_path / "op_kernel").mkdir()
    (tmp_path / "near/tiling.h").write_text("struct Part {\n};\nstruct Tiling : Base {\n};\n")
    (tmp_path / "far.h").write_text("class Loop {\n};\nstruct Declared;\n")
    source = tmp_path / "op_kernel/sum.cpp"
    source.write_text(f"{KERNEL}void sum() {{ REGISTER_TILING_DEFAULT(Tiling); }}\n")
    folders = folders_of(["-DA=1", "-I", str(tmp_path), "-I", "/nowhere"])
    assert structs_in(source, folders) == {"Part", "Tiling", "Loop"}
    source.write_text(f"{KERNEL}void sum() {{ GET_TILING_DATA(data, tiling); }}\n")
    assert structs_in(source, folders) == frozenset()


def test_the_tiling_data_of_the_cpu_twin_is_not_the_kernels_own(tmp_path: Path) -> None:
    # A struct for unit tests alone made the build leave out the one that its host code defines.
    source = tmp_path / "sum.cpp"
    text = """
#ifdef __CCE_KT_TEST__
#ifndef GUARD
struct Tiling {
};
#endif
#else
struct Device {
};
#endif
#if !defined(__CCE_KT_TEST__) // launched
struct Also {
};
#else
struct Twin {
};
#endif
void sum() { GET_TILING_DATA_WITH_STRUCT(NAMED, data, tiling); }
"""
    source.write_text(text.replace("NAMED", "Device"))
    assert structs_in(source, ()) == {"Device", "Also"}
    source.write_text(text.replace("NAMED", "Tiling"))
    assert structs_in(source, ()) == frozenset()
    # One that launches itself is compiled as for the twin.
    source.write_text(text.replace("NAMED", "Tiling") + "void run() { sum<<<1, 0, 0>>>(); }\n")
    assert "Tiling" in structs_in(source, ())


def test_a_struct_with_attributes_is_defined(tmp_path: Path) -> None:
    # The definition was not seen, and a second one was put in front of it.
    kernel = tmp_path / "k.cpp"
    kernel.write_text(
        "struct alignas(8) A { unsigned n; };\n"
        "struct __attribute__((aligned(8))) B { unsigned n; };\n"
        "class [[maybe_unused]] alignas(sizeof(int)) C final : public A {};\n"
        "REGISTER_TILING_DEFAULT(A);\n"
    )
    assert structs_in(kernel, ()) == {"A", "B", "C"}
