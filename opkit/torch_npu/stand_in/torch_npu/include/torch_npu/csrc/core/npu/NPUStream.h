/// Streams of the device for extensions that launch kernels themselves. Source: public op-plugin documents, custom APIs
/// in C++, class c10_npu::NPUStream and the functions that return one.
///
/// A launch on such a stream has run when it returns, as all work of the device; a fault is raised where the host next
/// waits for the device.
#pragma once

#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <functional>

#include "acl/acl.h"
#include "opkit/device_stream.h"

namespace c10_npu {

class NPUStream {
 public:
  enum Unchecked { UNCHECKED };

  explicit NPUStream(c10::Stream stream) : stream_(stream) {
    TORCH_CHECK(stream.device_type() == c10::DeviceType::PrivateUse1, "NPUStream: a stream of ", stream.device(),
                ", not of npu");
  }
  explicit NPUStream(Unchecked, c10::Stream stream) : stream_(stream) {}

  bool operator==(const NPUStream& other) const noexcept { return unwrap() == other.unwrap(); }
  bool operator!=(const NPUStream& other) const noexcept { return unwrap() != other.unwrap(); }

  operator aclrtStream() const { return stream(); }
  operator c10::Stream() const { return unwrap(); }

  c10::DeviceType device_type() const { return stream_.device_type(); }
  c10::DeviceIndex device_index() const { return stream_.device_index(); }
  c10::Device device() const { return stream_.device(); }
  c10::StreamId id() const { return stream_.id(); }
  bool query() const { return stream_.query(); }
  void synchronize() const { stream_.synchronize(); }

  aclrtStream stream() const {
    void* found = opkit_device_stream(id());
    TORCH_CHECK(found != nullptr, "NPUStream: ", aclGetRecentErrMsg() == nullptr ? "no device" : aclGetRecentErrMsg());
    return found;
  }
  /// There is no queue of tasks that has to be emptied first.
  aclrtStream stream(const bool) const { return stream(); }

  c10::Stream unwrap() const { return stream_; }
  struct c10::StreamData3 pack3() const { return stream_.pack3(); }
  static NPUStream unpack3(c10::StreamId id, c10::DeviceIndex index, c10::DeviceType type) {
    return NPUStream(c10::Stream::unpack3(id, index, type));
  }

 private:
  c10::Stream stream_;
};

namespace detail {

/// The device of an index; the current one for -1.
inline c10::Device device_of_index(c10::DeviceIndex index) {
  const c10::impl::VirtualGuardImpl guard(c10::DeviceType::PrivateUse1);
  return index < 0 ? guard.getDevice() : c10::Device(c10::DeviceType::PrivateUse1, index);
}

}  // namespace detail

inline NPUStream getCurrentNPUStream(c10::DeviceIndex device_index = -1) {
  const c10::impl::VirtualGuardImpl guard(c10::DeviceType::PrivateUse1);
  return NPUStream(guard.getStream(detail::device_of_index(device_index)));
}

inline NPUStream getDefaultNPUStream(c10::DeviceIndex device_index = -1) {
  const c10::impl::VirtualGuardImpl guard(c10::DeviceType::PrivateUse1);
  return NPUStream(guard.getDefaultStream(detail::device_of_index(device_index)));
}

inline NPUStream getNPUStreamFromPool(c10::DeviceIndex device = -1) {
  const c10::impl::VirtualGuardImpl guard(c10::DeviceType::PrivateUse1);
  return NPUStream(guard.getStreamFromGlobalPool(detail::device_of_index(device)));
}

inline void setCurrentNPUStream(NPUStream stream) {
  const c10::impl::VirtualGuardImpl guard(c10::DeviceType::PrivateUse1);
  guard.exchangeStream(stream.unwrap());
}

}  // namespace c10_npu

namespace std {
template <>
struct hash<c10_npu::NPUStream> {
  size_t operator()(const c10_npu::NPUStream& stream) const noexcept { return hash<c10::Stream>{}(stream.unwrap()); }
};
}  // namespace std
