"""Build artifact folders from texts, without the toolchain."""

from __future__ import annotations

import json
import re
import shutil
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import opkit

ArtifactBuilder = Callable[..., Path]


# y = scale * x + z, in plain C++: what is tested here is the call, not instructions.
HOST = """
#include "register/op_def_registry.h"
#include "log/log.h"
#include "tiling/platform/platform_ascendc.h"

struct TilingData {
  uint32_t length;
  float scale;
};

namespace optiling {
static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  TilingData* tiling = context->GetTilingData<TilingData>();
  tiling->length = context->GetInputShape(0)->GetOriginShape().GetShapeSize();
  tiling->scale = *context->GetAttrs()->GetAttrPointer<float>(0);
  if (tiling->scale < 0) {
    OP_LOGE(context, "scale is %g, it must not be negative", tiling->scale);
    return ge::GRAPH_FAILED;
  }
  platform_ascendc::PlatformAscendC platform(context->GetPlatformInfo());
  context->SetBlockDim(tiling->length < platform.GetCoreNum() ? 1 : 4);
  context->SetTilingKey(context->GetOptionalInputShape(1) == nullptr ? 1 : 2);
  size_t* workspace = context->GetWorkspaceSizes(1);
  workspace[0] = 64;
  return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ge {
static graphStatus InferShape(gert::InferShapeContext* context) {
  *context->GetOutputShape(0) = *context->GetInputShape(0);
  return GRAPH_SUCCESS;
}
static graphStatus InferDataType(gert::InferDataTypeContext* context) {
  context->SetOutputDataType(0, context->GetInputDataType(0));
  return GRAPH_SUCCESS;
}
}  // namespace ge

namespace ops {
class ScaleAdd : public OpDef {
 public:
  explicit ScaleAdd(const char* name) : OpDef(name) {
    this->Input("x")
        .ParamType(REQUIRED)
        .DataType({ge::DT_FLOAT, ge::DT_INT32})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND})
        .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Input("z").ParamType(OPTIONAL).DataType({ge::DT_FLOAT, ge::DT_INT32});
    this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT, ge::DT_INT32});
    this->Attr("scale").AttrType(OPTIONAL).Float(2.0);
    this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
    this->AICore().SetTiling(optiling::TilingFunc);
    this->AICore().AddConfig("ascend910b");
  }
};
OP_ADD(ScaleAdd);
}  // namespace ops
"""

KERNEL = """
#include <cstdint>
#include "opkit/api/tiling.h"
#include "opkit/kernel_entry.h"

struct TilingData {
  uint32_t length;
  float scale;
};

extern "C" void scale_add(uint8_t* x, uint8_t* z, uint8_t* y, uint8_t* workspace, uint8_t* tiling) {
  REGISTER_TILING_DEFAULT(TilingData);
  GET_TILING_DATA(data, tiling);
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  auto* in = reinterpret_cast<DTYPE*>(x);
  auto* add = reinterpret_cast<DTYPE*>(z);
  auto* out = reinterpret_cast<DTYPE*>(y);
  const int64_t blocks = opkit::core_variables().block_count;
  for (int64_t i = opkit::core_variables().block_index; i < data.length; i += blocks) {
    workspace[i % 64] = 1;
    out[i] = static_cast<DTYPE>(in[i] * data.scale);
    if (TILING_KEY_IS(1)) continue;
    if (TILING_KEY_IS(2)) out[i] += add[i];
  }
}
OPKIT_KERNEL_TABLE(scale_add)
"""

VARIANTS = {
    "scale_add.dav-2201.float32-float32-float32.so": "float",
    "scale_add.dav-2201.int32-int32-int32.so": "int32_t",
}


STRICT = ("-Wall", "-Wextra", "-Werror")
HOST_HEADERS = re.findall(r'#include "(.*)"', HOST)


@pytest.fixture(scope="session")
def build_artifact(
    tmp_path_factory: pytest.TempPathFactory, compile_shared: Callable[..., None]
) -> ArtifactBuilder:
    """Return a function that builds an artifact folder; what is left out is that of ScaleAdd."""

    def build(
        host: str = HOST,
        *,
        kernel: str = KERNEL,
        variants: Mapping[str, str] = VARIANTS,
        kernels_txt: str = "",
        folder: Path | None = None,
    ) -> Path:
        folder = folder or tmp_path_factory.mktemp("artifact")
        sources = tmp_path_factory.mktemp("sources")
        host_source, kernel_source = sources / "host.cpp", sources / "kernel.cpp"
        host_source.write_text(textwrap.dedent(host))
        kernel_source.write_text(textwrap.dedent(kernel))
        aside = sources / "libop_host.so"
        compile_shared(host_source, aside, *STRICT, headers=HOST_HEADERS)
        shutil.move(aside, folder / "libop_host.so")
        for name, dtype in variants.items():
            compile_shared(kernel_source, folder / name, *STRICT, f"-DDTYPE={dtype}")
        if kernels_txt:
            (folder / "kernels.txt").write_text(kernels_txt)
        from opkit.emulator import _emulator

        (folder / "manifest.json").write_text(
            json.dumps({"opkit": opkit.__version__, "abi_version": _emulator.abi_version})
        )
        return folder

    return build


@pytest.fixture(scope="session")
def host_text() -> str:
    """Host source of ScaleAdd."""
    return HOST


@pytest.fixture(scope="session")
def kernel_text() -> str:
    """Kernel source of ScaleAdd."""
    return KERNEL


@pytest.fixture(scope="session")
def scale_add(build_artifact: ArtifactBuilder) -> Path:
    """The folder of ScaleAdd: y = scale * x + z, float32 or int32, z optional."""
    return build_artifact()
