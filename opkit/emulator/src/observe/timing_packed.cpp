/// Kept launches as bytes: of each instruction the words in which it differs from the core's last one of its kind.
#include <array>
#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <unordered_map>

#include "observe/timing_kept.h"

namespace opkit {
namespace {

static_assert(std::is_trivially_copyable_v<KeptInstr> && sizeof(KeptInstr) % sizeof(uint64_t) == 0);
constexpr size_t kWords = sizeof(KeptInstr) / sizeof(uint64_t);
static_assert(kWords <= 64, "a bit of a word for each");
using Words = std::array<uint64_t, kWords>;
using LastWords = std::array<Words, static_cast<size_t>(Op::kCount)>;

constexpr uint32_t kVersion = 1;

class Writer {
 public:
  template <typename T>
  void value(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  void text(std::string_view text) {
    value(static_cast<uint32_t>(text.size()));
    bytes_.append(text);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  T value() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string_view text() { return take(value<uint32_t>()); }
  bool is_at_end() const { return bytes_.empty(); }

 private:
  std::string_view take(size_t count) {
    if (count > bytes_.size()) throw std::invalid_argument("a packed launch ends too soon");
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  std::string_view bytes_;
};

struct Head {
  uint32_t version = kVersion;
  uint32_t table = table_fingerprint();
  uint32_t instr_bytes = sizeof(KeptInstr);
  uint32_t payload_bytes =
      sizeof(FractalLoad) + sizeof(ImageLoad) + sizeof(MatrixFill) + sizeof(MatrixProduct) + sizeof(FixpipeCopy);
};

/// A pointer in packed bytes: of a payload whether there is one, of a file its number.
template <typename T>
const T* mark(uint64_t number) {
  return reinterpret_cast<const T*>(static_cast<uintptr_t>(number));
}
template <typename T>
uint64_t number_of(const T* marked) {
  return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(marked));
}

template <typename T>
void pack_payload(Writer& writer, const T*& payload) {
  if (payload == nullptr) return;
  writer.value(*payload);
  payload = mark<T>(1);
}

template <typename Visit>
void for_each_payload(Instr& instr, Visit&& visit) {
  visit(instr.load);
  visit(instr.image);
  visit(instr.fill);
  visit(instr.product);
  visit(instr.fixpipe);
}

Words words_of(const KeptInstr& kept) {
  Words words;
  std::memcpy(words.data(), &kept, sizeof(kept));
  return words;
}

}  // namespace

std::string KeptLaunch::pack() const {
  Writer writer;
  writer.value(Head());
  writer.text(kernel);
  writer.value(block_dim);
  writer.value(static_cast<uint32_t>(cores.size()));
  std::unordered_map<const char*, uint64_t> numbers;
  Writer names;
  for (const std::unique_ptr<KeptCore>& core : cores) {
    const uint64_t count = core == nullptr ? 0 : core->instructions.size();
    writer.value(count);
    if (count == 0) continue;
    writer.value(core->block);
    writer.value(core->sub_block);
    writer.value(core->kind);
    LastWords last = {};
    for (KeptInstr kept : core->instructions) {
      Writer payloads;
      for_each_payload(kept.instr, [&payloads](auto& payload) { pack_payload(payloads, payload); });
      const auto [file, is_new] = numbers.emplace(kept.instr.where.file, numbers.size());
      if (is_new) names.text(kept.instr.where.file);
      kept.instr.where.file = mark<char>(file->second);
      const Words words = words_of(kept);
      Words& before = last[static_cast<size_t>(kept.instr.op)];
      uint64_t differs = 0;
      for (size_t i = 0; i < kWords; ++i) differs |= uint64_t{words[i] != before[i]} << i;
      writer.value(kept.instr.op);
      writer.value(differs);
      for (size_t i = 0; i < kWords; ++i) {
        if (words[i] != before[i]) writer.value(words[i]);
      }
      before = words;
      writer.text(payloads.take());
    }
  }
  writer.value(static_cast<uint64_t>(numbers.size()));
  writer.text(names.take());
  return writer.take();
}

std::shared_ptr<KeptLaunch> KeptLaunch::unpack(std::string_view bytes) {
  Reader reader(bytes);
  const Head head = reader.value<Head>(), own;
  if (std::memcmp(&head, &own, sizeof(Head)) != 0) {
    throw std::invalid_argument("a launch was packed by another build of opkit; record it anew");
  }
  auto launch = std::make_shared<KeptLaunch>();
  launch->kernel = std::string(reader.text());
  launch->block_dim = reader.value<uint32_t>();
  launch->cores.resize(reader.value<uint32_t>());
  for (std::unique_ptr<KeptCore>& core : launch->cores) {
    const auto count = reader.value<uint64_t>();
    if (count == 0) continue;
    core = std::make_unique<KeptCore>();
    core->block = reader.value<uint32_t>();
    core->sub_block = reader.value<uint32_t>();
    core->kind = reader.value<SubCore>();
    LastWords last = {};
    core->instructions.reserve(count);
    for (uint64_t i = 0; i < count; ++i) {
      const auto op = static_cast<size_t>(reader.value<Op>());
      if (op >= last.size()) throw std::invalid_argument("a packed launch has an instruction that there is not");
      const auto differs = reader.value<uint64_t>();
      for (size_t word = 0; word < kWords; ++word) {
        if ((differs >> word & 1) != 0) last[op][word] = reader.value<uint64_t>();
      }
      KeptInstr kept;
      std::memcpy(static_cast<void*>(&kept), last[op].data(), sizeof(kept));
      Reader payloads(reader.text());
      for_each_payload(kept.instr, [&](auto& payload) { core->unpack(payloads, payload); });
      core->instructions.push_back(kept);
    }
  }
  const auto count = reader.value<uint64_t>();
  Reader names(reader.text());
  for (uint64_t i = 0; i < count; ++i) launch->files.emplace_back(names.text());
  for (const std::unique_ptr<KeptCore>& core : launch->cores) {
    if (core == nullptr) continue;
    for (KeptInstr& kept : core->instructions) {
      const uint64_t number = number_of(kept.instr.where.file);
      if (number >= count) throw std::invalid_argument("a packed launch names a file that it has not");
      kept.instr.where.file = launch->files[number].c_str();
    }
  }
  return launch;
}

}  // namespace opkit
