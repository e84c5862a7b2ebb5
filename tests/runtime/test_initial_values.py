"""What outputs hold before the kernel runs (InitValue)."""

from __future__ import annotations

import numpy as np
import pytest

from opkit import runtime
from opkit.errors import OpkitError

# Whether its tiling asks for the values is what its attribute says; the kernel writes nothing.
HOST = """
#include "register/op_def_registry.h"

static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  if (*context->GetAttrs()->GetAttrPointer<bool>(0)) context->SetNeedAtomic(true);
  context->SetBlockDim(1);
  return ge::GRAPH_SUCCESS;
}

namespace ops {
class Begins : public OpDef {
 public:
  explicit Begins(const char* name) : OpDef(name) {
    this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_INT64});
    this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_INT64})
        .Follow("x").INIT;
    this->Attr("asks").AttrType(OPTIONAL).Bool(true);
    this->AICore().SetTiling(TilingFunc);
    this->AICore().AddConfig("ascend910b");
  }
};
OP_ADD(Begins);
}  // namespace ops
"""

KERNEL = """
#include <cstdint>
#include "opkit/api/tiling.h"
#include "opkit/kernel_entry.h"

extern "C" void begins(uint8_t*, uint8_t*, uint8_t*, uint8_t*) {}
OPKIT_KERNEL_TABLE(begins)
"""

DTYPES = ("float16", "float32", "int64")


def begins(build_artifact, init: str) -> runtime.Library:
    variants = {f"begins.dav-2201.{name}-{name}.so": name for name in DTYPES}
    return runtime.open(
        build_artifact(HOST.replace("INIT", init), kernel=KERNEL, variants=variants)
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("init", "values"),
    [
        ("InitValue(0)", (0, 0, 0)),
        (
            "InitValue({{ScalarType::FLOAT16, 1.5}, {ScalarType::FLOAT32, -3.25},"
            " {ScalarType::INT64, -7}})",
            (1.5, -3.25, -7),
        ),
        # Of another type than the output: its bits are repeated.
        ("InitValue({ScalarType::INT16, 1})", (2.0**-24, 65537 * 2.0**-149, 0x1000100010001)),
        ("InitValue(ScalarVar(ScalarType::UINT8, 255u))", (np.nan, np.nan, -1)),
    ],
)
def test_outputs_begin_as_their_opdef_says(
    build_artifact, init: str, values: tuple[float, ...]
) -> None:
    library = begins(build_artifact, init)
    for dtype, value in zip(DTYPES, values, strict=True):
        (y,) = library.run("Begins", [np.ones((3, 5), dtype)])
        np.testing.assert_array_equal(y, np.full((3, 5), value, dtype), err_msg=dtype)


def test_they_do_not_where_tiling_does_not_ask_for_it(build_artifact) -> None:
    library = begins(build_artifact, "InitValue({ScalarType::FLOAT32, 2})")
    out = np.full(4, 9, np.float32)
    library.run("Begins", [np.ones(4, np.float32)], {"asks": False}, out=[out])
    np.testing.assert_array_equal(out, [9, 9, 9, 9])
    library.run("Begins", [np.ones(4, np.float32)], out=[out])
    np.testing.assert_array_equal(out, [2, 2, 2, 2])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("init", "message"),
    [
        ("InitValue(1)", "InitValue of a number other than 0"),
        ("InitValue({ScalarType::INVALID_DTYPE, 1})", "InitValue of INVALID_DTYPE"),
        (
            "InitValue({{ScalarType::INT8, 1}, {ScalarType::INT8, 1}})",
            "InitValue of 2 values for 3 data types",
        ),
        (
            "DataType({ge::DT_INT64, ge::DT_FLOAT, ge::DT_INT64})"
            ".InitValue({{ScalarType::INT8, 1}, {ScalarType::INT8, 1}, {ScalarType::INT8, 2}})",
            "InitValue of two values for one data type",
        ),
    ],
)
def test_what_is_no_initial_value_is_refused_by_name(
    build_artifact, init: str, message: str
) -> None:
    with pytest.raises(OpkitError, match=message):
        begins(build_artifact, init).run("Begins", [np.ones(4, np.float32)])


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ('Follow("z")', 'y follows "z", which is not another input'),
        (
            'InitValue(0); this->Output("z").ParamType(REQUIRED).DataType({ge::DT_FLOAT})',
            "x lists 3 types and z lists 1; the i-th types of all params form one combination",
        ),
    ],
)
def test_params_that_do_not_belong_together_are_refused(
    build_artifact, rest: str, message: str
) -> None:
    with pytest.raises(OpkitError, match=message):
        begins(build_artifact, rest).run("Begins", [np.ones(4, np.float32)])
