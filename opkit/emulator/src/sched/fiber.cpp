#include "sched/fiber.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>
#include <new>

namespace opkit {

namespace {
constexpr size_t kGuardBytes = 4 * 1024 * 1024;  // address space only; wider than any frame, so none steps over it
constexpr size_t kStackBytes = 512 * 1024;  // a kernel's own stack is 32 KB; host frames of debug builds are larger
enum Reason { kEntered = 0, kFinished = 1, kSuspended = 2, kAbandoned = 3 };
}  // namespace

// The first entry goes through makecontext; every later switch is _setjmp and _longjmp, which make no system call.
struct Fiber::Switch {
  jmp_buf host;
  jmp_buf fiber;
  ucontext_t first;
};

Fiber::Fiber() : switch_(std::make_unique<Switch>()) {
  mapped_bytes_ = kGuardBytes + kStackBytes;
  void* memory =
      mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  stack_ = static_cast<char*>(memory);
  mprotect(stack_, kGuardBytes, PROT_NONE);  // an overflow is a crash of the kernel, not of its neighbours
}

Fiber::~Fiber() { munmap(stack_, mapped_bytes_); }

void Fiber::enter(unsigned high, unsigned low) {
  auto* self = reinterpret_cast<Fiber*>(static_cast<uintptr_t>(uint64_t{high} << 32 | low));
  self->loop();
}

void Fiber::loop() {
  for (;;) {
    body_(context_);
    if (_setjmp(switch_->fiber) == 0) _longjmp(switch_->host, kFinished);
  }
}

FiberState Fiber::start(void (*body)(void*), void* context) {
  body_ = body;
  context_ = context;
  return run();
}

FiberState Fiber::resume() { return run(); }

FiberState Fiber::run() {
  switch (_setjmp(switch_->host)) {
    case kFinished: return FiberState::Finished;
    case kSuspended: return FiberState::Suspended;
    case kAbandoned:
      is_started_ = false;  // its frames are gone: the next start begins at the top of the stack
      return FiberState::Abandoned;
    default: break;
  }
  if (is_started_) _longjmp(switch_->fiber, 1);
  is_started_ = true;
  getcontext(&switch_->first);
  switch_->first.uc_stack.ss_sp = stack_;
  switch_->first.uc_stack.ss_size = mapped_bytes_;
  switch_->first.uc_link = nullptr;
  const auto address = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(this));
  makecontext(&switch_->first, reinterpret_cast<void (*)()>(&Fiber::enter), 2, static_cast<unsigned>(address >> 32),
              static_cast<unsigned>(address));
  setcontext(&switch_->first);
  __builtin_unreachable();
}

void Fiber::suspend() {
  if (_setjmp(switch_->fiber) == 0) _longjmp(switch_->host, kSuspended);
}

void Fiber::leave() { _longjmp(switch_->host, kAbandoned); }

}  // namespace opkit
