"""Tiling contexts made by hand, over functions that host code in the same program registers."""

from __future__ import annotations

import subprocess

import pytest

from opkit import emulator
from opkit.toolchain import find_compiler

PROGRAM = r"""
#include <cstdio>
#include "op_tiling_context_builder.h"
#include "base/registry/op_impl_space_registry_v2.h"
#include "tiling/platform/platform_ascendc.h"

struct Info { int64_t limit; };

// What the tiling function sees, as text in its tiling data.
static ge::graphStatus tiling(gert::TilingContext* context) {
  platform_ascendc::PlatformAscendC chip(context->GetPlatformInfo());
  uint64_t ub = 0;
  chip.GetCoreMemSize(platform_ascendc::CoreMemType::UB, ub);
  const auto* attrs = context->GetAttrs();
  auto* out = context->GetRawTilingData();
  const auto say = [out](int64_t value) { out->Append(value); };
  say(context->GetInputShape(0)->GetStorageShape().GetShapeSize());
  say(context->GetOptionalInputShape(1) == nullptr);
  say(context->GetDynamicInputShape(2, 1)->GetStorageShape().GetDim(0));
  say(context->GetInputTensor(1)->GetData<int32_t>()[1]);
  say(context->GetInputTensor(0)->GetData<int32_t>() == nullptr);
  say(context->GetInputDesc(0)->GetDataType());
  say(context->GetOutputShape(0)->GetOriginShape().GetDim(0));
  say(*attrs->GetInt(0));
  say(*attrs->GetBool(1));
  say(static_cast<int64_t>(*attrs->GetFloat(2) * 4));
  say(attrs->GetStr(3)[1]);
  say(attrs->GetListInt(4)->GetData()[2]);
  say(static_cast<const bool*>(attrs->GetAttrPointer<gert::ContinuousVector>(5)->GetData())[1]);
  say(static_cast<const int64_t*>(attrs->GetListListInt(6)->Get(1)->GetData())[0]);
  say(static_cast<int64_t>(attrs->GetAttrNum()));
  say(chip.GetCoreNumAiv());
  say(static_cast<int64_t>(ub));
  say(static_cast<int64_t>(chip.GetCurNpuArch()));
  say(chip.GetSocVersion() == platform_ascendc::SocVersion::ASCEND910B);
  say(context->GetDeterministic());
  context->SetBlockDim(chip.GetCoreNum());
  context->SetTilingKey(7);
  size_t* sizes = context->GetWorkspaceSizes(2);
  if (sizes == nullptr) return ge::GRAPH_FAILED;
  sizes[0] = 32, sizes[1] = 64;
  return context->GetCompileInfo<Info>()->limit > 0 ? ge::GRAPH_SUCCESS : ge::GRAPH_FAILED;
}
IMPL_OP_OPTILING(Told).Tiling(tiling);

struct Builder : gert::OpTilingContextBuilder {};

int main() {
  int32_t values[] = {5, 9};
  const gert::StorageFormat nd(ge::FORMAT_ND, ge::FORMAT_ND, gert::ExpandDimsType());
  gert::Tensor plain({{4, 6}, {4, 6}}, nd, gert::kOnHost, ge::DT_FLOAT16, nullptr);
  gert::Tensor known({{2}, {2}}, nd, gert::kOnHost, ge::DT_INT32, values);
  gert::Tensor last({{3}, {3}}, nd, gert::kOnHost, ge::DT_FLOAT, nullptr);
  fe::PlatFormInfos platform;
  platform.Init();
  auto data = gert::TilingData::CreateCap(4096);
  auto workspace = gert::ContinuousVector::Create<size_t>(2);
  auto* sizes = reinterpret_cast<gert::ContinuousVector*>(workspace.get());
  Info info = {1};
  Builder builder;
  builder.OpType("Told").OpName("one").IOInstanceNum({1, 0, 2}, {1});
  builder.InputTensors({&plain, &known, &last}).OutputTensors({&last});
  builder.AppendAttr(int64_t{-3}).AppendAttr(true).AppendAttr(0.25f).AppendAttr(ge::AscendString("ab"));
  builder.AppendAttr(std::vector<int64_t>{1, 2, 3}).AppendAttr(std::vector<bool>{false, true});
  builder.AppendAttr(std::vector<std::vector<int64_t>>{{1, 2}, {8}});
  builder.CompileInfo(&info).PlatformInfo(&platform).Deterministic(1).Workspace(sizes);
  auto made = builder.TilingData(reinterpret_cast<gert::TilingData*>(data.get())).Build();
  auto holder = std::move(made);
  auto* context = holder.GetContext();
  std::map<std::string, std::string> cores = {{"ai_core_cnt", "40"}, {"core_type_list", "AICore"}};
  context->GetPlatformInfo()->SetPlatformRes("SoCInfo", cores);
  context->GetPlatformInfo()->SetPlatformRes("AICoreSpec", {{"ub_size", "1000"}});
  context->GetPlatformInfo()->SetPlatformRes("version", {{"NpuArch", "2201"}, {"Short_SoC_version", "Ascend910B"}});
  context->GetPlatformInfo()->SetCoreNumByCoreType("AICore");

  auto registry = gert::DefaultOpImplSpaceRegistryV2::GetInstance().GetSpaceRegistry();
  std::printf("%d", registry->GetOpImpl("Untold") == nullptr);
  const auto* functions = registry->GetOpImpl("Told");
  std::printf("%d", functions->infer_shape == nullptr);
  std::printf("%d\n", functions->tiling(context) == ge::GRAPH_SUCCESS);
  const auto* raw = context->GetRawTilingData();
  for (size_t i = 0; i < raw->GetDataSize() / 8; ++i) {
    std::printf("%lld ", static_cast<const long long*>(raw->GetData())[i]);
  }
  const auto* left = static_cast<const size_t*>(sizes->GetData());
  std::printf("\n%s %u %d %zu %zu %zu\n", context->GetNodeName(), context->GetBlockDim(),
              static_cast<int>(context->GetTilingKey()), context->GetWorkspaceNum(), left[0], left[1]);
  std::printf("%d\n", context->GetWorkspaceSizes(3) == nullptr);

  // A split chip counts its cores apart.
  cores = {{"cube_core_cnt", "20"}, {"vector_core_cnt", "41"}, {"core_type_list", "CubeCore,VectorCore"}};
  platform.SetPlatformRes("SoCInfo", cores);
  std::printf("%u %u\n", platform.aic_count, platform.aiv_count);

  gert::OppSoDesc absent({ge::AscendString("/nowhere/libabsent.so")}, "absent");
  std::printf("%d\n", registry->AddSoToRegistry(absent) == ge::GRAPH_FAILED);
  try {
    gert::OpTilingContextBuilder().OpType("Told").IONum(2, 0).InputTensors({&plain}).Build();
  } catch (const std::invalid_argument& error) {
    std::puts(error.what());
  }
  try {
    gert::OpTilingContextBuilder().AppendAttr(std::vector<ge::AscendString>{"a"});
  } catch (const std::invalid_argument& error) {
    std::puts(error.what());
  }
}
"""


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return what the program prints."""
    folder = tmp_path_factory.mktemp("program")
    source, program = folder / "main.cpp", folder / "main"
    source.write_text(PROGRAM)
    library = emulator.library_path().parent
    subprocess.run(
        [
            *find_compiler().argv,
            *("-std=c++17", "-Wall", "-Wextra", "-Werror", "-I", str(emulator.include_dir())),
            *(str(source), "-o", str(program), "-L", str(library), "-lopkit_emulator"),
            *("-ldl", f"-Wl,-rpath,{library}"),
        ],
        check=True,
    )
    done = subprocess.run([program], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.splitlines()


def test_a_programs_own_tiling_function_is_found_and_called(lines: list[str]) -> None:
    # Registrations outside a library that opkit opened were dropped.
    assert lines[0] == "111"


def test_it_sees_what_the_builder_was_told(lines: list[str]) -> None:
    tensors = [24, 1, 3, 9, 1, 1, 3]
    attrs = [-3, 1, 1, ord("b"), 3, 1, 8, 7]
    # Of UB the framework keeps 256 bytes.
    chip = [40, 1000 - 256, 2201, 1]
    assert [int(word) for word in lines[1].split()] == [*tensors, *attrs, *chip, 1]


def test_what_it_decides_is_read_from_the_context_and_the_callers_memory(
    lines: list[str],
) -> None:
    assert lines[2:4] == ["one 40 7 2 32 64", "1"]


def test_cores_of_a_split_chip_are_counted_apart(lines: list[str]) -> None:
    assert lines[4] == "20 41"


def test_what_cannot_be_is_refused(lines: list[str]) -> None:
    assert lines[5:] == [
        "1",
        "[Told] has 1 input tensors, but 2 by IONum or IOInstanceNum",
        "[OpTilingContextBuilder] AppendAttr: attributes that are lists of strings are not here",
    ]
