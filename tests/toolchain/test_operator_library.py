"""Operators of a library: sources and headers that they share, data types that the chip lacks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from opkit import runtime
from opkit.cli import group
from opkit.errors import KernelFault, SetupError, UsageError
from opkit.testing import project_cases
from opkit.toolchain import Artifact, build, load_project, project_as_built
from opkit.toolchain.building.binary_list import listed_combinations
from opkit.toolchain.projects.operator_library import find_library, find_operators
from opkit.toolchain.projects.tree import read_folder

LIBRARY = Path(__file__).parent / "data" / "library"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("libraries") / "library"
    shutil.copytree(LIBRARY, root)
    return root


@pytest.fixture(scope="module")
def notes() -> list[str]:
    return []


@pytest.fixture(scope="module")
def artifact(library: Path, notes: list[str]) -> Artifact:
    return build(load_project(library / "math" / "shift"), warn=notes.append)


def test_an_operator_is_built_from_what_its_library_shares(artifact: Artifact) -> None:
    shift = runtime.open(artifact.folder)
    x = np.arange(103, dtype=np.float32)
    (y,) = shift.run("Shift", [x, None], {"by": 3})
    np.testing.assert_array_equal(y, x + 3)
    with pytest.raises(UsageError, match="the rank of x is 5: Ascend910B takes 4, no more"):
        shift.run("Shift", [np.zeros((1, 1, 1, 1, 2), dtype=np.float32), None])


def test_it_is_built_into_its_own_folder(artifact: Artifact, library: Path) -> None:
    assert artifact.folder == library / "math" / "shift" / "build" / "opkit"
    sources = json.loads(artifact.manifest.read_text())["sources"]
    assert "math/shift/op_kernel/shift.cpp" in sources
    assert "common/src/op_host/shares.cpp" in sources


def test_a_data_type_without_an_instruction_is_left_out_by_name(
    artifact: Artifact, notes: list[str]
) -> None:
    assert [note for note in notes if note.startswith("shift.dav-2201.int8")]
    assert any("Adds: this data type is not supported" in note for note in notes)
    document = json.loads(artifact.manifest.read_text())
    (operator,) = document["operators"]
    assert [variant["dtypes"][0] for variant in operator["variants"]] == ["float32", "int32"]
    with pytest.raises(SetupError, match=r"no kernel shift\.dav-2201\.int8"):
        runtime.open(artifact.folder).run("Shift", [np.zeros(4, dtype=np.int8), None])


def test_data_types_that_the_library_does_not_ship_for_the_chip_are_left_out_by_name(
    artifact: Artifact, notes: list[str]
) -> None:
    assert (
        "Shift: 1 combinations of data types are not built: shift_binary.json does not list them"
        in notes
    )
    with pytest.raises(SetupError, match=r"no kernel shift\.dav-2201\.float16"):
        runtime.open(artifact.folder).run("Shift", [np.zeros(4, dtype=np.float16), None])


def test_a_list_of_binaries_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    config = tmp_path / "op_host/config/ascend910b"
    assert listed_combinations(tmp_path, "Shift", soc_config="ascend910b") == ((), None)
    config.mkdir(parents=True)
    (config / "shift_binary.json").write_text('{"op_type": "Shift", "op_list": [{}]}')
    with pytest.raises(UsageError, match=r"shift_binary\.json: is no list of binaries"):
        listed_combinations(tmp_path, "Shift", soc_config="ascend910b")


def test_the_operators_of_a_library_are_those_with_a_kernel_and_an_opdef(library: Path) -> None:
    found = find_library(library / "math")
    assert found is not None
    assert [folder.name for folder in find_operators(found)] == ["running_sum", "shift"]
    assert find_library(library.parent) is None


def test_what_a_generator_of_operators_copies_is_no_operator(tmp_path: Path) -> None:
    operators = ("math/shift", "scripts/generator/template")
    root = _a_library(tmp_path, *operators)
    for operator in operators:
        (root / operator / "op_host" / "shift_def.cpp").touch()
    found = find_library(root)
    assert found is not None
    assert [folder.name for folder in find_operators(found)] == ["shift"]


def _a_library(root: Path, *operators: str) -> Path:
    """Lay out an empty library with these operators, and return its folder."""
    for name in ("CMakeLists.txt", "cmake/variables.cmake"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    for operator in operators:
        for part in ("op_host", "op_kernel"):
            (root / operator / part).mkdir(parents=True)
    return root


def test_a_library_is_the_outermost_folder_of_its_shape(tmp_path: Path) -> None:
    # It was a folder with common/inc/: a library with common/include/ was none, and a category
    # with an inc/ of its own was one.
    root = _a_library(tmp_path / "library", "mc2/gather", "moe/permute", "alone")
    for name in ("mc2/common/inc", "common/include/kernel", "common/include/tiling_base"):
        (root / name).mkdir(parents=True)
    (root / "mc2" / "CMakeLists.txt").touch()
    for operator in ("mc2/gather", "moe/permute", "alone"):
        found = find_library(root / operator)
        assert found is not None and found.root == root
    includes = found.kernel_includes(root / "mc2/gather", cache=tmp_path)
    assert includes[-2:] == (root / "common/include", root / "common/include/kernel")
    flat = includes[1]
    assert {link.name for link in flat.parent.iterdir()} == {"gather", "permute", "alone", "from"}


def test_a_project_of_one_operator_and_folders_of_samples_are_no_library(tmp_path: Path) -> None:
    project = _a_library(tmp_path / "project", ".")
    assert find_library(project) is None
    samples = tmp_path / "samples"
    (samples / "math" / "add" / "op_kernel").mkdir(parents=True)
    (samples / "math" / "add" / "op_host").mkdir()
    (samples / "CMakeLists.txt").touch()
    assert find_library(samples / "math" / "add") is None


def test_folders_for_includes_and_operators_depended_on_are_read_from_all_forms(
    tmp_path: Path,
) -> None:
    root = _a_library(tmp_path, "math/add", "math/sub", "math/mul", "math/div", "moe/common")
    for name in ("mc2/3rd", "math/inc", "shared/inc", "common/include"):
        (root / name).mkdir(parents=True)
    (root / "CMakeLists.txt").write_text(
        "include_directories(${PROJECT_SOURCE_DIR}/shared/inc ${PROJECT_SOURCE_DIR}/absent)\n"
    )
    (root / "cmake/variables.cmake").write_text(
        "set(OP_TILING_INCLUDE\n  ${SOME_DIR}\n  ${SOME_DIR}/mc2/3rd\n)\n"
    )
    (root / "math/CMakeLists.txt").write_text(
        "include_directories(${CMAKE_CURRENT_SOURCE_DIR}/inc)\n"
    )
    (root / "math/add/CMakeLists.txt").write_text(
        "add_dependent_ops(sub)\nset(NEW_OP_NAMES ${ASCEND_OP_NAME} div)\n"
    )
    (root / "math/add/op_host/CMakeLists.txt").write_text(
        'set(add_depends moe/common CACHE INTERNAL "")\n'
        "add_modules_sources(OPTYPE add DEPENDENCIES mul)\n"
    )
    found = find_library(root)
    assert found is not None
    assert [
        path.relative_to(root).as_posix() for path in found.host_includes(root / "math/add")
    ] == [
        *("math", ".", "common/include", "mc2/3rd", "math/inc", "shared/inc"),
        *("math/sub/op_host", "math/div/op_host", "moe/common/op_host", "math/mul/op_host"),
    ]


def test_sources_of_headers_in_include_lie_in_src(tmp_path: Path) -> None:
    root = _a_library(tmp_path, "moe/permute")
    texts = {
        "moe/permute/op_host/permute_tiling.cpp": '#include "fallback/told.h"\n#include "own.h"\n',
        "common/include/fallback/told.h": "",
        "common/src/told.cpp": "",
        "moe/inc/own.h": "",
        "moe/src/deep/own.cc": "",
        "moe/src/other.cc": "",
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    found = find_library(root)
    assert found is not None
    source = root / "moe/permute/op_host/permute_tiling.cpp"
    beside = found.companion_sources([source], [root / "common/include", root / "moe/inc"])
    assert beside == (root / "common/src/told.cpp", root / "moe/src/deep/own.cc")


def test_what_the_graph_engine_calls_in_place_of_a_kernel_is_no_host_source(tmp_path: Path) -> None:
    # It includes the headers of aclnn functions, which no host code here has.
    root = _a_library(tmp_path, "moe/permute")
    host = root / "moe/permute/op_host"
    (host / "permute_tiling.cpp").write_text("IMPL_OP_OPTILING(Permute).Tiling(tile);")
    (host / "fallback_permute.cpp").write_text(
        '#include "fallback/comm.h"\nIMPL_OP(Permute).OpExecuteFunc(run).HostInputs({1});'
    )
    (root / "common/src").mkdir(parents=True)
    (root / "common/include/fallback").mkdir(parents=True)
    (root / "common/include/fallback/comm.h").touch()
    (root / "common/src/comm.cpp").touch()
    tree = read_folder(root / "moe/permute", cache=tmp_path / "cache")
    assert tree is not None
    assert tree.host_sources == (host / "permute_tiling.cpp",)


@pytest.fixture(scope="module")
def running_sum(library: Path) -> runtime.Library:
    return runtime.open(build(load_project(library / "math" / "running_sum")).folder)


def test_an_output_named_as_an_input_begins_as_a_copy_of_it(running_sum: runtime.Library) -> None:
    total, x = np.arange(10, dtype=np.float32), np.full(10, 5, dtype=np.float32)
    result, first = running_sum.run("RunningSum", [total, x], out_shape=[None, (3,)])
    np.testing.assert_array_equal(result, np.arange(10) + 5)
    np.testing.assert_array_equal(first, [5, 6, 7])
    np.testing.assert_array_equal(total, np.arange(10))


def test_the_callers_array_changes_where_out_names_it(running_sum: runtime.Library) -> None:
    total, first = np.arange(9, dtype=np.float32), np.zeros(2, dtype=np.float32)
    x = np.ones(9, dtype=np.float32)
    results = running_sum.run("RunningSum", [total, x], out=[total, first])
    assert results[0] is total and results[1] is first
    np.testing.assert_array_equal(total, np.arange(9) + 1)
    np.testing.assert_array_equal(first, [1, 2])


def test_an_output_that_nobody_infers_is_asked_for(running_sum: runtime.Library) -> None:
    total = np.zeros(8, dtype=np.float32)
    with pytest.raises(UsageError, match=r'output "first" .*give its shape with the call'):
        running_sum.run("RunningSum", [total, total])
    with pytest.raises(UsageError, match="speak of different outputs"):
        running_sum.run("RunningSum", [total, total], out_shape=[None, (3,)], out_dtype="float")


def test_a_tiling_for_vector_registers_is_left_out_and_named_where_it_is_called(
    running_sum: runtime.Library,
) -> None:
    nothing = np.zeros(0, dtype=np.float32)
    with pytest.raises(KernelFault, match=r"RegisterTiling::Run.* is defined by no source"):
        running_sum.run("RunningSum", [nothing, nothing], out_shape=[None, (3,)])


@pytest.mark.slow
def test_the_callers_shape_and_type_count_where_inference_leaves_them(library: Path) -> None:
    source = library / "math" / "running_sum"
    idle = shutil.copytree(source, library / "math" / "idle_sum", dirs_exist_ok=True)
    shutil.rmtree(idle / "build", ignore_errors=True)
    (idle / "op_host" / "infershape.cpp").write_text(
        '#include "register/op_impl_registry.h"\n'
        "static ge::graphStatus Infer(gert::InferShapeContext* context) {\n"
        "  *context->GetOutputShape(0) = *context->GetInputShape(0);\n"
        "  return ge::GRAPH_SUCCESS;\n"
        "}\n"
        "static ge::graphStatus InferType(gert::InferDataTypeContext* context) {\n"
        "  const bool is_given = context->GetOutputDataType(1) != ge::DT_UNDEFINED;\n"
        "  context->SetOutputDataType(0, context->GetInputDataType(0));\n"
        "  return is_given ? ge::GRAPH_SUCCESS : ge::GRAPH_FAILED;\n"
        "}\n"
        "IMPL_OP_INFERSHAPE(RunningSum).InferShape(Infer).InferDataType(InferType);\n"
    )
    opened = runtime.open(build(load_project(idle)).folder)
    total, x = np.arange(10, dtype=np.float32), np.full(10, 5, dtype=np.float32)
    with pytest.raises(UsageError, match="its InferDataType function failed"):
        opened.run("RunningSum", [total, x], out_shape=[(4,), (3,)])
    types = ["float32", "float32"]
    result, first = opened.run("RunningSum", [total, x], out_shape=[(4,), (3,)], out_dtype=types)
    # The first one is inferred, whatever the caller says.
    np.testing.assert_array_equal(result, np.arange(10) + 5)
    np.testing.assert_array_equal(first, [5, 6, 7])


def test_the_callers_types_count_where_the_opdef_lists_them(library: Path) -> None:
    # The host code infers float32 whatever the kernel is asked for: the graph's view, not aclnn's.
    typed = shutil.copytree(library / "math" / "running_sum", library / "math" / "typed_sum")
    shutil.rmtree(typed / "build", ignore_errors=True)
    definition = typed / "op_host" / "running_sum_def.cpp"
    text = definition.read_text().replace("{ge::FORMAT_ND}", "{ge::FORMAT_ND, ge::FORMAT_ND}")
    text = text.replace("{ge::DT_FLOAT}", "{ge::DT_FLOAT, ge::DT_FLOAT}")
    before, first, after = text.partition('Output("first")')
    after = after.replace("ge::DT_FLOAT}", "ge::DT_INT32}", 1)
    definition.write_text(before + first + after)
    kernel = typed / "op_kernel" / "running_sum.cpp"
    kernel.write_text(
        kernel.read_text().replace(
            "DataCopy(begin, left, first_count);",
            "if constexpr (sizeof(DTYPE_FIRST) == sizeof(DTYPE_X) && !(DTYPE_FIRST(0.5f) > 0)) {\n"
            "    LocalTensor<int32_t> whole = left.ReinterpretCast<int32_t>();\n"
            "    PipeBarrier<PIPE_ALL>();\n"
            "    Cast(whole, left, RoundMode::CAST_RINT, count);\n"
            "    PipeBarrier<PIPE_ALL>();\n"
            "  }\n"
            "  DataCopy(begin, left, first_count);",
        )
    )
    (typed / "op_host" / "infershape.cpp").write_text(
        '#include "register/op_impl_registry.h"\n'
        "static ge::graphStatus InferType(gert::InferDataTypeContext* context) {\n"
        "  context->SetOutputDataType(0, context->GetInputDataType(0));\n"
        "  context->SetOutputDataType(1, context->GetInputDataType(0));\n"
        "  return ge::GRAPH_SUCCESS;\n"
        "}\n"
        "IMPL_OP_INFERSHAPE(RunningSum).InferDataType(InferType);\n"
    )
    opened = runtime.open(build(load_project(typed)).folder)
    total, x = np.arange(10, dtype=np.float32), np.full(10, 5, dtype=np.float32)
    for asked in (None, "float32", "int32", "float16"):
        types = [None, asked] if asked else None
        _, first = opened.run("RunningSum", [total, x], out_shape=[None, (3,)], out_dtype=types)
        # What no combination lists is inferred.
        assert first.dtype == (asked if asked == "int32" else np.float32)
        np.testing.assert_array_equal(first, [5, 6, 7])


@pytest.mark.slow
def test_its_results_are_compared_with_a_reference_of_one_line(
    artifact: Artifact, library: Path
) -> None:
    folder = library / "math" / "shift"
    said = ["test", str(folder), "--json", "--golden"]
    done = CliRunner().invoke(group, [*said, "x + by"])
    report = json.loads(done.stdout)
    assert (done.exit_code, report["passed"]) == (0, True)
    names = [case["name"] for case in report["cases"]]
    # The types that are built, each on six shapes of which none is whole blocks.
    assert len(names) == 12 and "shift-float32_int64_float32-97x1031-normal" in names
    assert not any("int8" in name for name in names)
    done = CliRunner().invoke(group, [*said, "x + by + 1", "--case", names[1]])
    (case,) = json.loads(done.stdout)["cases"]
    assert (done.exit_code, case["verdict"]) == (1, "fail")


def test_a_reference_stands_in_its_file_of_cases(artifact: Artifact, library: Path) -> None:
    folder = library / "math" / "shift"
    file = folder / "tests" / "cases.yaml"
    file.write_text(
        "golden: x + by\n"
        "cases:\n"
        "  - {name: by_five, dtype: int32, shape: [3, 17], shapes: {size: null}, attrs: {by: 5}}\n"
    )
    project = project_as_built(artifact)
    cases = project_cases(project, golden=None)
    assert {case.golden for case in cases} == {"x + by"}
    assert len(cases) == 13 and cases[-1].name == "by_five"
    file.write_text("golden: x + bye\n")
    with pytest.raises(UsageError, match='Shift has no input or attribute "bye"'):
        project_cases(project, golden=None)
    file.unlink()
    with pytest.raises(UsageError, match="nothing says what Shift computes"):
        project_cases(project, golden=None)


def test_host_code_of_another_chip_is_refused_when_it_is_called(artifact: Artifact) -> None:
    shift = runtime.open(artifact.folder)
    with pytest.raises(KernelFault, match=r"shift_on_registers\(.*\) is defined by no source"):
        shift.run("Shift", [np.zeros(4, dtype=np.float32), None], {"by": -77})


def test_cmake_says_which_chips_share_the_tiling_of_another(library: Path) -> None:
    # The operator had no tiling function, as sources of that folder are of other chips.
    operator = library / "math" / "shared_tiling"
    for name in ("shared_tiling_def.cpp", "arch35/shared_tiling_tiling.cpp"):
        file = operator / "op_host" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    (operator / "op_kernel").mkdir()
    tiling = operator / "op_host" / "arch35" / "shared_tiling_tiling.cpp"
    lists = operator / "CMakeLists.txt"
    call = (
        'set(UNITS "ascend910b" "ascend950")\nset(FOLDERS "{}" "arch35")\n'
        "add_modules_sources(OPTYPE shared_tiling COMPUTE_UNIT ${{UNITS}}"
        " TILING_DIR ${{FOLDERS}} DISABLE_IN_OPP TRUE)\n"
    )
    for folder, is_taken in (("arch35", True), ("arch22", False)):
        lists.write_text(call.format(folder))
        tree = load_project(operator).tree
        assert tree is not None
        assert (tiling in tree.host_sources) == is_taken
    shutil.rmtree(operator)


def test_a_source_named_after_another_chip_is_left_out_unless_it_registers(library: Path) -> None:
    # A name that only the other chip's headers have stopped the whole build.
    operator = library / "math" / "named"
    host = operator / "op_host"
    host.mkdir(parents=True)
    (operator / "op_kernel").mkdir()
    (host / "named_def.cpp").write_text("OP_ADD(Named);\n")
    include = '#include "../op_kernel/arch35/named_tiling_key.h"\n'
    (host / "named_tiling_arch35.cpp").write_text(include + "int key = OF_ANOTHER_CHIP;\n")
    (host / "named_infershape_arch35.cpp").write_text(include + "IMPL_OP_INFERSHAPE(Named);\n")
    (host / "named_tools_arch35.cpp").write_text("int shared() { return 1; }\n")
    tree = load_project(operator).tree
    assert tree is not None
    assert {path.name for path in tree.host_sources} == {
        *("named_def.cpp", "named_infershape_arch35.cpp", "named_tools_arch35.cpp"),
    }
    shutil.rmtree(operator)


@pytest.mark.parametrize(
    ("said", "macros"),
    [
        ("", ("-DHIGH_PERFORMANCE=1",)),
        ("add_kernel_sources(COMPUTE_UNITS ascend910b)", ("-DHIGH_PERFORMANCE=1",)),
        (
            "add_kernel_sources(COMPUTE_UNITS ascend950 IMPL_MODE optional)",
            ("-DHIGH_PERFORMANCE=1",),
        ),
        ("add_kernel_sources(IMPL_MODE high_precision,optional)", ("-DHIGH_PRECISION=1",)),
        ("add_kernel_sources(IMPL_MODE optional)", ()),
    ],
)
def test_a_kernel_is_compiled_in_the_mode_that_its_library_uses(
    library: Path, said: str, macros: tuple[str, ...]
) -> None:
    lists = library / "math" / "shift" / "op_kernel" / "CMakeLists.txt"
    lists.write_text(said)
    tree = load_project(library / "math" / "shift").tree
    lists.unlink()
    assert tree is not None
    assert tree.mode_macros("Shift", soc_config="ascend910b") == macros
