// A timed launch as JSON text: the one form in which it leaves the emulator.
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <iterator>

#include "core/names.h"
#include "isa/table.h"
#include "memory/bounds.h"
#include "observe/timing.h"

namespace opkit {
namespace {

constexpr uint32_t kRealPipes = static_cast<uint32_t>(Pipe::ALL);
/// Empty for what is in no memory.
const char* memory_name(Space space) { return space == Space::kCount ? "" : space_name(space); }

/// Writes one JSON value after another; commas come by themselves.
class JsonText {
 public:
  void open(char bracket) {
    separate();
    text_ += bracket;
    needs_comma_ = false;
  }
  void close(char bracket) {
    text_ += bracket;
    needs_comma_ = true;
  }
  void key(const char* name) {
    string(name);
    text_ += ':';
    needs_comma_ = false;
  }
  void string(const std::string& value) {
    separate();
    text_ += '"';
    for (char c : value) {
      if (c == '"' || c == '\\') text_ += '\\';
      if (static_cast<unsigned char>(c) < 0x20) {
        char code[8];
        std::snprintf(code, sizeof code, "\\u%04x", c);
        text_ += code;
      } else {
        text_ += c;
      }
    }
    text_ += '"';
  }
  void number(double value) {
    separate();
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, 12).ptr;
    text_.append(digits, end);
  }
  void number(uint64_t value) {
    separate();
    text_ += std::to_string(value);
  }
  template <class T>
  void field(const char* name, const T& value) {
    key(name);
    if constexpr (std::is_floating_point_v<T>)
      number(static_cast<double>(value));
    else if constexpr (std::is_integral_v<T>)
      number(static_cast<uint64_t>(value));
    else
      string(value);
  }
  template <class T>
  void by_pipe(const char* name, const T (&values)[kPipeCount]) {
    key(name);
    open('{');
    for (uint32_t pipe = 0; pipe < kRealPipes; ++pipe) field(pipe_name(static_cast<Pipe>(pipe)), values[pipe]);
    close('}');
  }
  std::string take() { return std::move(text_); }

 private:
  void separate() {
    if (needs_comma_) text_ += ',';
    needs_comma_ = true;
  }
  std::string text_;
  bool needs_comma_ = false;
};

const char* wait_name(WaitReason reason) {
  static constexpr const char* kNames[] = {"data", "buffer", "barrier", "cores"};
  static_assert(std::size(kNames) == static_cast<size_t>(WaitReason::kCount), "a name for each reason");
  return kNames[static_cast<size_t>(reason)];
}

/// -1 for none.
double known(uint32_t index) { return index == kNoIndex ? -1.0 : static_cast<double>(index); }

void add_core(JsonText& json, const CoreTiming& core) {
  json.open('{');
  json.field("block", core.block);
  json.field("sub_block", core.sub_block);
  json.field("kind", core.kind == SubCore::AIC ? "aic" : "aiv");
  json.field("start_cycle", core.start_cycle);
  json.field("end_cycle", core.end_cycle);
  json.by_pipe("busy_cycles", core.busy_cycles);
  json.by_pipe("wait_cycles", core.wait_cycles);
  json.by_pipe("instructions", core.instructions);
  json.field("gm_read_bytes", core.gm_read_bytes);
  json.field("gm_write_bytes", core.gm_write_bytes);
  json.field("l2_read_hit_bytes", core.l2_read_hit_bytes);
  json.field("l2_write_hit_bytes", core.l2_write_hit_bytes);
  json.field("hbm_read_bytes", core.hbm_read_bytes);
  json.field("hbm_write_bytes", core.hbm_write_bytes);
  json.close('}');
}

void add_line(JsonText& json, const LineTiming& line) {
  json.open('{');
  json.field("file", line.file);
  json.field("line", line.line);
  json.field("instruction", row_of(line.op).name);
  json.field("pipe", pipe_name(line.pipe));
  json.field("source", memory_name(line.from));
  json.field("target", memory_name(line.to));
  json.field("count", line.count);
  json.field("cycles", line.cycles);
  json.field("conflict_cycles", line.conflict_cycles);
  json.field("wait_cycles", line.wait_cycles);
  json.field("bytes", line.bytes);
  json.field("bursts", line.bursts);
  json.field("unaligned", line.unaligned);
  json.field("operations", line.operations);
  json.close('}');
}

}  // namespace

std::string timing_json(const LaunchTiming& timing) {
  JsonText json;
  json.open('{');
  json.field("kernel", timing.kernel);
  json.field("chip", timing.chip);
  json.field("block_dim", timing.block_dim);
  json.field("clock_mhz", timing.clock_mhz);
  json.field("fault", timing.fault);
  json.field("launch_us", timing.launch_us);
  json.field("task_us", timing.task_us);
  json.field("total_cycles", timing.total_cycles);
  json.field("events_dropped", timing.events_dropped);
  json.field("gm_read_bytes", timing.gm_read_bytes);
  json.field("gm_write_bytes", timing.gm_write_bytes);
  json.field("l2_hit_bytes", timing.l2_hit_bytes);
  json.field("l2_lost_bytes", timing.l2_lost_bytes);
  json.field("hbm_read_bytes", timing.hbm_read_bytes);
  json.field("hbm_write_bytes", timing.hbm_write_bytes);
  json.field("ub_bytes_used", timing.ub_bytes_used);
  json.key("lifted_cycles");
  json.open('{');
  for (size_t i = 0; i < timing.lifted_cycles.size(); ++i) {
    json.field(limit_name(static_cast<Limit>(i)), timing.lifted_cycles[i]);
  }
  json.close('}');
  json.key("cores");
  json.open('[');
  for (const CoreTiming& core : timing.cores) add_core(json, core);
  json.close(']');
  json.key("lines");
  json.open('[');
  for (const LineTiming& line : timing.lines) add_line(json, line);
  json.close(']');
  json.key("events");
  json.open('[');
  for (const TimelineEvent& event : timing.events) {
    json.open('[');
    json.number(uint64_t{event.core});
    json.number(uint64_t{event.line});
    json.number(event.start_cycle);
    json.number(event.end_cycle);
    json.number(event.bytes);
    json.number(event.l2_bytes);
    json.close(']');
  }
  json.close(']');
  json.key("waits");
  json.open('[');
  for (const TimelineWait& wait : timing.waits) {
    json.open('[');
    json.number(uint64_t{wait.core});
    json.string(pipe_name(wait.pipe));
    json.string(wait_name(wait.reason));
    json.string(pipe_name(wait.cause));
    json.number(wait.start_cycle);
    json.number(wait.end_cycle);
    json.number(known(wait.line));
    json.number(known(wait.cause_core));
    json.close(']');
  }
  json.close(']');
  json.key("scalar");
  json.open('[');
  for (const ScalarSpan& span : timing.scalar) {
    json.open('[');
    json.number(uint64_t{span.core});
    json.number(span.start_cycle);
    json.number(span.end_cycle);
    json.close(']');
  }
  json.close(']');
  json.close('}');
  return json.take();
}

}  // namespace opkit
