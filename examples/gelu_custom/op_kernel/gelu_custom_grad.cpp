// GELUCustomGrad, element by element:
//     grad_x = grad_y*sigmoid(2*sqrt(2/pi)*(x + 0.044715*x**3))*(x*sigmoid(-2*sqrt(2/pi)*(x + 0.044715*x**3))*sqrt(2/pi)*(0.26829*x**2 + 2) + 1)
// A core takes a range of tiles. Two buffers a queue let a tile be copied in while its neighbour computes.
#include "kernel_operator.h"
#include "gelu_custom_grad_tiling.h"

#include <type_traits>

using namespace AscendC;

template <typename GradY, typename X, typename GradX>
class KernelGeluCustomGrad {
public:
    using ComputeType = float;

    __aicore__ inline KernelGeluCustomGrad() {}

    __aicore__ inline void Init(GM_ADDR gradY, GM_ADDR x, GM_ADDR gradX,
                                const GeluCustomGradTilingData& tiling)
    {
        const int64_t block = GetBlockIdx();
        const int64_t extra = tiling.extraBlocks;
        firstTile = block * tiling.tilesPerBlock + (block < extra ? block : extra);
        lastTile = firstTile + tiling.tilesPerBlock + (block < extra ? 1 : 0);
        tilesPerRow = tiling.tilesPerRow;
        columns = tiling.columns;
        tileLength = tiling.tileLength;
        gradYRowStride = tiling.gradYRowStride;
        xRowStride = tiling.xRowStride;

        gradYGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ GradY*>(gradY),
                                gradYRowStride == 0 ? columns : tiling.rows * columns);
        xGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(x),
                                xRowStride == 0 ? columns : tiling.rows * columns);
        gradXGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ GradX*>(gradX), tiling.rows * columns);
        pipe.InitBuffer(gradYQueue, tiling.bufferCount, tileLength * sizeof(GradY));
        pipe.InitBuffer(xQueue, tiling.bufferCount, tileLength * sizeof(X));
        pipe.InitBuffer(gradXQueue, tiling.bufferCount, tileLength * sizeof(GradX));
        pipe.InitBuffer(scratchBuffer, kGeluCustomGradScratchTensors * tileLength * sizeof(ComputeType));
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
    static constexpr int32_t BUFFER_COUNT = kGeluCustomGradBufferCount;

    __aicore__ inline void CopyIn(int64_t row, int64_t column, uint32_t count)
    {
        Load(gradYQueue, gradYGlobal[row * gradYRowStride + column], count);
        Load(xQueue, xGlobal[row * xRowStride + column], count);
    }

    __aicore__ inline void Compute(uint32_t count)
    {
        LocalTensor<GradY> gradYLocal = gradYQueue.template DeQue<GradY>();
        LocalTensor<X> xLocal = xQueue.template DeQue<X>();
        LocalTensor<GradX> gradXLocal = gradXQueue.template AllocTensor<GradX>();
        const LocalTensor<ComputeType> scratch0 = scratch[0 * tileLength];
        const LocalTensor<ComputeType> scratch1 = scratch[1 * tileLength];
        const LocalTensor<ComputeType> scratch2 = scratch[2 * tileLength];
        const LocalTensor<ComputeType> scratch3 = scratch[3 * tileLength];
        const LocalTensor<ComputeType> scratch4 = scratch[4 * tileLength];

        LocalTensor<ComputeType> gradXValue = Target(gradXLocal, scratch0);
        const LocalTensor<ComputeType> gradYValue = Widen(gradYLocal, scratch0, count);
        const LocalTensor<ComputeType> xValue = Widen(xLocal, scratch1, count);
        Mul(scratch2, xValue, xValue, count);                 // x**2
        Muls(scratch3, scratch2, 0.26829f, count);
        Adds(scratch3, scratch3, 2.0f, count);                // 0.26829*x**2 + 2
        Mul(scratch3, xValue, scratch3, count);
        Muls(scratch4, scratch2, 0.071354814f, count);
        Adds(scratch4, scratch4, 1.5957692f, count);
        Mul(scratch4, scratch4, xValue, count);               // 2*sqrt(2/pi)*(x + 0.044715*x**3)
        Exp(scratch4, scratch4, count);                       // exp(2*sqrt(2/pi)*(x + 0.044715*x**3))
        Adds(scratch4, scratch4, 1.0f, count);                // exp(2*sqrt(2/pi)*(x + 0.044715*x**3)) + 1
        Div(scratch3, scratch3, scratch4, count);
        Muls(scratch3, scratch3, 0.7978846f, count);
        Adds(scratch3, scratch3, 1.0f, count);
        Mul(scratch0, gradYValue, scratch3, count);
        Muls(scratch2, scratch2, -0.071354814f, count);
        Adds(scratch2, scratch2, -1.5957692f, count);
        Mul(scratch1, scratch2, xValue, count);               // -2*sqrt(2/pi)*(x + 0.044715*x**3)
        Exp(scratch1, scratch1, count);                       // exp(-2*sqrt(2/pi)*(x + 0.044715*x**3))
        Adds(scratch1, scratch1, 1.0f, count);                // exp(-2*sqrt(2/pi)*(x + 0.044715*x**3)) + 1
        Div(gradXValue, scratch0, scratch1, count);
        Narrow(gradXLocal, gradXValue, count);

        gradXQueue.template EnQue<GradX>(gradXLocal);
        gradYQueue.FreeTensor(gradYLocal);
        xQueue.FreeTensor(xLocal);
    }

    __aicore__ inline void CopyOut(int64_t row, int64_t column, uint32_t count)
    {
        Store(gradXGlobal[row * columns + column], gradXQueue, count);
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
    TQue<QuePosition::VECIN, BUFFER_COUNT> gradYQueue;
    TQue<QuePosition::VECIN, BUFFER_COUNT> xQueue;
    TQue<QuePosition::VECOUT, BUFFER_COUNT> gradXQueue;
    TBuf<QuePosition::VECCALC> scratchBuffer;
    LocalTensor<ComputeType> scratch;
    GlobalTensor<GradY> gradYGlobal;
    GlobalTensor<X> xGlobal;
    GlobalTensor<GradX> gradXGlobal;
    int64_t firstTile;
    int64_t lastTile;
    int64_t tilesPerRow;
    int64_t columns;
    uint32_t tileLength;
    int64_t gradYRowStride;
    int64_t xRowStride;
};

extern "C" __global__ __aicore__ void gelu_custom_grad(GM_ADDR gradY, GM_ADDR x, GM_ADDR gradX, GM_ADDR workspace, GM_ADDR tiling)
{
    REGISTER_TILING_DEFAULT(GeluCustomGradTilingData);
    GET_TILING_DATA_WITH_STRUCT(GeluCustomGradTilingData, tilingData, tiling);
    KernelGeluCustomGrad<DTYPE_GRAD_Y, DTYPE_X, DTYPE_GRAD_X> op;
    op.Init(gradY, x, gradX, tilingData);
    op.Process();
}
