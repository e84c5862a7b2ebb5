/// Functions of the rows of a matrix: reductions, and operations of each row with its own number.
///
/// Rows are computed in float, as many at a time as fit the temporary space. They lie one behind the other (ND), or in
/// fractals (NZ): columns of 16 elements, row behind row.
#pragma once

#include "opkit/high_level/elementwise.h"

namespace opkit::high_level {

/// Numbers of a data block: a row's number stands eight times in a column.
constexpr uint32_t kColumnFloats = kBlockBytes / sizeof(float);
constexpr uint32_t kFractalWidth = 16;

/// Whether rows of a tensor are computed where they lie.
template <typename T, bool is_nz>
constexpr bool is_in_place = std::is_same_v<T, float> && !is_nz;

/// Some of a matrix's rows. `width` is a multiple of a data block; of it `used` elements are not padding.
struct Rows {
  uint32_t first;
  uint32_t count;
  uint32_t width;
  uint32_t used;
  Where where;
  Floats list;       ///< one number a row
  Floats reduction;  ///< what reductions need

  FloatSteps all() const { return {count * width, where}; }
  FloatSteps column() const { return {count * kColumnFloats, where}; }

  /// The largest of each row, in a column.
  void maximum(const Floats& column, const Floats& rows) const {
    begin_list();
    for (uint32_t row = 0; row < count; ++row) {
      AscendC::ReduceMax(list[row], rows[row * width], reduction, static_cast<int32_t>(used), false, where);
      barrier();
    }
    spread(column, list);
  }
  /// The sum of each row, in a column.
  void sum(const Floats& column, const Floats& rows) const {
    begin_list();
    for (uint32_t row = 0; row < count; ++row) {
      AscendC::ReduceSum(list[row], rows[row * width], reduction, static_cast<int32_t>(used), where);
      barrier();
    }
    spread(column, list);
  }

  /// Each row with its number: dst = f(rows, column).
#define OPKIT_ROW_STEP(name, Instruction)                                                                          \
  void name(const Floats& dst, const Floats& rows, const Floats& column) const {                                   \
    each_row(dst, rows, column,                                                                                    \
             [this](const auto& to, const auto& from, const auto& number, uint64_t mask, uint8_t repeat) {         \
               AscendC::Instruction(to, from, number, mask, repeat, AscendC::BinaryRepeatParams{1, 1, 0, 8, 8, 0}, \
                                    where);                                                                        \
             });                                                                                                   \
  }
  OPKIT_ROW_STEP(add, Add)
  OPKIT_ROW_STEP(sub, Sub)
  OPKIT_ROW_STEP(mul, Mul)
  OPKIT_ROW_STEP(div, Div)
#undef OPKIT_ROW_STEP

  /// All rows with one, without their padding: dst = f(rows, vector).
  void mul_all(const Floats& dst, const Floats& rows, const Floats& vector) const {
    for (uint32_t row = 0; row < count; ++row) {
      AscendC::Mul(dst[row * width], rows[row * width], vector, static_cast<int32_t>(used), where);
    }
    barrier();
  }
  void add_all(const Floats& dst, const Floats& rows, const Floats& vector) const {
    for (uint32_t row = 0; row < count; ++row) {
      AscendC::Add(dst[row * width], rows[row * width], vector, static_cast<int32_t>(used), where);
    }
    barrier();
  }

  /// A column from one number a row, and back. Whole eights of rows are written.
  void spread(const Floats& column, const Floats& numbers) const {
    AscendC::Brcb(column, numbers, static_cast<uint8_t>(round_up(count, 8) / 8), {1, 8}, where);
    barrier();
  }
  void compress(const Floats& numbers, const Floats& column) const {
    for (uint32_t row = 0; row < count; row += 248) {
      const auto repeat = static_cast<int32_t>(count - row < 248 ? count - row : 248);
      AscendC::WholeReduceMax(numbers[row], column[row * kColumnFloats], 1, repeat, 1, 1, 1,
                              AscendC::ReduceOrder::ORDER_ONLY_VALUE, where);
    }
    barrier();
  }

  /// These rows of a matrix as floats: in place where they are, else converted into `space`.
  template <bool is_nz, typename T>
  Floats load(const AscendC::LocalTensor<T>& matrix, uint32_t matrix_rows, const Floats& space) const {
    if constexpr (is_nz) {
      const uint8_t stride = row_stride();
      for (uint32_t at = 0; at < width; at += kFractalWidth) {
        each_strip([&](uint32_t row, uint8_t repeat) {
          const auto from = matrix[at * matrix_rows + (first + row) * kFractalWidth];
          const auto to = space[row * width + at];
          if constexpr (std::is_same_v<T, float>) {
            AscendC::Adds(to, from, 0.0f, kFractalWidth, repeat, {1, 1, stride, 2}, where);
          } else {
            AscendC::Cast(to, from, AscendC::RoundMode::CAST_NONE, kFractalWidth, repeat, {1, 1, stride, 1}, where);
          }
        });
      }
      barrier();
      return space;
    } else if constexpr (std::is_same_v<T, float>) {
      return matrix[first * width];
    } else {
      AscendC::Cast(space, matrix[first * width], AscendC::RoundMode::CAST_NONE, count * width, where);
      barrier();
      return space;
    }
  }
  /// Where results are computed that `store` takes to these rows of a matrix.
  template <bool is_nz, typename T>
  Floats target(const AscendC::LocalTensor<T>& matrix, const Floats& space) const {
    if constexpr (is_in_place<T, is_nz>) {
      return matrix[first * width];
    } else {
      return space;
    }
  }
  template <bool is_nz, typename T>
  void store(const AscendC::LocalTensor<T>& matrix, uint32_t matrix_rows, const Floats& results) const {
    constexpr AscendC::RoundMode mode =
        std::is_same_v<T, half> ? AscendC::RoundMode::CAST_NONE : AscendC::RoundMode::CAST_RINT;
    if constexpr (is_nz) {
      const uint8_t stride = row_stride();
      for (uint32_t at = 0; at < width; at += kFractalWidth) {
        each_strip([&](uint32_t row, uint8_t repeat) {
          const auto to = matrix[at * matrix_rows + (first + row) * kFractalWidth];
          const auto from = results[row * width + at];
          if constexpr (std::is_same_v<T, float>) {
            AscendC::Adds(to, from, 0.0f, kFractalWidth, repeat, {1, 1, 2, stride}, where);
          } else {
            AscendC::Cast(to, from, mode, kFractalWidth, repeat, {1, 1, 1, stride}, where);
          }
        });
      }
      barrier();
    } else if constexpr (!std::is_same_v<T, float>) {
      AscendC::Cast(matrix[first * width], results, mode, count * width, where);
      barrier();
    }
  }

  /// A column of these rows from a tensor of data blocks, one a row, or (`is_list`) of one number a row.
  template <bool is_list, typename T>
  void load_column(const Floats& column, const AscendC::LocalTensor<T>& tensor) const {
    if constexpr (is_list) {
      begin_list();
      if constexpr (std::is_same_v<T, float>) {
        AscendC::Adds(list, tensor[first], 0.0f, static_cast<int32_t>(count), where);
      } else {
        AscendC::Cast(list, tensor[first], AscendC::RoundMode::CAST_NONE, count, where);
      }
      barrier();
      spread(column, list);
    } else if constexpr (std::is_same_v<T, float>) {
      AscendC::Adds(column, tensor[first * kColumnFloats], 0.0f, static_cast<int32_t>(count * kColumnFloats), where);
      barrier();
    } else {
      each_strip([&](uint32_t row, uint8_t repeat) {
        AscendC::Cast(column[row * kColumnFloats], tensor[(first + row) * kBlockBytes / sizeof(T)],
                      AscendC::RoundMode::CAST_NONE, kColumnFloats, repeat, {1, 1, 1, 1}, where);
      });
      barrier();
    }
  }
  /// The reverse; `space` is a column's.
  template <bool is_list, typename T>
  void store_column(const AscendC::LocalTensor<T>& tensor, const Floats& column, const Floats& space) const {
    if constexpr (std::is_same_v<T, float> && !is_list) {
      AscendC::Adds(tensor[first * kColumnFloats], column, 0.0f, static_cast<int32_t>(count * kColumnFloats), where);
    } else {
      begin_list();
      compress(list, column);
      if constexpr (std::is_same_v<T, float>) {
        AscendC::Adds(tensor[first], list, 0.0f, static_cast<int32_t>(count), where);
      } else if constexpr (is_list) {
        AscendC::Cast(tensor[first], list, AscendC::RoundMode::CAST_NONE, count, where);
      } else {
        // Halves of the list lie behind the blocks that they are spread to.
        const auto blocks = space.template ReinterpretCast<T>();
        const auto halves = list.template ReinterpretCast<T>();
        AscendC::Cast(halves, list, AscendC::RoundMode::CAST_NONE, round_up(count, 8), where);
        barrier();
        AscendC::Brcb(blocks, halves, static_cast<uint8_t>(round_up(count, 8) / 8), {1, 8}, where);
        barrier();
        constexpr uint32_t kBlock = kBlockBytes / sizeof(T);
        AscendC::Adds(tensor[first * kBlock], blocks, static_cast<T>(0.0f), static_cast<int32_t>(count * kBlock),
                      where);
      }
    }
    barrier();
  }

  /// One number a row, in a list for all rows of the matrix: the numbers of these rows from a column, and back. A
  /// part of fewer than eight rows is 4, 2 or 1 of them, so that it lies in one eight.
  void to_list(const Floats& all_rows, const Floats& column) const { compress(all_rows[first], column); }
  Floats from_list(const Floats& column, const Floats& all_rows) const {
    const uint32_t begin = first / 8 * 8;
    const auto eights = static_cast<uint8_t>(round_up(first - begin + count, 8) / 8);
    AscendC::Brcb(column, all_rows[begin], eights, {1, 8}, where);
    barrier();
    return column[(first - begin) * kColumnFloats];
  }

  static void barrier() { AscendC::PipeBarrier<PIPE_V>(); }

 private:
  /// Data blocks from row to row, which an instruction has eight bits for.
  uint8_t row_stride() const {
    if (width / kColumnFloats > UINT8_MAX) {
      illegal_operand("a high-level function: opkit takes rows of up to 2040 elements in NZ", where);
    }
    return static_cast<uint8_t>(width / kColumnFloats);
  }
  /// The list is spread in whole eights.
  void begin_list() const {
    AscendC::Duplicate(list, 0.0f, static_cast<int32_t>(round_up(count, 8)), where);
    barrier();
  }
  /// Calls `step(row, repeat)` for strips of as many rows as an instruction repeats.
  template <typename Step>
  void each_strip(const Step& step) const {
    for (uint32_t row = 0; row < count; row += 255) {
      step(row, static_cast<uint8_t>(count - row < 255 ? count - row : 255));
    }
  }
  template <typename Step>
  void each_row(const Floats& dst, const Floats& rows, const Floats& column, const Step& step) const {
    constexpr uint32_t kRepeat = kRepeatBytes / sizeof(float), kMostRepeats = 255;
    for (uint32_t row = 0; row < count; ++row) {
      for (uint32_t at = 0; at < width;) {
        const uint32_t left = width - at, repeats = left / kRepeat < kMostRepeats ? left / kRepeat : kMostRepeats;
        const uint32_t mask = repeats > 0 ? kRepeat : left;
        const uint32_t element = row * width + at;
        step(dst[element], rows[element], column[row * kColumnFloats], mask,
             static_cast<uint8_t>(repeats > 0 ? repeats : 1));
        at += repeats > 0 ? repeats * kRepeat : left;
      }
    }
    barrier();
  }
};

/// Calls `step(rows, matrices, columns)` for parts of `count` rows; the arrays are temporary space for a part: tensors
/// of its rows, and columns.
template <uint32_t matrices, uint32_t columns, typename Step>
inline void in_rows(const AscendC::LocalTensor<uint8_t>& space, uint32_t count, uint32_t width, uint32_t used,
                    Where where, const Step& step) {
  const uint32_t floats = space.GetSize() / sizeof(float);
  uint32_t part = count < kMostRows ? count : kMostRows;
  while (part > 0 && row_space_floats(part, width, matrices, columns) > floats) {
    part = part > 16 ? (part - 1) / 16 * 16 : part > 8 ? 8 : part > 4 ? 4 : part / 2;
  }
  if (part == 0 && count > 0) {
    illegal_operand("a high-level function: its temporary space is smaller than one row needs", where);
  }
  const Floats work = space.template ReinterpretCast<float>();
  Floats matrix[matrices + 1], column[columns + 1];
  uint32_t next = round_up(part, 8);
  for (uint32_t i = 0; i < columns; ++i, next += round_up(part, 8) * kColumnFloats) column[i] = work[next];
  for (uint32_t i = 0; i < matrices; ++i, next += part * width) matrix[i] = work[next];
  for (uint32_t first = 0; first < count; first += part) {
    const Rows rows = {first, count - first < part ? count - first : part, width, used, where, work, work[next]};
    step(rows, matrix, column);
  }
}

/// Temporary space that lasts while all parts are computed: lists of one float a row of the matrix, and vectors of one
/// float a column of it; `rest` is for the parts.
template <uint32_t lists, uint32_t vectors>
struct LastingSpace {
  Floats list[lists + 1];
  Floats vector[vectors + 1];
  AscendC::LocalTensor<uint8_t> rest;

  LastingSpace(const AscendC::LocalTensor<uint8_t>& space, uint32_t rows, uint32_t width, Where where) {
    const Floats work = space.template ReinterpretCast<float>();
    uint32_t next = 0;
    for (uint32_t i = 0; i < lists; ++i, next += round_up(rows, 8)) list[i] = work[next];
    for (uint32_t i = 0; i < vectors; ++i, next += width) vector[i] = work[next];
    if (next * sizeof(float) >= space.GetSize()) {
      illegal_operand("a high-level function: its temporary space is smaller than one row needs", where);
    }
    rest = space[next * sizeof(float)];
    for (uint32_t i = 0; i < lists; ++i)
      AscendC::Duplicate(list[i], 0.0f, static_cast<int32_t>(round_up(rows, 8)), where);
    Rows::barrier();
  }
};

/// A tensor's `count` numbers as floats: in `space` where they are no floats.
template <typename T>
inline Floats as_floats(const AscendC::LocalTensor<T>& tensor, uint32_t count, const Floats& space, Where where) {
  if constexpr (std::is_same_v<T, float>) {
    return tensor;
  } else {
    AscendC::Cast(space, tensor, AscendC::RoundMode::CAST_NONE, count, where);
    Rows::barrier();
    return space;
  }
}
template <typename T>
inline void from_floats(const AscendC::LocalTensor<T>& tensor, const Floats& values, uint32_t count, Where where) {
  if constexpr (std::is_same_v<T, float>) {
    AscendC::Adds(tensor, values, 0.0f, static_cast<int32_t>(count), where);
  } else {
    constexpr AscendC::RoundMode mode =
        std::is_same_v<T, half> ? AscendC::RoundMode::CAST_NONE : AscendC::RoundMode::CAST_RINT;
    AscendC::Cast(tensor, values, mode, count, where);
  }
  Rows::barrier();
}

}  // namespace opkit::high_level
