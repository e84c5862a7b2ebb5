// z = scale * x * gamma, gamma one number for each column; at least two axes, whole data blocks.
#include "row_scale_tiling.h"

#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
struct Tuned {
  int64_t buffers = 0;
};

[[maybe_unused]] static int64_t Bucket(int64_t value) {
  int64_t bucket = 1;
  while (bucket < value) {
    bucket *= 2;
  }
  return bucket;
}

// What row_scale_tuning.inc says, by hand as docs/tuning.md has it.
static Tuned FindTuned([[maybe_unused]] const std::string& chip, [[maybe_unused]] ge::DataType type,
                       [[maybe_unused]] int64_t rows, [[maybe_unused]] int64_t columns) {
  Tuned tuned;
#define TUNED(CHIP, TYPE, ROWS, COLUMNS, BUFFERS)                                           \
  if (chip == CHIP && type == TYPE && Bucket(rows) == ROWS && Bucket(columns) == COLUMNS) { \
    tuned = {BUFFERS};                                                                      \
  }
#include "row_scale_tuning.inc"
#undef TUNED
  return tuned;
}

static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  const gert::Shape shape = context->GetInputShape(0)->GetStorageShape();
  const size_t rank = shape.GetDimNum();
  const gert::Shape gamma = context->GetInputShape(1)->GetStorageShape();
  const bool by_column = gamma.GetDimNum() == 1 && gamma.GetDim(0) == shape.GetDim(rank - 1);
  if (rank < 2 || !by_column || shape.GetDim(rank - 1) % 8 != 0) {
    return ge::GRAPH_FAILED;
  }
  std::string chip;
  context->GetPlatformInfo()->GetPlatformRes("version", "SoC_version", chip);
  const Tuned tuned = FindTuned(chip, context->GetInputDesc(0)->GetDataType(),
                                shape.GetShapeSize() / shape.GetDim(rank - 1), shape.GetDim(rank - 1));
  RowScaleTilingData tiling;
  tiling.set_buffers(tuned.buffers == 0 ? 1 : tuned.buffers);
  tiling.set_columns(shape.GetDim(rank - 1));
  tiling.set_rows(shape.GetShapeSize() / shape.GetDim(rank - 1));
  tiling.set_scale(*context->GetAttrs()->GetAttrPointer<float>(0));
  context->SetBlockDim(1);
  tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
  context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
  context->GetWorkspaceSizes(1)[0] = 0;
  return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ge {
static graphStatus InferShape(gert::InferShapeContext* context) {
  *context->GetOutputShape(0) = *context->GetInputShape(0);
  return GRAPH_SUCCESS;
}
}  // namespace ge

namespace ops {
class RowScale : public OpDef {
 public:
  explicit RowScale(const char* name) : OpDef(name) {
    this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Input("gamma").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Output("z").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Attr("scale").AttrType(OPTIONAL).Float(2.0);
    this->SetInferShape(ge::InferShape);
    this->AICore().SetTiling(optiling::TilingFunc);
    this->AICore().AddConfig("ascend910b");
  }
};
OP_ADD(RowScale);
}  // namespace ops
