/// Scalar accesses to global memory and the caches in between. Execution has no caches: what a core writes is seen by
/// the others at once, so cleaning one changes nothing but what cachecheck says. Source: Ascend C API, cache control;
/// scalar compute.
#pragma once

#include <type_traits>

#include "opkit/api/tensor.h"

namespace opkit {

/// Lets other cores go on: a kernel that polls global memory waits for one of them.
OPKIT_API void yield_to_other_cores(Where where);

template <typename T>
inline Operand gm_word(T* address) {
  Operand operand;
  operand.space = Space::GM;
  operand.dtype = dtype_of<std::remove_const_t<T>>();
  operand.address = reinterpret_cast<uint64_t>(address);
  operand.end = ~0ull;
  return operand;
}

/// Tells observers that a core has written back and dropped the line of an element, or all of them. Lets others go on.
inline void clean_cache(const Operand& element, bool is_whole, Where where) {
  Instr instr;
  instr.op = Op::DataCacheCleanAndInvalid;
  instr.pipe = Pipe::S;
  instr.where = where;
  instr.dst = element;
  instr.mode = is_whole ? kWholeCache : 0;
  issue(instr);
  yield_to_other_cores(where);
}

}  // namespace opkit

namespace AscendC {

enum class CacheLine : uint64_t { SINGLE_CACHE_LINE = 0, ENTIRE_DATA_CACHE = 1 };
enum class DcciDst : uint64_t { CACHELINE_ALL = 0, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };

template <typename T, CacheLine entireType, DcciDst dcciDst>
inline void DataCacheCleanAndInvalid(const GlobalTensor<T>& dst, opkit::Where where = opkit::Where::here()) {
  opkit::clean_cache(opkit::gm_word(dst.GetPhyAddr()), entireType == CacheLine::ENTIRE_DATA_CACHE, where);
}
template <typename T, CacheLine entireType>
inline void DataCacheCleanAndInvalid(const GlobalTensor<T>& dst, opkit::Where where = opkit::Where::here()) {
  opkit::clean_cache(opkit::gm_word(dst.GetPhyAddr()), entireType == CacheLine::ENTIRE_DATA_CACHE, where);
}
/// Reserved: it says nothing of global memory.
template <typename T, CacheLine entireType, DcciDst dcciDst>
inline void DataCacheCleanAndInvalid(const LocalTensor<T>&, opkit::Where where = opkit::Where::here()) {
  opkit::yield_to_other_cores(where);
}

/// A hint only.
template <typename T>
inline void DataCachePreload(const GlobalTensor<uint64_t>&, const T) {}
inline void ICachePreLoad(const int64_t) {}
inline int64_t GetICachePreloadStatus() { return 0; }

/// Whole numbers, read and written in one go and past the cache: other cores see the old value or the new one.
template <typename T>
inline T ReadGmByPassDCache(T* address, opkit::Where where = opkit::Where::here()) {
  opkit::yield_to_other_cores(where);
  opkit::access_element(opkit::Op::GetValue, opkit::gm_word(address), where, opkit::kPastCache);
  return __atomic_load_n(address, __ATOMIC_SEQ_CST);
}
template <typename T>
inline void WriteGmByPassDCache(T* address, T value, opkit::Where where = opkit::Where::here()) {
  opkit::access_element(opkit::Op::SetValue, opkit::gm_word(address), where, opkit::kPastCache);
  __atomic_store_n(address, value, __ATOMIC_SEQ_CST);
}

}  // namespace AscendC
