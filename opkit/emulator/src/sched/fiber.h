/// Fibers: kernel code with a stack of its own, so that a fault can leave it and a wait can suspend it.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <memory>
#include <vector>

namespace opkit {

enum class FiberState { Finished, Abandoned };

/// One stack. run() enters a function on it; the function may leave for good with leave(). Used by one host thread.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs `body(context)` on this fiber's stack until it returns or calls leave().
  FiberState run(void (*body)(void*), void* context);

  /// From inside run(), or from a signal handler that interrupted it: abandons the stack.
  [[noreturn]] void leave();

 private:
  struct Switch;
  static void enter(unsigned high, unsigned low);
  void loop();

  std::unique_ptr<Switch> switch_;
  char* stack_ = nullptr;
  size_t mapped_bytes_ = 0;
  void (*body_)(void*) = nullptr;
  void* context_ = nullptr;
  bool is_started_ = false;
};

}  // namespace opkit
