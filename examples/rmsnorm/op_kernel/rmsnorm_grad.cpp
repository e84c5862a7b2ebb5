// RmsnormGrad, row by row over the last axis:
//     grad_x = (grad_y*gamma - mean(grad_y*x*gamma, axis=-1)*x/sqrt(mean(x**2, axis=-1) + epsilon)**2)/sqrt(mean(x**2, axis=-1) + epsilon)
//     grad_gamma = grad_y*x/sqrt(mean(x**2, axis=-1) + epsilon)
// A core takes a range of rows, several to a tile where they are short. Two buffers a queue let a tile be copied in
// while its neighbour computes; rows too long for that have one. Longer rows still are taken in parts, once for every
// reduction that waits for another.
#include "kernel_operator.h"
#include "rmsnorm_grad_tiling.h"

#include <type_traits>

using namespace AscendC;

template <typename GradY, typename X, typename Gamma, typename GradX, typename GradGamma>
class KernelRmsnormGrad {
public:
    using ComputeType = float;

    __aicore__ inline KernelRmsnormGrad() {}

    __aicore__ inline void Init(GM_ADDR gradY, GM_ADDR x, GM_ADDR gamma, GM_ADDR gradX, GM_ADDR gradGamma,
                                const RmsnormGradTilingData& tiling)
    {
        const int64_t block = GetBlockIdx();
        const int64_t extra = tiling.extraBlocks;
        firstRow = block * tiling.rowsPerBlock + (block < extra ? block : extra);
        lastRow = firstRow + tiling.rowsPerBlock + (block < extra ? 1 : 0);
        columns = static_cast<uint32_t>(tiling.columns);
        rowsPerTile = tiling.rowsPerTile;
        const uint32_t bufferCount = tiling.bufferCount;
        isDoubleBuffered = bufferCount > 1;
        partLength = tiling.partLength;
        scratchLength = RoundUp(partLength, 64);
        xBroadcast = tiling.xBroadcast != 0;
        gammaBroadcast = tiling.gammaBroadcast != 0;
        factor0 = tiling.factor0;
        epsilon = tiling.epsilon;

        gradYGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ GradY*>(gradY), tiling.rows * tiling.columns);
        xGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ X*>(x), xBroadcast ? tiling.columns : tiling.rows * tiling.columns);
        gammaGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ Gamma*>(gamma), gammaBroadcast ? tiling.columns : tiling.rows * tiling.columns);
        gradXGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ GradX*>(gradX), tiling.rows * tiling.columns);
        gradGammaGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ GradGamma*>(gradGamma), tiling.rows * tiling.columns);
        pipe.InitBuffer(gradYQueue, bufferCount, rowsPerTile * RowStride<GradY>(partLength) * sizeof(GradY));
        pipe.InitBuffer(xQueue, xBroadcast ? 1 : bufferCount,
                        (xBroadcast ? 1 : rowsPerTile) * RowStride<X>(partLength) * sizeof(X));
        pipe.InitBuffer(gammaQueue, gammaBroadcast ? 1 : bufferCount,
                        (gammaBroadcast ? 1 : rowsPerTile) * RowStride<Gamma>(partLength) * sizeof(Gamma));
        pipe.InitBuffer(gradXQueue, bufferCount, rowsPerTile * RowStride<GradX>(partLength) * sizeof(GradX));
        pipe.InitBuffer(gradGammaQueue, bufferCount, rowsPerTile * RowStride<GradGamma>(partLength) * sizeof(GradGamma));
        pipe.InitBuffer(scratchBuffer, kRmsnormGradScratchTensors * scratchLength * sizeof(ComputeType));
        scratch = scratchBuffer.template Get<ComputeType>();
        pipe.InitBuffer(rowBuffer, kRmsnormGradRowTensors * ROW_LENGTH * sizeof(ComputeType));
        rowScratch = rowBuffer.template Get<ComputeType>();
        // ReduceMax keeps a value and an index for each repeat of 64 elements.
        pipe.InitBuffer(reduceBuffer, RoundUp(scratchLength / 64 * 2 * sizeof(ComputeType), 32));
        reduceWork = reduceBuffer.template Get<ComputeType>();
    }

    __aicore__ inline void Process()
    {
        if (firstRow == lastRow) {
            return;
        }
        if (partLength < columns) {
            for (int64_t row = firstRow; row < lastRow; ++row) {
                ComputeInParts(row);
            }
            return;
        }
        if (xBroadcast) {
            Load(xQueue, xGlobal, 1, columns);
            xLocal = xQueue.template DeQue<X>();
        }
        if (gammaBroadcast) {
            Load(gammaQueue, gammaGlobal, 1, columns);
            gammaLocal = gammaQueue.template DeQue<Gamma>();
        }
        CopyIn(firstRow, TileRows(firstRow));
        for (int64_t row = firstRow; row < lastRow; row += rowsPerTile) {
            const int64_t next = row + rowsPerTile;
            // Before Compute, which waits for scalars: the copy runs meanwhile, if it has a buffer.
            if (isDoubleBuffered && next < lastRow) {
                CopyIn(next, TileRows(next));
            }
            Compute(TileRows(row));
            CopyOut(row, TileRows(row));
            if (!isDoubleBuffered && next < lastRow) {
                CopyIn(next, TileRows(next));
            }
        }
        if (xBroadcast) {
            xQueue.FreeTensor(xLocal);
        }
        if (gammaBroadcast) {
            gammaQueue.FreeTensor(gammaLocal);
        }
    }

private:
    static constexpr int32_t BUFFER_COUNT = kRmsnormGradBufferCount;
    static constexpr uint32_t ROW_LENGTH = 64;

    // Rows of the tile that starts at a row.
    __aicore__ inline uint32_t TileRows(int64_t row) const
    {
        const int64_t rest = lastRow - row;
        return rest < rowsPerTile ? static_cast<uint32_t>(rest) : rowsPerTile;
    }

    __aicore__ inline void CopyIn(int64_t row, uint32_t rows)
    {
        Load(gradYQueue, gradYGlobal[row * columns], rows, columns);
        if (!xBroadcast) {
            Load(xQueue, xGlobal[row * columns], rows, columns);
        }
        if (!gammaBroadcast) {
            Load(gammaQueue, gammaGlobal[row * columns], rows, columns);
        }
    }

    __aicore__ inline void Compute(uint32_t rows)
    {
        LocalTensor<GradY> gradYLocal = gradYQueue.template DeQue<GradY>();
        if (!xBroadcast) {
            xLocal = xQueue.template DeQue<X>();
        }
        if (!gammaBroadcast) {
            gammaLocal = gammaQueue.template DeQue<Gamma>();
        }
        LocalTensor<GradX> gradXLocal = gradXQueue.template AllocTensor<GradX>();
        LocalTensor<GradGamma> gradGammaLocal = gradGammaQueue.template AllocTensor<GradGamma>();
        for (uint32_t row = 0; row < rows; ++row) {
            ComputeRow(gradYLocal[row * RowStride<GradY>(columns)], xLocal[xBroadcast ? 0 : row * RowStride<X>(columns)], gammaLocal[gammaBroadcast ? 0 : row * RowStride<Gamma>(columns)], gradXLocal[row * RowStride<GradX>(columns)], gradGammaLocal[row * RowStride<GradGamma>(columns)]);
        }
        gradXQueue.template EnQue<GradX>(gradXLocal);
        gradGammaQueue.template EnQue<GradGamma>(gradGammaLocal);
        gradYQueue.FreeTensor(gradYLocal);
        if (!xBroadcast) {
            xQueue.FreeTensor(xLocal);
        }
        if (!gammaBroadcast) {
            gammaQueue.FreeTensor(gammaLocal);
        }
    }

    __aicore__ inline void ComputeRow(const LocalTensor<GradY>& gradYRow, const LocalTensor<X>& xRow, const LocalTensor<Gamma>& gammaRow, const LocalTensor<GradX>& gradXRow, const LocalTensor<GradGamma>& gradGammaRow)
    {
        const LocalTensor<ComputeType> scratch0 = scratch[0 * scratchLength];
        const LocalTensor<ComputeType> scratch1 = scratch[1 * scratchLength];
        const LocalTensor<ComputeType> scratch2 = scratch[2 * scratchLength];
        const LocalTensor<ComputeType> scratch3 = scratch[3 * scratchLength];
        const LocalTensor<ComputeType> scratch4 = scratch[4 * scratchLength];
        const LocalTensor<ComputeType> row0 = rowScratch[0 * ROW_LENGTH];
        const LocalTensor<ComputeType> row1 = rowScratch[1 * ROW_LENGTH];
        const LocalTensor<ComputeType> row2 = rowScratch[2 * ROW_LENGTH];

        LocalTensor<ComputeType> gradXValue = Target(gradXRow, scratch1);
        LocalTensor<ComputeType> gradGammaValue = Target(gradGammaRow, scratch0);
        const LocalTensor<ComputeType> gradYValue = Widen(gradYRow, scratch0, columns);
        const LocalTensor<ComputeType> gammaValue = Widen(gammaRow, scratch1, columns);
        Mul(scratch2, gradYValue, gammaValue, columns);       // grad_y*gamma
        const LocalTensor<ComputeType> xValue = Widen(xRow, scratch3, columns);
        Mul(scratch4, gradYValue, xValue, columns);
        Mul(scratch1, scratch4, gammaValue, columns);         // grad_y*x*gamma
        ReduceSum(row0, scratch1, reduceWork, columns);       // mean(grad_y*x*gamma)
        Muls(row0, row0, factor0, 1);                         // mean(grad_y*x*gamma)
        Mul(scratch1, xValue, xValue, columns);               // x**2
        ReduceSum(row1, scratch1, reduceWork, columns);       // mean(x**2)
        Muls(row1, row1, factor0, 1);                         // mean(x**2)
        Adds(row1, row1, epsilon, 1);                         // mean(x**2) + epsilon
        Sqrt(row1, row1, 1);                                  // sqrt(mean(x**2) + epsilon)
        Mul(row2, row1, row1, 1);                             // sqrt(mean(x**2) + epsilon)**2
        Div(row0, row0, row2, 1);                             // mean(grad_y*x*gamma)/sqrt(mean(x**2) + epsilon)**2
        const ComputeType rowScalar15 = ReadRow(row0);
        Muls(scratch1, xValue, rowScalar15, columns);         // mean(grad_y*x*gamma)*x/sqrt(mean(x**2) + epsilon)**2
        Sub(scratch1, scratch2, scratch1, columns);           // grad_y*gamma - mean(grad_y*x*gamma)*x/sqrt(mean(x**2) + epsilon)**2
        Duplicate(row0, 1.0f, 1);                             // 1
        Div(row0, row0, row1, 1);                             // 1/sqrt(mean(x**2) + epsilon)
        const ComputeType rowScalar20 = ReadRow(row0);
        Muls(gradXValue, scratch1, rowScalar20, columns);
        Mul(scratch0, gradYValue, xValue, columns);
        Muls(gradGammaValue, scratch0, rowScalar20, columns);  // grad_y*x/sqrt(mean(x**2) + epsilon)
        Narrow(gradXRow, gradXValue, columns);
        Narrow(gradGammaRow, gradGammaValue, columns);
    }

    // A row that does not fit the unified buffer.
    __aicore__ inline void ComputeInParts(int64_t row)
    {
        const LocalTensor<ComputeType> scratch0 = scratch[0 * scratchLength];
        const LocalTensor<ComputeType> scratch1 = scratch[1 * scratchLength];
        const LocalTensor<ComputeType> scratch2 = scratch[2 * scratchLength];
        const LocalTensor<ComputeType> scratch3 = scratch[3 * scratchLength];
        const LocalTensor<ComputeType> row0 = rowScratch[0 * ROW_LENGTH];
        const LocalTensor<ComputeType> row1 = rowScratch[1 * ROW_LENGTH];
        const LocalTensor<ComputeType> row2 = rowScratch[2 * ROW_LENGTH];
        const LocalTensor<ComputeType> row3 = rowScratch[3 * ROW_LENGTH];
        const LocalTensor<ComputeType> row4 = rowScratch[4 * ROW_LENGTH];
        const LocalTensor<ComputeType> row5 = rowScratch[5 * ROW_LENGTH];
        const LocalTensor<ComputeType> row6 = rowScratch[6 * ROW_LENGTH];
        const LocalTensor<ComputeType> row7 = rowScratch[7 * ROW_LENGTH];
        const LocalTensor<ComputeType> row8 = rowScratch[8 * ROW_LENGTH];
        const LocalTensor<ComputeType> row9 = rowScratch[9 * ROW_LENGTH];

        const LocalTensor<ComputeType> partial = rowScratch[10 * ROW_LENGTH];
        Duplicate(row8, 1.0f, 1);                             // 1
        for (uint32_t start = 0; start < columns; start += partLength) {
            const uint32_t rest = columns - start;
            const uint32_t count = rest < partLength ? rest : partLength;
            Load(gradYQueue, gradYGlobal[row * columns + start], 1, count);
            LocalTensor<GradY> gradYRow = gradYQueue.template DeQue<GradY>();
            Load(xQueue, xGlobal[(xBroadcast ? 0 : row * columns) + start], 1, count);
            LocalTensor<X> xRow = xQueue.template DeQue<X>();
            Load(gammaQueue, gammaGlobal[(gammaBroadcast ? 0 : row * columns) + start], 1, count);
            LocalTensor<Gamma> gammaRow = gammaQueue.template DeQue<Gamma>();
            const LocalTensor<ComputeType> gradYValue = Widen(gradYRow, scratch0, count);
            const LocalTensor<ComputeType> gammaValue = Widen(gammaRow, scratch1, count);
            const LocalTensor<ComputeType> xValue = Widen(xRow, scratch2, count);
            Mul(scratch0, gradYValue, xValue, count);
            Mul(scratch0, scratch0, gammaValue, count);           // grad_y*x*gamma
            ReduceSum(start == 0 ? row0 : partial, scratch0, reduceWork, count);  // mean(grad_y*x*gamma)
            if (start != 0) {
                Add(row0, row0, partial, 1);
            }
            Mul(scratch0, xValue, xValue, count);                 // x**2
            ReduceSum(start == 0 ? row2 : partial, scratch0, reduceWork, count);  // mean(x**2)
            if (start != 0) {
                Add(row2, row2, partial, 1);
            }
            gradYQueue.FreeTensor(gradYRow);
            xQueue.FreeTensor(xRow);
            gammaQueue.FreeTensor(gammaRow);
        }
        Muls(row1, row0, factor0, 1);                         // mean(grad_y*x*gamma)
        Muls(row3, row2, factor0, 1);                         // mean(x**2)
        Adds(row4, row3, epsilon, 1);                         // mean(x**2) + epsilon
        Sqrt(row5, row4, 1);                                  // sqrt(mean(x**2) + epsilon)
        Mul(row6, row5, row5, 1);                             // sqrt(mean(x**2) + epsilon)**2
        Div(row7, row1, row6, 1);                             // mean(grad_y*x*gamma)/sqrt(mean(x**2) + epsilon)**2
        const ComputeType rowScalar15 = ReadRow(row7);
        Div(row9, row8, row5, 1);                             // 1/sqrt(mean(x**2) + epsilon)
        const ComputeType rowScalar20 = ReadRow(row9);
        for (uint32_t start = 0; start < columns; start += partLength) {
            const uint32_t rest = columns - start;
            const uint32_t count = rest < partLength ? rest : partLength;
            Load(gradYQueue, gradYGlobal[row * columns + start], 1, count);
            LocalTensor<GradY> gradYRow = gradYQueue.template DeQue<GradY>();
            Load(xQueue, xGlobal[(xBroadcast ? 0 : row * columns) + start], 1, count);
            LocalTensor<X> xRow = xQueue.template DeQue<X>();
            Load(gammaQueue, gammaGlobal[(gammaBroadcast ? 0 : row * columns) + start], 1, count);
            LocalTensor<Gamma> gammaRow = gammaQueue.template DeQue<Gamma>();
            LocalTensor<GradX> gradXRow = gradXQueue.template AllocTensor<GradX>();
            LocalTensor<GradGamma> gradGammaRow = gradGammaQueue.template AllocTensor<GradGamma>();
            LocalTensor<ComputeType> gradXValue = Target(gradXRow, scratch1);
            LocalTensor<ComputeType> gradGammaValue = Target(gradGammaRow, scratch0);
            const LocalTensor<ComputeType> gradYValue = Widen(gradYRow, scratch0, count);
            const LocalTensor<ComputeType> gammaValue = Widen(gammaRow, scratch1, count);
            Mul(scratch1, gradYValue, gammaValue, count);         // grad_y*gamma
            const LocalTensor<ComputeType> xValue = Widen(xRow, scratch2, count);
            Muls(scratch3, xValue, rowScalar15, count);           // mean(grad_y*x*gamma)*x/sqrt(mean(x**2) + epsilon)**2
            Sub(scratch1, scratch1, scratch3, count);             // grad_y*gamma - mean(grad_y*x*gamma)*x/sqrt(mean(x**2) + epsilon)**2
            Muls(gradXValue, scratch1, rowScalar20, count);
            Mul(scratch0, gradYValue, xValue, count);
            Muls(gradGammaValue, scratch0, rowScalar20, count);   // grad_y*x/sqrt(mean(x**2) + epsilon)
            Narrow(gradXRow, gradXValue, count);
            Narrow(gradGammaRow, gradGammaValue, count);
            gradYQueue.FreeTensor(gradYRow);
            xQueue.FreeTensor(xRow);
            gammaQueue.FreeTensor(gammaRow);
            gradXQueue.template EnQue<GradX>(gradXRow);
            Store(gradXGlobal[row * columns + start], gradXQueue, 1, count);
            gradGammaQueue.template EnQue<GradGamma>(gradGammaRow);
            Store(gradGammaGlobal[row * columns + start], gradGammaQueue, 1, count);
        }
    }

    __aicore__ inline void CopyOut(int64_t row, uint32_t rows)
    {
        Store(gradXGlobal[row * columns], gradXQueue, rows, columns);
        Store(gradGammaGlobal[row * columns], gradGammaQueue, rows, columns);
    }

    // Each row starts on a 32-byte boundary of the buffer; DataCopyPad fills up its end by itself.
    template <typename T>
    __aicore__ inline void Load(TQue<QuePosition::VECIN, BUFFER_COUNT>& queue, const GlobalTensor<T>& source, uint32_t rows, uint32_t length)
    {
        LocalTensor<T> local = queue.template AllocTensor<T>();
        const DataCopyExtParams copy{static_cast<uint16_t>(rows), static_cast<uint32_t>(length * sizeof(T)), 0, 0, 0};
        const DataCopyPadExtParams<T> pad;
        DataCopyPad(local, source, copy, pad);
        queue.template EnQue<T>(local);
    }

    template <typename T>
    __aicore__ inline void Store(const GlobalTensor<T>& target, TQue<QuePosition::VECOUT, BUFFER_COUNT>& queue, uint32_t rows, uint32_t length)
    {
        LocalTensor<T> local = queue.template DeQue<T>();
        const DataCopyExtParams copy{static_cast<uint16_t>(rows), static_cast<uint32_t>(length * sizeof(T)), 0, 0, 0};
        DataCopyPad(target, local, copy);
        queue.FreeTensor(local);
    }

    // Elements from one row of the buffer to the next.
    template <typename T>
    static __aicore__ inline uint32_t RowStride(uint32_t length)
    {
        return RoundUp(length, 32 / sizeof(T));
    }

    static __aicore__ inline uint32_t RoundUp(uint32_t value, uint32_t multiple)
    {
        return (value + multiple - 1) / multiple * multiple;
    }

    // A row's value as a scalar, once the vector unit has written it; no later instruction overtakes the read.
    __aicore__ inline ComputeType ReadRow(const LocalTensor<ComputeType>& value)
    {
        const int32_t written = static_cast<int32_t>(pipe.FetchEventID(HardEvent::V_S));
        SetFlag<HardEvent::V_S>(written);
        WaitFlag<HardEvent::V_S>(written);
        const ComputeType scalar = value.GetValue(0);
        const int32_t read = static_cast<int32_t>(pipe.FetchEventID(HardEvent::S_V));
        SetFlag<HardEvent::S_V>(read);
        WaitFlag<HardEvent::S_V>(read);
        return scalar;
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
    TQue<QuePosition::VECIN, BUFFER_COUNT> gammaQueue;
    TQue<QuePosition::VECOUT, BUFFER_COUNT> gradXQueue;
    TQue<QuePosition::VECOUT, BUFFER_COUNT> gradGammaQueue;
    TBuf<QuePosition::VECCALC> scratchBuffer;
    LocalTensor<ComputeType> scratch;
    TBuf<QuePosition::VECCALC> rowBuffer;
    LocalTensor<ComputeType> rowScratch;
    TBuf<QuePosition::VECCALC> reduceBuffer;
    LocalTensor<ComputeType> reduceWork;
    GlobalTensor<GradY> gradYGlobal;
    GlobalTensor<X> xGlobal;
    GlobalTensor<Gamma> gammaGlobal;
    GlobalTensor<GradX> gradXGlobal;
    GlobalTensor<GradGamma> gradGammaGlobal;
    LocalTensor<X> xLocal;
    bool xBroadcast;
    LocalTensor<Gamma> gammaLocal;
    bool gammaBroadcast;
    int64_t firstRow;
    int64_t lastRow;
    uint32_t columns;
    uint32_t partLength;
    uint32_t rowsPerTile;
    bool isDoubleBuffered;
    uint32_t scratchLength;
    float factor0;
    float epsilon;
};

extern "C" __global__ __aicore__ void rmsnorm_grad(GM_ADDR gradY, GM_ADDR x, GM_ADDR gamma, GM_ADDR gradX, GM_ADDR gradGamma, GM_ADDR workspace, GM_ADDR tiling)
{
    REGISTER_TILING_DEFAULT(RmsnormGradTilingData);
    GET_TILING_DATA_WITH_STRUCT(RmsnormGradTilingData, tilingData, tiling);
    KernelRmsnormGrad<DTYPE_GRAD_Y, DTYPE_X, DTYPE_GAMMA, DTYPE_GRAD_X, DTYPE_GRAD_GAMMA> op;
    op.Init(gradY, x, gamma, gradX, gradGamma, tilingData);
    op.Process();
}
