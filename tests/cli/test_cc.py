"""`opkit cc` as a user and as CMake call it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from opkit import emulator, runtime
from opkit.cli.commands.cc import command
from opkit.cli.console import run_guarded
from opkit.errors import SetupError, UsageError
from opkit.toolchain import CMAKE_DIR

HELLO = """
#include <cstdio>
#include "acl/acl.h"
#include "kernel_operator.h"

__global__ __vector__ void count(__gm__ uint8_t* out)
{
    AscendC::GlobalTensor<int32_t> result;
    result.SetGlobalBuffer((__gm__ int32_t*)out);
    result.SetValue(AscendC::GetBlockIdx(), AscendC::GetBlockIdx() + OFFSET);
}

int main()
{
    aclrtSetDevice(0);
    uint8_t* device = nullptr;
    int32_t host[2] = {0, 0};
    aclrtMalloc((void**)&device, sizeof(host), ACL_MEM_MALLOC_HUGE_FIRST);
    count<<<2, nullptr, nullptr>>>(device);
    int error = aclrtSynchronizeStream(nullptr);
    aclrtMemcpy(host, sizeof(host), device, sizeof(host), ACL_MEMCPY_DEVICE_TO_HOST);
    std::printf("%d %d %d\\n", error, host[0], host[1]);
    aclrtFree(device);
    return aclrtResetDevice(0);
}
"""
CMAKE = """
cmake_minimum_required(VERSION 3.16)
{before}
project(sample LANGUAGES ASC CXX)
{after}
add_executable(demo hello.asc helper.cpp)
target_compile_definitions(demo PRIVATE OFFSET=7)
target_compile_options(demo PRIVATE $<$<COMPILE_LANGUAGE:ASC>:--npu-arch=dav-2201>)
target_link_libraries(demo PRIVATE tiling_api register platform m dl graph_base)
"""

OPERATORS = """
cmake_minimum_required(VERSION 3.16)
project(operators)
find_package(ASC REQUIRED)
npu_op_package(mine TYPE {type} CONFIG INSTALL_PATH ${{CMAKE_BINARY_DIR}})
npu_op_code_gen(SRC op_host/scaled.cpp PACKAGE mine OUT_DIR ${{ASCEND_AUTOGEN_PATH}})
npu_op_library(cust_optiling TILING op_host/scaled.cpp)
target_include_directories(cust_optiling PRIVATE op_kernel)
npu_op_kernel_sources(kernels OP_TYPE Scaled KERNEL_FILE scaled.cpp)
npu_op_kernel_library(kernels SRC_BASE op_kernel TILING_LIBRARY cust_optiling)
npu_op_package_add(mine LIBRARY cust_optiling kernels)
"""
APP = """
cmake_minimum_required(VERSION 3.16)
project(app CXX)
find_package(mine REQUIRED)
add_executable(main main.cpp)
target_link_libraries(main PRIVATE nnopbase mine::mine)
"""
SCALED = Path(__file__).parents[1] / "toolchain" / "data" / "scaled"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    try:
        emulator.library_path()
    except SetupError:
        pytest.skip("the emulator's library is not built")
    monkeypatch.chdir(tmp_path)
    Path("hello.asc").write_text(HELLO)
    Path("helper.cpp").write_text('#include "acl/acl.h"\nint helper() { return ACL_SUCCESS; }\n')
    return tmp_path


def opkit_environment() -> dict[str, str]:
    """What makes `python -m opkit` find the opkit under test."""
    package_root = str(Path(emulator.__path__[0]).parents[1])
    return {**os.environ, "PYTHONPATH": package_root}


def test_a_program_is_built_and_runs_by_its_name(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--npu-arch=dav-2201", "--cce-x=1", "-DOFFSET=5", "hello.asc", "-o", "hello"]
    assert run_guarded(command, arguments) == 0
    assert "ignored: --cce-x=1" in capfd.readouterr().err
    done = subprocess.run(["./hello"], capture_output=True, text=True, check=True)
    assert done.stdout == "0 5 6\n"
    assert done.stderr == ""


def test_objects_and_a_shared_library_link(here: Path) -> None:
    assert run_guarded(command, ["-c", "-fPIC", "-DOFFSET=1", "hello.asc", "-o", "h.o"]) == 0
    assert run_guarded(command, ["h.o", "-o", "hello", "-lascendcl"]) == 0
    done = subprocess.run(["./hello"], capture_output=True, text=True, check=True)
    assert done.stdout == "0 1 2\n"
    assert run_guarded(command, ["-shared", "h.o", "-o", "libhello.so"]) == 0
    assert Path("libhello.so").exists()


def test_a_wrong_source_exits_1_and_shows_the_line(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_guarded(command, ["hello.asc", "-o", "hello"]) == 1
    shown = capfd.readouterr().err
    assert "hello.asc:10:" in shown
    assert "OFFSET" in shown
    assert "opkit-cc-" not in shown


@pytest.mark.parametrize(
    ("header", "instead"),
    [("mdl", "aclnn functions"), ("op", "aclnn functions")],
)
def test_what_opkit_cannot_run_is_refused_by_its_header(
    here: Path, capfd: pytest.CaptureFixture[str], header: str, instead: str
) -> None:
    Path("main.cpp").write_text(f'#include "acl/acl_{header}.h"\nint main() {{}}\n')
    assert run_guarded(command, ["main.cpp", "-o", "main"]) == 1
    shown = capfd.readouterr().err
    assert f"(acl/acl_{header}.h)" in shown
    assert instead in shown


def test_wrong_usage_exits_2(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(command, ["-c", "a.asc", "b.asc", "-o", "x.o"]) == 2
    assert "cannot hold 2 outputs" in capfd.readouterr().err


def test_help_and_the_cmake_folder_are_printed() -> None:
    runner = CliRunner()
    assert "Example: opkit cc" in runner.invoke(command, ["--help"]).output
    folder = runner.invoke(command, ["--cmake-dir"]).output.strip()
    assert (Path(folder) / "ASCConfig.cmake").is_file()
    assert f"-DCMAKE_MODULE_PATH={folder}" in runner.invoke(command, ["--cmake-args"]).output


@pytest.mark.slow
@pytest.mark.parametrize("package_first", [True, False])
def test_a_cmake_project_of_two_languages_builds_and_runs(here: Path, package_first: bool) -> None:
    cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if cmake is None or shutil.which("make") is None:
        pytest.skip("no cmake, or no make")
    find = "find_package(ASC REQUIRED)"
    before, after = (find, "") if package_first else ("", find)
    Path("CMakeLists.txt").write_text(CMAKE.format(before=before, after=after))
    printed = CliRunner().invoke(command, ["--cmake-args"]).output.split()
    environment = opkit_environment()
    for argv in ([cmake, "-B", "build", *printed], [cmake, "--build", "build"]):
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    demo = subprocess.run(["build/demo"], capture_output=True, text=True, check=True)
    assert demo.stdout == "0 7 8\n"
    _assert_clangd_understands(here / "hello.asc")
    again = subprocess.run(
        [cmake, "--build", "build"], env=environment, capture_output=True, text=True, check=True
    )
    assert "Building" not in again.stdout


def _assert_clangd_understands(source: Path) -> None:
    clangd = shutil.which("clangd", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if clangd is None:
        pytest.skip("clangd is not installed")
    done = subprocess.run(
        [clangd, f"--check={source}"],
        cwd=source.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "All checks completed, 0 errors" in done.stderr, done.stderr[-2000:]


def test_an_editor_finds_the_commands_of_each_source(here: Path) -> None:
    for flags in (["-DOFFSET=1"], ["-DOFFSET=7", "-Iinclude"]):
        argv = ["--compile-commands", *flags, "-fsyntax-only", "hello.asc"]
        assert CliRunner().invoke(command, argv).exit_code == 0
    argv = ["--compile-commands=compile_commands.json", "-fsyntax-only", "helper.cpp"]
    assert CliRunner().invoke(command, argv).exit_code == 0
    entries = json.loads(Path("compile_commands.json").read_text())
    files = [str(here / name) for name in ("hello.asc", "helper.cpp")]
    assert [entry["file"] for entry in entries] == files
    kernels, helper = (entry["arguments"] for entry in entries)
    assert {"-DOFFSET=7", "-Iinclude", "-xhip", "opkit/editor.h"} <= set(kernels)
    assert "-DOFFSET=1" not in kernels
    # What has no kernel is plain C++ to an editor.
    assert "-xhip" not in helper


def test_a_file_that_is_no_compilation_database_stays_as_it_is(here: Path) -> None:
    Path("notes.json").write_text('{"mine": 1}')
    result = CliRunner().invoke(
        command, ["--compile-commands=notes.json", "-fsyntax-only", "helper.cpp"]
    )
    assert isinstance(result.exception, UsageError)
    assert "notes.json is no compilation database" in str(result.exception)
    assert Path("notes.json").read_text() == '{"mine": 1}'


def _configure(package_type: str) -> subprocess.CompletedProcess[str]:
    cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if cmake is None or shutil.which("make") is None:
        pytest.skip("no cmake, or no make")
    shutil.copytree(SCALED, "operators")
    Path("operators/CMakeLists.txt").write_text(OPERATORS.format(type=package_type))
    printed = CliRunner().invoke(command, ["--cmake-args"]).output.split()
    argv = [cmake, "-S", "operators", "-B", "build", *printed]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_an_operator_projects_own_cmake_makes_a_package_that_installs(here: Path) -> None:
    assert _configure("RUN").returncode == 0
    build = ["make", "-C", "build", "binary", "package"]
    done = subprocess.run(
        build, env=opkit_environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (package,) = Path("build").glob("custom_opp_*.run")
    target = here / "opp"
    environment = {**os.environ, "ASCEND_OPP_PATH": str(target)}
    for _ in range(2):
        ran = subprocess.run(
            [package.absolute()], env=environment, capture_output=True, text=True, check=True
        )
        assert ran.stdout == "SUCCESS\n"
    library = runtime.open(target / "vendors" / "mine")
    x = np.arange(4, dtype=np.float32)
    (y,) = library.run("Scaled", [x], {"factor": 8, "is_negated": True})
    np.testing.assert_array_equal(y, -8 * x)
    assert (target / "vendors" / "mine" / "op_api" / "include" / "aclnn_scaled.h").is_file()


def test_a_packages_install_folder_has_what_tutorials_source(tmp_path: Path) -> None:
    # It had no bin/set_env.bash, and the next command of each tutorial sources it.
    (tmp_path / "built").mkdir()
    (tmp_path / "built" / "manifest.json").write_text("{}")
    maker = tmp_path / "maker.sh"
    maker.write_text((CMAKE_DIR / "package.sh.in").read_text().replace("@name@", "mine"))
    package = tmp_path / "mine.run"
    subprocess.run(["sh", maker, "--pack", tmp_path / "built", package], check=True)
    where = tmp_path / "my operators"
    subprocess.run([package, "--install-path=my operators"], cwd=tmp_path, check=True)
    script = 'source "$0"; echo "$ASCEND_CUSTOM_OPP_PATH $LD_LIBRARY_PATH"'
    for before, after in (("", ""), ("/one", ":/one")):
        environment = {"PATH": os.environ["PATH"]}
        if before:
            environment |= {"ASCEND_CUSTOM_OPP_PATH": before, "LD_LIBRARY_PATH": before}
        ran = subprocess.run(
            ["bash", "-c", script, where / "vendors/mine/bin/set_env.bash"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        folder = where / "vendors" / "mine"
        assert ran.stdout == f"{folder}{after} {folder}/op_api/lib{after}\n"
    assert (where / "vendors/mine/manifest.json").is_file()


@pytest.mark.slow
def test_an_operator_projects_static_library_installs_and_links(here: Path) -> None:
    assert _configure("STATIC").returncode == 0
    cmake = shutil.which("cmake") or "cmake"
    (app := here / "app").mkdir()
    (app / "CMakeLists.txt").write_text(APP)
    (app / "main.cpp").write_text(
        '#include <cstdio>\n#include "aclnn_scaled.h"\n'
        'int main() { std::printf("%d\\n", aclnnScaled(nullptr, 0, nullptr, nullptr)); }\n'
    )
    environment = {**opkit_environment(), "CMAKE_PREFIX_PATH": str(CMAKE_DIR)}
    for argv in (
        [cmake, "--build", "build"],
        [cmake, "--install", "build"],
        [cmake, "-S", "app", "-B", "app/build", f"-Dmine_DIR={here}/build/lib/cmake/mine"],
        [cmake, "--build", "app/build"],
        ["app/build/main"],
    ):
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "161001\n"
    assert (here / "build/include/op_proto.h").is_file()


def test_what_opkit_cannot_package_is_refused_when_configuring(here: Path) -> None:
    done = _configure("DEVICE")
    assert done.returncode != 0
    assert "npu_op_package(mine TYPE DEVICE)" in " ".join(done.stderr.split())


HOST_AND_KERNEL = """
#include <cstdio>
#include <cstdlib>
#include <thread>
#include "acl/acl.h"
#include "kernel_operator.h"

template <typename T>
__aicore__ inline T helper(T value)
{
#ifdef WRONG
    if (FILE* file = fopen("/tmp/x", "r")) { fclose(file); }
#endif
#ifdef ASSEMBLY
    ASSEMBLY
#endif
    return value * 2;
}

template <typename T>
__global__ __vector__ void fill(__gm__ uint8_t* out)
{
    AscendC::GlobalTensor<T> result;
    result.SetGlobalBuffer((__gm__ T*)out);
    result.SetValue(0, helper<T>(1));
    AscendC::printf("%d\\n", 1);
}

__global__ __vector__ void pick(__gm__ uint8_t* out)
{
    AscendC::GlobalTensor<float> result;
    result.SetGlobalBuffer((__gm__ float*)out);
    // The tables of all functions' jumps lie in one section, those of host code too.
    switch (AscendC::GetBlockIdx()) {
        case 0: result.SetValue(1, 5); break;
        case 1: AscendC::PipeBarrier<PIPE_ALL>(); break;
        case 2: AscendC::printf("2"); break;
        case 3: result.SetValue(9, 2); break;
        case 4: AscendC::SyncAll(); break;
        case 5: AscendC::printf("%d", 5); break;
    }
}

void tell(int kind)
{
    switch (kind) {
        case 0: std::system("a"); break;
        case 1: std::remove("b"); break;
        case 2: std::getenv("c"); break;
        case 3: std::tmpfile(); break;
        case 4: std::perror("d"); break;
        case 5: std::rewind(stdin); break;
    }
}

int main(int count, char**)
{
    if (FILE* file = fopen("/tmp/x", "r")) { fclose(file); }
    tell(count);
    asm volatile("nop");
    std::thread([] { std::system("true"); }).join();
    fill<float><<<1, nullptr, nullptr>>>(nullptr);
    pick<<<1, nullptr, nullptr>>>(nullptr);
    return 0;
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2", "-flto"])
def test_a_kernel_may_not_ask_this_machine_what_the_host_code_beside_it_may(
    level: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # Builds of operators refused it, programs ran it: a file of both was never looked at.
    source = tmp_path / "both.asc"
    source.write_text(HOST_AND_KERNEL)
    words = [str(source), level, "-c", "-o", str(tmp_path / "both.o")]
    assert run_guarded(command, words) == 0, capfd.readouterr().err
    assert run_guarded(command, [*words, "-DWRONG"]) == 1
    error = capfd.readouterr().err
    assert 'a kernel calls "fopen", a function of this machine' in error
    assert "both.asc:12" in error
    assert not (tmp_path / "both.o").exists()


def test_a_kernel_of_a_program_may_have_no_assembly_either(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "both.asc"
    text = HOST_AND_KERNEL.replace("#ifdef ASSEMBLY\n    ASSEMBLY\n#endif", 'asm("nop");')
    source.write_text(text)
    assert run_guarded(command, [str(source), "-c", "-o", str(tmp_path / "both.o")]) == 1
    error = capfd.readouterr().err
    assert "assembly for this machine" in error
    assert "both.asc:14" in error
