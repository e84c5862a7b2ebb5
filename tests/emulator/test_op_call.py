"""The host headers and the operator call from C++, without Python in between."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from opkit import emulator
from opkit.dtypes import DTYPES, TENSOR_DTYPES
from opkit.schema import json_schema, snake_case
from opkit.toolchain import find_compiler

Run = Callable[[str], str]


@pytest.fixture(scope="module")
def run_program(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a function that compiles and runs a program, and returns what it prints."""
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler")

    def run(text: str) -> str:
        folder = tmp_path_factory.mktemp("program")
        source, program = folder / "main.cpp", folder / "main"
        source.write_text(text)
        library = emulator.library_path().parent
        command = [
            *(compiler, "-std=c++17", "-Wall", "-Wextra", "-Werror"),
            *("-I", str(emulator.include_dir()), str(source), "-o", str(program)),
            *("-L", str(library), "-lopkit_emulator", f"-Wl,-rpath,{library}"),
        ]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        assert built.returncode == 0, built.stderr
        done = subprocess.run([program], capture_output=True, text=True, check=True, timeout=60)
        return done.stdout

    return run


def test_every_dtype_has_the_number_of_the_python_table(run_program) -> None:
    prints = "".join(
        f'std::printf("%d %d\\n", ge::{row.ge}, ge::GetSizeByDataType(ge::{row.ge}));\n'
        for row in DTYPES
    )
    text = '#include <cstdio>\n#include "graph/types.h"\nint main() {\n' + prints + "}\n"
    found = [tuple(map(int, line.split())) for line in run_program(text).splitlines()]
    assert found == [(row.ge_value, row.size_bytes) for row in DTYPES]


def test_the_constants_of_kernels_are_the_numbers_of_the_enumerators(run_program) -> None:
    header = (emulator.include_dir() / "opkit/kernel_constants.h").read_text()
    constants = dict(re.findall(r"#define (\w+) (\d+)", header))
    prints = "".join(f'std::printf("%d\\n", ge::{name});\n' for name in constants)
    text = '#include <cstdio>\n#include "graph/types.h"\nint main() {\n' + prints + "}\n"
    assert run_program(text).split() == list(constants.values())
    # What is missing is 0 to the preprocessor, so a kernel's DT_INT4 was DT_FLOAT.
    types = (emulator.include_dir() / "graph/types.h").read_text()
    enumerators = set(re.findall(r"^  ((?:DT|FORMAT)_\w+) = \d+,?$", types, re.MULTILINE))
    assert enumerators - {"FORMAT_RESERVED"} <= set(constants)
    assert {row.ge for row in TENSOR_DTYPES} <= set(constants)
    formats = json_schema()["$defs"]["format"]["enum"]
    assert {f"FORMAT_{name}" for name in formats} <= set(constants)


def test_the_library_carries_the_same_dtypes_under_the_same_names() -> None:
    header = Path(__file__).parents[2] / "opkit/emulator/src/host/dtypes.h"
    rows = re.findall(r'\{(\d+), "(\w+)", (\d+)\}', header.read_text())
    assert [(int(number), name, int(size)) for number, name, size in rows] == [
        (row.ge_value, row.name, row.size_bytes) for row in TENSOR_DTYPES
    ]


def test_statuses_of_host_functions_are_the_documented_ones(tmp_path: Path) -> None:
    # GRAPH_PARAM_OUT_OF_RANGE was another number, most of the names were missing.
    values = {
        "GRAPH_FAILED": 0xFFFFFFFF,
        "GRAPH_PARAM_INVALID": 50331649,
        "GRAPH_NOT_CHANGED": 1343242304,
        "GRAPH_PARAM_OUT_OF_RANGE": 50331644,
        "GRAPH_NULL_PTR": 50331538,
        "GRAPH_MEMSET_FAILED": 50331536,
        "GRAPH_MUL_OVERFLOW": 50331427,
    }
    checks = "".join(f"static_assert(ge::{name} == {value}u);\n" for name, value in values.items())
    source = tmp_path / "statuses.cpp"
    source.write_text(f'#include "graph/types.h"\n{checks}')
    argv = [*find_compiler().argv, "-std=c++17", "-fsyntax-only", "-I", str(emulator.include_dir())]
    subprocess.run([*argv, str(source)], check=True)


def test_a_plain_zero_is_the_index_of_a_description(run_program) -> None:
    # It was ambiguous: a null pointer to a name as well.
    text = """
#include <cstdio>
#include "graph/operator.h"
int main() {
  ge::Operator op("Add");
  op.UpdateInputDesc("x", ge::TensorDesc(ge::Shape({3, 5}), ge::FORMAT_ND, ge::DT_FLOAT16));
  const bool is_same = op.GetInputDesc(0).GetDataType() == op.GetInputDesc("x").GetDataType();
  std::printf("%d %d %zu", is_same, op.GetInputDesc(0).GetDataType(), op.GetInputDesc(0).GetShape().GetDimNum());
}
"""
    assert run_program(text).split() == ["1", "1", "2"]


TILING_DATA = """
#include "register/tilingdata_base.h"
namespace optiling {
BEGIN_TILING_DATA_DEF(Inner)
  TILING_DATA_FIELD_DEF(uint16_t, count);
  TILING_DATA_FIELD_DEF_ARR(uint16_t, 3, sizes);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(InnerOp, Inner)
BEGIN_TILING_DATA_DEF(Outer)
  TILING_DATA_FIELD_DEF(uint8_t, flag);
  TILING_DATA_FIELD_DEF(uint64_t, length);
  TILING_DATA_FIELD_DEF_STRUCT(Inner, inner);
  TILING_DATA_FIELD_DEF(float, scale);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(AddCustom, Outer)
}  // namespace optiling
"""


WRITE_TILING = """
#include <cstdio>
int main() {
  optiling::Outer original;
  const uint16_t sizes[] = {10, 2, 8};
  original.set_flag(1);
  original.set_length(uint64_t{1} << 40);
  original.inner.set_count(7);
  original.inner.set_sizes(sizes);
  original.set_scale(0.5f);
  const optiling::Outer copy = original;
  unsigned char bytes[256];
  copy.SaveToBuffer(bytes, sizeof bytes);
  for (size_t i = 0; i < copy.GetDataSize(); ++i) std::printf("%d,", bytes[i]);
}
"""

READ_TILING = """
#include <cstdio>
int main() {
  const unsigned char bytes[] = {BYTES};
  static_assert(sizeof bytes == sizeof(optiling::Outer), "");
  optiling::Outer plain;
  std::memcpy(&plain, bytes, sizeof plain);
  std::printf("%d %d %d ", plain.flag, plain.length == uint64_t{1} << 40, plain.inner.count);
  std::printf("%d %d %g", plain.inner.sizes[0], plain.inner.sizes[2], plain.scale);
}
"""


def test_a_kernel_reads_the_tiling_data_that_the_host_wrote(run_program) -> None:
    written = run_program(TILING_DATA + WRITE_TILING)
    as_kernel = "#define __CCE_AICORE__ 220\n"
    text = as_kernel + TILING_DATA + READ_TILING.replace("BYTES", written)
    assert run_program(text) == "1 1 7 10 8 0.5"


CONTEXT = """
#include <cstdio>
#include "tiling/platform/platform_ascendc.h"
#include "exe_graph/runtime/tiling_context.h"
#include "exe_graph/runtime/infer_shape_context.h"
int main() {
  gert::Tensor inputs[1], outputs[1];
  inputs[0].MutableStorageShape() = {2, 3};
  const gert::AnchorInstanceInfo instances[] = {{0, 0}, {0, 1}};
  const int64_t axis = -1;
  const void* values[] = {&axis, nullptr};
  const gert::RuntimeAttrs attrs(values, 2);
  gert::ComputeNodeInfo::State state = {};
  state.name = state.type = "Custom";
  state.inputs = inputs, state.input_count = 1;
  state.outputs = outputs, state.output_count = 1;
  state.ir_inputs = instances, state.ir_input_count = 2;
  state.attrs = &attrs;
  const gert::ComputeNodeInfo node(state);
  char bytes[8];
  gert::TilingData data(bytes, sizeof bytes);
  gert::TilingContext::State tiling = {};
  tiling.tiling_data = &data;
  size_t sizes[2];
  gert::ContinuousVector workspace(sizes, 2);
  tiling.workspace_sizes = &workspace;
  gert::TilingContext context(&node, &tiling);
  std::printf("%d", context.GetInputShape(1) == nullptr);     // one tensor
  std::printf("%d", context.GetOptionalInputShape(0) == nullptr);  // absent
  std::printf("%d", context.GetOptionalInputShape(1)->GetStorageShape().GetShapeSize() == 6);
  std::printf("%d", context.GetOutputShape(1) == nullptr);
  std::printf("%d", *context.GetAttrs()->GetInt(0) == -1);
  std::printf("%d", context.GetAttrs()->GetFloat(1) == nullptr);  // no default
  std::printf("%d", context.GetAttrs()->GetAttrPointer<int64_t>(2) == nullptr);
  struct Large { char bytes[9]; };
  std::printf("%d", context.GetTilingData<Large>() == nullptr);
  std::printf("%d", data.Append(uint64_t{5}) == ge::GRAPH_SUCCESS);
  std::printf("%d", data.Append('x') == ge::GRAPH_FAILED);
  std::printf("%d", context.GetWorkspaceSizes(3) == nullptr);
  std::printf("%d", gert::Shape({2}).GetDim(1) == gert::Shape::kInvalidDimValue);
  std::printf("%d", gert::Shape().GetShapeSize() == 1);
}
"""


def test_an_accessor_of_what_is_not_there_gives_null(run_program) -> None:
    assert run_program(CONTEXT) == "1" * 13


PLATFORM = """
#include <cstdio>
#include "tiling/platform/platform_ascendc.h"
int main() {
  using namespace platform_ascendc;
  auto* chip = PlatformAscendCManager::GetInstance("%s");
  if (chip == nullptr) return std::puts("unknown"), 0;
  uint64_t ub = 0, reserved = 0;
  chip->GetCoreMemSize(CoreMemType::UB, ub);
  chip->ReserveLocalMemory(ReservedSize::RESERVED_SIZE_8K);
  chip->GetCoreMemSize(CoreMemType::UB, reserved);
  uint64_t l2 = 1, l1 = 1;
  chip->GetCoreMemBw(CoreMemType::L2, l2);
  chip->GetCoreMemBw(CoreMemType::L1, l1);
  if (l2 <= 1 || l1 != 0) return std::puts("bandwidth"), 0;
  std::printf("%%u %%u %%u ", chip->GetCoreNum(), chip->GetCoreNumAic(), chip->GetCoreNumAiv());
  std::printf("%%d %%d ", static_cast<int>(ub), static_cast<int>(ub - reserved));
  std::printf("%%d ", chip->GetSocVersion() == SocVersion::%s);
  std::printf("%%u\\n", chip->CalcTschNumBlocks(48, 24, 48));
}
"""


def test_platform_numbers_are_the_chips(run_program) -> None:
    from opkit.chips import find_chip

    text = run_program(PLATFORM % ("Ascend910B2", "ASCEND910B"))
    chip = find_chip("Ascend910B2")
    aic, aiv, ub = (int(chip.number(key)) for key in ("cores.aic", "cores.aiv", "memory.ub_bytes"))
    # The framework keeps 256 bytes of UB.
    assert [int(word) for word in text.split()] == [aiv, aic, aiv, ub - 256, 8192, 1, 24]
    assert run_program(PLATFORM % ("Ascend1", "ASCEND910B")) == "unknown\n"


def test_the_c_functions_report_what_is_wrong(run_program) -> None:
    text = """
#include <cstdio>
#include "opkit/op_call.h"
int main() {
  opkit_library* library = nullptr;
  int status = opkit_library_open("/nowhere", &library);
  std::printf("%d %s\\n", status, opkit_last_error());
  status = opkit_run(nullptr, "Add", nullptr, nullptr, 0);
  std::printf("%d %s\\n", status, opkit_last_error());
}
"""
    first, second = run_program(text).splitlines()
    assert first.startswith("3 /nowhere: ") and "opkit build" in first
    assert second.startswith("2 the library is null")


SNAKE_CASES = ["GELUCustom", "AbcAAc", "Conv2D", "AddCustom", "RMSNorm", "Add"]


def test_kernels_are_named_by_the_schemas_rule(run_program) -> None:
    source = Path(__file__).parents[2] / "opkit/emulator/src/host/library.cpp"
    function = re.search(r"std::string snake_case\(.*?\n}\n", source.read_text(), re.DOTALL)
    assert function is not None
    calls = "".join(f'  std::puts(snake_case("{name}").c_str());\n' for name in SNAKE_CASES)
    headers = "#include <cctype>\n#include <cstdio>\n#include <string>\n"
    text = f"{headers}{function[0]}int main() {{\n{calls}}}\n"
    assert run_program(text).split() == [snake_case(name) for name in SNAKE_CASES]
