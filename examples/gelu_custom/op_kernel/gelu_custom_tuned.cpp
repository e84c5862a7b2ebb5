// GELU, tanh form, halves in and out, floats in between; written by hand.
//     y = x / (1 + exp(x * (a + b * x^2))),  a = -2 sqrt(2 / pi),  b = 0.044715 a
// which is the tanh form with tanh(u) = 2 / (1 + exp(-2u)) - 1 put in. a and b lie in the unified buffer as tensors, so
// that a + b * x^2 is one instruction.
#include "kernel_operator.h"
#include "gelu_custom_tuned_tiling.h"

using namespace AscendC;

class KernelGeluCustomTuned {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const GeluCustomTunedTilingData& tiling)
    {
        const int64_t first = GetBlockIdx() * tiling.blockLength;
        const int64_t rest = tiling.total - first;
        length = rest < tiling.blockLength ? rest : tiling.blockLength;
        tileLength = tiling.tileLength;
        xGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(x) + first, length);
        yGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(y) + first, length);
        pipe.InitBuffer(xQueue, BUFFER_COUNT, tileLength * sizeof(half));
        pipe.InitBuffer(yQueue, BUFFER_COUNT, tileLength * sizeof(half));
        pipe.InitBuffer(wideBuffer, tileLength * sizeof(float));
        pipe.InitBuffer(termBuffer, tileLength * sizeof(float));
        pipe.InitBuffer(constantBuffer, 2 * tileLength * sizeof(float));
        cubic = constantBuffer.Get<float>(tileLength);
        linear = constantBuffer.Get<float>()[tileLength];
        Duplicate(cubic, CUBIC, tileLength);
        Duplicate(linear, LINEAR, tileLength);
        wide = wideBuffer.Get<float>();
        term = termBuffer.Get<float>();
    }

    __aicore__ inline void Process()
    {
        int64_t at = 0;
        for (; at + tileLength <= length; at += tileLength) {
            LocalTensor<half> xLocal = xQueue.AllocTensor<half>();
            DataCopy(xLocal, xGlobal[at], tileLength);
            xQueue.EnQue(xLocal);
            Compute(tileLength);
            LocalTensor<half> yLocal = yQueue.DeQue<half>();
            DataCopy(yGlobal[at], yLocal, tileLength);
            yQueue.FreeTensor(yLocal);
        }
        if (at < length) {
            Tail(at, static_cast<uint32_t>(length - at));
        }
    }

private:
    static constexpr int32_t BUFFER_COUNT = 2;
    static constexpr float LINEAR = -1.5957691216057308f;
    static constexpr float CUBIC = -0.0713548162726009f;

    // Only the very last tile can have a length that is not whole data blocks.
    __aicore__ inline void Tail(int64_t at, uint32_t count)
    {
        const DataCopyExtParams copy{1, static_cast<uint32_t>(count * sizeof(half)), 0, 0, 0};
        LocalTensor<half> xLocal = xQueue.AllocTensor<half>();
        DataCopyPad(xLocal, xGlobal[at], copy, DataCopyPadExtParams<half>());
        xQueue.EnQue(xLocal);
        Compute(count);
        LocalTensor<half> yLocal = yQueue.DeQue<half>();
        DataCopyPad(yGlobal[at], yLocal, copy);
        yQueue.FreeTensor(yLocal);
    }

    __aicore__ inline void Compute(uint32_t count)
    {
        LocalTensor<half> xLocal = xQueue.DeQue<half>();
        Cast(wide, xLocal, RoundMode::CAST_NONE, count);
        xQueue.FreeTensor(xLocal);  // the next tile may be copied in from here on
        Mul(term, wide, wide, count);
        FusedMulAdd(term, cubic, linear, count);  // cubic * term + linear
        Mul(term, term, wide, count);
        Exp(term, term, count);
        Adds(term, term, 1.0f, count);
        Div(term, wide, term, count);
        LocalTensor<half> yLocal = yQueue.AllocTensor<half>();
        Cast(yLocal, term, RoundMode::CAST_RINT, count);
        yQueue.EnQue(yLocal);
    }

    TPipe pipe;
    TQue<QuePosition::VECIN, BUFFER_COUNT> xQueue;
    TQue<QuePosition::VECOUT, BUFFER_COUNT> yQueue;
    TBuf<QuePosition::VECCALC> wideBuffer;
    TBuf<QuePosition::VECCALC> termBuffer;
    TBuf<QuePosition::VECCALC> constantBuffer;
    LocalTensor<float> cubic;
    LocalTensor<float> linear;
    LocalTensor<float> wide;
    LocalTensor<float> term;
    GlobalTensor<half> xGlobal;
    GlobalTensor<half> yGlobal;
    int64_t length = 0;
    uint32_t tileLength = 0;
};

extern "C" __global__ __aicore__ void gelu_custom_tuned(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    REGISTER_TILING_DEFAULT(GeluCustomTunedTilingData);
    GET_TILING_DATA_WITH_STRUCT(GeluCustomTunedTilingData, tilingData, tiling);
    KernelGeluCustomTuned op;
    op.Init(x, y, tilingData);
    op.Process();
}
