/// The SPM buffer of a TPipe: room in global memory, or in L1 on arch 2002, for what UB does not hold. Source: Ascend C
/// API, resource management, InitSpmBuffer, WriteSpmBuffer, ReadSpmBuffer.
#pragma once

#include "opkit/api/data_copy.h"

namespace opkit {

/// `address` counts from the start of L1 where `is_local`.
struct SpmBuffer {
  uint64_t address = 0;
  uint64_t bytes = 0;
  bool is_local = false;

  /// Copies to the buffer, or from it, at an offset in bytes; `span_bytes` of it are touched.
  template <bool is_write, typename T, typename Length>
  void move(const AscendC::LocalTensor<T>& local, const Length& length, int64_t offset, uint64_t span_bytes,
            Where where) const {
    if (bytes == 0) illegal_operand("the SPM buffer does not exist yet: call InitSpmBuffer before", where);
    if (offset < 0 || static_cast<uint64_t>(offset) + span_bytes > bytes) {
      illegal_operand("WriteSpmBuffer, ReadSpmBuffer: it reaches behind what InitSpmBuffer was given", where);
    }
    if (is_local) {
      const AscendC::LocalTensor<T> spm(AscendC::TPosition::A1, static_cast<uint32_t>(address + offset),
                                        static_cast<uint32_t>((bytes - offset) / sizeof(T)));
      if constexpr (is_write) {
        DataCopy(spm, local, length, where);
      } else {
        DataCopy(local, spm, length, where);
      }
      return;
    }
    AscendC::GlobalTensor<T> spm;
    spm.SetGlobalBuffer(reinterpret_cast<T*>(address + offset), (bytes - offset) / sizeof(T));
    if constexpr (is_write) {
      DataCopy(spm, local, length, where);
    } else {
      DataCopy(local, spm, length, where);
    }
  }

  template <bool is_write, typename T>
  void move(const AscendC::LocalTensor<T>& local, int32_t count, int32_t offset, Where where) const {
    move<is_write>(local, static_cast<uint32_t>(count), offset, static_cast<uint64_t>(bytes_of<T>(count)), where);
  }
  template <bool is_write, typename T>
  void move(const AscendC::LocalTensor<T>& local, const AscendC::DataCopyParams& params, int32_t offset,
            Where where) const {
    const uint64_t gap = is_write ? params.dstGap : params.srcGap;
    const uint64_t blocks = params.blockCount * (params.blockLen + gap) - gap;
    move<is_write>(local, params, offset, blocks * kBlockBytes, where);
  }
};

}  // namespace opkit
