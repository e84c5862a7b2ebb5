#include "sched/worker.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "sched/signals.h"
#include "sched/wait.h"
#include "sync/cube_service.h"

namespace opkit {
namespace {

constexpr size_t kPageBytes = 4096;

size_t whole_pages(size_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

thread_local Worker* thread_worker = nullptr;

void run_kernel(void* context) {
  const LaunchState& state = *static_cast<LaunchState*>(context);
  state.launch->invoke(state.launch->arguments);
  Core& core = *current_core();
  finish_chain(core);
  if (state.reorder != nullptr) state.reorder->finish(core);
}

}  // namespace

Worker* this_thread_worker() { return thread_worker; }

void abandon_fiber() { thread_worker->running_slot()->fiber.leave(); }

CoreSlot::~CoreSlot() {
  if (memory != nullptr) munmap(memory, memory_bytes);
}

/// Each memory starts at a multiple of the page size; pages that nothing touches cost nothing.
void CoreSlot::map_memories(const Chip& chip) {
  if (memory_chip == &chip) return;
  if (memory != nullptr) munmap(memory, memory_bytes);
  memory_bytes = 0;
  for (uint32_t bytes : chip.space_bytes) memory_bytes += whole_pages(bytes);
  void* mapped = mmap(nullptr, memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  memory = static_cast<uint8_t*>(mapped);
  memory_chip = &chip;
  is_filled = false;
  size_t offset = 0;
  for (uint32_t space = 1; space < 8; ++space) {
    running.core.space_base[space] = memory + offset;
    offset += whole_pages(chip.space_bytes[space]);
  }
}

void Worker::work(LaunchState& launch, const DeviceConfig& config) {
  watch_crashes();
  const WorkerThread reachable;
  thread_worker = this;
  launch_ = &launch;
  config_ = config;
  block_locals_.reset();
  for (;;) {
    const uint64_t seen = launch.epoch.load();
    abandon_waiting(true);
    if (resume_ready() || start_next() || resume_yielded()) continue;
    if (waiting_.empty() || !await_progress(seen)) break;
  }
  abandon_waiting(false);
  {
    std::lock_guard<std::mutex> guard(launch.wait_lock);
    --launch.active_workers;
  }
  signal_progress(launch);
  thread_worker = nullptr;
}

bool Worker::start_next() {
  uint32_t index = 0;
  do {
    const uint32_t next = launch_->next_core.fetch_add(1);
    if (next >= launch_->core_count) return false;
    index = launch_->order.empty() ? next : launch_->order[next];
  } while (index >= launch_->stop_from.load());
  std::unique_ptr<CoreSlot> slot;
  if (idle_.empty()) {
    slot = std::make_unique<CoreSlot>();
  } else {
    slot = std::move(idle_.back());
    idle_.pop_back();
  }
  reset_core(*slot, index);
  enter(std::move(slot), true);
  return true;
}

bool Worker::resume_ready() {
  for (size_t i = 0; i < waiting_.size(); ++i) {
    if (waiting_[i]->ready == nullptr || !waiting_[i]->ready(waiting_[i]->ready_context)) continue;
    std::unique_ptr<CoreSlot> slot = std::move(waiting_[i]);
    waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
    enter(std::move(slot), false);
    return true;
  }
  return false;
}

/// The core that gave way first, once there is nothing else to run.
bool Worker::resume_yielded() {
  for (size_t i = 0; i < waiting_.size(); ++i) {
    if (waiting_[i]->ready != nullptr) continue;
    std::unique_ptr<CoreSlot> slot = std::move(waiting_[i]);
    waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
    enter(std::move(slot), false);
    return true;
  }
  return false;
}

void Worker::enter(std::unique_ptr<CoreSlot> slot, bool is_new) {
  if (!is_new) restore_block_locals(*block_locals_, slot->block_locals);
  running_slot_ = slot.get();
  set_running_core(&slot->running);
  const FiberState state = is_new ? slot->fiber.start(run_kernel, launch_) : slot->fiber.resume();
  running_slot_ = nullptr;
  set_running_core(nullptr);
  if (state == FiberState::Suspended) {
    if (!block_locals_) block_locals_ = find_block_locals(launch_->launch->invoke);
    save_block_locals(*block_locals_, slot->block_locals);
    waiting_.push_back(std::move(slot));
    return;
  }
  finish(std::move(slot));
}

void Worker::finish(std::unique_ptr<CoreSlot> slot) {
  count_progress();
  flush_printed(slot->running);
  end_cube_client(slot->running.core);
  launch_->instructions.fetch_add(slot->running.core.issued);
  for (Observer* observer : launch_->observers) observer->block_end(slot->running.core);
  if (launch_->uncomputed != nullptr) launch_->uncomputed->end_block(slot->running.core);
  idle_.push_back(std::move(slot));
}

/// Gives the core its number and its state after reset.
void Worker::reset_core(CoreSlot& slot, uint32_t index) {
  slot.map_memories(*config_.chip);
  RunningCore& running = slot.running;
  decltype(running.core.space_base) space_base;
  std::copy(std::begin(running.core.space_base), std::end(running.core.space_base), space_base);
  // In place: what a core holds takes as long to copy as to clear.
  running.core.~Core();
  Core& fresh = *new (&running.core) Core;
  std::copy(std::begin(space_base), std::end(space_base), fresh.space_base);
  std::copy(std::begin(config_.chip->space_bytes), std::end(config_.chip->space_bytes), fresh.space_bytes);
  fresh.chip = config_.chip;
  fresh.has_chip_bounds = config_.chip_bounds;
  fresh.inaccuracy_seed = config_.inaccuracy_seed;
  fresh.launch = launch_;
  fresh.index = index;
  fresh.kind = launch_->kind_of(index);
  fresh.block = index / launch_->cores_per_block;
  fresh.block_count = launch_->launch->block_dim;
  fresh.chain.is_open = launch_->has_chains && launch_->reorder == nullptr;
  const uint32_t aiv_per_block = vector_cores(launch_->launch->mode);
  const bool is_cube = fresh.kind == SubCore::AIC;
  // Sub-cores of a block come as AIC, AIV 0, AIV 1.
  fresh.sub_block = is_cube ? 0 : index % launch_->cores_per_block - cube_cores(launch_->launch->mode);
  running.kernel_pipe = nullptr;
  running.system_workspace = launch_->launch->system_workspace;
  running.buffers.clear();
  std::memset(running.extension, 0, sizeof(running.extension));
  // Source: GetBlockIdx: on the vector cores of a mixed kernel it counts those, not the blocks.
  const uint32_t block_index = is_cube ? fresh.block : fresh.block * aiv_per_block + fresh.sub_block;
  running.variables = {
      block_index, fresh.block_count, fresh.sub_block, is_cube ? 1 : aiv_per_block, launch_->launch->tiling_key,
      is_cube};
  const auto fill = config_.fill();
  if (fill) {
    std::memset(slot.memory, *fill, slot.memory_bytes);
  } else if (slot.is_filled) {
    // The pattern is for the launch that asked: whoever reads what nobody wrote finds zeros or an earlier kernel's
    // values.
    madvise(slot.memory, slot.memory_bytes, MADV_DONTNEED);
  }
  slot.is_filled = fill.has_value();
}

/// Cores above the one that faulted, or all: they are not resumed.
void Worker::abandon_waiting(bool only_stopped) {
  const uint32_t limit = launch_->stop_from.load();
  for (size_t i = waiting_.size(); i-- > 0;) {
    if (only_stopped && waiting_[i]->running.core.index < limit) continue;
    waiting_[i]->fiber.discard();
    finish(std::move(waiting_[i]));
    waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
  }
}

/// Sleeps until a core anywhere has made progress. False when none can any more: every thread has only cores that wait.
bool Worker::await_progress(uint64_t seen) {
  LaunchState& launch = *launch_;
  std::unique_lock<std::mutex> guard(launch.wait_lock);
  if (launch.epoch.load() != seen) return true;
  for (const auto& slot : waiting_) {
    launch.waits.push_back({&slot->running.core, &slot->waiting_instr, &slot->waiting_for});
  }
  ++launch.idle_workers;
  if (launch.idle_workers == launch.active_workers) {
    launch.is_deadlocked = true;
    launch.report_deadlock();
    launch.progress.notify_all();
  } else {
    launch.progress.wait(guard, [&] { return launch.epoch.load() != seen || launch.is_deadlocked; });
  }
  launch.waits.erase(std::remove_if(launch.waits.begin(), launch.waits.end(),
                                    [this](const WaitingCore& wait) {
                                      return std::any_of(waiting_.begin(), waiting_.end(), [&wait](const auto& slot) {
                                        return &slot->running.core == wait.core;
                                      });
                                    }),
                     launch.waits.end());
  return !launch.is_deadlocked;
}

void wait_until(bool (*ready)(void*), void* context, const Instr& instr, std::string what) {
  if (ready(context)) return;
  // Whoever resumes this fiber has found `ready` true, which may have consumed what was waited for.
  CoreSlot& slot = *thread_worker->running_slot();
  slot.ready = ready;
  slot.ready_context = context;
  slot.waiting_instr = instr;
  slot.waiting_for = std::move(what);
  slot.fiber.suspend();
}

void yield_core() {
  CoreSlot& slot = *thread_worker->running_slot();
  slot.ready = nullptr;
  slot.fiber.suspend();
}

void signal_progress(LaunchState& launch) {
  {
    std::lock_guard<std::mutex> guard(launch.wait_lock);
    launch.epoch.fetch_add(1);
    launch.idle_workers = 0;  // all of them look again, even those that have not woken yet
  }
  launch.progress.notify_all();
}

}  // namespace opkit
