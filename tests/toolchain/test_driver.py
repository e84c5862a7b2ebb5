"""The driver's command line, and what it runs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from opkit import emulator
from opkit.errors import BuildError, SetupError, UsageError
from opkit.toolchain import Compiler, Toolkit, parse_driver_arguments, run_driver
from opkit.toolchain.driver import chip_of_arch


@pytest.fixture
def toolkit() -> Toolkit:
    """Headers alone: what compiles needs no library."""
    return Toolkit(include_dir=emulator.include_dir(), library=None)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_usual_command_line_is_understood() -> None:
    words = "--npu-arch=dav-2201 -Iinc -I ../x -DN=3 -D M -O3 -g a.asc lib.o -o demo -lm -L/l"
    request = parse_driver_arguments(words.split())
    assert request.npu_arch == "dav-2201"
    assert request.output == Path("demo")
    assert request.mode == "link"
    assert [(str(item.path), item.language) for item in request.inputs] == [
        ("a.asc", "asc"),
        ("lib.o", None),
    ]
    assert request.include_dirs == (Path("inc"), Path("../x"))
    assert request.compile_flags == ("-Iinc", "-I../x", "-DN=3", "-DM", "-O3", "-g")
    assert request.link_parts == (*request.inputs, "-lm", "-L/l")


def test_the_forced_language_holds_for_what_follows() -> None:
    words = ["a.cpp", "-x", "asc", "b.cpp", "-x", "none", "c.cpp", "d.o"]
    languages = [item.language for item in parse_driver_arguments(words).inputs]
    assert languages == ["c++", "asc", "c++", None]


def test_vendor_flags_are_collected_with_their_values() -> None:
    words = ["-c", "--cce-aicore-lang", "-mllvm", "-cce-x", "--cce-aicore-lang", "a.asc"]
    request = parse_driver_arguments(words)
    assert request.ignored == ("--cce-aicore-lang", "-mllvm -cce-x")
    assert request.compile_flags == ()


def test_kernels_compiled_without_automatic_synchronisation_are_known_as_such() -> None:
    # The option was ignored, and "opkit check" took the compiler's flags as there.
    words = ["-c", "--cce-auto-sync=on", "--cce-auto-sync=off", "a.asc"]
    assert parse_driver_arguments(words).compile_flags == ("-DOPKIT_NO_AUTO_SYNC",)
    assert parse_driver_arguments(words).ignored == ()
    assert parse_driver_arguments(["-c", *reversed(words[1:3]), "a.asc"]).compile_flags == ()


def test_libraries_that_the_emulator_covers_are_dropped() -> None:
    request = parse_driver_arguments(["a.asc", "-ltiling_api", "-l", "register", "-ldl", "-lmine"])
    assert request.link_parts[1:] == ("-ldl", "-lmine")


def test_torch_npus_library_brings_pytorchs_python_part(tmp_path: Path) -> None:
    libtorch = tmp_path / "libtorch.so"
    words = ["a.asc", "-shared", str(libtorch), "-ltorch_npu"]
    assert parse_driver_arguments(words).link_parts[2:] == ()
    (tmp_path / "libtorch_python.so").touch()
    assert parse_driver_arguments(words).link_parts[2:] == (str(tmp_path / "libtorch_python.so"),)


def test_an_old_standard_is_raised_with_a_note() -> None:
    request = parse_driver_arguments(["a.asc", "-std=gnu++11"])
    assert request.standard == "-std=gnu++17"
    assert "-std=gnu++11" in request.notes[0]
    assert parse_driver_arguments(["a.asc", "-std=c++20"]).standard == "-std=c++20"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to compile"),
        (["-c", "a.asc", "b.asc", "-o", "x.o"], "cannot hold 2 outputs"),
        (["a.asc", "-o"], "-o wants a value"),
        (["-c", "a.o"], "nothing to compile"),
        (["-x", "rust", "a.rs"], "does not know this language"),
    ],
)
def test_a_wrong_command_line_is_refused(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_driver_arguments(words)


def test_an_architecture_that_is_not_emulated_is_refused() -> None:
    assert chip_of_arch("dav-2201").name == "Ascend910B2"
    assert chip_of_arch("dav-2002").npu_arch == "dav-2002"
    with pytest.raises(UsageError, match="dav-3510") as caught:
        chip_of_arch("dav-3510")
    assert "dav-2201" in str(caught.value)


def compile_only(source: Path, toolkit: Toolkit, *flags: str) -> str:
    request = parse_driver_arguments(["-c", str(source), "-o", "out.o", *flags])
    run_driver(request, toolkit=toolkit)
    return Path("out.o").name


LAUNCH = '#include "opkit/launch_entry.h"\n__global__ __vector__ void k(uint8_t* x, int n) {{}}\n{}'


@pytest.mark.parametrize("configuration", ["2", "2, 0", "2, nullptr, s", "n, 64u, s"])
def test_a_launch_may_leave_out_its_stream(
    here: Path, toolkit: Toolkit, configuration: str
) -> None:
    launch = f"k<<<{configuration}>>>(nullptr, 1);"
    Path("a.asc").write_text(LAUNCH.format(f"void f(void* s, const uint32_t& n) {{ {launch} }}"))
    assert compile_only(Path("a.asc"), toolkit, "-Wall", "-Werror", "-Wno-unused-parameter")


def test_separate_compilation_of_device_code_is_plain_compilation() -> None:
    assert parse_driver_arguments(["-dc", "a.asc"]).mode == "-c"


def test_a_flag_that_the_compiler_refuses_is_named(here: Path, toolkit: Toolkit) -> None:
    Path("a.asc").write_text("int x;\n")
    with pytest.raises(BuildError) as caught:
        compile_only(Path("a.asc"), toolkit, "--no-such-flag")
    assert "no-such-flag" in caught.value.diagnostics[0].message
    assert caught.value.diagnostics[0].file == here / "a.asc"


def test_a_launch_compiles(here: Path, toolkit: Toolkit) -> None:
    Path("a.asc").write_text(LAUNCH.format("void f(void* s, uint8_t* x) { k<<<2, 0, s>>>(x, 1); }"))
    assert compile_only(Path("a.asc"), toolkit)
    assert Path("out.o").stat().st_size > 0


def test_an_error_points_at_the_users_line_and_column(here: Path, toolkit: Toolkit) -> None:
    line = "void f(void* s) { k<<<2, 0, s>>>(missing, 1); }"
    Path("a.asc").write_text(LAUNCH.format(line))
    with pytest.raises(BuildError) as caught:
        compile_only(Path("a.asc"), toolkit)
    (error,) = [item for item in caught.value.diagnostics if item.severity == "error"]
    assert (error.file, error.line, error.source_line) == (here / "a.asc", 3, line)
    assert error.column == line.index("missing") + 1
    assert "missing" in error.message


def test_a_wrong_argument_of_a_launch_is_an_error_on_its_line(here: Path, toolkit: Toolkit) -> None:
    Path("a.asc").write_text(LAUNCH.format("void f(void* s) {\n  k<<<2, 0, s>>>(1.5, 1);\n}"))
    with pytest.raises(BuildError) as caught:
        compile_only(Path("a.asc"), toolkit)
    errors = [item for item in caught.value.diagnostics if item.severity == "error"]
    assert [(item.file.name, item.line) for item in errors] == [("a.asc", 4)]


def test_an_error_in_a_rewritten_header_points_at_the_header(here: Path, toolkit: Toolkit) -> None:
    Path("run.h").write_text(LAUNCH.format("inline void f(void* s) { k<<<2, 0, s>>>(nope, 1); }"))
    Path("a.asc").write_text('#include "run.h"\n')
    with pytest.raises(BuildError) as caught:
        compile_only(Path("a.asc"), toolkit)
    (error,) = [item for item in caught.value.diagnostics if item.severity == "error"]
    assert (error.file, error.line) == (here / "run.h", 3)


def test_a_depfile_names_the_users_files(here: Path, toolkit: Toolkit) -> None:
    Path("run.h").write_text(
        LAUNCH.format("inline void f(void* s) { k<<<2, 0, s>>>(nullptr, 1); }")
    )
    Path("plain.h").write_text("#pragma once\n")
    Path("a.asc").write_text('#include "run.h"\n#include "plain.h"\n')
    compile_only(Path("a.asc"), toolkit, "-MD", "-MT", "a.o", "-MF", "a.d")
    text = Path("a.d").read_text().replace("\\\n", " ")
    target, _, names = text.partition(":")
    assert target == "a.o"
    found = {str((here / name).resolve()) for name in names.split()}
    assert {str(here / name) for name in ("a.asc", "run.h", "plain.h")} <= found
    assert "opkit-cc-" not in text


def test_the_preprocessed_text_comes_back(here: Path, toolkit: Toolkit) -> None:
    Path("a.asc").write_text("#define N 41\nint answer = N + 1;\n")
    result = run_driver(parse_driver_arguments(["-E", "a.asc"]), toolkit=toolkit)
    assert "int answer = 41 + 1;" in result.output


@pytest.mark.parametrize("mode", ["-E", "-M", "-MM", "-fsyntax-only"])
def test_what_comes_back_as_text_names_the_users_files(
    here: Path, toolkit: Toolkit, mode: str
) -> None:
    Path("a.asc").write_text(LAUNCH.format("void f(void* s) { k<<<2, 0, s>>>(nullptr, 1); }"))
    result = run_driver(parse_driver_arguments([mode, "a.asc"]), toolkit=toolkit)
    assert ("a.asc" in result.output) == (mode != "-fsyntax-only")
    assert "opkit-cc-" not in result.output
    assert [path.name for path in here.iterdir()] == ["a.asc"]


def test_a_warning_is_returned_and_no_error(here: Path, toolkit: Toolkit) -> None:
    Path("a.asc").write_text("int f() { int unused = 3; return 1; }\n")
    request = parse_driver_arguments(["-c", "-Wall", "a.asc"])
    result = run_driver(request, toolkit=toolkit)
    assert [(item.severity, item.line) for item in result.diagnostics] == [("warning", 1)]
    assert Path("a.o").exists()


def test_a_source_that_is_not_there_is_wrong_usage(here: Path, toolkit: Toolkit) -> None:
    with pytest.raises(UsageError, match=r"gone\.asc"):
        run_driver(parse_driver_arguments(["-c", "gone.asc"]), toolkit=toolkit)


def test_a_symbol_that_nobody_defines_fails_by_its_name(here: Path, toolkit: Toolkit) -> None:
    Path("a.asc").write_text("void nowhere_at_all();\nint main() { nowhere_at_all(); }\n")
    try:
        library = emulator.library_path()
    except SetupError:
        pytest.skip("the emulator's library is not built")
    whole = Toolkit(include_dir=toolkit.include_dir, library=library)
    with pytest.raises(BuildError) as caught:
        run_driver(parse_driver_arguments(["a.asc", "-o", "a"]), toolkit=whole)
    assert any("nowhere_at_all" in item.message for item in caught.value.diagnostics)


def test_a_debugger_sees_the_users_lines(here: Path, toolkit: Toolkit) -> None:
    Path("a.asc").write_text(LAUNCH.format("void f(void* s) {\n  k<<<2, 0, s>>>(nullptr, 1);\n}"))
    compile_only(Path("a.asc"), toolkit, "-S", "-g")
    names = subprocess.run(["grep", "-a", "-c", "a.asc", "out.o"], capture_output=True, check=True)
    assert int(names.stdout) > 0
    assert b"opkit-cc-" not in Path("out.o").read_bytes()


PUBLIC_FORMS = {
    "a call that only its arguments lead to": """
extern "C" __global__ __aicore__ void k(GM_ADDR x) {
  AscendC::TBuf<AscendC::QuePosition::VECCALC> b;
  AscendC::LocalTensor<float> t = b.Get<float>();
  ReduceSum<float>(t, t, t, 64);
}
""",
    "a tensor that is placed by hand": """
__global__ __vector__ void k(GM_ADDR x) {
  AscendC::LocalTensor<uint8_t> ub;
  ub.InitBuffer(0, 1024);
  ub.address_.logicPos = static_cast<uint8_t>(AscendC::TPosition::VECIN);
  static_assert(pad_t::PAD_NONE == AscendC::pad_t::PAD_NONE);
}
""",
    "a setter that a branch never reaches": """
#include "lib/matmul_intf.h"
constexpr MatmulConfig without_bias() {
  auto config = CFG_MDL;
  config.enableSetBias = config.enableSetTail = config.enableSetOrgShape = false;
  return config;
}
constexpr static MatmulConfig kConfig = without_bias();
using A = AscendC::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, half>;
using C = AscendC::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, float>;
template <bool has_bias> __aicore__ inline void run(GM_ADDR bias) {
  AscendC::Matmul<A, A, C, C, kConfig> mm;
  AscendC::GlobalTensor<float> tensor;
  if (has_bias) mm.SetBias(tensor);
  if (has_bias) mm.SetTail(16);
  if (has_bias) mm.SetOrgShape(16, 16, 16);
}
__global__ __mix__(1, 2) void k(GM_ADDR bias) { run<false>(bias); }
""",
}


@pytest.mark.parametrize("form", PUBLIC_FORMS)
def test_what_public_kernels_write_compiles(here: Path, toolkit: Toolkit, form: str) -> None:
    # Each was an error here, and is none with the vendor's compiler.
    Path("k.asc").write_text(f'#include "kernel_operator.h"\n{PUBLIC_FORMS[form]}')
    run_driver(parse_driver_arguments(["-c", "k.asc", "-o", "k.o"]), toolkit=toolkit)
    assert Path("k.o").is_file()


ADD_ONE = """
#include "kernel_operator.h"
#ifdef FIX
constexpr float kStep = FIX;
#else
constexpr float kStep = 2;
#endif
extern "C" __global__ __aicore__ void add_one(GM_ADDR x) {
  AscendC::LocalTensor<float> t(AscendC::TPosition::VECCALC, 0, 64);
  AscendC::Adds(t, t, kStep + S, 64);
}
int main() { add_one<<<1, nullptr, nullptr>>>(nullptr); }
"""


def test_macros_that_are_words_of_the_headers_hold_for_the_source_alone(
    here: Path, toolkit: Toolkit
) -> None:
    (here / "a.asc").write_text(ADD_ONE)
    words = ["-E", "-DFIX", "-DS=4", "a.asc", "-o", "a.i"]
    run_driver(parse_driver_arguments(words), toolkit=toolkit)
    text = (here / "a.i").read_text()
    assert "constexpr float kStep = 1;" in text and "kStep + 4" in text
    pipes = re.search(r"enum class Pipe : uint8_t \{([^}]*)\}", text)
    assert pipes is not None and {"S,", "FIX,"} <= set(pipes[1].split())


# Of an object of clang's that a linker compiles nobody saw what its kernels call.
@pytest.mark.parametrize(("family", "flag"), [("gcc", "-ffat-lto-objects"), ("clang", "-fno-lto")])
def test_objects_with_kernels_hold_their_code_whatever_the_linker_does(
    here: Path, toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch, family: str, flag: str
) -> None:
    compiler = Compiler(argv=("false",), family=family, version="16.0.0", identity="c")
    monkeypatch.setattr("opkit.toolchain.driver.find_compiler", lambda: compiler)
    (here / "k.asc").write_text(LAUNCH.format(""))
    (here / "host.cpp").write_text("int main() { return 0; }\n")
    told: list[list[str]] = []
    for name in ("k.asc", "host.cpp"):
        request = parse_driver_arguments(["-c", name, "-o", "out.o", "-flto=auto"])
        with pytest.raises(BuildError):
            run_driver(request, toolkit=toolkit, verbose=lambda argv: told.append(list(argv)))
    kernels, host = told
    assert kernels.index("-flto=auto") < kernels.index(flag)
    assert flag not in host


def test_a_static_library_holds_the_objects(here: Path, toolkit: Toolkit) -> None:
    (here / "a.asc").write_text(ADD_ONE)
    (here / "b.cpp").write_text("int b() { return 1; }\n")
    words = ["-lib", "-DS=4", "a.asc", "b.cpp", "-o", "libab.a"]
    run_driver(parse_driver_arguments(words), toolkit=toolkit)
    listed = subprocess.run(["ar", "t", "libab.a"], capture_output=True, text=True, check=True)
    assert listed.stdout.split() == ["a.o", "b.o"]
    with pytest.raises(UsageError, match="whose name -o gives"):
        parse_driver_arguments(["-lib", "a.asc"])


def test_a_shared_library_is_asked_for_by_one_dash_or_two() -> None:
    assert parse_driver_arguments(["--shared", "a.asc"]).is_shared
    assert parse_driver_arguments(["-shared", "a.asc"]).is_shared
