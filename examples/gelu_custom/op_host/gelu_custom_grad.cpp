// Host side of GELUCustomGrad: how it is split over cores and tiles, what its outputs look like, and its prototype.
#include "../op_kernel/gelu_custom_grad_tiling.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "log/log.h"
#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace {

bool IsLarger(const gert::Shape& a, const gert::Shape& b)
{
    if (a.GetDimNum() != b.GetDimNum()) {
        return a.GetDimNum() > b.GetDimNum();
    }
    return a.GetShapeSize() > b.GetShapeSize();
}

// Whether two shapes differ at most by leading axes of length 1.
bool IsSame(const gert::Shape& shape, const gert::Shape& whole)
{
    const size_t rank = std::max(shape.GetDimNum(), whole.GetDimNum());
    for (size_t i = 1; i <= rank; ++i) {
        const int64_t a = i <= shape.GetDimNum() ? shape.GetDim(shape.GetDimNum() - i) : 1;
        const int64_t b = i <= whole.GetDimNum() ? whole.GetDim(whole.GetDimNum() - i) : 1;
        if (a != b) {
            return false;
        }
    }
    return true;
}

int64_t LastAxis(const gert::Shape& shape)
{
    return shape.GetDimNum() == 0 ? 1 : shape.GetDim(shape.GetDimNum() - 1);
}

// Whether a shape is the last axis of another, alone.
bool IsLastAxis(const gert::Shape& shape, const gert::Shape& whole)
{
    return LastAxis(shape) == LastAxis(whole) && shape.GetShapeSize() == LastAxis(shape);
}

inline int64_t DivideUp(int64_t value, int64_t by)
{
    return (value + by - 1) / by;
}

// Fills the tiling data and returns the cores.
// More than fairCores would take longer to start than their share of the work saves.
uint32_t LaunchGeluCustomGrad(int64_t rowsExtent, int64_t columnsExtent, int64_t gradYStep, int64_t xStep, int64_t cores, int64_t rounds, GeluCustomGradTiling* tiling)
{
    if (rowsExtent == 0 || columnsExtent == 0) {
        *tiling = GeluCustomGradTiling();
        return 1;
    }
    const int64_t fairCores = std::min<int64_t>(cores, std::max<int64_t>(std::min<int64_t>(static_cast<int64_t>(std::sqrt(static_cast<double>(columnsExtent * rowsExtent * 251736 / 181617021))), 134), 1));
    const int64_t used = std::min<int64_t>(fairCores, std::max<int64_t>(DivideUp(rowsExtent * columnsExtent, 1024), 1));
    const int64_t coresPerRow = rowsExtent < used ? used / rowsExtent : 1;
    const int64_t perCore = DivideUp(columnsExtent, coresPerRow);
    const int64_t rounds1 = std::max<int64_t>(DivideUp(perCore, 6400), 1);
    const int64_t evenTile = std::min<int64_t>(DivideUp(DivideUp(perCore, rounds1), 256) * 256, 6400);
    const int64_t tile = std::min<int64_t>(evenTile, DivideUp(perCore, 256 * rounds) * 256);
    const int64_t parts = DivideUp(columnsExtent, tile);
    const int64_t tiles = rowsExtent * parts;
    const int64_t blockDim = std::min<int64_t>(used, tiles);
    const int64_t tileLength = DivideUp(tile, 256) * 256;
    tiling->perBlock = tiles / blockDim;
    tiling->extra = tiles % blockDim;
    tiling->rowsPerBatch = rowsExtent;
    tiling->partsPerRow = parts;
    tiling->columns = columnsExtent;
    tiling->gradYSize = columnsExtent + gradYStep * ((-1) + rowsExtent);
    tiling->gradYStep = gradYStep;
    tiling->xSize = columnsExtent + xStep * ((-1) + rowsExtent);
    tiling->xStep = xStep;
    tiling->gradXSize = rowsExtent * columnsExtent;
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

// Returns what gelu_custom_grad_tuning.inc has for this chip, the first input's data type and shapes like this one.
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
#include "gelu_custom_grad_tuning.inc"
#undef TUNED
    return tuned;
}

}  // namespace

namespace optiling {

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    const auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const int64_t cores = std::max<int64_t>(1, platform.GetCoreNumAiv());
    for (size_t i = 0; i < 2; ++i) {
        if (context->GetInputShape(i) == nullptr) {
            OP_LOGE(context->GetNodeName(), "input %zu has no shape", i);
            return ge::GRAPH_FAILED;
        }
    }
    const gert::Shape* whole = nullptr;
    for (size_t i = 0; i < 2; ++i) {
        const gert::StorageShape* shape = context->GetInputShape(i);
        if (shape == nullptr) {
            OP_LOGE(context->GetNodeName(), "input %zu has no shape", i);
            return ge::GRAPH_FAILED;
        }
        if (whole == nullptr || IsLarger(shape->GetStorageShape(), *whole)) {
            whole = &shape->GetStorageShape();
        }
    }
    const int64_t total = whole->GetShapeSize();
    // Inputs of one shape are one long row. Otherwise some are the last axis alone, and rows are what they share.
    bool broadcasts = false;
    const gert::Shape& gradYShape = context->GetInputShape(0)->GetStorageShape();
    const bool gradYIsWhole = IsSame(gradYShape, *whole);
    if (!gradYIsWhole && !IsLastAxis(gradYShape, *whole)) {
        OP_LOGE(context->GetNodeName(),
                "grad_y has %ld elements and a last axis of %ld: it must have the shape of the largest input"
                " (%ld elements, last axis %ld) or be its last axis alone",
                static_cast<long>(gradYShape.GetShapeSize()), static_cast<long>(LastAxis(gradYShape)),
                static_cast<long>(total), static_cast<long>(LastAxis(*whole)));
        return ge::GRAPH_FAILED;
    }
    broadcasts = broadcasts || !gradYIsWhole;
    const gert::Shape& xShape = context->GetInputShape(1)->GetStorageShape();
    const bool xIsWhole = IsSame(xShape, *whole);
    if (!xIsWhole && !IsLastAxis(xShape, *whole)) {
        OP_LOGE(context->GetNodeName(),
                "x has %ld elements and a last axis of %ld: it must have the shape of the largest input"
                " (%ld elements, last axis %ld) or be its last axis alone",
                static_cast<long>(xShape.GetShapeSize()), static_cast<long>(LastAxis(xShape)),
                static_cast<long>(total), static_cast<long>(LastAxis(*whole)));
        return ge::GRAPH_FAILED;
    }
    broadcasts = broadcasts || !xIsWhole;
    const int64_t columnsExtent = broadcasts ? LastAxis(*whole) : total;
    const int64_t rowsExtent = columnsExtent == 0 ? 0 : total / columnsExtent;
    const int64_t gradYStep = gradYIsWhole ? columnsExtent : 0;
    const int64_t xStep = xIsWhole ? columnsExtent : 0;
    const Tuned tuned = FindTuned(context, rowsExtent, columnsExtent);
    const int64_t limit = tuned.blocks > 0 ? std::min(tuned.blocks, cores) : cores;
    const int64_t tiles = std::max<int64_t>(1, tuned.tiles);

    if (context->GetInputDesc(0)->GetDataType() == ge::DT_FLOAT16 && context->GetInputDesc(1)->GetDataType() == ge::DT_FLOAT16 && context->GetOutputDesc(0)->GetDataType() == ge::DT_FLOAT16) {
        // The kernel keeps nothing in the workspace.
        context->GetWorkspaceSizes(1)[0] = 0;
        auto* tiling = context->GetTilingData<GeluCustomGradTiling>();
        if (tiling == nullptr) {
            OP_LOGE(context->GetNodeName(), "there is no room for the tiling data");
            return ge::GRAPH_FAILED;
        }
        const uint32_t tilingBlocks = LaunchGeluCustomGrad(rowsExtent, columnsExtent, gradYStep, xStep, limit, tiles, tiling);
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
    // The outputs have the shape that all inputs broadcast to: the largest.
    const gert::Shape* whole = context->GetInputShape(0);
    for (size_t i = 1; i < 2; ++i) {
        const gert::Shape* shape = context->GetInputShape(i);
        if (whole != nullptr && shape != nullptr && IsLarger(*shape, *whole)) {
            whole = shape;
        }
    }
    if (whole == nullptr) {
        return GRAPH_FAILED;
    }
    gert::Shape* gradXShape = context->GetOutputShape(0);
    if (gradXShape == nullptr) {
        return GRAPH_FAILED;
    }
    *gradXShape = *whole;
    return GRAPH_SUCCESS;
}

static graphStatus InferDataType(gert::InferDataTypeContext* context)
{
    context->SetOutputDataType(0, context->GetInputDataType(0));
    return GRAPH_SUCCESS;
}

}  // namespace ge

namespace ops {

class GELUCustomGrad : public OpDef {
public:
    explicit GELUCustomGrad(const char* name) : OpDef(name)
    {
        this->Input("grad_y")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16})
            .Format({ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND});
        this->Input("x")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16})
            .Format({ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND});
        this->Output("grad_x")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16})
            .Format({ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND});
        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc);
        this->AICore().AddConfig("ascend910b");
    }
};

OP_ADD(GELUCustomGrad);

}  // namespace ops
