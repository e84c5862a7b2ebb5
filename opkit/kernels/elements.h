// Elements and rows picked by tensors of numbers, put there, or added there (gather, index, scatter, flip).
#pragma once

#include "global_memory.h"
#include "indexed_blocks.h"
#include "kernel_operator.h"
#include "plans.h"

namespace opkit::kernels {

using namespace AscendC;

constexpr uint32_t kPiece = 64 * 1024;  // bytes of UB for a piece of a row

class Elements {
 public:
  __aicore__ inline Elements(GM_ADDR table, GM_ADDR plain, GM_ADDR* indices, const ElementsPlan& plan)
      : table_(table), plain_(plain), p_(plan) {
    for (uint32_t k = 0; k < kMaxIndices; ++k) indices_[k] = indices[k];
    pipe_.InitBuffer(space_, 2 * kPiece);
  }

  /// Rows that follow each other are a core's, and what is put or added element by element lies in cache lines that no
  /// other core writes. Elements that are gathered go out by copies: cores share them whatever the rows.
  /// `alone`: this core does all, of which it knows that some element is beyond the table.
  __aicore__ inline void run(bool alone = false) {
    is_alone_ = alone;
    int64_t rows = 1;
    for (uint32_t d = 1; d < kCopyDims; ++d) rows *= p_.sizes[d];
    const int64_t most = p_.cores > 0 && p_.cores < GetBlockNum() ? p_.cores : GetBlockNum();
    const int64_t cores = alone ? 1 : most, core = alone ? 0 : GetBlockIdx();
    if (core >= cores) return;
    const int64_t together = p_.rows_together > 0 ? p_.rows_together : 1;
    const int64_t length = p_.sizes[0];
    const int64_t unit = p_.action == ElementsPlan::kGather && !p_.has_rows ? 1 : together * length;
    const int64_t units = (rows * length + unit - 1) / unit;
    const int64_t first = units * core / cores * unit;
    const int64_t last = smaller(units * (core + 1) / cores * unit, rows * length);
    Outbox gathered(space_.Get<uint8_t>(), plain_);
    for (int64_t row = first / length; row * length < last; ++row) {
      int64_t rest = row;
      int64_t plain = 0;
      int64_t table = p_.table_offset;
      int64_t at[kMaxIndices] = {};
      for (uint32_t d = 1; d < kCopyDims; ++d) {
        const int64_t i = rest % p_.sizes[d];
        rest /= p_.sizes[d];
        plain += i * p_.plain_strides[d];
        table += i * p_.table_strides[d];
        for (uint32_t k = 0; k < p_.index_count; ++k) at[k] += i * p_.indices[k].strides[d];
      }
      if (p_.has_rows) {
        for (uint32_t k = 0; k < p_.index_count; ++k) table += number(k, at[k]) * p_.indices[k].table_stride;
        row_at(table, plain);
        continue;
      }
      const int64_t end = smaller(length, last - row * length);
      for (int64_t i = row * length < first ? first - row * length : 0; i < end; ++i) {
        int64_t to = table + i * p_.table_strides[0];
        for (uint32_t k = 0; k < p_.index_count; ++k) {
          to += number(k, at[k] + i * p_.indices[k].strides[0]) * p_.indices[k].table_stride;
        }
        if (p_.action == ElementsPlan::kGather) {
          gather_element(gathered, to, plain + i * p_.plain_strides[0]);
        } else {
          element_at(to, plain + i * p_.plain_strides[0]);
        }
      }
    }
    gathered.flush();
    if (p_.action == ElementsPlan::kGather || p_.has_rows) return;
    DataCacheCleanAndInvalid<uint8_t, CacheLine::ENTIRE_DATA_CACHE, DcciDst::CACHELINE_OUT>(global<uint8_t>(table_, 0));
  }

 private:
  __aicore__ static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

  /// The number itself; one below zero counts from the end.
  __aicore__ inline int64_t number(uint32_t k, int64_t at) const {
    const int64_t found = p_.index_bytes == 8 ? global<int64_t>(indices_[k], at).GetValue(0)
                                              : global<int32_t>(indices_[k], at).GetValue(0);
    const int64_t place = found < 0 ? found + p_.indices[k].size : found;
    // Behind a table may lie another tensor: what is beyond goes where there is none.
    return is_alone_ && (place < 0 || place >= p_.indices[k].size) ? kNowhere : place;
  }

  template <typename T>
  __aicore__ inline void gather(Outbox& to, int64_t table, int64_t plain) const {
    to.put(plain, global<T>(table_, table).GetValue(0));
  }

  __aicore__ inline void gather_element(Outbox& to, int64_t table, int64_t plain) const {
    switch (p_.element_bytes) {
      case 8: gather<int64_t>(to, table, plain); break;
      case 4: gather<int32_t>(to, table, plain); break;
      case 2: gather<int16_t>(to, table, plain); break;
      default: gather<uint8_t>(to, table, plain); break;
    }
  }

  template <typename T>
  __aicore__ inline void put(int64_t table, int64_t plain) const {
    global<T>(table_, table).SetValue(0, global<T>(plain_, plain).GetValue(0));
  }

  template <typename T>
  __aicore__ inline void add(int64_t table, int64_t plain) const {
    const GlobalTensor<T> to = global<T>(table_, table);
    to.SetValue(0, static_cast<T>(to.GetValue(0) + global<T>(plain_, plain).GetValue(0)));
  }

  __aicore__ inline void add_half(int64_t table, int64_t plain) const {
    const GlobalTensor<half> to = global<half>(table_, table);
    const float sum = static_cast<float>(to.GetValue(0)) + static_cast<float>(global<half>(plain_, plain).GetValue(0));
    to.SetValue(0, static_cast<half>(sum));
  }

  __aicore__ inline void add_bfloat16(int64_t table, int64_t plain) const {
    const GlobalTensor<bfloat16_t> to = global<bfloat16_t>(table_, table);
    const float sum = ToFloat(to.GetValue(0)) + ToFloat(global<bfloat16_t>(plain_, plain).GetValue(0));
    to.SetValue(0, ToBfloat16(sum));
  }

  __aicore__ inline void element_at(int64_t table, int64_t plain) const {
    if (p_.action != ElementsPlan::kAdd) {
      switch (p_.element_bytes) {
        case 8: put<int64_t>(table, plain); break;
        case 4: put<int32_t>(table, plain); break;
        case 2: put<int16_t>(table, plain); break;
        default: put<uint8_t>(table, plain); break;
      }
      return;
    }
    switch (static_cast<Kind>(p_.kind)) {
      case Kind::F32: add<float>(table, plain); break;
      case Kind::F16: add_half(table, plain); break;
      case Kind::BF16: add_bfloat16(table, plain); break;
      case Kind::S64: add<uint64_t>(table, plain); break;
      case Kind::S32: add<uint32_t>(table, plain); break;
      case Kind::S16: add<uint16_t>(table, plain); break;
      case Kind::Bool: {
        const bool is_set =
            global<uint8_t>(table_, table).GetValue(0) != 0 || global<uint8_t>(plain_, plain).GetValue(0) != 0;
        global<uint8_t>(table_, table).SetValue(0, is_set ? 1 : 0);
        break;
      }
      default: add<uint8_t>(table, plain); break;
    }
  }

  /// A whole row, by DMA; sums of floats on the vector unit.
  __aicore__ inline void row_at(int64_t table, int64_t plain) {
    const auto size = static_cast<int64_t>(p_.element_bytes);
    const LocalTensor<uint8_t> local = space_.Get<uint8_t>();
    const DataCopyPadExtParams<uint8_t> unpadded(false, 0, 0, 0);
    const int64_t bytes = p_.sizes[0] * size;
    const bool is_gather = p_.action == ElementsPlan::kGather;
    for (int64_t done = 0; done < bytes; done += kPiece) {
      const int64_t left = bytes - done;
      const DataCopyExtParams shape(1, static_cast<uint32_t>(left < kPiece ? left : kPiece), 0, 0, 0);
      const GlobalTensor<uint8_t> in_table = global<uint8_t>(table_, table * size + done);
      const GlobalTensor<uint8_t> in_plain = global<uint8_t>(plain_, plain * size + done);
      PipeBarrier<PIPE_ALL>();
      DataCopyPad(local, is_gather ? in_table : in_plain, shape, unpadded);
      if (p_.action == ElementsPlan::kAdd) {
        DataCopyPad(local[kPiece], in_table, shape, unpadded);
        PipeBarrier<PIPE_ALL>();
        const LocalTensor<float> sum = space_.Get<float>();
        Add(sum, sum, sum[kPiece / sizeof(float)], static_cast<int32_t>(shape.blockLen / sizeof(float)));
      }
      PipeBarrier<PIPE_ALL>();
      DataCopyPad(is_gather ? in_plain : in_table, local, shape);
    }
    PipeBarrier<PIPE_ALL>();
  }

  static constexpr int64_t kNowhere = int64_t{1} << 32;

  bool is_alone_ = false;
  GM_ADDR table_;
  GM_ADDR plain_;
  GM_ADDR indices_[kMaxIndices];
  const ElementsPlan& p_;
  TPipe pipe_;
  TBuf<TPosition::VECCALC> space_;
};

__aicore__ inline void move_by_index(GM_ADDR table, GM_ADDR plain, GM_ADDR i0, GM_ADDR i1, GM_ADDR i2, GM_ADDR i3,
                                     const ElementsPlan& plan) {
  GM_ADDR indices[kMaxIndices] = {i0, i1, i2, i3};
  // What is beyond the table is a fault of the element's own access.
  if (plan.width > 0 && IndexedBlocks(table, plain, i0, plan).run()) return;
  Elements(table, plain, indices, plan).run(plan.width > 0);
}

}  // namespace opkit::kernels
