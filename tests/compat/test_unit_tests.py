"""Kernel unit tests of a library: found, built with what runs kernels as functions, judged."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from opkit.cli.commands.compat import command
from opkit.compat import Verdict, find_unit_tests, needs_googletest, try_unit_test
from opkit.compat.unit_tests import said_variant
from opkit.errors import UsageError

LIBRARY = Path(__file__).parents[1] / "toolchain" / "data" / "library"


def command_of(root: Path, place: Path) -> list[str]:
    """Return the command that would compile the one unit test of a library, in a folder that is
    made for it."""
    (test,) = find_unit_tests(root)
    place.mkdir()
    commands: list[list[str]] = []
    try_unit_test(
        test,
        place,
        compiler=("false",),
        environment={},
        seconds=60,
        show=lambda argv: commands.append([*argv]),
    )
    (argv,) = commands
    return argv


def test_cmake_says_the_chips_and_the_macros() -> None:
    (test,) = find_unit_tests(LIBRARY)
    assert (test.name, test.operator) == ("math/shift", "shift")
    assert test.chips == ("ascend910B1", "ascend310p")
    assert test.options == ("-DDTYPE_X=float", "-DMOST=100")
    assert [path.name for path in test.sources] == ["test_shift.cpp"]
    assert test.is_named and not needs_googletest(test)


def test_macros_may_name_the_folder_of_the_tests(tmp_path: Path) -> None:
    # Scripts were started in a folder that is called as the variable.
    root = tmp_path / "library"
    shutil.copytree(LIBRARY, root)
    folder = root / "math/shift/tests/ut/op_kernel"
    cmake = folder / "CMakeLists.txt"
    text = cmake.read_text()
    assert "-DMOST=100" in text
    cmake.write_text(text.replace("-DMOST=100", "-DDATA=${CMAKE_CURRENT_SOURCE_DIR}/data"))
    (test,) = find_unit_tests(root)
    assert test.options == ("-DDTYPE_X=float", f"-DDATA={folder}/data")


def test_a_test_without_macros_is_built_for_the_types_of_its_first_tiling_context() -> None:
    # The OpDef's first were taken: a kernel of floats read behind the test's halves.
    variants = [["DT_FLOAT", "DT_FLOAT"], ["DT_FLOAT16", "DT_FLOAT"], ["DT_FLOAT16", "DT_FLOAT16"]]
    half = "para({{shape, ge::DT_FLOAT16, nd}}, {{shape, ge::DT_FLOAT16, nd}}); ge::DT_FLOAT"
    assert said_variant(half, variants) == 2
    assert said_variant("ge::DT_FLOAT16, ge::DT_FLOAT", variants) == 1
    assert said_variant("ge::DT_INT32, ge::DT_FLOAT", variants) == 0
    assert said_variant("", variants) == 0


def test_a_case_by_keywords_says_its_sources_too(tmp_path: Path) -> None:
    # A file beside the tests that makes functions of a kernel's template was not compiled.
    root = tmp_path / "library"
    shutil.copytree(LIBRARY, root)
    folder = root / "math/shift/tests/ut/op_kernel"
    for name in ("shift_instances.cpp", "test_shift_left.cpp"):
        (folder / name).write_text("")
    cmake = folder / "CMakeLists.txt"
    text = """AddOpsTestCase(
        OP_NAME shift SOC_VERSION %s OTHER_COMPILE_OPTIONS "-DA=1 -DB" TILING_SRC_FILES ${others}
        UT_SRC_FILES ${CMAKE_CURRENT_SOURCE_DIR}/test_shift.cpp
            ${CMAKE_CURRENT_SOURCE_DIR}/shift_instances.cpp)"""
    cmake.write_text(text % '"ascend910b;ascend310p"')
    (test,) = find_unit_tests(root)
    assert (test.operator, test.chips, test.options) == (
        "shift",
        ("ascend910b", "ascend310p"),
        ("-DA=1", "-DB"),
    )
    assert [path.name for path in test.sources] == ["test_shift.cpp", "shift_instances.cpp"]
    cmake.write_text(text % "${ASCEND_COMPUTE_UNIT}")
    (test,) = find_unit_tests(root)
    assert test.chips == () and not test.is_named


def test_googletest_is_found_behind_a_header_of_the_tests(tmp_path: Path) -> None:
    # Programs of such tests were not linked with it.
    root = tmp_path / "library"
    shutil.copytree(LIBRARY, root)
    folder = root / "math/shift/tests/ut/op_kernel"
    (folder / "base.h").write_text('#include "gtest/gtest.h"\n')
    (folder / "test_shift.cpp").write_text('#include "base.h"\n')
    (test,) = find_unit_tests(root)
    assert needs_googletest(test)


def test_a_folder_of_no_library_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not of a library"):
        find_unit_tests(tmp_path)


def test_tests_of_an_operator_for_another_chip_are_not_built(tmp_path: Path) -> None:
    root = tmp_path / "library"
    shutil.copytree(LIBRARY, root)
    (root / "math/shift/tests/ut/op_kernel/CMakeLists.txt").unlink()
    definition = root / "math/shift/op_host/shift_def.cpp"
    definition.write_text(definition.read_text().replace("ascend910b", "ascend950"))
    (test,) = find_unit_tests(root)
    place = tmp_path / "place"
    outcome = try_unit_test(test, place, compiler=("false",), environment={}, seconds=5)
    assert outcome.verdict is Verdict.CHIP and "does not name ascend910b" in outcome.cause


def test_tests_that_include_what_is_for_a_later_architecture_are_not_built(tmp_path: Path) -> None:
    # Where no CMakeLists.txt named a chip they were told as tests that do not build.
    root = Path(shutil.copytree(LIBRARY, tmp_path / "library"))
    folder = root / "math/shift/tests/ut/op_kernel"
    (root / "math/shift/op_kernel/arch35").mkdir()
    (root / "math/shift/op_kernel/arch35/tiling.h").write_text("")
    (folder / "test_shift.cpp").write_text('#include "../../../op_kernel/arch35/tiling.h"\n')
    (folder / "CMakeLists.txt").unlink()
    (test,) = find_unit_tests(root)
    outcome = try_unit_test(test, tmp_path, compiler=("false",), environment={}, seconds=60)
    assert (outcome.verdict, outcome.cause) == (Verdict.CHIP, "includes arch35/tiling.h")


def test_a_tiling_header_and_scripts_are_where_the_librarys_own_build_puts_them(
    tmp_path: Path,
) -> None:
    # A header without _def in its name was not read, and scripts that CMake copies were not found.
    root = tmp_path / "library"
    shutil.copytree(LIBRARY, root)
    folder = root / "math/shift/tests/ut/op_kernel"
    own = folder / "shift_tiling.h"
    own.write_text("#pragma once\n")
    (folder / "scripts").mkdir()
    for name in ("gen_data.py", "left.py"):
        (folder / "scripts" / name).write_text("")
    with (folder / "CMakeLists.txt").open("a") as cmake:
        cmake.write(
            "add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/tests/ut/op_kernel/gen_data.py "
            "COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_CURRENT_SOURCE_DIR}/scripts/gen_data.py "
            "${CMAKE_BINARY_DIR}/tests/ut/op_kernel)\n"
        )
    place = tmp_path / "place"
    argv = command_of(root, place)
    # A header of structs may leave <cstdint> to the library's own build.
    first = [argv[place + 1] for place, word in enumerate(argv) if word == "-include"]
    assert first == ["cstdint", str(own)]
    assert [path.name for path in (place / "build/tests/ut/op_kernel").iterdir()] == ["gen_data.py"]


@pytest.mark.slow
def test_a_kernel_that_the_tests_include_comes_once(tmp_path: Path) -> None:
    # One that defines what reads tiling data was taken for the header that comes first.
    root = tmp_path / "library"
    shutil.copytree(LIBRARY, root)
    source = root / "math/shift/tests/ut/op_kernel/test_shift.cpp"
    source.write_text('#include "../../../op_kernel/shift.cpp"\n' + source.read_text())
    kernel = root / "math/shift/op_kernel/shift.cpp"
    kernel.write_text("struct ShiftTilingData {};\n" + kernel.read_text())
    argv = command_of(root, tmp_path / "place")
    first = [argv[place + 1] for place, word in enumerate(argv) if word == "-include"]
    assert first[0] == "cstdint" and not any(name.endswith(".cpp") for name in first)


def test_a_kernel_that_the_tests_do_not_name_is_not_compiled(tmp_path: Path) -> None:
    # Kernels of the tests' own around its headers need no macros of its types: it did not compile.
    root = tmp_path / "library"
    shutil.copytree(LIBRARY, root)
    source = root / "math/shift/tests/ut/op_kernel/test_shift.cpp"
    assert any(word.endswith("shift_kernel.cpp") for word in command_of(root, tmp_path / "before"))
    text = source.read_text()
    declared, called = "void shift(", "ICPU_RUN_KF(shift,"
    assert declared in text and called in text
    text = text.replace(declared, "void own_shift(").replace(called, "ICPU_RUN_KF(own_shift,")
    source.write_text(f'{text}// shift("shift")\n')
    argv = command_of(root, tmp_path / "after")
    assert any(word.endswith("test_shift.cpp") for word in argv)
    assert not any(word.endswith("shift_kernel.cpp") for word in argv)


@pytest.mark.slow
def test_they_run_where_their_paths_lead_to_the_library_and_are_judged(tmp_path: Path) -> None:
    root = tmp_path / "library"
    shutil.copytree(LIBRARY, root)
    source = root / "math/shift/tests/ut/op_kernel/test_shift.cpp"

    def run(*more: str) -> tuple[int, dict[str, object]]:
        done = CliRunner().invoke(command, [str(root), "--unit-tests", "--json", *more])
        (row,) = json.loads(done.stdout)["unit_tests"]
        return done.exit_code, row

    code, row = run("--check", "-k", "shift")
    assert (code, row["verdict"], row["tests"], row["compared"]) == (0, "pass", 1, 1), row
    assert row["findings"] == []
    text = source.read_text()
    # What compares nothing was a pass.
    said = re.findall(r"^.*compare result.*$", text, re.MULTILINE)
    assert said
    silent = text
    for line in said:
        silent = silent.replace(line, line.replace("compare result", "compared"))
    source.write_text(silent)
    done = CliRunner().invoke(command, [str(root), "--unit-tests"])
    assert "; of 0 that compare results, 0 pass; 1 compare none, and only ran" in done.stdout
    code, row = run()
    assert (code, row["verdict"], row["compared"]) == (0, "ran", 0)
    source.write_text(text.replace("{MOST, MOST, 3}", "{MOST, MOST, 4}"))
    code, row = run()
    assert (code, row["verdict"], row["cause"]) == (1, "wrong result", "shift.one")
    source.write_text(text.replace("{MOST, MOST, 3}", "{4 * MOST, 4 * MOST, 3}"))
    code, row = run()
    assert (code, row["verdict"]) == (1, "fault")
    assert "MEM-BOUNDS" in str(row["cause"])
    # A test that does not look at its script's exit code passed without data.
    begin = "int main() {"
    assert begin in text
    call = f'#include <cstdlib>\n{begin}\n  std::system("python3 nowhere.py 2>&1");'
    source.write_text(text.replace(begin, call))
    code, row = run()
    assert (code, row["verdict"]) == (1, "unverified") and "nowhere.py" in str(row["cause"])
    # A file without a test passed.
    source.write_text('#include <cstdio>\nint main() { std::puts("[  PASSED  ] 0 tests."); }\n')
    code, row = run()
    assert (code, row["verdict"], row["cause"]) == (1, "unverified", "runs no test")


TEMPLATE = """
#include "ascendc/host_api/tiling/template_argument.h"
ASCENDC_TPL_ARGS_DECL(Shift, ASCENDC_TPL_UINT_DECL(doubled, 1, ASCENDC_TPL_UI_LIST, 0, 1));
ASCENDC_TPL_SEL(ASCENDC_TPL_ARGS_SEL(ASCENDC_TPL_UINT_SEL(doubled, ASCENDC_TPL_UI_LIST, 0, 1)));
template <uint32_t doubled>
__global__ __aicore__ void shift("""


@pytest.mark.slow
def test_a_kernel_template_that_the_tests_declare_as_a_function_is_chosen_by_the_tiling_key(
    tmp_path: Path,
) -> None:
    # It did not link: "shift is declared but nowhere defined".
    root = tmp_path / "library"
    shutil.copytree(LIBRARY, root)
    kernel = root / "math/shift/op_kernel/shift.cpp"
    text = kernel.read_text()
    entry, by = 'extern "C" __global__ __aicore__ void shift(', "(data.by)"
    assert entry in text and by in text
    text = text.replace(entry, TEMPLATE).replace(by, "(doubled ? data.by + data.by : data.by)")
    kernel.write_text(text.partition("#ifndef __CCE_KT_TEST__")[0])
    source = root / "math/shift/tests/ut/op_kernel/test_shift.cpp"
    test = source.read_text()
    call, shifted = "ICPU_RUN_KF(", "counted(x, y, MOST, 3)"
    assert call in test and shifted in test

    def run(key: int, by: int) -> dict[str, object]:
        chosen = test.replace(call, f"ICPU_SET_TILING_KEY({key});\n  {call}")
        source.write_text(chosen.replace(shifted, f"counted(x, y, MOST, {by})"))
        done = CliRunner().invoke(command, [str(root), "--unit-tests", "--json"])
        (row,) = json.loads(done.stdout)["unit_tests"]
        return dict(row)

    for key, by in ((0, 3), (1, 6)):
        row = run(key, by)
        assert (row["verdict"], row["tests"], row["compared"]) == ("pass", 1, 1), row
    row = run(2, 3)
    assert row["verdict"] == "fault"
    assert "shift: no instance of the kernel has the tiling key that is set" in str(row["cause"])


TILED_H = """
#pragma once
#include "op_tiling_context_builder.h"
gert::TilingContext* tiled(int64_t count, int64_t by);
"""

TILED = """
#include "tiled.h"
#include "base/registry/op_impl_space_registry_v2.h"

#define TEXT_INNER(x) #x
#define TEXT(x) TEXT_INNER(x)

struct CompileInfo {
  uint64_t ub_size;
  std::string version;
};

gert::TilingContext* tiled(int64_t count, int64_t by) {
  static CompileInfo info = {196352, "Ascend910B2"};
  static fe::PlatFormInfos platform;
  static auto data = gert::TilingData::CreateCap(4096);
  static auto sizes = gert::ContinuousVector::Create<size_t>(4);
  static gert::ContextHolder<gert::TilingContext> holder;
  platform.Init();
  platform.SetPlatformRes("SoCInfo", {{"ai_core_cnt", "4"}, {"core_type_list", "AICore"}});
  if (std::string(TEXT(BUILD_SOC_VERSION)) != "ascend910b") return nullptr;
  const gert::StorageFormat nd(ge::FORMAT_ND, ge::FORMAT_ND);
  gert::Tensor x({{count}, {count}}, nd, gert::kOnHost, ge::DT_FLOAT);
  gert::OpTilingContextBuilder builder;
  builder.OpType("Shift").OpName("Shift").IOInstanceNum({1, 0}, {1}).AppendAttr(by);
  builder.InputTensors({&x}).OutputTensors({&x}).CompileInfo(&info).PlatformInfo(&platform);
  builder.TilingData(reinterpret_cast<gert::TilingData*>(data.get()));
  builder.Workspace(reinterpret_cast<gert::ContinuousVector*>(sizes.get()));
  holder = builder.Build();
  const auto registry = gert::DefaultOpImplSpaceRegistryV2::GetInstance().GetSpaceRegistry();
  const auto* functions = registry->GetOpImpl("Shift");
  if (functions == nullptr) return nullptr;
  auto* context = holder.GetContext();
  return functions->tiling(context) == ge::GRAPH_SUCCESS ? context : nullptr;
}
"""


@pytest.mark.slow
def test_a_test_may_run_the_operators_tiling_function(tmp_path: Path) -> None:
    root = tmp_path / "library"
    shutil.copytree(LIBRARY, root)
    common = root / "tests/ut/common"
    common.mkdir()
    (common / "tiled.h").write_text(TILED_H)
    (common / "tiled.cpp").write_text(TILED)
    (common / "left.cpp").write_text("#error nothing includes left.h\n")
    source = root / "math/shift/tests/ut/op_kernel/test_shift.cpp"
    text = source.read_text().replace('"data_utils.h"', '"data_utils.h"\n#include "tiled.h"')
    call = (
        "auto* context = tiled(MOST, 3);\n  if (context == nullptr) return 4;\n"
        "  const auto* raw = context->GetRawTilingData();\n"
        "  if (context->GetBlockDim() != 4 || raw->GetDataSize() != sizeof(*tiling)) return 5;\n"
        "  *tiling = *(const ShiftTilingData*)raw->GetData();"
    )
    assert "*tiling = {MOST, MOST, 3};" in text and "shift, 1," in text
    text = text.replace("*tiling = {MOST, MOST, 3};", call).replace("shift, 1,", "shift, 4,")
    source.write_text(text)
    done = CliRunner().invoke(command, [str(root), "--unit-tests", "--json"])
    (row,) = json.loads(done.stdout)["unit_tests"]
    assert (row["verdict"], row["tests"], row["compared"]) == ("pass", 1, 1), row
