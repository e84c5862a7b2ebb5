// Running an operator's tiling function, and judging what it decided.
#include "tiling_run.h"

#include <memory>
#include <utility>

#include "exe_graph/runtime/tiling_context.h"
#include "exe_graph/runtime/tiling_parse_context.h"
#include "tiling_memory.h"

namespace opkit::host {
namespace {

constexpr size_t kMaxWorkspaceCount = 16;                   // ours: the documents name no limit
constexpr uint32_t kMaxBlockDim = 65535;                    // Source: TilingContext, SetBlockDim
constexpr uint64_t kMaxWorkspaceBytes = uint64_t{1} << 36;  // ours: what lies above is taken for a miscalculation

/// What TilingParse has prepared for this operator and chip; null when the operator has no such function.
const void* compile_info(opkit_library& library, const Operator& entry, const Chip& chip, fe::PlatFormInfos* platform) {
  if (entry.tiling_parse == nullptr) return nullptr;
  const std::lock_guard<std::mutex> guard(library.lock);
  const auto key = std::make_pair(entry.type, chip.name);
  if (const auto found = library.compile_infos.find(key); found != library.compile_infos.end()) return found->second;
  void* info = entry.create_compile_info();
  gert::TilingParseContext context(entry.type.c_str(), entry.type.c_str(), info, platform);
  if (call_host(entry.type, "TilingParse", entry.tiling_parse, &context) != ge::GRAPH_SUCCESS) {
    fail(OPKIT_USAGE, "[" + entry.type + "] its TilingParse function failed" + logged_reason());
  }
  library.compile_infos[key] = info;
  return info;
}

}  // namespace

TilingResult run_tiling(opkit_library& library, const BoundCall& call, const Chip& chip) {
  const Operator& entry = call.entry();
  if (entry.tiling == nullptr) {
    fail(OPKIT_USAGE, "[" + entry.type + "] has no tiling function: AICore().SetTiling(...) is missing in its OpDef");
  }
  const auto said = [&](const std::string& what) { return "[" + entry.type + "] its tiling function " + what; };
  const auto refuse = [&](const std::string& what) { fail(OPKIT_USAGE, said(what)); };
  // Kept from call to call; a tiling function that runs another one has that one make its own.
  static thread_local std::unique_ptr<TilingMemory> kept;
  std::unique_ptr<TilingMemory> memory = std::move(kept);
  if (memory == nullptr) memory = std::make_unique<TilingMemory>();
  TilingResult result;
  gert::TilingData data(memory->data(), kTilingCapacity);
  size_t workspace_sizes[kMaxWorkspaceCount] = {};
  gert::ContinuousVector workspace(workspace_sizes, kMaxWorkspaceCount);
  workspace.SetSize(0);
  gert::TilingContext::State state = {};
  state.workspace_sizes = &workspace;
  state.tiling_data = &data;
  state.platform = opkit_platform(chip.name.c_str());
  state.compile_info = compile_info(library, entry, chip, state.platform);
  gert::TilingContext context(&call.node(), &state);
  if (call_host(entry.type, "tiling", entry.tiling, &context) != ge::GRAPH_SUCCESS) {
    fail_refused(said("failed" + logged_reason()));
  }
  if (state.tiling_key == kNoTilingKey) refuse("chooses none of the kernel's instances" + logged_reason());
  if (state.block_dim == 0 || state.block_dim > kMaxBlockDim) {
    const std::string message = said("sets the block dim to " + std::to_string(state.block_dim) +
                                     "; SetBlockDim takes 1 to " + std::to_string(kMaxBlockDim));
    // Without a core for the call it says that it has no work for the chip; too many are a mistake.
    if (state.block_dim == 0) fail_refused(message);
    fail(OPKIT_USAGE, message);
  }
  if (data.GetDataSize() > kTilingCapacity) {
    refuse("sets the size of its tiling data to " + std::to_string(data.GetDataSize()) + " bytes; GetCapacity() is " +
           std::to_string(kTilingCapacity));
  }
  for (size_t i = 0; i < workspace.GetSize(); ++i) {
    const bool overflows = __builtin_add_overflow(result.workspace_bytes, workspace_sizes[i], &result.workspace_bytes);
    if (overflows || result.workspace_bytes > kMaxWorkspaceBytes) {
      refuse("asks for the impossible workspace of " + std::to_string(workspace_sizes[i]) + " bytes");
    }
  }
  result.data.assign(memory->data(), memory->data() + data.GetDataSize());
  memory->clear();
  kept = std::move(memory);
  result.block_dim = state.block_dim;
  result.tiling_key = state.tiling_key;
  result.needs_atomic = state.needs_atomic;
  return result;
}

}  // namespace opkit::host
