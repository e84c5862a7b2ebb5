/// What `kernel<<<blocks, l2ctrl, stream>>>(arguments)` becomes: a kernel and its arguments, queued on a stream.
/// `opkit cc` includes this header in front of every source.
#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "opkit/arch.h"
#include "opkit/core_passes.h"
#include "opkit/export.h"
#include "opkit/isa/ops.h"
#include "opkit/kernel_entry.h"
#include "opkit/types.h"

#ifndef __global__
#define __global__
#endif
#ifndef __aicore__
#define __aicore__
#endif
#ifndef __gm__
#define __gm__
#endif
// Every call inlined costs minutes of compiling and saves little, as the time is the library's.
#ifndef __forceinline__
#define __forceinline__ inline
#endif

namespace opkit {

/// The mode of `__mix__(cube, vector)`: so many cube and vector sub-cores in a group.
constexpr KernelMode mix_mode(int cube, int vector) {
  if (cube == 0) return KernelMode::Vector;
  if (vector == 0) return KernelMode::Cube;
  return vector == 1 ? KernelMode::Mix11 : KernelMode::Mix12;
}

/// In place of a mode, where the source does not say which kernel it launches: the kernel is asked.
struct AskKernel {};

/// The question of this thread to the kernel that it calls.
struct ModeQuestion {
  bool is_open = false;
  bool is_answered = false;
  KernelMode mode = KernelMode::Vector;
};
inline thread_local ModeQuestion mode_question;

/// First statement of every kernel where one is asked: answers, and the kernel returns at once.
inline bool tells_mode(KernelMode mode) {
  if (!mode_question.is_open) return false;
  mode_question.is_answered = true;
  mode_question.mode = mode;
  return true;
}

/// The part of a launch between `<<<` and `>>>`, with what the source says of the kernel.
struct LaunchConfig {
  /// `l2_control` is nullptr or a size of dynamic local memory; the emulator has no use for either. Without a stream
  /// the launch goes to the context's own.
  template <typename Control>
  LaunchConfig(const char* kernel_name, KernelMode kernel_mode, int64_t blocks, Control&& l2_control,
               void* launch_stream, Where launch_where = Where::here())
      : name(kernel_name), mode(kernel_mode), block_dim(blocks), stream(launch_stream), where(launch_where) {
    (void)l2_control;
  }
  template <typename Control>
  LaunchConfig(const char* kernel_name, KernelMode kernel_mode, int64_t blocks, Control&& l2_control,
               Where launch_where = Where::here())
      : LaunchConfig(kernel_name, kernel_mode, blocks, l2_control, nullptr, launch_where) {}
  LaunchConfig(const char* kernel_name, KernelMode kernel_mode, int64_t blocks, Where launch_where = Where::here())
      : LaunchConfig(kernel_name, kernel_mode, blocks, nullptr, nullptr, launch_where) {}

  /// The same with the kernel's mode still to be asked for.
  template <typename Control>
  LaunchConfig(const char* kernel_name, AskKernel, int64_t blocks, Control&& l2_control, void* launch_stream,
               Where launch_where = Where::here())
      : LaunchConfig(kernel_name, KernelMode::Vector, blocks, l2_control, launch_stream, launch_where) {
    is_mode_known = false;
  }
  template <typename Control>
  LaunchConfig(const char* kernel_name, AskKernel, int64_t blocks, Control&& l2_control,
               Where launch_where = Where::here())
      : LaunchConfig(kernel_name, AskKernel(), blocks, l2_control, nullptr, launch_where) {}
  LaunchConfig(const char* kernel_name, AskKernel, int64_t blocks, Where launch_where = Where::here())
      : LaunchConfig(kernel_name, AskKernel(), blocks, nullptr, nullptr, launch_where) {}

  // First, so that every later version can read it.
  uint32_t abi_version = kAbiVersion;
  uint32_t table_fingerprint = ::opkit::table_fingerprint();
  uint32_t npu_arch = __NPU_ARCH__;
  const char* name;
  KernelMode mode;
  bool is_mode_known = true;
  int64_t block_dim;
  void* stream;
  Where where;
  bool takes_memory = false;  ///< a parameter is a pointer: the kernel is meant to write something
};

/// Queues a launch. `arguments[0]` of `invoke` will be `call`; `destroy(call)` runs when the launch is over, also when
/// it was refused. Refusals are in aclGetRecentErrMsg() and come out of the stream's next synchronisation.
OPKIT_API void enqueue_launch(const LaunchConfig& config, void (*invoke)(void* const*), void* call,
                              void (*destroy)(void*));

namespace detail {

template <typename T>
struct Same {
  using type = T;
};

/// A kernel with its arguments as they were at the launch. Blocks run at once and share it, so it is never written.
template <typename Callable, typename... Arguments>
struct PendingCall {
  Callable callable;
  std::tuple<Arguments...> arguments;

  static void invoke(void* const* pointers) {
    const auto& self = *static_cast<const PendingCall*>(pointers[0]);
#if defined(OPKIT_NO_AUTO_SYNC)
    synchronises_by_hand();
#endif
    call_on_this_core(&PendingCall::invoke, pointers, self.callable, self.arguments);
  }
  static void destroy(void* pointer) { delete static_cast<PendingCall*>(pointer); }

  static void enqueue(LaunchConfig config, Callable callable, std::tuple<Arguments...>&& arguments) {
    config.takes_memory = (std::is_pointer_v<Arguments> || ...);
    auto* call = new PendingCall{std::move(callable), std::move(arguments)};
    if (!config.is_mode_known) {
      mode_question = {};
      mode_question.is_open = true;
      std::apply(call->callable, call->arguments);
      mode_question.is_open = false;
      config.is_mode_known = mode_question.is_answered;
      config.mode = mode_question.mode;
    }
    enqueue_launch(config, &PendingCall::invoke, call, &PendingCall::destroy);
  }
};

}  // namespace detail

/// Launches a function or what a pointer leads to: arguments convert to the kernel's parameters as in a call.
template <typename... Parameters>
void launch_kernel(void (*kernel)(Parameters...), const LaunchConfig& config,
                   typename detail::Same<Parameters>::type... arguments) {
  using Call = detail::PendingCall<void (*)(Parameters...), std::decay_t<Parameters>...>;
  Call::enqueue(config, kernel, std::tuple<std::decay_t<Parameters>...>(std::move(arguments)...));
}

/// Launches a template through a lambda that names it: the arguments decide what it is instantiated for.
template <typename Callable, typename... Arguments>
void launch_template(Callable callable, const LaunchConfig& config, Arguments... arguments) {
  using Call = detail::PendingCall<Callable, Arguments...>;
  Call::enqueue(config, std::move(callable), std::tuple<Arguments...>(std::move(arguments)...));
}

}  // namespace opkit
