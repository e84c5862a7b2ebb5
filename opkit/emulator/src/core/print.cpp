// What kernels print: printf, DumpTensor, LocalTensor::Print, failed assertions. Source: Ascend C API, debugging.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/launch_state.h"
#include "memory/bounds.h"
#include "opkit/api/debug.h"

namespace opkit {
namespace {

using Kind = PrintArgument::Kind;

/// What a launch may print: 1 MiB. A loop that prints would fill a disk, or somebody's log.
constexpr uint64_t kMostBytes = uint64_t{1} << 20;
constexpr size_t kLongestLine = size_t{1} << 16;

/// Writes whole lines, up to the limit of the launch.
void write_lines(LaunchState& launch, const char* text, size_t size) {
  const uint64_t before = launch.printed_bytes.fetch_add(size);
  if (before + size <= kMostBytes) {
    std::fwrite(text, 1, size, stdout);
  } else if (before <= kMostBytes) {
    std::fputs("[opkit] the kernel has printed 1 MiB: the rest of what this launch prints is left out\n", stdout);
  } else {
    return;
  }
  std::fflush(stdout);
}

/// Lines of different cores never mix: a core's text is written when its line is over.
void print_text(const std::string& text) {
  std::string& printed = require_running_core().printed;
  printed += text;
  size_t end = printed.rfind('\n');
  if (end == std::string::npos) {
    // A line without an end is not kept for ever.
    if (printed.size() < kLongestLine) return;
    end = printed.size() - 1;
  }
  write_lines(*require_running_core().core.launch, printed.data(), end + 1);
  printed.erase(0, end + 1);
}

template <typename T>
T value_of_argument(const PrintArgument& argument) {
  if (argument.kind != Kind::Float) {
    return argument.kind == Kind::Signed ? static_cast<T>(static_cast<int64_t>(argument.bits))
                                         : static_cast<T>(argument.bits);
  }
  double value = 0;
  std::memcpy(&value, &argument.bits, sizeof(value));
  return static_cast<T>(value);
}

template <typename... Values>
std::string formatted(const std::string& specification, Values... values) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
  const int length = std::snprintf(nullptr, 0, specification.c_str(), values...);
  std::string text(static_cast<size_t>(length < 0 ? 0 : length) + 1, 0);
  std::snprintf(text.data(), text.size(), specification.c_str(), values...);
#pragma GCC diagnostic pop
  text.pop_back();
  return text;
}

/// Unsigned formats of a negative number show as many bits as its own type has, or 64 when the format asks for long.
uint64_t unsigned_bits(const PrintArgument& argument, bool is_long) {
  const auto bits = value_of_argument<uint64_t>(argument);
  if (is_long || argument.size_bytes >= 8 || argument.kind == Kind::Float) return bits;
  return bits & (argument.size_bytes > 4 ? ~0ull : 0xffffffffull);
}

/// One conversion: `flags` is the specification without length and conversion letter.
std::string convert(const std::string& flags, char letter, bool is_long, const PrintArgument& argument, Where where) {
  switch (letter) {
    case 'd':
    case 'i': return formatted(flags + "lld", value_of_argument<long long>(argument));
    case 'u':
    case 'x':
    case 'X':
    case 'o':
      return formatted(flags + "ll" + letter, static_cast<unsigned long long>(unsigned_bits(argument, is_long)));
    case 'c': return formatted(flags + letter, value_of_argument<int>(argument));
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G': return formatted(flags + letter, value_of_argument<double>(argument));
    case 'p': return formatted(flags + letter, reinterpret_cast<void*>(argument.bits));
    case 's': {
      const Instr instr = call_at(where);
      OPKIT_CHECK(argument.kind == Kind::Text, IllegalOperand, &instr, "pass a string, or print it with another letter",
                  "printf: %%s is given something that is no string");
      const char* text = reinterpret_cast<const char*>(argument.bits);
      return formatted(flags + letter, text == nullptr ? "(null)" : text);
    }
    default: {
      const Instr instr = call_at(where);
      raise_fault(Fault::IllegalOperand, &instr, "use %d %i %u %x %f %F %e %g %s %c or %p",
                  "printf: %%%c is not a conversion", letter);
    }
  }
}

std::string format_text(const char* format, const PrintArgument* arguments, uint32_t count, Where where) {
  std::string text;
  uint32_t next = 0;
  const Instr instr = call_at(where);
  const auto take = [&]() -> const PrintArgument& {
    OPKIT_CHECK(next < count, IllegalOperand, &instr, "give each % of the format an argument",
                "printf: \"%s\" wants more than %u arguments", format, count);
    return arguments[next++];
  };
  for (const char* at_letter = format; *at_letter != 0; ++at_letter) {
    if (*at_letter != '%') {
      text += *at_letter;
      continue;
    }
    ++at_letter;
    if (*at_letter == '%') {
      text += '%';
      continue;
    }
    std::string flags = "%";
    while (*at_letter != 0 && std::strchr("-+ #0123456789.*", *at_letter) != nullptr) {
      flags += *at_letter == '*' ? std::to_string(value_of_argument<int>(take())) : std::string(1, *at_letter);
      ++at_letter;
    }
    bool is_long = false;
    while (*at_letter != 0 && std::strchr("hlLqjzt", *at_letter) != nullptr) is_long |= *at_letter++ != 'h';
    OPKIT_CHECK(*at_letter != 0, IllegalOperand, &instr, nullptr, "printf: \"%s\" ends within a conversion", format);
    text += convert(flags, *at_letter, is_long, take(), where);
  }
  return text;
}

const char* dtype_text(DType dtype) {
  switch (dtype) {
    case DType::F16: return "float16";
    case DType::BF16: return "bfloat16";
    case DType::F32: return "float32";
    case DType::S8: return "int8";
    case DType::U8: return "uint8";
    case DType::S16: return "int16";
    case DType::U16: return "uint16";
    case DType::S32: return "int32";
    case DType::U32: return "uint32";
    case DType::S64: return "int64";
    case DType::U64: return "uint64";
    case DType::BOOL: return "bool";
    case DType::F64: return "float64";
    default: return "int4";
  }
}

template <typename T>
T load(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

/// Floats with `float_format`, whole numbers in decimal.
std::string element_text(DType dtype, const uint8_t* from, const char* float_format) {
  switch (dtype) {
    case DType::F16: return formatted(float_format, static_cast<double>(static_cast<float>(load<half>(from))));
    case DType::BF16: return formatted(float_format, static_cast<double>(static_cast<float>(load<bfloat16_t>(from))));
    case DType::F32: return formatted(float_format, static_cast<double>(load<float>(from)));
    case DType::F64: return formatted(float_format, load<double>(from));
    case DType::S8: return std::to_string(load<int8_t>(from));
    case DType::S16: return std::to_string(load<int16_t>(from));
    case DType::U16: return std::to_string(load<uint16_t>(from));
    case DType::S32: return std::to_string(load<int32_t>(from));
    case DType::U32: return std::to_string(load<uint32_t>(from));
    case DType::S64: return std::to_string(load<int64_t>(from));
    case DType::U64: return std::to_string(load<uint64_t>(from));
    default: return std::to_string(load<uint8_t>(from));
  }
}

struct Dump {
  DType dtype;
  const uint8_t* data;
  uint32_t count;
  uint32_t next = 0;

  std::string element() {
    if (next >= count) return ++next, "-";
    return element_text(dtype, data + size_t{next++} * size_bytes(dtype), "%f");
  }
};

std::string dump_dimension(Dump& dump, const AscendC::ShapeInfo& shape, uint32_t dimension) {
  std::string text = "[";
  const bool is_innermost = dimension + 1 == shape.shapeDim;
  for (uint32_t i = 0; i < shape.shape[dimension]; ++i) {
    if (i > 0) text += is_innermost ? "," : ",\n";
    text += is_innermost ? dump.element() : dump_dimension(dump, shape, dimension + 1);
  }
  return text + "]";
}

/// Host address of `count` elements of a tensor that this core may read.
const uint8_t* readable(const Operand& tensor, uint32_t count, Where where) {
  Core& core = require_running_core().core;
  finish_chain(core);
  Instr instr = call_at(where);
  instr.op = Op::GetValue;
  check_bounds(core, instr, tensor, tensor.address, uint64_t{count} * size_bytes(tensor.dtype), false);
  return core.at(tensor);
}

}  // namespace

void print_format(const char* format, const PrintArgument* arguments, uint32_t count, Where where) {
  const RunningCore& running = require_running_core();
  std::string text = format_text(format, arguments, count, where);
  // Source: utilities, printf, the output of the example: which core prints stands in front of the line.
  if (running.printed.empty()) {
    const CoreVariables& core = running.variables;
    const int64_t cores = core.block_count * core.sub_block_count;
    const char* kind = running.core.kind == SubCore::AIC ? "AIC" : "AIV";
    text.insert(
        0, "[" + std::string(kind) + " Block " + std::to_string(core.block_index) + "/" + std::to_string(cores) + "] ");
  }
  print_text(text);
}

bool is_in_kernel() { return running_core() != nullptr; }

void flush_printed(RunningCore& core) {
  if (core.printed.empty()) return;
  core.printed += '\n';
  if (core.core.launch->reorder == nullptr) write_lines(*core.core.launch, core.printed.data(), core.printed.size());
  core.printed.clear();
}

void fail_assertion(const char* condition, const char* format, const PrintArgument* arguments, uint32_t count,
                    Where where) {
  // raise_fault leaves without unwinding: what owns memory ends before.
  char text[768];
  {
    std::string message = format == nullptr ? "" : format_text(format, arguments, count, where);
    while (!message.empty() && message.back() == '\n') message.pop_back();
    std::snprintf(text, sizeof(text), "assertion failed: %s%s%s", condition, message.empty() ? "" : ": ",
                  message.c_str());
  }
  if (running_core() == nullptr) {
    std::fprintf(stderr, "%s:%u: %s\n", where.file, where.line, text);
    std::abort();
  }
  const Instr instr = call_at(where);
  raise_fault(Fault::Assertion, &instr, nullptr, "%s", text);
}

void dump_tensor(const Operand& tensor, uint32_t description, uint32_t count, const AscendC::ShapeInfo& shape,
                 Where where) {
  const uint8_t* data = readable(tensor, count, where);
  char header[160];
  std::snprintf(header, sizeof(header), "DumpTensor: desc=%u, addr=0x%llx, data_type=%s, position=%s, dump_size=%u\n",
                description, static_cast<unsigned long long>(tensor.address), dtype_text(tensor.dtype),
                space_name(tensor.space), count);
  Dump dump{tensor.dtype, data, count};
  AscendC::ShapeInfo as_row;
  as_row.shapeDim = 1;
  as_row.shape[0] = count;
  const std::string body = dump_dimension(dump, shape.shapeDim == 0 ? as_row : shape, 0);
  const Core& core = require_running_core().core;
  const std::string place = "block " + std::to_string(core.block) + ", line " + std::to_string(where.line) + ": ";
  print_text(place + header + body + "\n");
}

Operand operand_at(const void* pointer, DType dtype) {
  const Core& core = require_running_core().core;
  const auto* byte = static_cast<const uint8_t*>(pointer);
  Operand operand;
  operand.dtype = dtype;
  operand.space = Space::GM;
  operand.address = reinterpret_cast<uint64_t>(pointer);
  operand.end = ~0ull;
  for (uint32_t space = 1; space < 8; ++space) {
    const uint8_t* base = core.space_base[space];
    if (byte < base || byte >= base + core.space_bytes[space]) continue;
    operand.space = static_cast<Space>(space);
    operand.address = static_cast<uint64_t>(byte - base);
    operand.end = core.space_bytes[space];
  }
  return operand;
}

void dump_memory(Space space, const Operand& at_pointer, uint32_t description, uint32_t count, Where where) {
  const Instr instr = call_at(where);
  if (at_pointer.space != space) {
    raise_fault(Fault::IllegalOperand, &instr, nullptr, "asc_dump: the pointer is to %s, not to %s",
                space_name(at_pointer.space), space_name(space));
  }
  dump_tensor(at_pointer, description, count, AscendC::ShapeInfo(), where);
}

void print_tensor(const Operand& tensor, uint32_t count, Where where) {
  const uint8_t* data = readable(tensor, count, where);
  const uint32_t per_line = kBlockBytes / size_bytes(tensor.dtype);
  std::string text;
  for (uint32_t i = 0; i < count; ++i) {
    if (i % per_line == 0) text += formatted(i == 0 ? "%04u:" : "\n%04u:", i);
    text += " " + element_text(tensor.dtype, data + size_t{i} * size_bytes(tensor.dtype), "%g");
  }
  print_text(text + "\n");
}

}  // namespace opkit

void opkit_assert_fail(const char* condition, const char* file, unsigned int line, const char*) noexcept {
  opkit::fail_assertion(condition, nullptr, nullptr, 0, {file, line});
}
