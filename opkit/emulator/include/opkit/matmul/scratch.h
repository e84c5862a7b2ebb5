/// Vector cores: operands that lie in their memories go to the cube core through global memory, and results come back
/// that way. What a vector core calls L1 (TSCM) is its own, as each sees one that begins at 0.
/// Source: NPU architecture version 2201: no path leads from UB to the cube core, or from L0C to UB.
#pragma once

#include <algorithm>

#include "kernel_operator.h"
#include "opkit/host/workspace.h"
#include "opkit/matmul/cube_context.h"
#include "opkit/matmul/state.h"

namespace opkit::matmul {

/// Each vector core has its part of the system workspace: what UB can hold, and more where sums wait for operands.
constexpr uint64_t kScratchBytes = 320 * 1024;
constexpr uint64_t kScratchBegin = 1024 * 1024;  ///< in front lies what kernels that share the workspace use first
static_assert(kScratchBegin + 48 * kScratchBytes <= kLibApiWorkspaceBytes, "a part for each vector core");

inline uint64_t scratch(Where where) {
  uint8_t* workspace = AscendC::GetSysWorkSpacePtr();
  if (workspace == nullptr) {
    illegal_operand(
        "Matmul: it needs the system workspace; mark a parameter with __kfc_workspace__ or call "
        "SetSysWorkspace",
        where);
  }
  const uint64_t core = static_cast<uint64_t>(AscendC::GetBlockIdx());
  return reinterpret_cast<uint64_t>(workspace) + kScratchBegin + core * kScratchBytes;
}

/// Copies `count` bytes of a local memory to global memory, behind what has put them there.
template <typename T>
inline void publish(const AscendC::LocalTensor<T>& tensor, uint64_t address, int64_t count, Where where) {
  Event(Pipe::MTE2, Pipe::MTE3, where).order();
  Event(Pipe::V, Pipe::MTE3, where).order();
  AscendC::LocalTensor<int8_t> source = tensor.template ReinterpretCast<int8_t>();
  AscendC::GlobalTensor<int8_t> target;
  target.SetGlobalBuffer(reinterpret_cast<int8_t*>(address));
  if (space_of(tensor.GetPosition()) != Space::UB) {
    AscendC::DataCopy(target, source, static_cast<uint32_t>((count + 31) / 32 * 32), where);
    return;
  }
  AscendC::DataCopyExtParams params;
  params.blockCount = 1;
  params.blockLen = static_cast<uint32_t>(count);
  AscendC::DataCopyPad(target, source, params, where);
}

/// A block of C where it belongs: `count` runs, `stride_bytes` from start to start.
struct Runs {
  int64_t begin = 0;  ///< elements in front of it
  int32_t count = 1;
  int64_t run_bytes = 0;
  int64_t stride_bytes = 0;
};

/// Copies runs that lie without gaps in global memory to others there, through what TPipe has left of UB.
template <typename T>
inline void forward(const AscendC::GlobalTensor<T>& to, const AscendC::GlobalTensor<T>& from, const Runs& runs,
                    Where where) {
  const uint32_t taken = taken_bytes(Space::UB);
  const auto begin = static_cast<uint32_t>((taken + kBlockBytes - 1) / kBlockBytes * kBlockBytes);
  const int64_t padded_run = (runs.run_bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  const auto most = static_cast<int32_t>((local_memory_bytes(Space::UB) - begin) / padded_run);
  if (most == 0) {
    illegal_operand(
        "Matmul: GetTensorC<false> to global memory goes through UB, where the kernel's buffers leave no room", where);
  }
  const AscendC::LocalTensor<T> rows(AscendC::TPosition::VECCALC, begin,
                                     static_cast<uint32_t>(most * padded_run / static_cast<int64_t>(sizeof(T))));
  for (int32_t done = 0; done < runs.count;) {
    AscendC::DataCopyExtParams params;
    params.blockCount = static_cast<uint16_t>(std::min({most, runs.count - done, 4095}));
    params.blockLen = static_cast<uint32_t>(runs.run_bytes);
    Event(Pipe::MTE3, Pipe::MTE2, where).order();
    Event(Pipe::V, Pipe::MTE2, where).order();
    AscendC::DataCopyPad(rows, from[static_cast<uint64_t>(done * runs.run_bytes / static_cast<int64_t>(sizeof(T)))],
                         params, AscendC::DataCopyPadExtParams<T>{}, where);
    Event(Pipe::MTE2, Pipe::MTE3, where).order();
    if (runs.count > 1) params.dstStride = static_cast<uint32_t>(runs.stride_bytes - runs.run_bytes);
    AscendC::DataCopyPad(to[static_cast<uint64_t>(done * runs.stride_bytes / static_cast<int64_t>(sizeof(T)))], rows,
                         params, where);
    done += params.blockCount;
  }
}

/// Copies `rows` runs of `run_bytes` from global memory to UB; all but the last byte counts are multiples of 32.
template <typename T>
inline void fetch(const AscendC::LocalTensor<T>& tensor, uint64_t address, int32_t rows, int64_t run_bytes,
                  int64_t row_bytes_in_ub, Where where) {
  if (rows > 1 && run_bytes % 32 != 0) {
    illegal_operand("Matmul: a row of C in UB is not a multiple of 32 bytes; choose CubeFormat::ND_ALIGN", where);
  }
  AscendC::GlobalTensor<int8_t> source;
  source.SetGlobalBuffer(reinterpret_cast<int8_t*>(address));
  const AscendC::LocalTensor<int8_t> target = tensor.template ReinterpretCast<int8_t>();
  if (rows == 1 && run_bytes % 32 != 0) {
    AscendC::DataCopyExtParams params;
    params.blockCount = 1;
    params.blockLen = static_cast<uint32_t>(run_bytes);
    AscendC::DataCopyPadExtParams<int8_t> pad;
    AscendC::DataCopyPad(target, source, params, pad, where);
    return;
  }
  AscendC::DataCopyParams params;
  params.blockCount = static_cast<uint16_t>(rows);
  params.blockLen = static_cast<uint16_t>(run_bytes / 32);
  params.dstStride = static_cast<uint16_t>((row_bytes_in_ub - run_bytes) / 32);
  AscendC::DataCopy(target, source, params, where);
}

}  // namespace opkit::matmul
