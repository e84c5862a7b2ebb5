// GELUCustom, element by element:
//     y = 0.5*x*(1 + tanh(sqrt(2/pi)*(x + 0.044715*x**3)))
// A core takes a range of tiles. Two buffers a queue let a tile be copied in while its neighbour computes.
#include "kernel_operator.h"
#include "gelu_custom_tiling.h"

#include <type_traits>

using namespace AscendC;

template <typename X, typename Y>
class KernelGeluCustom {
public:
    using ComputeType = float;

    __aicore__ inline KernelGeluCustom() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y,
                                const GeluCustomTilingData& tiling)
    {
        const int64_t block = GetBlockIdx();
        const int64_t extra = tiling.extraBlocks;
        firstTile = block * tiling.tilesPerBlock + (block < extra ? block : extra);
        lastTile = firstTile + tiling.tilesPerBlock + (block < extra ? 1 : 0);
        tilesPerRow = tiling.tilesPerRow;
        columns = tiling.columns;
        tileLength = tiling.tileLength;

        xGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(x), tiling.rows * columns);
        yGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ Y*>(y), tiling.rows * columns);
        pipe.InitBuffer(xQueue, tiling.bufferCount, tileLength * sizeof(X));
        pipe.InitBuffer(yQueue, tiling.bufferCount, tileLength * sizeof(Y));
        pipe.InitBuffer(scratchBuffer, kGeluCustomScratchTensors * tileLength * sizeof(ComputeType));
        scratch = scratchBuffer.template Get<ComputeType>();
    }

    __aicore__ inline void Process()
    {
        for (int64_t tile = firstTile; tile < lastTile; ++tile) {
            const int64_t row = tile / tilesPerRow;
            const int64_t column = tile % tilesPerRow * tileLength;
            const int64_t rest = columns - column;
            const uint32_t count = rest < tileLength ? static_cast<uint32_t>(rest) : tileLength;
            CopyIn(row, column, count);
            Compute(count);
            CopyOut(row, column, count);
        }
    }

private:
    static constexpr int32_t BUFFER_COUNT = kGeluCustomBufferCount;

    __aicore__ inline void CopyIn(int64_t row, int64_t column, uint32_t count)
    {
        Load(xQueue, xGlobal[row * columns + column], count);
    }

    __aicore__ inline void Compute(uint32_t count)
    {
        LocalTensor<X> xLocal = xQueue.template DeQue<X>();
        LocalTensor<Y> yLocal = yQueue.template AllocTensor<Y>();
        const LocalTensor<ComputeType> scratch0 = scratch[0 * tileLength];
        const LocalTensor<ComputeType> scratch1 = scratch[1 * tileLength];

        LocalTensor<ComputeType> yValue = Target(yLocal, scratch0);
        const LocalTensor<ComputeType> xValue = Widen(xLocal, scratch0, count);
        Mul(scratch1, xValue, xValue, count);                 // x**2
        Muls(scratch1, scratch1, -0.071354814f, count);
        Adds(scratch1, scratch1, -1.5957692f, count);
        Mul(scratch1, scratch1, xValue, count);               // -2*sqrt(2/pi)*(x + 0.044715*x**3)
        Exp(scratch1, scratch1, count);                       // exp(-2*sqrt(2/pi)*(x + 0.044715*x**3))
        Adds(scratch1, scratch1, 1.0f, count);                // exp(-2*sqrt(2/pi)*(x + 0.044715*x**3)) + 1
        Div(yValue, xValue, scratch1, count);                 // x*sigmoid(2*sqrt(2/pi)*(x + 0.044715*x**3))
        Narrow(yLocal, yValue, count);

        yQueue.template EnQue<Y>(yLocal);
        xQueue.FreeTensor(xLocal);
    }

    __aicore__ inline void CopyOut(int64_t row, int64_t column, uint32_t count)
    {
        Store(yGlobal[row * columns + column], yQueue, count);
    }

    // Any number of elements: DataCopyPad fills the last 32 bytes of the buffer by itself.
    template <typename T>
    __aicore__ inline void Load(TQue<QuePosition::VECIN, BUFFER_COUNT>& queue, const GlobalTensor<T>& source, uint32_t count)
    {
        LocalTensor<T> local = queue.template AllocTensor<T>();
        const DataCopyExtParams copy{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        const DataCopyPadExtParams<T> pad;
        DataCopyPad(local, source, copy, pad);
        queue.template EnQue<T>(local);
    }

    template <typename T>
    __aicore__ inline void Store(const GlobalTensor<T>& target, TQue<QuePosition::VECOUT, BUFFER_COUNT>& queue, uint32_t count)
    {
        LocalTensor<T> local = queue.template DeQue<T>();
        const DataCopyExtParams copy{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        DataCopyPad(target, local, copy);
        queue.FreeTensor(local);
    }

    // A tensor in the compute type: itself where it has that type, else converted into `room`.
    template <typename T>
    __aicore__ inline LocalTensor<ComputeType> Widen(const LocalTensor<T>& tensor,
                                                     const LocalTensor<ComputeType>& room, uint32_t length)
    {
        if constexpr (std::is_same<T, ComputeType>::value) {
            return tensor;
        } else {
            Cast(room, tensor, RoundMode::CAST_NONE, length);
            return room;
        }
    }

    // Where a result is computed: in the output itself where it has the compute type, else in `room`.
    template <typename T>
    __aicore__ inline LocalTensor<ComputeType> Target(const LocalTensor<T>& tensor,
                                                      const LocalTensor<ComputeType>& room)
    {
        if constexpr (std::is_same<T, ComputeType>::value) {
            return tensor;
        } else {
            return room;
        }
    }

    // Rounds a result into the output, where it is not there already.
    template <typename T>
    __aicore__ inline void Narrow(const LocalTensor<T>& tensor, const LocalTensor<ComputeType>& value, uint32_t length)
    {
        if constexpr (!std::is_same<T, ComputeType>::value) {
            Cast(tensor, value, RoundMode::CAST_RINT, length);
        }
    }

    TPipe pipe;
    TQue<QuePosition::VECIN, BUFFER_COUNT> xQueue;
    TQue<QuePosition::VECOUT, BUFFER_COUNT> yQueue;
    TBuf<QuePosition::VECCALC> scratchBuffer;
    LocalTensor<ComputeType> scratch;
    GlobalTensor<X> xGlobal;
    GlobalTensor<Y> yGlobal;
    int64_t firstTile;
    int64_t lastTile;
    int64_t tilesPerRow;
    int64_t columns;
    uint32_t tileLength;
};

extern "C" __global__ __aicore__ void gelu_custom(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    REGISTER_TILING_DEFAULT(GeluCustomTilingData);
    GET_TILING_DATA_WITH_STRUCT(GeluCustomTilingData, tilingData, tiling);
    KernelGeluCustom<DTYPE_X, DTYPE_Y> op;
    op.Init(x, y, tilingData);
    op.Process();
}
