// Recordings as files: what a program leaves for the debugger. Read by the same version of opkit only.
#include <sys/mman.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <type_traits>

#include "debug/recording.h"

namespace opkit::debug {
namespace {

constexpr char kMagic[8] = {'o', 'p', 'k', 'i', 't', 'r', 'e', 'c'};
constexpr uint64_t kLimitBytes = uint64_t{1} << 40;

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

class Writer {
 public:
  explicit Writer(std::FILE* file) : file_(file) {}
  bool is_good() const { return is_good_; }

  void bytes(const void* data, size_t count) {
    if (count != 0) is_good_ = is_good_ && std::fwrite(data, 1, count, file_) == count;
  }
  template <typename T>
  void value(const T& item) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes(&item, sizeof(item));
  }
  void text(const std::string& text) {
    value(uint64_t{text.size()});
    bytes(text.data(), text.size());
  }
  template <typename T>
  void list(const std::vector<T>& items) {
    value(uint64_t{items.size()});
    bytes(items.data(), items.size() * sizeof(T));
  }

 private:
  std::FILE* file_;
  bool is_good_ = true;
};

class Reader {
 public:
  explicit Reader(std::FILE* file) : file_(file) {}

  void bytes(void* data, size_t count) {
    if (count != 0 && std::fread(data, 1, count, file_) != count) throw std::runtime_error("the recording ends early");
  }
  template <typename T>
  void value(T& item) {
    bytes(&item, sizeof(item));
  }
  template <typename T>
  T value() {
    T item{};
    value(item);
    return item;
  }
  std::string text() {
    std::string result(size(1), '\0');
    bytes(result.data(), result.size());
    return result;
  }
  template <typename T>
  void list(std::vector<T>& items) {
    items.resize(size(sizeof(T)));
    bytes(static_cast<void*>(items.data()), items.size() * sizeof(T));
  }
  size_t size(size_t item_bytes) {
    const auto count = value<uint64_t>();
    if (count > kLimitBytes / item_bytes) throw std::runtime_error("the recording is damaged");
    return count;
  }

 private:
  std::FILE* file_;
};

void write_fault(Writer& to, const FaultReport& fault) {
  to.value(fault.fault);
  for (const std::string* text : {&fault.message, &fault.help, &fault.kernel, &fault.file}) to.text(*text);
  to.text(fault.sub_core == nullptr ? "" : fault.sub_core);
  to.value(fault.line);
  to.value(fault.block);
  to.value(fault.pipe);
  to.value(fault.instruction);
}

void read_fault(Reader& from, FaultReport& fault) {
  from.value(fault.fault);
  for (std::string* text : {&fault.message, &fault.help, &fault.kernel, &fault.file}) *text = from.text();
  fault.sub_core = from.text() == "aic" ? "aic" : "aiv";
  from.value(fault.line);
  from.value(fault.block);
  from.value(fault.pipe);
  from.value(fault.instruction);
}

}  // namespace

bool save_recording(const Recording& recording, const std::string& path) {
  const std::string aside = path + ".part";
  File file(std::fopen(aside.c_str(), "wb"));
  if (file == nullptr) return false;
  Writer to(file.get());
  to.value(kMagic);
  to.value(table_fingerprint());
  to.value(uint64_t{sizeof(Instr) << 32 | sizeof(StepRecord) << 16 | sizeof(Registers)});
  to.text(recording.kernel);
  to.text(recording.chip->name);
  to.value(recording.block_dim);
  to.value(recording.launch);
  to.value(recording.is_poisoned);
  to.value(recording.is_cut);
  write_fault(to, recording.fault);
  to.list(recording.cores);
  to.value(uint64_t{recording.ranges.size()});
  for (const RangeRecord& range : recording.ranges) {
    to.text(range.name);
    to.value(range.begin);
    to.value(range.end);
    to.value(range.is_written);
    to.list(range.pieces);
    to.list(range.data);
  }
  to.list(recording.steps);
  to.list(recording.events);
  to.value(uint64_t{recording.sites.size()});
  for (const SiteRecord& site : recording.sites) {
    to.text(site.file);
    to.value(site.line);
  }
  to.list(recording.registers);
  to.list(recording.checkpoints);
  to.value(recording.arena.used());
  if (recording.arena.used() > 8) to.bytes(recording.arena.at(8), recording.arena.used() - 8);
  const bool is_written = to.is_good() && std::fflush(file.get()) == 0;
  file.reset();
  if (is_written && std::rename(aside.c_str(), path.c_str()) == 0) return true;
  std::remove(aside.c_str());
  return false;
}

std::shared_ptr<Recording> load_recording(const std::string& path) {
  File file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) throw std::runtime_error("the recording cannot be opened");
  Reader from(file.get());
  char magic[sizeof(kMagic)];
  from.value(magic);
  const auto fingerprint = from.value<uint32_t>();
  const auto sizes = from.value<uint64_t>();
  const bool is_ours = std::equal(std::begin(magic), std::end(magic), kMagic) && fingerprint == table_fingerprint() &&
                       sizes == uint64_t{sizeof(Instr) << 32 | sizeof(StepRecord) << 16 | sizeof(Registers)};
  if (!is_ours) throw std::runtime_error("the recording was made by another version of opkit");
  RecordOptions options;
  options.limit_bytes = kLimitBytes;
  auto recording = std::make_shared<Recording>(options);
  recording->kernel = from.text();
  recording->chip = find_chip(from.text());
  if (recording->chip == nullptr) throw std::runtime_error("the recording is of a chip that opkit does not have");
  from.value(recording->block_dim);
  from.value(recording->launch);
  from.value(recording->is_poisoned);
  from.value(recording->is_cut);
  read_fault(from, recording->fault);
  from.list(recording->cores);
  recording->ranges.resize(from.size(sizeof(RangeRecord)));
  for (RangeRecord& range : recording->ranges) {
    range.name = from.text();
    from.value(range.begin);
    from.value(range.end);
    from.value(range.is_written);
    from.list(range.pieces);
    from.list(range.data);
  }
  from.list(recording->steps);
  from.list(recording->events);
  recording->sites.resize(from.size(sizeof(SiteRecord)));
  for (SiteRecord& site : recording->sites) {
    site.file = from.text();
    from.value(site.line);
  }
  from.list(recording->registers);
  from.list(recording->checkpoints);
  const auto used = from.value<uint64_t>();
  if (used > 8) {
    const uint64_t offset = recording->arena.add(used - 8);
    if (offset != 8) throw std::runtime_error("there is not enough memory for the recording");
    from.bytes(recording->arena.at(8), used - 8);
  }
  return recording;
}

}  // namespace opkit::debug
