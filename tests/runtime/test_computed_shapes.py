"""Outputs whose shape the kernel writes (OutputShapeDependOnCompute)."""

from __future__ import annotations

import numpy as np
import pytest

from opkit import runtime
from opkit.errors import KernelFault, UsageError

# The elements of x above 0, and how many of each row are: both shapes come from the kernel.
HOST = """
#include "register/op_def_registry.h"

static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  const auto& shape = context->GetInputShape(0)->GetOriginShape();
  auto* lengths = context->GetTilingData<uint64_t[3]>();
  (*lengths)[0] = shape.GetDim(0);
  (*lengths)[1] = shape.GetDim(1);
  (*lengths)[2] = *context->GetAttrs()->GetAttrPointer<int64_t>(0);
  context->SetBlockDim(1);
  return ge::GRAPH_SUCCESS;
}
static ge::graphStatus InferShape(gert::InferShapeContext* context) {
  *context->GetOutputShape(0) = {-1};
  *context->GetOutputShape(1) = {context->GetInputShape(0)->GetDim(0)};
  *context->GetOutputShape(2) = {1, context->GetInputShape(0)->GetDim(0)};
  return ge::GRAPH_SUCCESS;
}
static ge::graphStatus InferDataType(gert::InferDataTypeContext* context) {
  context->SetOutputDataType(0, ge::DT_FLOAT);
  context->SetOutputDataType(1, ge::DT_INT32);
  return context->SetOutputDataType(2, ge::DT_UINT64);
}

namespace ops {
class Positives : public OpDef {
 public:
  explicit Positives(const char* name) : OpDef(name) {
    this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT});
    this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).OutputShapeDependOnCompute();
    this->Output("count").ParamType(REQUIRED).DataType({ge::DT_INT32});
    this->Output("rows").ParamType(REQUIRED).DataType({ge::DT_UINT64}).OutputShapeDependOnCompute();
    this->Attr("rank").AttrType(OPTIONAL).Int(1);
    this->SetInferShape(InferShape).SetInferDataType(InferDataType);
    this->AICore().SetTiling(TilingFunc);
    this->AICore().AddConfig("ascend910b");
  }
};
OP_ADD(Positives);
}  // namespace ops
"""

KERNEL = """
#include <cstdint>
#include "opkit/api/tiling.h"
#include "opkit/kernel_entry.h"

extern "C" void positives(uint8_t* x, uint8_t* y, uint8_t* count, uint8_t* rows,
                          uint8_t* shapes, uint8_t*, uint8_t* tiling) {
  const auto* lengths = reinterpret_cast<uint64_t*>(tiling);
  const auto* in = reinterpret_cast<float*>(x);
  auto* out = reinterpret_cast<float*>(y);
  auto* words = reinterpret_cast<uint64_t*>(shapes);
  uint64_t found = 0, full = 0;
  for (uint64_t row = 0; row < lengths[0]; ++row) {
    const uint64_t before = found;
    for (uint64_t i = 0; i < lengths[1]; ++i) {
      if (in[row * lengths[1] + i] > 0) out[found++] = in[row * lengths[1] + i];
    }
    reinterpret_cast<int32_t*>(count)[row] = static_cast<int32_t>(found - before);
    if (found != before) reinterpret_cast<uint64_t*>(rows)[full++] = row;
  }
  if (lengths[2] == 0) return;
  words[0] = lengths[2];
  words[1] = found;
  words[2] = lengths[2] == 2 ? 1000 : 1;
  words[9] = 0x80000000u | 2;
  words[10] = 1;
  words[11] = full;
}
OPKIT_KERNEL_TABLE(positives)
"""

X = np.array([[1, -2, 3, 4], [-1, -1, -1, -1], [-5, 6, 0, 7]], dtype=np.float32)


@pytest.fixture(scope="module")
def positives(build_artifact) -> runtime.Library:
    variants = {"positives.dav-2201.float32-float32-int32-uint64.so": "float"}
    return runtime.open(build_artifact(HOST, kernel=KERNEL, variants=variants))


def test_outputs_have_the_shapes_that_the_kernel_writes(positives) -> None:
    y, count, rows = positives.run("Positives", [X], out_shape=[(12,), None, None])
    np.testing.assert_array_equal(y, [1, 3, 4, 6, 7])
    np.testing.assert_array_equal(count, [3, 0, 2])
    # Its rank is marked as that of a uint64 tensor.
    np.testing.assert_array_equal(rows, [[0, 2]])


def test_given_arrays_are_written_and_viewed(positives) -> None:
    out = np.full(12, 9, dtype=np.float32)
    y, _, _ = positives.run("Positives", [X], out=[out, None, None])
    assert np.shares_memory(y, out)
    np.testing.assert_array_equal(y, [1, 3, 4, 6, 7])


def test_a_largest_shape_is_asked_for_where_none_is_inferred(positives) -> None:
    with pytest.raises(UsageError, match="its kernel writes the shape, so give the largest"):
        positives.run("Positives", [X])


@pytest.mark.parametrize(
    ("rank", "message"),
    [
        (0, 'its kernel writes no shape of output "y"'),
        (2, r'writes the shape \(5, 1000\), where \(12,\) has room, for output "y"'),
        (9, 'writes the rank 9, of at most 8, for output "y"'),
    ],
)
def test_a_shape_that_cannot_be_is_the_kernels_fault(positives, rank, message) -> None:
    with pytest.raises(KernelFault, match=message):
        positives.run("Positives", [X], {"rank": rank}, out_shape=[(12,), None, None])
