// The registry of operators, as C callers see it.
#include "opkit/operator_registry.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/launch.h"
#include "host/guarded.h"

namespace opkit::td {
namespace {

struct Row {
  opkit_operator view{};  ///< its texts are those below
  std::string op, name, device, file;
};

using Rows = std::vector<const opkit_operator*>;  ///< by priority, highest first

/// The implementations of one operator.
struct Operator {
  std::string name;
  Rows global;
  std::map<std::string, Rows> by_device;
  std::map<int32_t, Rows> by_type;

  Rows& table_of(const opkit_operator& row) {
    if (row.dtype >= 0) return by_type[row.dtype];
    return row.device == nullptr ? global : by_device[row.device];
  }
};

struct Registry {
  static Registry& get() {
    static auto* registry = new Registry();
    return *registry;
  }

  Operator& find(uint32_t id) { return operators[id]; }

  uint32_t id_of(const std::string& op) {
    {
      const std::shared_lock<std::shared_mutex> guard(lock);
      const auto found = ids.find(op);
      if (found != ids.end()) return found->second;
    }
    const std::unique_lock<std::shared_mutex> guard(lock);
    const auto [place, is_new] = ids.emplace(op, static_cast<uint32_t>(operators.size()));
    if (is_new) operators.push_back({op, {}, {}, {}});
    return place->second;
  }

  std::shared_mutex lock;
  std::unordered_map<std::string, uint32_t> ids;
  std::deque<Operator> operators;
  std::deque<Row> rows;  ///< never shrinks: whoever looked a row up may still hold it
};

std::string place_of(const opkit_operator& row) {
  if (row.file == nullptr) return "";
  return " (" + std::string(row.file) + (row.line == 0 ? "" : ":" + std::to_string(row.line)) + ")";
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + "\"";
}

opkit_status add(const opkit_operator& given) {
  if (given.op == nullptr || *given.op == 0 || given.name == nullptr || *given.name == 0) {
    host::fail(OPKIT_USAGE, "an implementation needs the name of its operator and one of its own");
  }
  if (given.kind == OPKIT_OPERATOR_CALLABLE && given.run == nullptr) {
    host::fail(OPKIT_USAGE, "the implementation \"" + std::string(given.name) + "\" of " + given.op + " has no run");
  }
  Registry& registry = Registry::get();
  const uint32_t id = registry.id_of(given.op);
  const std::unique_lock<std::shared_mutex> guard(registry.lock);
  Rows& table = registry.find(id).table_of(given);
  for (const opkit_operator* other : table) {
    if (other->priority != given.priority) continue;
    host::fail(OPKIT_USAGE, "Operator already registered: " + std::string(given.op) + " has \"" + other->name + "\"" +
                                place_of(*other) + " of priority " + std::to_string(given.priority) + "; \"" +
                                given.name + "\"" + place_of(given) + " needs another priority");
  }
  Row& row = registry.rows.emplace_back();
  row.view = given;
  const auto keep = [](std::string& text, const char*& pointer) {
    if (pointer == nullptr) return;
    text = pointer;
    pointer = text.c_str();
  };
  keep(row.op, row.view.op);
  keep(row.name, row.view.name);
  keep(row.device, row.view.device);
  keep(row.file, row.view.file);
  const auto behind = std::find_if(table.begin(), table.end(),
                                   [&](const opkit_operator* other) { return other->priority < row.view.priority; });
  table.insert(behind, &row.view);
  return OPKIT_OK;
}

}  // namespace
}  // namespace opkit::td

using opkit::td::Registry;

uint32_t opkit_registry_id(const char* op) { return Registry::get().id_of(op == nullptr ? "" : op); }

opkit_status opkit_registry_add(const opkit_operator* implementation) {
  return opkit::host::guarded([&] {
    if (implementation == nullptr) opkit::host::fail(OPKIT_USAGE, "the implementation is null");
    return opkit::td::add(*implementation);
  });
}

size_t opkit_registry_remove(const void* self) {
  Registry& registry = Registry::get();
  const std::unique_lock<std::shared_mutex> guard(registry.lock);
  size_t removed = 0;
  const auto clear = [&](opkit::td::Rows& rows) {
    const auto kept =
        std::remove_if(rows.begin(), rows.end(), [&](const opkit_operator* row) { return row->self == self; });
    removed += static_cast<size_t>(rows.end() - kept);
    rows.erase(kept, rows.end());
  };
  for (opkit::td::Operator& entry : registry.operators) {
    clear(entry.global);
    for (auto& [device, rows] : entry.by_device) clear(rows);
    for (auto& [dtype, rows] : entry.by_type) clear(rows);
  }
  return removed;
}

size_t opkit_registry_candidates(uint32_t id, int32_t dtype, const char* chip, const opkit_operator** rows,
                                 size_t room) {
  Registry& registry = Registry::get();
  const std::shared_lock<std::shared_mutex> guard(registry.lock);
  if (id >= registry.operators.size()) return 0;
  const opkit::td::Operator& entry = registry.operators[id];
  size_t count = 0;
  const auto collect = [&](const opkit::td::Rows& from) {
    for (const opkit_operator* row : from) {
      if (count < room) rows[count] = row;
      ++count;
    }
  };
  if (!entry.by_type.empty()) {
    const auto found = entry.by_type.find(dtype);
    if (found != entry.by_type.end()) collect(found->second);
  }
  if (!entry.by_device.empty()) {
    const auto found = entry.by_device.find(chip != nullptr ? chip : opkit::Device::get().chip().name);
    if (found != entry.by_device.end()) collect(found->second);
  }
  collect(entry.global);
  return count;
}

const char* opkit_registry_describe(void) {
  static thread_local std::string text;
  using opkit::td::quoted;
  Registry& registry = Registry::get();
  const std::shared_lock<std::shared_mutex> guard(registry.lock);
  text = "[";
  const auto tell = [&](const opkit::td::Rows& rows, const char* table) {
    for (const opkit_operator* row : rows) {
      text += std::string(text.size() > 1 ? "," : "") + "{\"op\":" + quoted(row->op) +
              ",\"name\":" + quoted(row->name) + ",\"priority\":" + std::to_string(row->priority) + ",\"table\":\"" +
              table + "\",\"device\":" + (row->device == nullptr ? "null" : quoted(row->device)) +
              ",\"dtype\":" + std::to_string(row->dtype) +
              ",\"file\":" + (row->file == nullptr ? "null" : quoted(row->file)) +
              ",\"line\":" + std::to_string(row->line) + "}";
    }
  };
  for (const opkit::td::Operator& entry : registry.operators) {
    for (const auto& [dtype, rows] : entry.by_type) tell(rows, "type");
    for (const auto& [device, rows] : entry.by_device) tell(rows, "device");
    tell(entry.global, "global");
  }
  text += "]";
  return text.c_str();
}

opkit_status opkit_registry_fail(opkit_status status, const char* message) {
  return opkit::host::report(status, message == nullptr ? "" : message);
}
