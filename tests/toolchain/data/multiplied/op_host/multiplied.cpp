#include "multiplied_tiling.h"
#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

// Host code looks types up, and asks whether it found one.
static_assert(static_cast<int32_t>(matmul_tiling::DataType::DT_UNDEFINED) == ge::DT_UNDEFINED, "as all types");

namespace optiling {

static ge::graphStatus Tiling(gert::TilingContext* context) {
  const auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
  const gert::Shape& a = context->GetInputShape(0)->GetOriginShape();
  const gert::Shape& b = context->GetInputShape(1)->GetOriginShape();
  matmul_tiling::MultiCoreMatmulTiling product(platform);
  const auto gm = matmul_tiling::TPosition::GM;
  const auto nd = matmul_tiling::CubeFormat::ND;
  product.SetDim(2);
  product.SetAType(gm, nd, matmul_tiling::DataType::DT_FLOAT16);
  product.SetBType(gm, nd, matmul_tiling::DataType::DT_FLOAT16);
  product.SetCType(matmul_tiling::TPosition::VECIN, nd, matmul_tiling::DataType::DT_FLOAT);
  product.SetOrgShape(a.GetDim(0), b.GetDim(1), a.GetDim(1));
  product.SetShape(a.GetDim(0), b.GetDim(1), a.GetDim(1));
  product.SetFixSplit(32, 32, -1);
  MultipliedTiling tiling;
  if (product.GetTiling(tiling.product) == -1) return ge::GRAPH_FAILED;
  tiling.set_slope(0.5f);
  tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
  context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
  context->SetBlockDim(1);
  context->GetWorkspaceSizes(1)[0] = platform.GetLibApiWorkSpaceSize();
  return ge::GRAPH_SUCCESS;
}

}  // namespace optiling

namespace ops {

static ge::graphStatus InferShape(gert::InferShapeContext* context) {
  gert::Shape& c = *context->GetOutputShape(0);
  c.SetDimNum(0);
  c.AppendDim(context->GetInputShape(0)->GetDim(0));
  c.AppendDim(context->GetInputShape(1)->GetDim(1));
  return ge::GRAPH_SUCCESS;
}

class Multiplied : public OpDef {
 public:
  explicit Multiplied(const char* name) : OpDef(name) {
    this->Input("a").ParamType(REQUIRED).DataType({ge::DT_FLOAT16}).Format({ge::FORMAT_ND});
    this->Input("b").ParamType(REQUIRED).DataType({ge::DT_FLOAT16}).Format({ge::FORMAT_ND});
    this->Output("c").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->SetInferShape(InferShape);
    this->AICore().SetTiling(optiling::Tiling);
    this->AICore().AddConfig("ascend910b");
  }
};
OP_ADD(Multiplied);

}  // namespace ops
