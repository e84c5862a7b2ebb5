// Host side of GELUCustomTuned: how it is split over cores and tiles, what its output looks like, and its prototype.
#include "../op_kernel/gelu_custom_tuned_tiling.h"

#include <algorithm>

#include "log/log.h"
#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace {

// Elements a tile at the most; a tile takes 24 bytes an element, 8064 of them fill the unified buffer. A core with
// few tiles has nothing to hide its first copy in and its last copy out behind, so its tiles are shorter.
constexpr int64_t kShortTile = 4096;
constexpr int64_t kLongTile = 8064;
constexpr int64_t kFewTiles = 8;
constexpr int64_t kRepeatElements = 64;

int64_t DivideUp(int64_t value, int64_t divisor)
{
    return (value + divisor - 1) / divisor;
}

}  // namespace

namespace optiling {

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    auto* tiling = context->GetTilingData<GeluCustomTunedTilingData>();
    const gert::StorageShape* shape = context->GetInputShape(0);
    if (tiling == nullptr || shape == nullptr) {
        OP_LOGE(context->GetNodeName(), "the input has no shape, or there is no room for the tiling data");
        return ge::GRAPH_FAILED;
    }
    const auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const int64_t cores = std::max<int64_t>(1, platform.GetCoreNumAiv());

    // Equal tiles of whole repeats, as many on each core; short inputs use fewer cores, never shorter repeats.
    const int64_t total = shape->GetStorageShape().GetShapeSize();
    const int64_t repeats = std::max<int64_t>(1, DivideUp(total, kRepeatElements));
    const int64_t share = DivideUp(repeats, std::min(cores, repeats)) * kRepeatElements;
    const int64_t tilesPerBlock = DivideUp(share, share <= kFewTiles * kShortTile ? kShortTile : kLongTile);
    const int64_t tileLength = DivideUp(share, tilesPerBlock * kRepeatElements) * kRepeatElements;
    const int64_t blockLength = tilesPerBlock * tileLength;

    tiling->total = total;
    tiling->blockLength = blockLength;
    tiling->tileLength = static_cast<uint32_t>(tileLength);

    context->SetBlockDim(static_cast<uint32_t>(std::max<int64_t>(1, DivideUp(total, blockLength))));
    context->SetTilingKey(0);
    context->GetWorkspaceSizes(1)[0] = platform.GetLibApiWorkSpaceSize();
    return ge::GRAPH_SUCCESS;
}

}  // namespace optiling

namespace ge {

static graphStatus InferShape(gert::InferShapeContext* context)
{
    const gert::Shape* x = context->GetInputShape(0);
    gert::Shape* y = context->GetOutputShape(0);
    if (x == nullptr || y == nullptr) {
        return GRAPH_FAILED;
    }
    *y = *x;
    return GRAPH_SUCCESS;
}

static graphStatus InferDataType(gert::InferDataTypeContext* context)
{
    context->SetOutputDataType(0, context->GetInputDataType(0));
    return GRAPH_SUCCESS;
}

}  // namespace ge

namespace ops {

class GELUCustomTuned : public OpDef {
public:
    explicit GELUCustomTuned(const char* name) : OpDef(name)
    {
        this->Input("x")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16})
            .Format({ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND});
        this->Output("y")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16})
            .Format({ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND});
        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc);
        this->AICore().AddConfig("ascend910b");
    }
};

OP_ADD(GELUCustomTuned);

}  // namespace ops
