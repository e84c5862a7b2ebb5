// RMSNorm over the last axis, y = x * gamma / sqrt(mean(x^2) + epsilon).
// A core takes a range of rows. Each row is read once and stays in the unified buffer as floats until it is written.
// What is one number a row is computed for all rows of a tile in one instruction.
#include "kernel_operator.h"
#include "rmsnorm_tiling.h"

#include <type_traits>

using namespace AscendC;

template <typename T>
class KernelRmsnorm {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR gamma, GM_ADDR y, const RmsnormTilingData& tiling)
    {
        const int64_t block = GetBlockIdx();
        const int64_t extra = tiling.extraBlocks;
        firstRow = block * tiling.rowsPerBlock + (block < extra ? block : extra);
        lastRow = firstRow + tiling.rowsPerBlock + (block < extra ? 1 : 0);
        columns = static_cast<uint32_t>(tiling.columns);
        rowStride = tiling.rowStride;
        rowsPerTile = tiling.rowsPerTile;
        gammaBroadcast = tiling.gammaBroadcast != 0;
        factor = tiling.factor;
        epsilon = tiling.epsilon;

        xGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(x), tiling.rows * columns);
        gammaGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(gamma), (gammaBroadcast ? 1 : tiling.rows) * columns);
        yGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(y), tiling.rows * columns);

        const uint32_t tileLength = rowsPerTile * rowStride;
        pipe.InitBuffer(xQueue, tiling.bufferCount, tileLength * sizeof(T));
        pipe.InitBuffer(gammaQueue, 1, rowStride * sizeof(T));
        pipe.InitBuffer(yQueue, tiling.bufferCount, tileLength * sizeof(T));
        pipe.InitBuffer(squareBuffer, rowStride * sizeof(float));
        pipe.InitBuffer(reduceBuffer, rowStride / 8 * sizeof(float) + 32);
        pipe.InitBuffer(rowBuffer, 2 * kRmsnormLongestTile * sizeof(float));
        square = squareBuffer.Get<float>();
        reduceWork = reduceBuffer.Get<float>();
        scale = rowBuffer.Get<float>(kRmsnormLongestTile);
        ones = rowBuffer.Get<float>()[kRmsnormLongestTile];
        Duplicate(ones, 1.0f, kRmsnormLongestTile);
        if constexpr (!IS_FLOAT) {
            pipe.InitBuffer(wideBuffer, tileLength * sizeof(float));
            pipe.InitBuffer(gammaBuffer, rowStride * sizeof(float));
            wide = wideBuffer.Get<float>();
            gammaWide = gammaBuffer.Get<float>();
        }
    }

    __aicore__ inline void Process()
    {
        if (firstRow == lastRow) {
            return;
        }
        if (gammaBroadcast) {
            TakeGamma(0);
        }
        for (int64_t row = firstRow; row < lastRow; row += rowsPerTile) {
            const int64_t rest = lastRow - row;
            const uint32_t rows = rest < rowsPerTile ? static_cast<uint32_t>(rest) : rowsPerTile;
            CopyIn(xQueue, xGlobal[row * columns], rows);
            Compute(row, rows);
            CopyOut(row, rows);
        }
        if (gammaBroadcast) {
            gammaQueue.FreeTensor(gammaLocal);
        }
    }

private:
    static constexpr bool IS_FLOAT = std::is_same<T, float>::value;
    static constexpr int32_t BUFFER_COUNT = kRmsnormBufferCount;
    using InputQueue = TQue<QuePosition::VECIN, BUFFER_COUNT>;

    // Each row starts at a whole data block of the buffer; DataCopyPad fills up its end by itself.
    __aicore__ inline void CopyIn(InputQueue& queue, const GlobalTensor<T>& source, uint32_t rows)
    {
        LocalTensor<T> local = queue.template AllocTensor<T>();
        const DataCopyExtParams copy{static_cast<uint16_t>(rows), static_cast<uint32_t>(columns * sizeof(T)), 0, 0, 0};
        DataCopyPad(local, source, copy, DataCopyPadExtParams<T>());
        queue.template EnQue<T>(local);
    }

    __aicore__ inline void CopyOut(int64_t row, uint32_t rows)
    {
        LocalTensor<T> local = yQueue.template DeQue<T>();
        const DataCopyExtParams copy{static_cast<uint16_t>(rows), static_cast<uint32_t>(columns * sizeof(T)), 0, 0, 0};
        DataCopyPad(yGlobal[row * columns], local, copy);
        yQueue.FreeTensor(local);
    }

    // One row of gamma as floats, until gammaLocal is freed.
    __aicore__ inline void TakeGamma(int64_t row)
    {
        CopyIn(gammaQueue, gammaGlobal[row * columns], 1);
        gammaLocal = gammaQueue.template DeQue<T>();
        if constexpr (IS_FLOAT) {
            gammaWide = gammaLocal;
        } else {
            Cast(gammaWide, gammaLocal, RoundMode::CAST_NONE, columns);
        }
    }

    __aicore__ inline void Compute(int64_t firstRowOfTile, uint32_t rows)
    {
        LocalTensor<T> xLocal = xQueue.template DeQue<T>();
        LocalTensor<T> yLocal = yQueue.template AllocTensor<T>();
        LocalTensor<float> result;
        if constexpr (IS_FLOAT) {
            wide = xLocal;
            result = yLocal;
        } else {
            result = wide;
            Cast(wide, xLocal, RoundMode::CAST_NONE, rows * rowStride);
        }
        for (uint32_t row = 0; row < rows; ++row) {
            const LocalTensor<float> values = wide[row * rowStride];
            Mul(square, values, values, columns);
            ReduceSum(scale[row], square, reduceWork, columns);
        }
        Muls(scale, scale, factor, rows);
        Adds(scale, scale, epsilon, rows);
        Sqrt(scale, scale, rows);
        Div(scale, ones, scale, rows);
        Order<HardEvent::V_S>();
        for (uint32_t row = 0; row < rows; ++row) {
            if (!gammaBroadcast) {
                TakeGamma(firstRowOfTile + row);
            }
            const LocalTensor<float> values = result[row * rowStride];
            Muls(values, wide[row * rowStride], scale.GetValue(row), columns);
            Mul(values, values, gammaWide, columns);
            if (!gammaBroadcast) {
                gammaQueue.FreeTensor(gammaLocal);
            }
        }
        Order<HardEvent::S_V>();  // the next tile writes `scale` once it has been read
        if constexpr (!IS_FLOAT) {
            Cast(yLocal, wide, RoundMode::CAST_RINT, rows * rowStride);
        }
        yQueue.template EnQue<T>(yLocal);
        xQueue.FreeTensor(xLocal);
    }

    template <HardEvent event>
    __aicore__ inline void Order()
    {
        const int32_t id = static_cast<int32_t>(pipe.FetchEventID(event));
        SetFlag<event>(id);
        WaitFlag<event>(id);
    }

    TPipe pipe;
    InputQueue xQueue;
    InputQueue gammaQueue;
    TQue<QuePosition::VECOUT, BUFFER_COUNT> yQueue;
    TBuf<QuePosition::VECCALC> wideBuffer;
    TBuf<QuePosition::VECCALC> gammaBuffer;
    TBuf<QuePosition::VECCALC> squareBuffer;
    TBuf<QuePosition::VECCALC> reduceBuffer;
    TBuf<QuePosition::VECCALC> rowBuffer;
    LocalTensor<float> wide;        // the tile's rows
    LocalTensor<float> gammaWide;   // one row
    LocalTensor<float> square;      // one row
    LocalTensor<float> reduceWork;
    LocalTensor<float> scale;       // one number a row: the sum of squares, in the end 1 / sqrt(mean + epsilon)
    LocalTensor<float> ones;
    LocalTensor<T> gammaLocal;
    GlobalTensor<T> xGlobal;
    GlobalTensor<T> gammaGlobal;
    GlobalTensor<T> yGlobal;
    int64_t firstRow = 0;
    int64_t lastRow = 0;
    uint32_t columns = 0;
    uint32_t rowStride = 0;
    uint32_t rowsPerTile = 0;
    bool gammaBroadcast = false;
    float factor = 0;
    float epsilon = 0;
};

extern "C" __global__ __aicore__ void rmsnorm(GM_ADDR x, GM_ADDR gamma, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    REGISTER_TILING_DEFAULT(RmsnormTilingData);
    GET_TILING_DATA_WITH_STRUCT(RmsnormTilingData, tilingData, tiling);
    KernelRmsnorm<DTYPE_X> op;
    op.Init(x, gamma, y, tilingData);
    op.Process();
}
