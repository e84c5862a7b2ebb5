// GELUCustom:
//     y = 0.5*x*(1 + tanh(sqrt(2/pi)*(x + 0.044715*x**3)))
#include "kernel_operator.h"
#include "gelu_custom_tiling.h"

using namespace AscendC;

// A core takes a range of tiles. The next tile is copied in while this one computes.
class KernelGeluCustom {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const GeluCustomTiling& given)
    {
        tiling = given;
        const int64_t block = GetBlockIdx();
        const int64_t extra = tiling.extra;
        firstTile = block * tiling.perBlock + (block < extra ? block : extra);
        lastTile = firstTile + tiling.perBlock + (block < extra ? 1 : 0);
        xGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(x), tiling.xSize);
        yGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(y), tiling.ySize);
        pipe.InitBuffer(inputQueue, BUFFERS, 2 * tiling.tileLength);
        pipe.InitBuffer(outputQueue, BUFFERS, 2 * tiling.tileLength);
        pipe.InitBuffer(scratchBuffer, 2 * SlotLength() * sizeof(float));
        scratch = scratchBuffer.Get<float>();
    }

    __aicore__ inline void Process()
    {
        CopyIn(firstTile);
        for (int64_t tile = firstTile; tile < lastTile; ++tile) {
            CopyIn(tile + 1);
            Compute(CountOf(tile));
            CopyOut(tile);
        }
    }

private:
    __aicore__ inline void CopyIn(int64_t tile)
    {
        if (tile >= lastTile) {
            return;
        }
        LocalTensor<uint8_t> input = inputQueue.AllocTensor<uint8_t>();
        const DataCopyExtParams copy{1, static_cast<uint32_t>(CountOf(tile) * sizeof(half)), 0, 0, 0};
        DataCopyPad(input.ReinterpretCast<half>(), xGlobal[tile * tiling.tileLength], copy, DataCopyPadExtParams<half>());
        inputQueue.EnQue<uint8_t>(input);
    }

    __aicore__ inline void Compute(uint32_t count)
    {
        LocalTensor<uint8_t> input = inputQueue.DeQue<uint8_t>();
        LocalTensor<uint8_t> output = outputQueue.AllocTensor<uint8_t>();
        const LocalTensor<half> xLocal = input.ReinterpretCast<half>();
        const LocalTensor<float> scratch0 = scratch;
        const LocalTensor<float> scratch1 = scratch[SlotLength()];
        const LocalTensor<half> yLocal = output.ReinterpretCast<half>();
        Cast(scratch0, xLocal, RoundMode::CAST_NONE, count);  // x
        Muls(scratch1, scratch0, -0.071354814f, count);
        Mul(scratch1, scratch1, scratch0, count);
        Adds(scratch1, scratch1, -1.5957692f, count);
        Mul(scratch1, scratch1, scratch0, count);             // -2*sqrt(2/pi)*(x + 0.044715*x**3)
        Exp(scratch1, scratch1, count);                       // exp(-2*sqrt(2/pi)*(x + 0.044715*x**3))
        Adds(scratch1, scratch1, 1.0f, count);                // exp(-2*sqrt(2/pi)*(x + 0.044715*x**3)) + 1
        Div(scratch0, scratch0, scratch1, count);
        Cast(yLocal, scratch0, RoundMode::CAST_RINT, count);  // x*sigmoid(2*sqrt(2/pi)*(x + 0.044715*x**3))
        outputQueue.EnQue<uint8_t>(output);
        inputQueue.FreeTensor(input);
    }

    __aicore__ inline void CopyOut(int64_t tile)
    {
        LocalTensor<uint8_t> output = outputQueue.DeQue<uint8_t>();
        const DataCopyExtParams copy{1, static_cast<uint32_t>(CountOf(tile) * sizeof(half)), 0, 0, 0};
        DataCopyPad(yGlobal[tile * tiling.tileLength], output.ReinterpretCast<half>(), copy);
        outputQueue.FreeTensor(output);
    }

    // Elements of a tile: the last may be short.
    __aicore__ inline uint32_t CountOf(int64_t tile)
    {
        const int64_t rest = tiling.columns - tile * tiling.tileLength;
        return rest < tiling.tileLength ? static_cast<uint32_t>(rest) : tiling.tileLength;
    }

    // Elements from one slot to the next: neighbours lie in different groups of banks.
    __aicore__ inline uint32_t SlotLength()
    {
        return tiling.tileLength + 64;
    }

    static constexpr int32_t BUFFERS = 2;
    TPipe pipe;
    TQue<QuePosition::VECIN, BUFFERS> inputQueue;
    TQue<QuePosition::VECOUT, BUFFERS> outputQueue;
    TBuf<QuePosition::VECCALC> scratchBuffer;
    LocalTensor<float> scratch;
    GlobalTensor<half> xGlobal;
    GlobalTensor<half> yGlobal;
    int64_t firstTile = 0;
    int64_t lastTile = 0;
    GeluCustomTiling tiling;
};

extern "C" __global__ __aicore__ void gelu_custom(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    REGISTER_TILING_DEFAULT(GeluCustomTiling);
    GET_TILING_DATA_WITH_STRUCT(GeluCustomTiling, tilingData, tiling);
    KernelGeluCustom op;
    op.Init(x, y, tilingData);
    op.Process();
}
