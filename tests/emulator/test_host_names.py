"""Names of host code that public libraries of operators use."""

from __future__ import annotations

import subprocess
from pathlib import Path

from opkit import emulator
from opkit.toolchain import find_compiler

# Headers and names that one public library of operators includes and uses; none was there.
HOST = """
#include "exe_graph/runtime/storage_format.h"
#include "runtime/storage_format.h"
#include "alog_pub.h"
#include "base/err_msg.h"
#include "error_manager/error_manager.h"
#include "lib/matrix/matmul/tiling.h"
#include "log/log.h"
#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"
#include "toolchain/slog.h"

static_assert(ge::GetSizeByDataType(ge::DT_INT4) == ge::kDataTypeSizeBitOffset + 4, "documented: 1004");
static_assert(ge::GetSizeByDataType(ge::DT_UINT1) == 1001 && ge::GetSizeByDataType(ge::DT_STRING) == -1, "");
static_assert(sizeof(half) == 2, "host code takes its size");
static_assert(platform_ascendc::SocVersion::ASCEND910_95 != platform_ascendc::SocVersion::ASCEND910B, "");

struct CompileInfo {};

ge::graphStatus tile(gert::TilingContext* context) {
  if (CheckLogLevel(static_cast<int32_t>(OP), DLOG_DEBUG) == 1 || AlogCheckDebugLevel(OP, DLOG_ERROR) != 1) {
    dlog_error(OP, "no such %s", "level");
  }
  OpLogSub(OP, DLOG_ERROR, context, "operator %d", 3);
  OpLogSub(OP, DLOG_INFO, "OP_TILING", "text alone");
  const bool is_nd = context->GetInputTensor(0)->GetFormat().GetStorageFormat() == ge::FORMAT_ND;
  return is_nd ? ge::GRAPH_SUCCESS : ge::GRAPH_FAILED;
}
ge::graphStatus parse(gert::TilingParseContext*) { return ge::GRAPH_SUCCESS; }
IMPL_OP_OPTILING(Gather)
    .TilingInputsDataDependency({1}, {gert::TilingPlacement::TILING_ON_HOST, gert::TilingPlacement::TILING_ON_AICPU})
    .Tiling(tile)
    .TilingParse<CompileInfo>(parse);

namespace ops {
class Gather : public OpDef {
 public:
  explicit Gather(const char* name) : OpDef(name) {
    Attr("group").AttrType(REQUIRED).String();
    MC2().HcclGroup("group");
    MC2().HcclGroup({"group_ep", "group_tp"});
  }
};
OP_ADD(Gather, CompileInfo);
}  // namespace ops
"""


def test_host_code_of_libraries_finds_its_headers_and_names(tmp_path: Path) -> None:
    source = tmp_path / "host.cpp"
    source.write_text(HOST)
    argv = [*find_compiler().argv, "-std=c++17", "-fsyntax-only", "-w"]
    done = subprocess.run(
        [*argv, "-I", str(emulator.include_dir()), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
