#include "opkit/fault.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/launch_state.h"

namespace opkit {

const char* fault_name(Fault fault) {
  static constexpr const char* kNames[] = {
      "None",        "OutOfBounds",   "UseAfterFree", "Misaligned",  "UninitializedRead", "IllegalOperand",
      "QueueMisuse", "Race",          "Deadlock",     "Leak",        "Assertion",         "Crash",
      "RawWrite",    "Unimplemented", "Unspecified",  "Interrupted", "Internal"};
  static_assert(sizeof(kNames) / sizeof(kNames[0]) == static_cast<size_t>(Fault::kCount), "a name for each fault");
  return kNames[static_cast<size_t>(fault)];
}

const char* fault_id(Fault fault) {
  static constexpr const char* kIds[] = {
      "None",         "MEM-BOUNDS",    "MEM-FREED",     "MEM-ALIGN",   "UninitializedRead", "API-OPERAND",
      "QUEUE-MISUSE", "Race",          "SYNC-DEADLOCK", "Leak",        "API-ASSERT",        "MEM-CRASH",
      "MEM-RAW",      "Unimplemented", "Unspecified",   "Interrupted", "Internal"};
  static_assert(sizeof(kIds) / sizeof(kIds[0]) == static_cast<size_t>(Fault::kCount), "an id for each fault");
  return kIds[static_cast<size_t>(fault)];
}

namespace {

/// "0-3, 7" of ascending numbers.
std::string ranges_text(const std::vector<uint32_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += std::to_string(numbers[i]);
    if (last > i) text += "-" + std::to_string(numbers[last]);
    i = last + 1;
  }
  return text;
}

/// Where a core stands, without what went wrong.
FaultReport report_at(const Core& core, const Instr* instr) {
  FaultReport report;
  report.file = instr == nullptr ? "" : instr->where.file;
  report.line = instr == nullptr ? 0 : instr->where.line;
  report.block = core.block;
  report.sub_core = core.kind == SubCore::AIC ? "aic" : "aiv";
  report.pipe = instr == nullptr ? Pipe::S : instr->pipe;
  report.instruction = core.issued;
  return report;
}

}  // namespace

void raise_fault(Fault fault, const Instr* instr, const char* help, const char* format, ...) {
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(message, sizeof(message), format, arguments);
  va_end(arguments);

  RunningCore* running = running_core();
  if (running == nullptr) throw std::logic_error(std::string("an Ascend C call outside a kernel: ") + message);

  const Core& core = running->core;
  FaultReport report = report_at(core, instr);
  report.fault = fault;
  report.message = message;
  report.help = help == nullptr ? "" : help;
  core.launch->record(std::move(report), core.index);
  abandon_fiber();
}

void LaunchState::record(FaultReport report, uint32_t core_index) {
  std::lock_guard<std::mutex> guard(fault_lock);
  if (core_index >= faulted_core) return;
  report.kernel = launch->kernel;
  fault = std::move(report);
  faulted_core = core_index;
  // A launch that was stopped as a whole stays so.
  if (core_index + 1 < stop_from.load()) stop_from.store(core_index + 1, std::memory_order_relaxed);
}

// Source: Ascend C API, TILING_KEY_IS: N branches are N keys, `else` is none. Public kernels have an `else`
// nevertheless, and one that has issued instructions is left alone.
void LaunchState::check_branch() {
  constexpr size_t kMostNamed = 6;
  if (!launch->chooses_branch || has_branch.load() || missed_branches.empty() || instructions.load() != 0) return;
  std::string keys;
  size_t named = 0;
  for (const uint64_t key : missed_branches) {
    if (++named > kMostNamed) break;
    keys += (keys.empty() ? "" : ", ") + std::to_string(key);
  }
  if (missed_branches.size() > kMostNamed) {
    keys += " and " + std::to_string(missed_branches.size() - kMostNamed) + " more";
  }
  FaultReport report;
  report.fault = Fault::IllegalOperand;
  report.message = "the kernel has no branch for the tiling key " + std::to_string(launch->tiling_key) +
                   " and has issued no instruction: its TILING_KEY_IS name " + keys;
  report.help = "let the tiling function set one of these keys; on the chip there is no binary for another";
  report.file = last_branch.file;
  report.line = last_branch.line;
  record(std::move(report), 0);
}

void LaunchState::check_raw_writes() {
  if (raw_writes == nullptr) return;
  const std::optional<RawWrites::Found> found = raw_writes->find();
  if (!found) return;
  FaultReport report;
  report.fault = Fault::RawWrite;
  report.message = "raw pointers have changed " + std::to_string(found->bytes) + " bytes of " +
                   (found->output->name.empty() ? "global memory" : found->output->name) + ", from byte " +
                   std::to_string(found->first) + " on, " +
                   (found->is_over ? "after an instruction wrote them" : "which no instruction wrote");
  report.help =
      "write outputs with DataCopy, Fixpipe or SetValue, which are modelled and checked; --allow-raw-writes takes the "
      "bytes as they are";
  record(std::move(report), 0);
}

void LaunchState::report_deadlock() {
  if (waits.empty() || stop_from.load() != ~0u) return;
  std::sort(waits.begin(), waits.end(),
            [](const WaitingCore& a, const WaitingCore& b) { return a.core->index < b.core->index; });
  const WaitingCore& first = waits.front();
  // Cores that wait for the same at the same line share one.
  std::map<std::string, std::vector<uint32_t>> groups;
  std::vector<std::string> order;
  for (const WaitingCore& wait : waits) {
    std::string kind = wait.core->kind == SubCore::AIC ? "aic" : "aiv";
    if (cores_per_block > 2 && kind == "aiv") kind += " " + std::to_string(wait.core->sub_block);
    std::string key = kind + " of block %s for " + *wait.what + " at " + wait.instr->where.file + ":" +
                      std::to_string(wait.instr->where.line);
    std::vector<uint32_t>& blocks = groups[key];
    if (blocks.empty()) order.push_back(std::move(key));
    if (blocks.empty() || blocks.back() != wait.core->block) blocks.push_back(wait.core->block);
  }
  std::string message = "every core that is left waits:";
  for (const std::string& key : order) {
    const std::vector<uint32_t>& blocks = groups[key];
    std::string line = key;
    line.replace(line.find("%s"), 2, ranges_text(blocks));
    if (blocks.size() > 1) line.replace(line.find("block"), 5, "blocks");
    message += "\n    " + line;
  }
  message += "\n    " + std::to_string(core_count - waits.size()) + " of " + std::to_string(core_count) +
             " cores have returned from the kernel";
  FaultReport report = report_at(*first.core, first.instr);
  report.fault = Fault::Deadlock;
  report.message = std::move(message);
  report.help = "let every core that is waited for reach the same call";
  record(std::move(report), first.core->index);
}

}  // namespace opkit
