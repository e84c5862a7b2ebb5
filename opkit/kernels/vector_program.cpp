// Kernel: runs a vector program (vector_program.h) on the vector cores.
#include "vector_program.h"

#include "kernel_operator.h"
#include "vector_math.h"

using namespace AscendC;
using opkit::kernels::Angle;
using opkit::kernels::exact_remainder;
using opkit::kernels::far_angles;
using opkit::kernels::Fold;
using opkit::kernels::Instruction;
using opkit::kernels::Kind;
using opkit::kernels::kMaxOperands;
using opkit::kernels::kOuter;
using opkit::kernels::kPartFloats;
using opkit::kernels::ListEntry;
using opkit::kernels::Operand;
using opkit::kernels::power;
using opkit::kernels::Step;
using opkit::kernels::VectorProgram;

namespace {

constexpr uint32_t kLanes = 64;  // floats of a repeat

__aicore__ inline uint32_t bytes_of(Kind kind) {
  switch (kind) {
    case Kind::S64: return 8;
    case Kind::F32:
    case Kind::S32: return 4;
    case Kind::F16:
    case Kind::BF16:
    case Kind::S16: return 2;
    default: return 1;
  }
}

__aicore__ inline uint32_t round_up(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit * unit; }

class Runner {
 public:
  __aicore__ inline explicit Runner(const VectorProgram& program) : p_(program), row_length_(program.row) {
    pipe_.InitBuffer(registers_, p_.register_count * p_.tile * sizeof(float));
    pipe_.InitBuffer(stage_, p_.tile * 8);
    pipe_.InitBuffer(work_, p_.tile * sizeof(float));
    pipe_.InitBuffer(spare_, p_.tile * 4 * sizeof(float));
    pipe_.InitBuffer(mask_, p_.tile / 8);
    // Lanes between the rows of a tile are computed with the others, and never stored.
    for (uint32_t i = 0; i < p_.register_count; ++i) Duplicate(reg(i), 0.0f, p_.tile);
    Duplicate(stage_.Get<int32_t>(), 0, p_.tile * 2);
    PipeBarrier<PIPE_ALL>();
  }

  __aicore__ inline void run(GM_ADDR* pointers) {
    for (uint32_t i = 0; i < kMaxOperands; ++i) pointers_[i] = pointers[i];
    const int64_t row_tiles = p_.fold_row ? 1 : (row_length_ + tile_row() - 1) / tile_row();
    const int64_t batches = (p_.outer[0] + p_.rows - 1) / p_.rows;
    int64_t items = row_tiles * batches;
    for (uint32_t d = 1; d < kOuter; ++d) items *= p_.outer[d];
    // Cores that share a fold have one item; all cores of the launch meet once.
    parts_ = p_.parts > 1 ? p_.parts : 1;
    part_ = GetBlockIdx() % parts_;
    const int64_t cores = GetBlockNum() / parts_;
    for (int64_t item = GetBlockIdx() / parts_; item < items; item += cores) {
      int64_t rest = item;
      const int64_t column = rest % row_tiles * tile_row();
      rest /= row_tiles;
      int64_t index[kOuter];
      index[0] = rest % batches * p_.rows;
      rest /= batches;
      for (uint32_t d = 1; d < kOuter; ++d) {
        index[d] = rest % p_.outer[d];
        rest /= p_.outer[d];
      }
      const int64_t rows_left = p_.outer[0] - index[0];
      rows_ = static_cast<uint32_t>(rows_left < p_.rows ? rows_left : p_.rows);
      if (p_.fold == Fold::None) {
        map(index, column);
      } else {
        fold(index, column);
      }
    }
  }

  /// Lines one after the other: their tiles are dealt to the cores as if they were one line's; a fold has one core, or
  /// some that no other line has.
  __aicore__ inline void run_list(__gm__ const ListEntry* entries, uint32_t count) {
    const int64_t index[kOuter] = {};
    const int64_t cores = GetBlockNum(), block = GetBlockIdx();
    int64_t before = 0;  // tiles of the lines before
    for (uint32_t e = 0; e < count; ++e) {
      row_length_ = entries[e].size;
      for (uint32_t i = 0; i < kMaxOperands; ++i) pointers_[i] = reinterpret_cast<GM_ADDR>(entries[e].addresses[i]);
      if (p_.parts > 0) {
        part_ = block - entries[e].first_block;
        parts_ = entries[e].parts;
        if (part_ >= 0 && part_ < parts_) fold(index, 0);
        continue;
      }
      const int64_t tiles = p_.fold_row ? 1 : (row_length_ + p_.tile - 1) / p_.tile;
      for (int64_t tile = (block - before % cores + cores) % cores; tile < tiles; tile += cores) {
        if (p_.fold == Fold::None) {
          map(index, tile * p_.tile);
        } else {
          fold(index, 0);
        }
      }
      before += tiles;
    }
  }

 private:
  __aicore__ inline LocalTensor<float> reg(uint32_t i) { return registers_.Get<float>()[i * p_.tile]; }
  __aicore__ inline int64_t tile_row() const { return p_.pitch < p_.tile ? row_length_ : p_.tile; }
  __aicore__ inline uint32_t lanes() const { return round_up((rows_ - 1) * p_.pitch + width_, kLanes); }

  __aicore__ inline void set_width(int64_t column) {
    const int64_t left = row_length_ - column;
    width_ = static_cast<uint32_t>(left < tile_row() ? left : tile_row());
  }

  __aicore__ inline void map(const int64_t* index, int64_t column) {
    set_width(column);
    position_ = column;
    for (uint32_t i = 0; i < p_.operand_count; ++i) {
      if (!p_.operands[i].is_output) load(i, offset(i, index, column));
    }
    if (p_.is_whole) {
      run_whole(index, column);
      return;
    }
    run_steps(0, p_.step_count);
    for (uint32_t i = 0; i < p_.operand_count; ++i) {
      if (p_.operands[i].is_output) store(i, offset(i, index, column));
    }
  }

  /// Folds tiles into one: over the dims that are folded, and over the row where it is.
  __aicore__ inline void fold(const int64_t* index, int64_t column) {
    const LocalTensor<float> sum = reg(p_.acc_reg);
    const float first = p_.fold == Fold::Sum    ? 0.0f
                        : p_.fold == Fold::Prod ? 1.0f
                        : p_.fold == Fold::Max  ? -__builtin_inff()
                                                : __builtin_inff();
    Duplicate(sum, first, p_.tile);
    int64_t count = 1;
    for (uint32_t d = 0; d < kOuter; ++d) count *= p_.fold_outer[d];
    const int64_t tiles = p_.fold_row ? (row_length_ + tile_row() - 1) / tile_row() : 1;
    const int64_t last = count * tiles * (part_ + 1) / parts_;
    for (int64_t step = count * tiles * part_ / parts_; step < last; ++step) {
      const int64_t k = step / tiles, at = column + step % tiles * tile_row();
      set_width(at);
      for (uint32_t i = 0; i < p_.operand_count; ++i) {
        if (!p_.operands[i].is_output) load(i, offset(i, index, at) + folded_offset(i, k));
      }
      run_steps(0, p_.body_count);
      const LocalTensor<float> value = reg(p_.fold_reg);
      // Only what the row has is folded: the lanes behind hold what an earlier tile left.
      for (uint32_t r = 0; r < rows_; ++r) join(sum[r * p_.pitch], value[r * p_.pitch], width_);
      PipeBarrier<PIPE_ALL>();
    }
    if (p_.fold_row) {
      const int64_t widest = row_length_ < tile_row() ? row_length_ : tile_row();
      width_ = static_cast<uint32_t>(widest);
      if (p_.fold == Fold::Prod) {
        for (uint32_t r = 0; r < rows_; ++r) {
          const LocalTensor<float> row = sum[r * p_.pitch];
          float product = 1.0f;
          for (uint32_t i = 0; i < width_; ++i) product *= row.GetValue(i);
          row.SetValue(0, product);
        }
        PipeBarrier<PIPE_ALL>();
      } else {
        const Step step = p_.fold == Fold::Sum ? Step::RowSum : p_.fold == Fold::Max ? Step::RowMax : Step::RowMin;
        reduce_rows(step, sum, sum);
      }
    }
    if (p_.parts > 0 && !meet(sum)) return;
    run_steps(p_.body_count, p_.step_count);
    for (uint32_t i = 0; i < p_.operand_count; ++i) {
      if (p_.operands[i].is_output) store(i, offset(i, index, column));
    }
  }

  __aicore__ inline void join(const LocalTensor<float>& to, const LocalTensor<float>& from, uint32_t count) {
    switch (p_.fold) {
      case Fold::Sum: Add(to, to, from, count); break;
      case Fold::Max: Max(to, to, from, count); break;
      case Fold::Min: Min(to, to, from, count); break;
      default: Mul(to, to, from, count); break;
    }
  }

  /// Whether this core has the value of all parts, in their order, and goes on with it.
  __aicore__ inline bool meet(const LocalTensor<float>& value) {
    GlobalTensor<float> space;
    space.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(p_.space));
    const DataCopyExtParams own(1, kPartFloats * sizeof(float), 0, 0, 0);
    DataCopyPad(space[GetBlockIdx() * kPartFloats], value, own);
    PipeBarrier<PIPE_ALL>();
    SyncAll();
    if (part_ != 0) return false;
    const LocalTensor<float> others = spare_.Get<float>();
    const DataCopyExtParams all(1, static_cast<uint32_t>(parts_ * kPartFloats * sizeof(float)), 0, 0, 0);
    DataCopyPad(others, space[GetBlockIdx() * kPartFloats], all, DataCopyPadExtParams<float>(false, 0, 0, 0));
    PipeBarrier<PIPE_ALL>();
    for (int64_t i = 1; i < parts_; ++i) {
      join(value, others[i * kPartFloats], kPartFloats);
      PipeBarrier<PIPE_V>();
    }
    PipeBarrier<PIPE_ALL>();
    return true;
  }

  __aicore__ inline int64_t offset(uint32_t i, const int64_t* index, int64_t column) const {
    const Operand& operand = p_.operands[i];
    int64_t at = column * operand.row_stride;
    for (uint32_t d = 0; d < kOuter; ++d) at += index[d] * operand.strides[d];
    return at;
  }

  __aicore__ inline int64_t folded_offset(uint32_t i, int64_t k) const {
    int64_t at = 0;
    for (uint32_t d = 0; d < kOuter; ++d) {
      at += k % p_.fold_outer[d] * p_.fold_strides[i][d];
      k /= p_.fold_outer[d];
    }
    return at;
  }

  template <typename T>
  __aicore__ inline GlobalTensor<T> global(uint32_t i, int64_t at) const {
    GlobalTensor<T> tensor;
    tensor.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(pointers_[i]) + at);
    return tensor;
  }

  /// Rows of an operand to `to`, a row every `pitch` elements; a row that lies once in memory is repeated.
  template <typename T>
  __aicore__ inline void fetch(uint32_t i, int64_t at, const LocalTensor<T>& to) {
    const Operand& operand = p_.operands[i];
    const uint32_t bytes = width_ * sizeof(T);
    const int64_t gap = (operand.strides[0] - static_cast<int64_t>(width_)) * static_cast<int64_t>(sizeof(T));
    if (rows_ == 1 || gap >= 0) {
      const uint32_t filled = round_up(bytes, 32);
      const DataCopyExtParams shape(static_cast<uint16_t>(rows_), bytes, rows_ == 1 ? 0 : static_cast<uint32_t>(gap),
                                    (p_.pitch * sizeof(T) - filled) / 32 * (rows_ > 1), 0);
      DataCopyPad(to, global<T>(i, at), shape, DataCopyPadExtParams<T>(false, 0, 0, 0));
    } else {
      for (uint32_t r = 0; r < rows_; ++r) {
        DataCopyPad(to[r * p_.pitch], global<T>(i, at + r * operand.strides[0]), DataCopyExtParams(1, bytes, 0, 0, 0),
                    DataCopyPadExtParams<T>(false, 0, 0, 0));
      }
    }
  }

  __aicore__ inline void load(uint32_t i, int64_t at) {
    const Operand& operand = p_.operands[i];
    const LocalTensor<float> to = reg(operand.reg);
    if (p_.is_whole) return;  // lane by lane
    PipeBarrier<PIPE_ALL>();
    if (operand.row_stride == 0) {
      for (uint32_t r = 0; r < rows_; ++r) {
        Duplicate(to[r * p_.pitch], scalar(operand.kind, i, at + r * operand.strides[0]), round_up(width_, 8));
      }
      PipeBarrier<PIPE_ALL>();
      return;
    }
    const uint32_t count = lanes();
    switch (operand.kind) {
      case Kind::F32: fetch(i, at, to); break;
      case Kind::F16: convert<half>(i, at, to, count, RoundMode::CAST_NONE); break;
      case Kind::BF16: convert<bfloat16_t>(i, at, to, count, RoundMode::CAST_NONE); break;
      case Kind::S32: convert<int32_t>(i, at, to, count, RoundMode::CAST_RINT); break;
      case Kind::S16: convert<int16_t>(i, at, to, count, RoundMode::CAST_NONE); break;
      case Kind::S64: convert<int64_t>(i, at, to, count, RoundMode::CAST_RINT); break;
      case Kind::S8: convert_byte<int8_t>(i, at, to, count); break;
      default: convert_byte<uint8_t>(i, at, to, count); break;
    }
    PipeBarrier<PIPE_ALL>();
  }

  template <typename T>
  __aicore__ inline void convert(uint32_t i, int64_t at, const LocalTensor<float>& to, uint32_t count, RoundMode mode) {
    const LocalTensor<T> stage = stage_.Get<T>();
    fetch(i, at, stage);
    PipeBarrier<PIPE_ALL>();
    Cast(to, stage, mode, count);
  }

  /// Bytes become floats by way of half, which holds them all.
  template <typename T>
  __aicore__ inline void convert_byte(uint32_t i, int64_t at, const LocalTensor<float>& to, uint32_t count) {
    const LocalTensor<T> stage = stage_.Get<T>();
    const LocalTensor<half> middle = work_.Get<half>();
    fetch(i, at, stage);
    PipeBarrier<PIPE_ALL>();
    Cast(middle, stage, RoundMode::CAST_NONE, count);
    PipeBarrier<PIPE_V>();
    Cast(to, middle, RoundMode::CAST_NONE, count);
  }

  __aicore__ inline float scalar(Kind kind, uint32_t i, int64_t at) {
    switch (kind) {
      case Kind::F32: return global<float>(i, at).GetValue(0);
      case Kind::F16: return static_cast<float>(global<half>(i, at).GetValue(0));
      case Kind::BF16: return ToFloat(global<bfloat16_t>(i, at).GetValue(0));
      default: return static_cast<float>(whole(kind, i, at));
    }
  }

  __aicore__ inline int64_t whole(Kind kind, uint32_t i, int64_t at) {
    switch (kind) {
      case Kind::S64: return global<int64_t>(i, at).GetValue(0);
      case Kind::S32: return global<int32_t>(i, at).GetValue(0);
      case Kind::S16: return global<int16_t>(i, at).GetValue(0);
      case Kind::S8: return global<int8_t>(i, at).GetValue(0);
      default: return global<uint8_t>(i, at).GetValue(0);
    }
  }

  template <typename T>
  __aicore__ inline void send(uint32_t i, int64_t at, const LocalTensor<T>& from) {
    const Operand& operand = p_.operands[i];
    const uint32_t width = operand.row_stride == 0 ? 1 : width_;
    const uint32_t bytes = width * sizeof(T);
    const int64_t gap = (operand.strides[0] - static_cast<int64_t>(width)) * static_cast<int64_t>(sizeof(T));
    const uint32_t filled = round_up(bytes, 32);
    const DataCopyExtParams shape(static_cast<uint16_t>(rows_), bytes,
                                  (p_.pitch * sizeof(T) - filled) / 32 * (rows_ > 1),
                                  rows_ == 1 ? 0 : static_cast<uint32_t>(gap), 0);
    DataCopyPad(global<T>(i, at), from, shape);
  }

  __aicore__ inline void store(uint32_t i, int64_t at) {
    const Operand& operand = p_.operands[i];
    const LocalTensor<float> from = reg(operand.reg);
    const uint32_t count = lanes();
    PipeBarrier<PIPE_ALL>();
    switch (operand.kind) {
      case Kind::F32: send(i, at, from); break;
      case Kind::F16: convert_back<half>(i, at, from, count, RoundMode::CAST_RINT); break;
      case Kind::BF16: convert_back<bfloat16_t>(i, at, from, count, RoundMode::CAST_RINT); break;
      case Kind::S32: convert_back<int32_t>(i, at, from, count, RoundMode::CAST_TRUNC); break;
      case Kind::S16: convert_back<int16_t>(i, at, from, count, RoundMode::CAST_TRUNC); break;
      case Kind::S64: convert_back<int64_t>(i, at, from, count, RoundMode::CAST_TRUNC); break;
      case Kind::S8: convert_back_byte<int8_t>(i, at, from, count); break;
      default: convert_back_byte<uint8_t>(i, at, from, count); break;
    }
    PipeBarrier<PIPE_ALL>();
  }

  template <typename T>
  __aicore__ inline void convert_back(uint32_t i, int64_t at, const LocalTensor<float>& from, uint32_t count,
                                      RoundMode mode) {
    const LocalTensor<T> stage = stage_.Get<T>();
    Cast(stage, from, mode, count);
    PipeBarrier<PIPE_ALL>();
    send(i, at, stage);
  }

  template <typename T>
  __aicore__ inline void convert_back_byte(uint32_t i, int64_t at, const LocalTensor<float>& from, uint32_t count) {
    const LocalTensor<T> stage = stage_.Get<T>();
    const LocalTensor<half> middle = work_.Get<half>();
    Cast(middle, from, RoundMode::CAST_NONE, count);
    PipeBarrier<PIPE_V>();
    Cast(stage, middle, RoundMode::CAST_TRUNC, count);
    PipeBarrier<PIPE_ALL>();
    send(i, at, stage);
  }

  __aicore__ inline void reduce_rows(Step step, const LocalTensor<float>& to, const LocalTensor<float>& from) {
    const LocalTensor<float> result = work_.Get<float>();
    const LocalTensor<float> space = spare_.Get<float>();
    for (uint32_t r = 0; r < rows_; ++r) {
      const LocalTensor<float> row = from[r * p_.pitch];
      PipeBarrier<PIPE_V>();
      switch (step) {
        case Step::RowSum: ReduceSum(result, row, space, width_); break;
        case Step::RowMax: ReduceMax(result, row, space, width_); break;
        default: ReduceMin(result, row, space, width_); break;
      }
      PipeBarrier<PIPE_ALL>();
      const float value = result.GetValue(0);
      PipeBarrier<PIPE_ALL>();
      Duplicate(to[r * p_.pitch], value, round_up(width_, 8));
    }
    PipeBarrier<PIPE_ALL>();
  }

  /// 1 where the comparison holds, else 0.
  __aicore__ inline void compare(const LocalTensor<float>& to, const LocalTensor<float>& a, const LocalTensor<float>& b,
                                 CMPMODE mode, uint32_t count) {
    const LocalTensor<uint8_t> bits = mask_.Get<uint8_t>();
    const LocalTensor<float> ones = work_.Get<float>();
    Compare(bits, a, b, mode, count);
    Duplicate(ones, 1.0f, count);
    PipeBarrier<PIPE_V>();
    Select(to, bits, ones, 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, count);
  }

  __aicore__ inline void select(const LocalTensor<float>& to, const LocalTensor<float>& condition,
                                const LocalTensor<float>& a, const LocalTensor<float>& b, uint32_t count) {
    const LocalTensor<uint8_t> bits = mask_.Get<uint8_t>();
    const LocalTensor<float> zeros = work_.Get<float>();
    Duplicate(zeros, 0.0f, count);
    PipeBarrier<PIPE_V>();
    Compare(bits, condition, zeros, CMPMODE::NE, count);
    PipeBarrier<PIPE_V>();
    Select(to, bits, a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, count);
  }

  /// to = a where a is 0: odd functions leave a zero its sign, which the library's do not.
  __aicore__ inline void keep_zeros(const LocalTensor<float>& to, const LocalTensor<float>& a, uint32_t count) {
    const LocalTensor<uint8_t> bits = mask_.Get<uint8_t>();
    const LocalTensor<float> zeros = work_.Get<float>();
    Duplicate(zeros, 0.0f, count);
    PipeBarrier<PIPE_V>();
    Compare(bits, a, zeros, CMPMODE::EQ, count);
    PipeBarrier<PIPE_V>();
    Select(to, bits, a, to, SELMODE::VSEL_TENSOR_TENSOR_MODE, count);
  }

  /// to = the larger of a and a number, or the smaller. Of equal ones the instruction gives its second: a zero of `a`
  /// keeps its sign beside a bound of 0.
  __aicore__ inline void bound(const LocalTensor<float>& to, const LocalTensor<float>& a, float value, bool is_below,
                               uint32_t count) {
    if (value != 0) {
      is_below ? Maxs(to, a, value, count) : Mins(to, a, value, count);
      return;
    }
    const LocalTensor<float> zeros = work_.Get<float>();
    Duplicate(zeros, 0.0f, count);
    PipeBarrier<PIPE_V>();
    is_below ? Max(to, zeros, a, count) : Min(to, zeros, a, count);
  }

  /// 1 / a, rounded. The instruction Reciprocal, and Rsqrt, too, may be off by more than 1/10000: their pages.
  __aicore__ inline void invert(const LocalTensor<float>& to, const LocalTensor<float>& a, uint32_t count) {
    const LocalTensor<float> ones = work_.Get<float>();
    Duplicate(ones, 1.0f, count);
    PipeBarrier<PIPE_V>();
    Div(to, ones, a, count);
  }

  __aicore__ inline opkit::kernels::Tile tile(uint32_t count) {
    opkit::kernels::Tile made;
    for (uint32_t i = 0; i < 4; ++i) made.spare[i] = spare_.Get<float>()[i * p_.tile];
    for (uint32_t i = 0; i < 2; ++i) made.spare[4 + i] = stage_.Get<float>()[i * p_.tile];
    made.work = work_.Get<float>();
    made.bits = mask_.Get<uint8_t>();
    made.count = count;
    return made;
  }

  /// a and b are 0 or 1 here: the host sees to it.
  __aicore__ inline void run_steps(uint32_t begin, uint32_t end) {
    const uint32_t count = lanes();
    const LocalTensor<uint8_t> spare = spare_.Get<uint8_t>();
    for (uint32_t i = begin; i < end; ++i) {
      const Instruction& it = p_.steps[i];
      const LocalTensor<float> to = reg(it.to);
      const LocalTensor<float> a = reg(it.a);
      const LocalTensor<float> b = reg(it.b);
      PipeBarrier<PIPE_V>();
      switch (it.step) {
        case Step::Copy: Adds(to, a, 0.0f, count); break;
        case Step::Set: Duplicate(to, it.value, count); break;
        case Step::Lane:
          for (uint32_t r = 0; r < rows_; ++r) {
            CreateVecIndex(to[r * p_.pitch], static_cast<float>(position_), round_up(width_, 8));
          }
          break;
        case Step::Add: Add(to, a, b, count); break;
        case Step::Sub: Sub(to, a, b, count); break;
        case Step::And:
        case Step::Mul: Mul(to, a, b, count); break;
        case Step::Div: Div(to, a, b, count); break;
        case Step::Or:
        case Step::Max: Max(to, a, b, count); break;
        case Step::Min: Min(to, a, b, count); break;
        case Step::Adds: Adds(to, a, it.value, count); break;
        case Step::Muls: Muls(to, a, it.value, count); break;
        case Step::Maxs: bound(to, a, it.value, true, count); break;
        case Step::Mins: bound(to, a, it.value, false, count); break;
        case Step::Lt: compare(to, a, b, CMPMODE::LT, count); break;
        case Step::Le: compare(to, a, b, CMPMODE::LE, count); break;
        case Step::Gt: compare(to, a, b, CMPMODE::GT, count); break;
        case Step::Ge: compare(to, a, b, CMPMODE::GE, count); break;
        case Step::Eq: compare(to, a, b, CMPMODE::EQ, count); break;
        case Step::Xor:
        case Step::Ne: compare(to, a, b, CMPMODE::NE, count); break;
        case Step::Select: select(to, a, b, reg(it.c), count); break;
        case Step::Not:
          Muls(to, a, -1.0f, count);
          PipeBarrier<PIPE_V>();
          Adds(to, to, 1.0f, count);
          break;
        case Step::Abs: Abs(to, a, count); break;
        case Step::Exp: Exp(to, a, count); break;
        case Step::Ln: Ln(to, a, count); break;
        case Step::Sqrt: Sqrt(to, a, count); break;
        case Step::Rsqrt:
          Sqrt(to, a, count);
          PipeBarrier<PIPE_V>();
          invert(to, to, count);
          break;
        case Step::Reciprocal: invert(to, a, count); break;
        case Step::Sign: Sign(to, a, spare, count); break;
        case Step::Floor: Floor(to, a, spare, count); break;
        case Step::Ceil: Ceil(to, a, spare, count); break;
        case Step::Trunc: Trunc(to, a, spare, count); break;
        case Step::Round: Cast(to, a, RoundMode::CAST_RINT, count); break;
        case Step::Sin:
          Sin(to, a, spare, count);
          far_angles(tile(count), to, a, Angle::kSine);
          keep_zeros(to, a, count);
          break;
        case Step::Cos:
          Cos(to, a, spare, count);
          far_angles(tile(count), to, a, Angle::kCosine);
          break;
        case Step::Tan:
          Tan(to, a, spare, count);
          far_angles(tile(count), to, a, Angle::kTangent);
          break;
        case Step::Negative:
          ShiftRight(to.ReinterpretCast<uint32_t>(), a.ReinterpretCast<uint32_t>(), 31u, count);
          PipeBarrier<PIPE_V>();
          Cast(to, to.ReinterpretCast<int32_t>(), RoundMode::CAST_RINT, count);
          break;
        case Step::Power: power(tile(count), to, a, b); break;
        case Step::Atan:
          Atan(to, a, spare, count);
          keep_zeros(to, a, count);
          break;
        case Step::Tanh:
          Tanh(to, a, spare, count);
          keep_zeros(to, a, count);
          break;
        case Step::Erf:
          Erf(to, a, spare, count);
          keep_zeros(to, a, count);
          break;
        case Step::Erfc: Erfc(to, a, spare, count); break;
        case Step::Sigmoid: Sigmoid(to, a, spare, count); break;
        case Step::Log2: Log2(to, a, spare, count); break;
        case Step::Log10: Log10(to, a, spare, count); break;
        case Step::Fmod: exact_remainder(tile(count), to, a, b); break;
        case Step::RowSum:
        case Step::RowMax:
        case Step::RowMin: reduce_rows(it.step, to, a); break;
        default: break;  // the host writes no others into programs of floats
      }
    }
  }

  __aicore__ static inline int64_t wrap(int64_t a, int64_t b, char sign) {
    const auto x = static_cast<uint64_t>(a);
    const auto y = static_cast<uint64_t>(b);
    return static_cast<int64_t>(sign == '+' ? x + y : sign == '-' ? x - y : x * y);
  }
  __aicore__ static inline int64_t floor_divide(int64_t a, int64_t b) {
    if (b == 0) return 0;  // the host has refused it
    if (b == -1) return wrap(0, a, '-');
    const int64_t quotient = a / b;
    return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
  }

  /// Whole numbers on the scalar unit: the vector unit has no lanes of 64 bits.
  __aicore__ inline void run_whole(const int64_t* index, int64_t column) {
    for (uint32_t r = 0; r < rows_; ++r) {
      for (uint32_t lane = 0; lane < width_; ++lane) {
        int64_t values[opkit::kernels::kMaxRegisters];
        const int64_t position = column + lane;
        for (uint32_t i = 0; i < p_.operand_count; ++i) {
          const Operand& operand = p_.operands[i];
          if (operand.is_output) continue;
          const int64_t at = offset(i, index, column) + r * operand.strides[0] + lane * operand.row_stride;
          values[operand.reg] = whole(operand.kind, i, at);
        }
        for (uint32_t i = 0; i < p_.step_count; ++i) {
          const Instruction& it = p_.steps[i];
          values[it.to] = whole_step(it, values[it.a], values[it.b], values[it.c], position);
        }
        for (uint32_t i = 0; i < p_.operand_count; ++i) {
          const Operand& operand = p_.operands[i];
          if (!operand.is_output) continue;
          const int64_t at = offset(i, index, column) + r * operand.strides[0] + lane * operand.row_stride;
          put_whole(operand.kind, i, at, values[operand.reg]);
        }
      }
    }
  }

  __aicore__ inline int64_t whole_step(const Instruction& it, int64_t a, int64_t b, int64_t c, int64_t position) {
    const int64_t imm = it.whole;
    constexpr int64_t NONE = 0;
    (void)imm, (void)b, (void)c, (void)position;
    switch (it.step) {
#define OP(name, operands, whole) \
  case Step::name: return whole;
#include "vector_ops.inc"
#undef OP
      default: return 0;
    }
  }

  __aicore__ inline void put_whole(Kind kind, uint32_t i, int64_t at, int64_t value) {
    switch (kind) {
      case Kind::S64: global<int64_t>(i, at).SetValue(0, value); break;
      case Kind::S32: global<int32_t>(i, at).SetValue(0, static_cast<int32_t>(value)); break;
      case Kind::S16: global<int16_t>(i, at).SetValue(0, static_cast<int16_t>(value)); break;
      case Kind::S8: global<int8_t>(i, at).SetValue(0, static_cast<int8_t>(value)); break;
      case Kind::Bool: global<uint8_t>(i, at).SetValue(0, value != 0); break;
      default: global<uint8_t>(i, at).SetValue(0, static_cast<uint8_t>(value)); break;
    }
  }

  const VectorProgram& p_;
  int64_t row_length_;
  GM_ADDR pointers_[kMaxOperands];
  TPipe pipe_;
  TBuf<TPosition::VECCALC> registers_;
  TBuf<TPosition::VECCALC> stage_;
  TBuf<TPosition::VECCALC> work_;
  TBuf<TPosition::VECCALC> spare_;
  TBuf<TPosition::VECCALC> mask_;
  int64_t parts_ = 1;  // of the fold, and which of them is this core's
  int64_t part_ = 0;
  uint32_t rows_ = 1;
  uint32_t width_ = 0;
  int64_t position_ = 0;
};

}  // namespace

extern "C" __global__ __aicore__ void vector_program(GM_ADDR p0, GM_ADDR p1, GM_ADDR p2, GM_ADDR p3, GM_ADDR p4,
                                                     GM_ADDR p5, GM_ADDR p6, GM_ADDR p7, GM_ADDR p8, GM_ADDR p9,
                                                     GM_ADDR program) {
  GM_ADDR pointers[kMaxOperands] = {p0, p1, p2, p3, p4, p5, p6, p7, p8, p9};
  Runner(*reinterpret_cast<__gm__ const VectorProgram*>(program)).run(pointers);
}

extern "C" __global__ __aicore__ void vector_list(GM_ADDR entries, GM_ADDR count, GM_ADDR program) {
  Runner(*reinterpret_cast<__gm__ const VectorProgram*>(program))
      .run_list(reinterpret_cast<__gm__ const ListEntry*>(entries), *reinterpret_cast<__gm__ const uint32_t*>(count));
}
