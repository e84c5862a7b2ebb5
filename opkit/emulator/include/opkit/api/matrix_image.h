/// LoadData of convolutions: windows of an image in L1 become rows of a matrix in L0A or L0B. Source: Ascend C API,
/// matrix computation (ISASI), LoadData of convolutions, and the functions that set its registers.
#pragma once

#include "opkit/api/matrix_load.h"

namespace AscendC {

constexpr uint32_t PAD_SIZE = 4;

/// Which registers LoadData writes itself, from its parameters.
struct IsResetLoad3dConfig {
  bool isSetFMatrix = true;  ///< l1H, l1W, padList
  bool isSetPadding = true;  ///< padValue
};
constexpr IsResetLoad3dConfig IS_RESER_LOAD3D_DEFAULT_CONFIG = {true, true};

enum class FmatrixMode : uint8_t { FMATRIX_LEFT = 0, FMATRIX_RIGHT = 1 };

/// padList: left, right, top, bottom. kExtension, kStartPt count columns of the matrix, mExtension and mStartPt rows.
template <typename T>
struct LoadData3DParamsV2 {
  uint8_t padList[PAD_SIZE] = {0, 0, 0, 0};
  uint16_t l1H = 0;
  uint16_t l1W = 0;
  uint16_t channelSize = 0;
  uint16_t kExtension = 0;
  uint16_t mExtension = 0;
  uint16_t kStartPt = 0;
  uint16_t mStartPt = 0;
  uint8_t strideW = 1;
  uint8_t strideH = 1;
  uint8_t filterW = 1;
  uint8_t filterH = 1;
  uint8_t dilationFilterW = 1;
  uint8_t dilationFilterH = 1;
  bool enTranspose = false;
  bool enSmallK = false;  ///< no chip has it any more
  T padValue = {};
  bool filterSizeW = false;  ///< 256 more columns of the filter
  bool filterSizeH = false;
  bool fMatrixCtrl = false;  ///< true is not supported by the chips

  LoadData3DParamsV2() = default;
  LoadData3DParamsV2(const uint8_t padding[PAD_SIZE], uint16_t height, uint16_t width, uint16_t channels,
                     uint16_t columns, uint16_t rows, uint16_t first_column, uint16_t first_row, uint8_t stride_w,
                     uint8_t stride_h, uint8_t filter_w, uint8_t filter_h, uint8_t dilation_w, uint8_t dilation_h,
                     bool is_transposed, bool is_small_k, T pad_value)
      : LoadData3DParamsV2(padding, height, width, channels, columns, rows, first_column, first_row, stride_w, stride_h,
                           filter_w, filter_h, dilation_w, dilation_h, is_transposed, is_small_k, pad_value, false,
                           false, false) {}
  LoadData3DParamsV2(const uint8_t padding[PAD_SIZE], uint16_t height, uint16_t width, uint16_t channels,
                     uint16_t columns, uint16_t rows, uint16_t first_column, uint16_t first_row, uint8_t stride_w,
                     uint8_t stride_h, uint8_t filter_w, uint8_t filter_h, uint8_t dilation_w, uint8_t dilation_h,
                     bool is_transposed, bool is_small_k, T pad_value, bool is_filter_wide, bool is_filter_high,
                     bool is_right)
      : l1H(height),
        l1W(width),
        channelSize(channels),
        kExtension(columns),
        mExtension(rows),
        kStartPt(first_column),
        mStartPt(first_row),
        strideW(stride_w),
        strideH(stride_h),
        filterW(filter_w),
        filterH(filter_h),
        dilationFilterW(dilation_w),
        dilationFilterH(dilation_h),
        enTranspose(is_transposed),
        enSmallK(is_small_k),
        padValue(pad_value),
        filterSizeW(is_filter_wide),
        filterSizeH(is_filter_high),
        fMatrixCtrl(is_right) {
    for (uint32_t side = 0; side < PAD_SIZE; ++side) padList[side] = padding[side];
  }
};

/// The same with its numbers packed; the image, its padding and its value are those of the Set functions.
struct LoadData3DParamsV2Pro {
  uint16_t channelSize = 0;
  bool enTranspose = false;
  bool enSmallK = false;
  bool filterSizeW = false;
  bool filterSizeH = false;
  bool fMatrixCtrl = false;
  uint64_t extConfig = 0;                 ///< from the low bits: kExtension, mExtension, kStartPt, mStartPt; 16 each
  uint64_t filterConfig = 0x10101010101;  ///< strideW, strideH, filterW, filterH, dilationFilterW, H; 8 bits each
  LoadData3DParamsV2Pro() = default;
  LoadData3DParamsV2Pro(uint16_t channels, bool is_transposed, bool is_small_k, bool is_filter_wide,
                        bool is_filter_high, bool is_right, uint64_t extension, uint64_t filter)
      : channelSize(channels),
        enTranspose(is_transposed),
        enSmallK(is_small_k),
        filterSizeW(is_filter_wide),
        filterSizeH(is_filter_high),
        fMatrixCtrl(is_right),
        extConfig(extension),
        filterConfig(filter) {}
};

/// repeatStride counts 16 rows (mode 0) or the columns of 32 bytes (mode 1).
struct LoadDataRepeatParam {
  uint16_t repeatStride = 0;
  uint8_t repeatTime = 1;
  uint8_t repeatMode = 0;  ///< 0: repeats go down the rows; 1: along the columns
  uint16_t dstStride = 0;  ///< not used by this chip
  LoadDataRepeatParam() = default;
  LoadDataRepeatParam(uint16_t stride, uint8_t time, uint8_t mode)
      : repeatStride(stride), repeatTime(time), repeatMode(mode) {}
};

inline void SetFmatrix(uint16_t l1H, uint16_t l1W, const uint8_t padList[4], const FmatrixMode& fmatrixMode,
                       opkit::Where where = opkit::Where::here()) {
  if (fmatrixMode != FmatrixMode::FMATRIX_LEFT) {
    opkit::illegal_operand("SetFmatrix: FMATRIX_RIGHT is not supported; both matrices use FMATRIX_LEFT", where);
  }
  opkit::MatrixRegisters& registers = opkit::matrix_registers();
  registers.image_height = l1H;
  registers.image_width = l1W;
  for (uint32_t side = 0; side < PAD_SIZE; ++side) registers.image_padding[side] = padList[side];
}

/// What pixels in the padding read as; elements of the image's type take its low bits.
template <typename T>
inline void SetLoadDataPaddingValue(const T padValue) {
  opkit::matrix_registers().padding_bits = opkit::bits_of(padValue);
}

/// Bytes of L1 behind which LoadData begins to read at 0 again; 0: no such end.
inline void SetLoadDataBoundary(uint32_t boundaryValue) { opkit::matrix_registers().load_boundary = boundaryValue; }

inline void SetLoadDataRepeat(const LoadDataRepeatParam& repeatParams) {
  opkit::MatrixRegisters& registers = opkit::matrix_registers();
  registers.repeat_stride = repeatParams.repeatStride;
  registers.repeat_time = repeatParams.repeatTime;
  registers.repeat_mode = repeatParams.repeatMode;
}

/// Of arch 2002 and older. Declared for kernels that fill one in; LoadData does not take it.
template <typename T>
struct LoadData3DParamsV1 {
  uint8_t padList[PAD_SIZE] = {0, 0, 0, 0};
  uint16_t l1H = 0;
  uint16_t l1W = 0;
  uint16_t c1Index = 0;
  uint8_t fetchFilterW = 0;
  uint8_t fetchFilterH = 0;
  int16_t leftTopW = 0;
  int16_t leftTopH = 0;
  uint8_t strideW = 0;
  uint8_t strideH = 0;
  uint8_t filterW = 0;
  uint8_t filterH = 0;
  uint8_t dilationFilterW = 0;
  uint8_t dilationFilterH = 0;
  uint8_t jumpStride = 0;
  uint8_t repeatMode = 0;
  uint8_t repeatTime = 0;
  uint8_t cSize = 0;
  T padValue = {};
};

}  // namespace AscendC

namespace opkit {

/// The part of an image load that the Set functions say.
template <typename T>
inline ImageLoad image_of_registers() {
  const MatrixRegisters& registers = matrix_registers();
  ImageLoad image;
  image.height = registers.image_height;
  image.width = registers.image_width;
  for (uint32_t side = 0; side < AscendC::PAD_SIZE; ++side) image.padding[side] = registers.image_padding[side];
  image.padding_bits = registers.padding_bits;
  image.boundary = registers.load_boundary;
  image.repeat = registers.repeat_time;
  image.repeats_columns = registers.repeat_mode == 1;
  image.repeat_step = registers.repeat_stride * (image.repeats_columns ? fractal_width(dtype_of<T>()) : kCubeSide);
  return image;
}

inline void issue_image(const Operand& dst, const Operand& src, const ImageLoad& image, bool is_right, Where where) {
  if (is_right) illegal_operand("LoadData: fMatrixCtrl is not supported; leave it false", where);
  Instr instr;
  instr.op = Op::LoadData3D;
  instr.pipe = Pipe::MTE1;
  instr.dst = dst;
  instr.src[0] = src;
  instr.source_count = 1;
  instr.image = &image;
  instr.where = where;
  issue(instr);
}

constexpr uint32_t kMoreFilter = 256;  ///< what filterSizeW and filterSizeH add

}  // namespace opkit

namespace AscendC {

template <typename T, const IsResetLoad3dConfig& defaultConfig = IS_RESER_LOAD3D_DEFAULT_CONFIG, typename U = PrimT<T>,
          std::enable_if_t<std::is_same_v<PrimT<T>, U>, bool> = true>
inline void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData3DParamsV2<U>& loadDataParams,
                     opkit::Where where = opkit::Where::here()) {
  if constexpr (defaultConfig.isSetFMatrix) {
    SetFmatrix(loadDataParams.l1H, loadDataParams.l1W, loadDataParams.padList, FmatrixMode::FMATRIX_LEFT);
  }
  if constexpr (defaultConfig.isSetPadding) SetLoadDataPaddingValue(loadDataParams.padValue);
  opkit::ImageLoad image = opkit::image_of_registers<T>();
  image.channels = loadDataParams.channelSize;
  image.rows = loadDataParams.mExtension;
  image.columns = loadDataParams.kExtension;
  image.first_row = loadDataParams.mStartPt;
  image.first_column = loadDataParams.kStartPt;
  image.stride_w = loadDataParams.strideW;
  image.stride_h = loadDataParams.strideH;
  image.filter_w = loadDataParams.filterW + (loadDataParams.filterSizeW ? opkit::kMoreFilter : 0);
  image.filter_h = loadDataParams.filterH + (loadDataParams.filterSizeH ? opkit::kMoreFilter : 0);
  image.dilation_w = loadDataParams.dilationFilterW;
  image.dilation_h = loadDataParams.dilationFilterH;
  image.is_transposed = loadDataParams.enTranspose;
  opkit::issue_image(dst.operand(), src.operand(), image, loadDataParams.fMatrixCtrl, where);
}

template <typename T>
inline void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LoadData3DParamsV2Pro& loadDataParams,
                     opkit::Where where = opkit::Where::here()) {
  const auto field = [](uint64_t bits, uint32_t index, uint32_t size) {
    return static_cast<uint32_t>(bits >> (index * size) & ((1u << size) - 1));
  };
  const auto extension = [&](uint32_t index) { return field(loadDataParams.extConfig, index, 16); };
  const auto filter = [&](uint32_t index) { return field(loadDataParams.filterConfig, index, 8); };
  opkit::ImageLoad image = opkit::image_of_registers<T>();
  image.channels = loadDataParams.channelSize;
  image.columns = extension(0);
  image.rows = extension(1);
  image.first_column = extension(2);
  image.first_row = extension(3);
  image.stride_w = filter(0);
  image.stride_h = filter(1);
  image.filter_w = filter(2) + (loadDataParams.filterSizeW ? opkit::kMoreFilter : 0);
  image.filter_h = filter(3) + (loadDataParams.filterSizeH ? opkit::kMoreFilter : 0);
  image.dilation_w = filter(4);
  image.dilation_h = filter(5);
  image.is_transposed = loadDataParams.enTranspose;
  opkit::issue_image(dst.operand(), src.operand(), image, loadDataParams.fMatrixCtrl, where);
}

template <typename T, const IsResetLoad3dConfig& defaultConfig = IS_RESER_LOAD3D_DEFAULT_CONFIG, typename U = PrimT<T>>
inline void LoadData(const LocalTensor<T>&, const LocalTensor<T>&, const LoadData3DParamsV1<U>&) {
  static_assert(sizeof(T) == 0,
                "LoadData with LoadData3DParamsV1: opkit lacks it, since the documents do not say in what jumpStride "
                "counts; use LoadData3DParamsV2");
}

}  // namespace AscendC
