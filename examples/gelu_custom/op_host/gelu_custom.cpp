// Host side of GELUCustom: how it is split over cores and tiles, what its outputs look like, and its prototype.
#include "../op_kernel/gelu_custom_tiling.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "log/log.h"
#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace {

inline int64_t DivideUp(int64_t value, int64_t by)
{
    return (value + by - 1) / by;
}

// Fills the tiling data and returns the cores.
// More than fairCores would take longer to start than their share of the work saves.
uint32_t LaunchGeluCustom(int64_t elementsExtent, int64_t cores, int64_t rounds, GeluCustomTiling* tiling)
{
    if (elementsExtent == 0) {
        *tiling = GeluCustomTiling();
        return 1;
    }
    const int64_t fairCores = std::min<int64_t>(cores, std::max<int64_t>(std::min<int64_t>(static_cast<int64_t>(std::sqrt(static_cast<double>(elementsExtent * 112847 / 181617021))), 120), 1));
    const int64_t used = std::min<int64_t>(fairCores, std::max<int64_t>(DivideUp(elementsExtent, 1024), 1));
    const int64_t coresPerRow = used > 1 ? used : 1;
    const int64_t perCore = DivideUp(elementsExtent, coresPerRow);
    const int64_t rounds1 = std::max<int64_t>(DivideUp(perCore, 11520), 1);
    const int64_t evenTile = std::min<int64_t>(DivideUp(DivideUp(perCore, rounds1), 256) * 256, 11520);
    const int64_t tile = std::min<int64_t>(evenTile, DivideUp(perCore, 256 * rounds) * 256);
    const int64_t parts = DivideUp(elementsExtent, tile);
    const int64_t blockDim = std::min<int64_t>(used, parts);
    const int64_t tileLength = DivideUp(tile, 256) * 256;
    tiling->perBlock = parts / blockDim;
    tiling->extra = parts % blockDim;
    tiling->rowsPerBatch = 1;
    tiling->partsPerRow = parts;
    tiling->columns = elementsExtent;
    tiling->xSize = elementsExtent;
    tiling->ySize = elementsExtent;
    tiling->tileLength = static_cast<uint32_t>(tileLength);
    tiling->reserved = 0;
    return static_cast<uint32_t>(blockDim);
}

// What "opkit tune" found; 0 leaves a size to TilingFunc.
struct Tuned {
    int64_t tiles = 0;    // of the longest share of a core
    int64_t blocks = 0;
};

// The smallest power of two that is not below a number: shapes of one bucket have the same sizes.
[[maybe_unused]] int64_t Bucket(int64_t value)
{
    int64_t bucket = 1;
    while (bucket < value) {
        bucket *= 2;
    }
    return bucket;
}

// Returns what gelu_custom_tuning.inc has for this chip, the first input's data type and shapes like this one.
Tuned FindTuned(gert::TilingContext* context, [[maybe_unused]] int64_t rows, [[maybe_unused]] int64_t columns)
{
    std::string chip;
    context->GetPlatformInfo()->GetPlatformRes("version", "SoC_version", chip);
    [[maybe_unused]] const ge::DataType type = context->GetInputDesc(0)->GetDataType();
    Tuned tuned;
#define TUNED(CHIP, TYPE, ROWS, COLUMNS, TILES, BLOCKS) \
    if (chip == CHIP && type == TYPE && Bucket(rows) == ROWS && Bucket(columns) == COLUMNS) { \
        tuned = {TILES, BLOCKS}; \
    }
#include "gelu_custom_tuning.inc"
#undef TUNED
    return tuned;
}

}  // namespace

namespace optiling {

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    const auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const int64_t cores = std::max<int64_t>(1, platform.GetCoreNumAiv());
    for (size_t i = 0; i < 1; ++i) {
        if (context->GetInputShape(i) == nullptr) {
            OP_LOGE(context->GetNodeName(), "input %zu has no shape", i);
            return ge::GRAPH_FAILED;
        }
    }
    const int64_t elementsExtent = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
    const Tuned tuned = FindTuned(context, 1, elementsExtent);
    const int64_t limit = tuned.blocks > 0 ? std::min(tuned.blocks, cores) : cores;
    const int64_t tiles = std::max<int64_t>(1, tuned.tiles);

    if (context->GetInputDesc(0)->GetDataType() == ge::DT_FLOAT16 && context->GetOutputDesc(0)->GetDataType() == ge::DT_FLOAT16) {
        // The kernel keeps nothing in the workspace.
        context->GetWorkspaceSizes(1)[0] = 0;
        auto* tiling = context->GetTilingData<GeluCustomTiling>();
        if (tiling == nullptr) {
            OP_LOGE(context->GetNodeName(), "there is no room for the tiling data");
            return ge::GRAPH_FAILED;
        }
        const uint32_t tilingBlocks = LaunchGeluCustom(elementsExtent, limit, tiles, tiling);
        context->SetBlockDim(tilingBlocks);
        context->SetTilingKey(0);
        return ge::GRAPH_SUCCESS;
}
    OP_LOGE(context->GetNodeName(), "there is no kernel for these data types");
    return ge::GRAPH_FAILED;
}

}  // namespace optiling

namespace ge {

static graphStatus InferShape(gert::InferShapeContext* context)
{
    const gert::Shape* whole = context->GetInputShape(0);
    if (whole == nullptr) {
        return GRAPH_FAILED;
    }
    gert::Shape* yShape = context->GetOutputShape(0);
    if (yShape == nullptr) {
        return GRAPH_FAILED;
    }
    *yShape = *whole;
    return GRAPH_SUCCESS;
}

static graphStatus InferDataType(gert::InferDataTypeContext* context)
{
    context->SetOutputDataType(0, context->GetInputDataType(0));
    return GRAPH_SUCCESS;
}

}  // namespace ge

namespace ops {

class GELUCustom : public OpDef {
public:
    explicit GELUCustom(const char* name) : OpDef(name)
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

OP_ADD(GELUCustom);

}  // namespace ops
