/// LoadData and its kin: fractals from GM and L1 to L1, L0A and L0B. Source: Ascend C API, matrix computation (ISASI),
/// moving matrices in.
#pragma once

#include "opkit/api/tensor.h"

namespace AscendC {}  // namespace AscendC

/// What LoadData2DParams takes as addrMode, by the names of the vendor's compiler.
enum addr_cal_mode_t : uint8_t { inc = 0, dec = 1 };

namespace AscendC {

/// Distances and startIndex in fractals of 512 bytes.
struct LoadData2DParams {
  uint16_t startIndex = 0;
  uint16_t dstGap = 0;     ///< from the end of a fractal to the next
  uint16_t srcStride = 0;  ///< from start to start
  bool ifTranspose = false;
  uint8_t repeatTimes = 0;
  uint8_t sid = 0;       ///< reserved
  uint8_t addrMode = 0;  ///< 1: source addresses fall
  LoadData2DParams() = default;
  LoadData2DParams(uint16_t start_index, uint8_t repeat_times, uint16_t source_stride, uint8_t reserved,
                   uint16_t destination_gap, bool is_transposed, uint8_t address_mode)
      : startIndex(start_index),
        dstGap(destination_gap),
        srcStride(source_stride),
        ifTranspose(is_transposed),
        repeatTimes(repeat_times),
        sid(reserved),
        addrMode(address_mode) {}
};
using LoadData2dParams = LoadData2DParams;

/// startIndex and srcStride in squares: 32 x 32 elements of 8 bits, 16 x 16 of 16 and 32, 64 x 64 of 4. The gaps count
/// fractals of 512 bytes from the end of one to the start of the next: dstGap between the first of two squares,
/// dstFracGap inside a square.
struct LoadData2dTransposeParams {
  uint16_t startIndex = 0;
  uint8_t repeatTimes = 0;
  uint16_t srcStride = 0;
  uint16_t dstGap = 0;
  uint16_t dstFracGap = 0;
  uint8_t addrMode = 0;
  LoadData2dTransposeParams() = default;
  LoadData2dTransposeParams(uint16_t start_index, uint8_t repeat_times, uint16_t source_stride,
                            uint16_t destination_gap, uint16_t fractal_gap, uint8_t address_mode)
      : startIndex(start_index),
        repeatTimes(repeat_times),
        srcStride(source_stride),
        dstGap(destination_gap),
        dstFracGap(fractal_gap),
        addrMode(address_mode) {}
  LoadData2dTransposeParams(uint16_t start_index, uint8_t repeat_times, uint16_t source_stride,
                            uint16_t destination_gap, uint16_t fractal_gap)
      : LoadData2dTransposeParams(start_index, repeat_times, source_stride, destination_gap, fractal_gap, 0) {}
};

/// Of later chips. Declared for kernels that name it in code for those.
struct LoadData2DParamsV2 {
  uint32_t mStartPosition = 0;
  uint32_t kStartPosition = 0;
  uint16_t mStep = 0;
  uint16_t kStep = 0;
  int32_t srcStride = 0;
  uint16_t dstStride = 0;
  bool ifTranspose = false;
  uint8_t sid = 0;
};

}  // namespace AscendC

namespace opkit {

/// The pipe that fills a matrix buffer. Source: Ascend C API, appendix, pipes of the instructions.
constexpr Pipe load_pipe(Space source) { return source == Space::GM ? Pipe::MTE2 : Pipe::MTE1; }

inline void issue_load(Op op, const Operand& dst, Operand src, uint64_t start_bytes, const FractalLoad& load,
                       Where where) {
  src.address += start_bytes;
  Instr instr;
  instr.op = op;
  instr.pipe = load_pipe(src.space);
  instr.dst = dst;
  instr.src[0] = src;
  instr.source_count = 1;
  instr.load = &load;
  instr.where = where;
  issue(instr);
}

inline void issue_load_2d(const Operand& dst, const Operand& src, const AscendC::LoadData2DParams& params,
                          Where where) {
  FractalLoad load;
  load.repeat = params.repeatTimes;
  load.is_transposed = params.ifTranspose;
  load.src_stride = int64_t{params.srcStride} * kFractalBytes * (params.addrMode == 0 ? 1 : -1);
  load.dst_stride = (int64_t{params.dstGap} + 1) * kFractalBytes;
  issue_load(Op::LoadData2D, dst, src, uint64_t{params.startIndex} * kFractalBytes, load, where);
}

/// Fractals that LoadDataWithTranspose joins to a square.
template <typename T>
constexpr uint32_t square_fractals() {
  return dtype_of<T>() == DType::S4 ? 4 : (sizeof(T) == 2 ? 1 : 2);
}

}  // namespace opkit

namespace AscendC {

template <typename T>
inline void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData2DParams& loadDataParams,
                     opkit::Where where = opkit::Where::here()) {
  opkit::issue_load_2d(dst.operand(), src.operand(), loadDataParams, where);
}
template <typename T>
inline void LoadData(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const LoadData2DParams& loadDataParams,
                     opkit::Where where = opkit::Where::here()) {
  opkit::issue_load_2d(dst.operand(), src.operand(), loadDataParams, where);
}

template <typename T>
inline void LoadDataWithTranspose(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                                  const LoadData2dTransposeParams& loadDataParams,
                                  opkit::Where where = opkit::Where::here()) {
  opkit::FractalLoad load;
  load.repeat = loadDataParams.repeatTimes;
  load.fractals = opkit::square_fractals<T>();
  load.is_transposed = true;
  const int64_t square_bytes = int64_t{load.fractals} * opkit::kFractalBytes;
  load.src_stride = loadDataParams.srcStride * square_bytes * (loadDataParams.addrMode == 0 ? 1 : -1);
  load.dst_stride = (int64_t{loadDataParams.dstGap} + 1) * opkit::kFractalBytes;
  load.dst_fractal = (int64_t{loadDataParams.dstFracGap} + 1) * opkit::kFractalBytes;
  opkit::issue_load(opkit::Op::LoadDataWithTranspose, dst.operand(), src.operand(),
                    static_cast<uint64_t>(loadDataParams.startIndex * square_bytes), load, where);
}

/// A matrix that lacks two of four weights, and which two: 128 bytes of `idx` to a fractal of `src`. Only startIndex
/// and repeatTimes count. MmadWithSparse reads the indices that were loaded with the fractals at its filter.
template <typename T = int8_t, typename U = uint8_t, std::enable_if_t<std::is_same_v<PrimT<T>, int8_t>, bool> = true,
          std::enable_if_t<std::is_same_v<PrimT<U>, uint8_t>, bool> = true>
inline void LoadDataWithSparse(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<U>& idx,
                               const LoadData2dParams& loadDataParam, opkit::Where where = opkit::Where::here()) {
  opkit::FractalLoad load;
  load.repeat = loadDataParam.repeatTimes;
  load.src_stride = load.dst_stride = opkit::kFractalBytes;
  opkit::Instr instr;
  instr.op = opkit::Op::LoadDataWithSparse;
  instr.pipe = opkit::Pipe::MTE1;
  instr.dst = dst.operand();
  instr.src[0] = src.operand();
  instr.src[0].address += uint64_t{loadDataParam.startIndex} * opkit::kFractalBytes;
  instr.src[1] = idx.operand();
  instr.src[1].address += uint64_t{loadDataParam.startIndex} * opkit::kSparseIndexBytes;
  instr.source_count = 2;
  instr.load = &load;
  instr.where = where;
  opkit::issue(instr);
}

template <typename T, template <typename> class Source>
inline void LoadData(const LocalTensor<T>&, const Source<T>&, const LoadData2DParamsV2&) {
  static_assert(sizeof(T) == 0, "LoadData with LoadData2DParamsV2: this chip does not have it; use LoadData2DParams");
}

}  // namespace AscendC
