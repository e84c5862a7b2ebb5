// GELUCustomGrad:
//     grad_x = grad_y*sigmoid(1.5957691216057308*(x + 0.044715*x**3))*(x*sigmoid(-1.5957691216057308*(x + 0.044715*x**3))*(0.21406444881780076*x**2 + 1.5957691216057308) + 1)
#include "kernel_operator.h"
#include "gelu_custom_grad_tiling.h"

using namespace AscendC;

// A core takes a range of tiles. The next tile is copied in while this one computes.
class KernelGeluCustomGrad {
public:
    __aicore__ inline void Init(GM_ADDR gradY, GM_ADDR x, GM_ADDR gradX, const GeluCustomGradTiling& given)
    {
        tiling = given;
        const int64_t block = GetBlockIdx();
        const int64_t extra = tiling.extra;
        firstTile = block * tiling.perBlock + (block < extra ? block : extra);
        lastTile = firstTile + tiling.perBlock + (block < extra ? 1 : 0);
        gradYGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(gradY), tiling.gradYSize);
        xGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(x), tiling.xSize);
        gradXGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(gradX), tiling.gradXSize);
        pipe.InitBuffer(inputQueue, BUFFERS, 4 * tiling.tileLength);
        pipe.InitBuffer(outputQueue, BUFFERS, 2 * tiling.tileLength);
        pipe.InitBuffer(scratchBuffer, 4 * SlotLength() * sizeof(float));
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
        const int64_t row = tile / tiling.partsPerRow;
        const int64_t column = tile % tiling.partsPerRow * tiling.tileLength;
        const uint32_t count = CountOf(tile);
        LocalTensor<uint8_t> input = inputQueue.AllocTensor<uint8_t>();
        Load(input.ReinterpretCast<half>(), gradYGlobal[row * tiling.gradYStep + column], count);
        Load(input[2 * tiling.tileLength].ReinterpretCast<half>(), xGlobal[row * tiling.xStep + column], count);
        inputQueue.EnQue<uint8_t>(input);
    }

    __aicore__ inline void Compute(uint32_t count)
    {
        LocalTensor<uint8_t> input = inputQueue.DeQue<uint8_t>();
        LocalTensor<uint8_t> output = outputQueue.AllocTensor<uint8_t>();
        const LocalTensor<half> gradYLocal = input.ReinterpretCast<half>();
        const LocalTensor<float> scratch1 = scratch[SlotLength()];
        const LocalTensor<half> xLocal = input[2 * tiling.tileLength].ReinterpretCast<half>();
        const LocalTensor<float> scratch3 = scratch[3 * SlotLength()];
        const LocalTensor<float> scratch2 = scratch[2 * SlotLength()];
        const LocalTensor<float> scratch0 = scratch;
        const LocalTensor<half> gradXLocal = output.ReinterpretCast<half>();
        Cast(scratch1, gradYLocal, RoundMode::CAST_NONE, count);  // grad_x
        Cast(scratch3, xLocal, RoundMode::CAST_NONE, count);  // x
        Mul(scratch2, scratch3, scratch3, count);             // x**2
        Muls(scratch0, scratch2, -0.071354814f, count);
        Adds(scratch0, scratch0, -1.5957692f, count);
        Mul(scratch0, scratch0, scratch3, count);             // -1.5957691216057308*(x + 0.044715*x**3)
        Exp(scratch0, scratch0, count);                       // exp(-1.5957691216057308*(x + 0.044715*x**3))
        Adds(scratch0, scratch0, 1.0f, count);                // exp(-1.5957691216057308*(x + 0.044715*x**3)) + 1
        Div(scratch1, scratch1, scratch0, count);             // grad_x
        Muls(scratch0, scratch2, 0.071354814f, count);
        Adds(scratch0, scratch0, 1.5957692f, count);
        Mul(scratch0, scratch0, scratch3, count);             // 1.5957691216057308*(x + 0.044715*x**3)
        Exp(scratch0, scratch0, count);                       // exp(1.5957691216057308*(x + 0.044715*x**3))
        Adds(scratch0, scratch0, 1.0f, count);                // exp(1.5957691216057308*(x + 0.044715*x**3)) + 1
        Div(scratch3, scratch3, scratch0, count);             // grad_x
        Muls(scratch2, scratch2, 0.21406445f, count);
        Adds(scratch2, scratch2, 1.5957692f, count);          // 0.21406444881780076*x**2 + 1.5957691216057308
        Mul(scratch3, scratch3, scratch2, count);
        Adds(scratch3, scratch3, 1.0f, count);
        Mul(scratch1, scratch1, scratch3, count);
        Cast(gradXLocal, scratch1, RoundMode::CAST_RINT, count);  // grad_x
        outputQueue.EnQue<uint8_t>(output);
        inputQueue.FreeTensor(input);
    }

    __aicore__ inline void CopyOut(int64_t tile)
    {
        const int64_t row = tile / tiling.partsPerRow;
        const int64_t column = tile % tiling.partsPerRow * tiling.tileLength;
        const uint32_t count = CountOf(tile);
        LocalTensor<uint8_t> output = outputQueue.DeQue<uint8_t>();
        Store(gradXGlobal[row * tiling.columns + column], output.ReinterpretCast<half>(), count);
        outputQueue.FreeTensor(output);
    }

    // Elements of a tile: the last of a row may be short.
    __aicore__ inline uint32_t CountOf(int64_t tile)
    {
        const int64_t rest = tiling.columns - tile % tiling.partsPerRow * tiling.tileLength;
        return rest < tiling.tileLength ? static_cast<uint32_t>(rest) : tiling.tileLength;
    }

    // Any number of elements: DataCopyPad fills up the last 32 bytes of the buffer.
    template <typename T>
    __aicore__ inline void Load(const LocalTensor<T>& to, const GlobalTensor<T>& from, uint32_t length)
    {
        const DataCopyExtParams copy{1, static_cast<uint32_t>(length * sizeof(T)), 0, 0, 0};
        DataCopyPad(to, from, copy, DataCopyPadExtParams<T>());
    }

    template <typename T>
    __aicore__ inline void Store(const GlobalTensor<T>& to, const LocalTensor<T>& from, uint32_t length)
    {
        DataCopyPad(to, from, DataCopyExtParams{1, static_cast<uint32_t>(length * sizeof(T)), 0, 0, 0});
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
    GlobalTensor<half> gradYGlobal;
    GlobalTensor<half> xGlobal;
    GlobalTensor<half> gradXGlobal;
    int64_t firstTile = 0;
    int64_t lastTile = 0;
    GeluCustomGradTiling tiling;
};

extern "C" __global__ __aicore__ void gelu_custom_grad(GM_ADDR gradY, GM_ADDR x, GM_ADDR gradX, GM_ADDR workspace, GM_ADDR tiling)
{
    REGISTER_TILING_DEFAULT(GeluCustomGradTiling);
    GET_TILING_DATA_WITH_STRUCT(GeluCustomGradTiling, tilingData, tiling);
    KernelGeluCustomGrad op;
    op.Init(gradY, x, gradX, tilingData);
    op.Process();
}
