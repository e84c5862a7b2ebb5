// Host side of Rmsnorm: how it is split over cores and tiles, what its outputs look like, and its prototype.
#include "../op_kernel/rmsnorm_tiling.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "log/log.h"
#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace {

int64_t LastAxis(const gert::Shape& shape)
{
    return shape.GetDimNum() == 0 ? 1 : shape.GetDim(shape.GetDimNum() - 1);
}

// The product of all axes but the last.
int64_t Rows(const gert::Shape& shape)
{
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < shape.GetDimNum(); ++i) {
        rows *= shape.GetDim(i);
    }
    return rows;
}

int64_t RoundUp(int64_t value, int64_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
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

// Returns what rmsnorm_tuning.inc has for this chip, the first input's data type and shapes like this one.
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
#include "rmsnorm_tuning.inc"
#undef TUNED
    return tuned;
}

}  // namespace

namespace optiling {

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    auto* tiling = context->GetTilingData<RmsnormTilingData>();
    if (tiling == nullptr) {
        OP_LOGE(context->GetNodeName(), "there is no room for the tiling data");
        return ge::GRAPH_FAILED;
    }
    const auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const int64_t cores = std::max<int64_t>(1, platform.GetCoreNumAiv());
    uint64_t ubBytes = 0;
    platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, ubBytes);

    for (size_t i = 0; i < 2; ++i) {
        if (context->GetInputShape(i) == nullptr) {
            OP_LOGE(context->GetNodeName(), "input %zu has no shape", i);
            return ge::GRAPH_FAILED;
        }
    }
    const gert::Shape& whole = context->GetInputShape(0)->GetStorageShape();
    const int64_t rows = Rows(whole);
    const int64_t columns = LastAxis(whole);
    // gamma has the shape of x, or is its last axis alone.
    const gert::Shape& gammaShape = context->GetInputShape(1)->GetStorageShape();
    const bool gammaBroadcast = rows != 1 && Rows(gammaShape) == 1;
    if (LastAxis(gammaShape) != columns || (!gammaBroadcast && Rows(gammaShape) != rows)) {
        OP_LOGE(context->GetNodeName(), "gamma has %ld rows of %ld, x has %ld rows of %ld: they must agree,"
                " or gamma be one row", static_cast<long>(Rows(gammaShape)),
                static_cast<long>(LastAxis(gammaShape)), static_cast<long>(rows), static_cast<long>(columns));
        return ge::GRAPH_FAILED;
    }

    // What a row takes in the buffers of one tile, and what is there whatever the tile.
    const ge::DataType type = context->GetInputDesc(0)->GetDataType();
    const int64_t elementBytes = ge::GetSizeByDataType(type);
    const int64_t stride = RoundUp(columns, 32 / elementBytes);
    const int64_t queueBytes = 2 * stride * elementBytes;  // x and y
    const int64_t wideBytes = type == ge::DT_FLOAT ? 0 : stride * static_cast<int64_t>(sizeof(float));
    const int64_t fixedBytes = stride * elementBytes + wideBytes                                     // gamma
                               + stride * static_cast<int64_t>(sizeof(float))                        // squares
                               + RoundUp(stride / 8 * static_cast<int64_t>(sizeof(float)) + 32, 32)  // ReduceSum
                               + 2 * kRmsnormLongestTile * static_cast<int64_t>(sizeof(float));
    // Two buffers a queue overlap copies and computing; a row that is too long for that gets one.
    const Tuned tuned = FindTuned(context, rows, columns);
    const int64_t freeBytes = static_cast<int64_t>(ubBytes) - fixedBytes;
    const int64_t wanted = tuned.buffers > 0 ? std::min<int64_t>(tuned.buffers, 2) : kRmsnormBufferCount;
    const int64_t bufferCount = freeBytes >= wanted * queueBytes + wideBytes ? wanted : 1;
    const int64_t rowBytes = bufferCount * queueBytes + wideBytes;
    const int64_t fittingRows = rowBytes == 0 ? 1 : freeBytes / rowBytes;
    if (freeBytes < 0 || fittingRows < 1) {
        OP_LOGE(context->GetNodeName(),
                "a row of %ld elements needs %ld bytes of the unified buffer, which has %lu: rows this long are not supported",
                static_cast<long>(columns), static_cast<long>(fixedBytes + rowBytes), static_cast<unsigned long>(ubBytes));
        return ge::GRAPH_FAILED;
    }

    const int64_t limit = tuned.blocks > 0 ? std::min(tuned.blocks, cores) : cores;
    const int64_t blocks = std::max<int64_t>(1, std::min(limit, rows));
    const int64_t longestShare = std::max<int64_t>(1, (rows + blocks - 1) / blocks);
    const int64_t longestTile = tuned.tiles > 0 ? (longestShare + tuned.tiles - 1) / tuned.tiles : longestShare;

    tiling->rows = rows;
    tiling->columns = columns;
    tiling->rowsPerBlock = columns == 0 ? 0 : rows / blocks;
    tiling->extraBlocks = columns == 0 ? 0 : rows % blocks;
    tiling->rowsPerTile =
        static_cast<uint32_t>(std::min<int64_t>({fittingRows, longestTile, kRmsnormLongestTile}));
    tiling->rowStride = static_cast<uint32_t>(stride);
    tiling->bufferCount = static_cast<uint32_t>(bufferCount);
    tiling->gammaBroadcast = gammaBroadcast ? 1 : 0;
    const gert::RuntimeAttrs* attrs = context->GetAttrs();
    const float* epsilonPointer = attrs == nullptr ? nullptr : attrs->GetAttrPointer<float>(0);
    if (epsilonPointer == nullptr) {
        OP_LOGE(context->GetNodeName(), "attribute epsilon cannot be read");
        return ge::GRAPH_FAILED;
    }
    const float epsilon = *epsilonPointer;
    tiling->factor = static_cast<float>(1.0 / static_cast<double>(columns));
    tiling->epsilon = epsilon;

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

class Rmsnorm : public OpDef {
public:
    explicit Rmsnorm(const char* name) : OpDef(name)
    {
        this->Input("x")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_BF16, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
        this->Input("gamma")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_BF16, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
        this->Output("y")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_BF16, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
        this->Attr("epsilon").AttrType(OPTIONAL).Float(1.0e-06f);
        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc);
        this->AICore().AddConfig("ascend910b");
    }
};

OP_ADD(Rmsnorm);

}  // namespace ops
