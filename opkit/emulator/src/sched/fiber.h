/// Fibers: kernel code with a stack of its own, so that a fault can leave it and a wait can suspend it.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <memory>

namespace opkit {

enum class FiberState { Finished, Suspended, Abandoned };

/// One stack. Used by one host thread at a time; a suspended fiber must be resumed on the thread that started it.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs `body(context)` on this fiber's stack until it returns, suspends or leaves.
  FiberState start(void (*body)(void*), void* context);

  /// Goes on behind the suspend() that it stopped in.
  FiberState resume();

  /// From inside the fiber: gives the thread back until resume().
  void suspend();

  /// From inside the fiber, or from a signal handler that interrupted it: abandons the stack.
  [[noreturn]] void leave();

  /// From outside: a suspended fiber is not resumed any more; its stack starts anew.
  void discard() { is_started_ = false; }

 private:
  struct Switch;
  static void enter(unsigned high, unsigned low);
  void loop();
  FiberState run();

  std::unique_ptr<Switch> switch_;
  char* stack_ = nullptr;
  size_t mapped_bytes_ = 0;
  void (*body_)(void*) = nullptr;
  void* context_ = nullptr;
  bool is_started_ = false;
};

}  // namespace opkit
