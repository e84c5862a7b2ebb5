// Host side of RmsnormGrad: how it is split over cores and tiles, what its outputs look like, and its prototype.
#include "../op_kernel/rmsnorm_grad_tiling.h"

#include <algorithm>
#include <cmath>

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

// The bytes of a row in the unified buffer, where every row starts on a 32-byte boundary.
int64_t RowBytes(int64_t length, ge::DataType type)
{
    return RoundUp(length * ge::GetSizeByDataType(type), 32);
}

}  // namespace

namespace optiling {

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    auto* tiling = context->GetTilingData<RmsnormGradTilingData>();
    if (tiling == nullptr) {
        OP_LOGE(context->GetNodeName(), "there is no room for the tiling data");
        return ge::GRAPH_FAILED;
    }
    const auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const int64_t cores = std::max<int64_t>(1, platform.GetCoreNumAiv());
    uint64_t ubBytes = 0;
    platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, ubBytes);

    for (size_t i = 0; i < 3; ++i) {
        if (context->GetInputShape(i) == nullptr) {
            OP_LOGE(context->GetNodeName(), "input %zu has no shape", i);
            return ge::GRAPH_FAILED;
        }
    }
    const gert::Shape& whole = context->GetInputShape(0)->GetStorageShape();
    const int64_t rows = Rows(whole);
    const int64_t columns = LastAxis(whole);
    // x has the shape of grad_y, or is its last axis alone.
    const gert::Shape& xShape = context->GetInputShape(1)->GetStorageShape();
    const bool xBroadcast = rows != 1 && Rows(xShape) == 1;
    if (LastAxis(xShape) != columns || (!xBroadcast && Rows(xShape) != rows)) {
        OP_LOGE(context->GetNodeName(), "x has %ld rows of %ld, grad_y has %ld rows of %ld: they must agree,"
                " or x be one row", static_cast<long>(Rows(xShape)),
                static_cast<long>(LastAxis(xShape)), static_cast<long>(rows), static_cast<long>(columns));
        return ge::GRAPH_FAILED;
    }
    // gamma has the shape of grad_y, or is its last axis alone.
    const gert::Shape& gammaShape = context->GetInputShape(2)->GetStorageShape();
    const bool gammaBroadcast = rows != 1 && Rows(gammaShape) == 1;
    if (LastAxis(gammaShape) != columns || (!gammaBroadcast && Rows(gammaShape) != rows)) {
        OP_LOGE(context->GetNodeName(), "gamma has %ld rows of %ld, grad_y has %ld rows of %ld: they must agree,"
                " or gamma be one row", static_cast<long>(Rows(gammaShape)),
                static_cast<long>(LastAxis(gammaShape)), static_cast<long>(rows), static_cast<long>(columns));
        return ge::GRAPH_FAILED;
    }

    // What a row takes in the buffers of one tile, and what is there whatever the tile.
    int64_t rowBytes = 0;
    int64_t fixedBytes = 0;
    const int64_t scratchLength = RoundUp(columns, 64);
    const int64_t gradYBytes = RowBytes(columns, context->GetInputDesc(0)->GetDataType());
    rowBytes += gradYBytes;
    const int64_t xBytes = RowBytes(columns, context->GetInputDesc(1)->GetDataType());
    fixedBytes += xBroadcast ? xBytes : 0;
    rowBytes += xBroadcast ? 0 : xBytes;
    const int64_t gammaBytes = RowBytes(columns, context->GetInputDesc(2)->GetDataType());
    fixedBytes += gammaBroadcast ? gammaBytes : 0;
    rowBytes += gammaBroadcast ? 0 : gammaBytes;
    const int64_t gradXBytes = RowBytes(columns, context->GetOutputDesc(0)->GetDataType());
    rowBytes += gradXBytes;
    const int64_t gradGammaBytes = RowBytes(columns, context->GetOutputDesc(1)->GetDataType());
    rowBytes += gradGammaBytes;
    fixedBytes += kRmsnormGradScratchTensors * scratchLength * sizeof(float);
    fixedBytes += kRmsnormGradRowTensors * 256;
    fixedBytes += RoundUp(scratchLength / 64 * 2 * sizeof(float), 32);
    // Two buffers a queue overlap copies and computing; a row that is too long for that gets one.
    const int64_t freeBytes = static_cast<int64_t>(ubBytes) - fixedBytes;
    int64_t bufferCount = freeBytes >= kRmsnormGradBufferCount * rowBytes ? kRmsnormGradBufferCount : 1;
    int64_t fittingRows = rowBytes == 0 ? 1 : freeBytes / (bufferCount * rowBytes);
    int64_t partLength = columns;
    if (freeBytes < 0 || fittingRows < 1) {
        // A row that does not fit is taken in parts, of whole repeats of 64 elements.
        bufferCount = kRmsnormGradBufferCount;
        fittingRows = 1;
        int64_t elementBytes = 0;
        int64_t lastingBytes = kRmsnormGradRowTensors * 256 + 5 * bufferCount * 32;
        elementBytes += bufferCount * ge::GetSizeByDataType(context->GetInputDesc(0)->GetDataType());
        elementBytes += bufferCount * ge::GetSizeByDataType(context->GetInputDesc(1)->GetDataType());
        elementBytes += bufferCount * ge::GetSizeByDataType(context->GetInputDesc(2)->GetDataType());
        elementBytes += bufferCount * ge::GetSizeByDataType(context->GetOutputDesc(0)->GetDataType());
        elementBytes += bufferCount * ge::GetSizeByDataType(context->GetOutputDesc(1)->GetDataType());
        elementBytes += kRmsnormGradScratchTensors * sizeof(float);
        const int64_t repeatBytes = 64 * elementBytes + kRmsnormGradMaskTensors * 8 + 2 * static_cast<int64_t>(sizeof(float));
        lastingBytes += 32 + kRmsnormGradMaskTensors * 32;  // what masks and the room of reductions are rounded up by
        partLength = (static_cast<int64_t>(ubBytes) - lastingBytes) / repeatBytes * 64;
        if (partLength < 64) {
            OP_LOGE(context->GetNodeName(), "64 elements of a row do not fit the unified buffer of %lu bytes",
                    static_cast<unsigned long>(ubBytes));
            return ge::GRAPH_FAILED;
        }
    }

    const int64_t blocks = std::max<int64_t>(1, std::min(cores, rows));
    const int64_t longestShare = std::max<int64_t>(1, (rows + blocks - 1) / blocks);
    constexpr int64_t longestCopy = 4095;  // blocks of one DataCopyPad

    tiling->rows = rows;
    tiling->columns = columns;
    tiling->rowsPerBlock = columns == 0 ? 0 : rows / blocks;
    tiling->extraBlocks = columns == 0 ? 0 : rows % blocks;
    tiling->partLength = static_cast<uint32_t>(partLength);
    tiling->bufferCount = static_cast<uint32_t>(bufferCount);
    tiling->rowsPerTile = static_cast<uint32_t>(std::min({fittingRows, longestShare, longestCopy}));
    tiling->xBroadcast = xBroadcast ? 1 : 0;
    tiling->gammaBroadcast = gammaBroadcast ? 1 : 0;
    const gert::RuntimeAttrs* attrs = context->GetAttrs();
    const float* epsilonPointer = attrs == nullptr ? nullptr : attrs->GetAttrPointer<float>(0);
    if (epsilonPointer == nullptr) {
        OP_LOGE(context->GetNodeName(), "attribute epsilon cannot be read");
        return ge::GRAPH_FAILED;
    }
    const float epsilon = *epsilonPointer;
    tiling->factor0 = static_cast<float>(1.0/static_cast<double>(columns));
    tiling->epsilon = static_cast<float>(epsilon);

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
    gert::Shape* gradXShape = context->GetOutputShape(0);
    if (gradXShape == nullptr) {
        return GRAPH_FAILED;
    }
    *gradXShape = *whole;
    gert::Shape* gradGammaShape = context->GetOutputShape(1);
    if (gradGammaShape == nullptr) {
        return GRAPH_FAILED;
    }
    *gradGammaShape = *whole;
    return GRAPH_SUCCESS;
}

static graphStatus InferDataType(gert::InferDataTypeContext* context)
{
    context->SetOutputDataType(0, context->GetInputDataType(0));
    context->SetOutputDataType(1, context->GetInputDataType(0));
    return GRAPH_SUCCESS;
}

}  // namespace ge

namespace ops {

class RmsnormGrad : public OpDef {
public:
    explicit RmsnormGrad(const char* name) : OpDef(name)
    {
        this->Input("grad_y")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_BF16, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
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
        this->Output("grad_x")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_BF16, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
        this->Output("grad_gamma")
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

OP_ADD(RmsnormGrad);

}  // namespace ops
