// Host side of GELUCustom: how it is split over cores and tiles, what its outputs look like, and its prototype.
#include "../op_kernel/gelu_custom_tiling.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "log/log.h"
#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace {

int64_t RoundUp(int64_t value, int64_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

int64_t DivideUp(int64_t value, int64_t divisor)
{
    return (value + divisor - 1) / divisor;
}

// What "opkit tune" found; 0 leaves a size to TilingFunc.
struct Tuned {
    int64_t tiles = 0;    // of the longest share of a core
    int64_t buffers = 0;  // a queue
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
#define TUNED(CHIP, TYPE, ROWS, COLUMNS, TILES, BUFFERS, BLOCKS) \
    if (chip == CHIP && type == TYPE && Bucket(rows) == ROWS && Bucket(columns) == COLUMNS) { \
        tuned = {TILES, BUFFERS, BLOCKS}; \
    }
#include "gelu_custom_tuning.inc"
#undef TUNED
    return tuned;
}

}  // namespace

namespace optiling {

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    // Below this many elements another core costs more than it saves.
    constexpr int64_t smallestShare = 2048;
    // Vector instructions work on repeats of 64 float elements, copies on blocks of 32 bytes.
    constexpr int64_t alignment = 64;

    auto* tiling = context->GetTilingData<GeluCustomTilingData>();
    if (tiling == nullptr) {
        OP_LOGE(context->GetNodeName(), "there is no room for the tiling data");
        return ge::GRAPH_FAILED;
    }
    const auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const int64_t cores = std::max<int64_t>(1, platform.GetCoreNumAiv());
    uint64_t ubBytes = 0;
    platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, ubBytes);

    const gert::StorageShape* whole = context->GetInputShape(0);
    if (whole == nullptr) {
        OP_LOGE(context->GetNodeName(), "input 0 has no shape");
        return ge::GRAPH_FAILED;
    }
    const int64_t total = whole->GetStorageShape().GetShapeSize();
    const int64_t columns = total;
    const int64_t rows = columns == 0 ? 0 : total / columns;

    const Tuned tuned = FindTuned(context, rows, columns);
    const int64_t bufferCount =
        tuned.buffers > 0 ? std::min<int64_t>(tuned.buffers, 4) : kGeluCustomBufferCount;
    const int64_t limit = tuned.blocks > 0 ? std::min(tuned.blocks, cores) : cores;
    // The longest tile that fits: the buffers of the queues, the scratch tensors and the masks.
    int64_t elementBytes = 0;
    elementBytes += ge::GetSizeByDataType(context->GetInputDesc(0)->GetDataType());
    elementBytes += ge::GetSizeByDataType(context->GetOutputDesc(0)->GetDataType());
    elementBytes = elementBytes * bufferCount + kGeluCustomScratchTensors * sizeof(float);
    const int64_t repeatBytes = elementBytes * alignment + kGeluCustomMaskTensors * alignment / 8;
    const int64_t usableBytes = static_cast<int64_t>(ubBytes) - kGeluCustomMaskTensors * 32;
    const int64_t longestTile = usableBytes / repeatBytes * alignment;
    if (longestTile <= 0) {
        OP_LOGE(context->GetNodeName(), "a tile of %ld elements does not fit the unified buffer of %lu bytes",
                static_cast<long>(alignment), static_cast<unsigned long>(ubBytes));
        return ge::GRAPH_FAILED;
    }

    // Equal shares in whole repeats; a share that is too long for one tile is cut into equal tiles.
    int64_t share = columns;
    if (rows == 1) {
        const int64_t worthwhile = tuned.blocks > 0 ? limit : std::max<int64_t>(1, columns / smallestShare);
        share = RoundUp(DivideUp(columns, std::min(limit, worthwhile)), alignment);
    }
    const int64_t tilesPerShare = std::max<int64_t>({1, tuned.tiles, DivideUp(share, longestTile)});
    const int64_t tileLength = std::max(alignment, RoundUp(DivideUp(share, tilesPerShare), alignment));
    const int64_t tilesPerRow = DivideUp(columns, tileLength);
    const int64_t tiles = rows * tilesPerRow;
    const int64_t blocks = std::max<int64_t>(1, std::min(limit, tiles));

    tiling->rows = rows;
    tiling->columns = columns;
    tiling->tilesPerRow = tilesPerRow;
    tiling->tilesPerBlock = tiles / blocks;
    tiling->extraBlocks = tiles % blocks;
    tiling->tileLength = static_cast<uint32_t>(tileLength);
    tiling->bufferCount = static_cast<uint32_t>(bufferCount);

    context->SetBlockDim(static_cast<uint32_t>(blocks));
    context->SetTilingKey(0);
    // The kernel calls nothing that keeps data in the workspace. Matmul and SyncAll would: GetLibApiWorkSpaceSize().
    context->GetWorkspaceSizes(1)[0] = 0;
    return ge::GRAPH_SUCCESS;
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
