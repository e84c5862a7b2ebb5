// The observer that writes recordings.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "core/launch_state.h"
#include "debug/recording.h"
#include "isa/footprint.h"
#include "isa/table.h"

namespace opkit::debug {
namespace {

constexpr uint64_t kSnapshotPageBytes = 4096;
constexpr uint64_t kWholeRangeBytes = uint64_t{1} << 20;  ///< ranges up to here are kept whole, touched or not
constexpr uint64_t kFirstDistance = 2048;                 ///< instructions of a core between two checkpoints
constexpr uint64_t kCheckpointBytes = uint64_t{256} << 20;

/// Of an instruction of the scalar pipe or none, only the first operands say something.
constexpr size_t kShortBytes = offsetof(Instr, src) + sizeof(Operand);

bool is_short(Op op) { return row_of(op).family == Family::Control; }

template <typename Part>
size_t part_bytes(const Part* part) {
  return part == nullptr ? 0 : (sizeof(Part) + 7) / 8 * 8;
}

template <typename Part>
void append(uint8_t*& to, const Part* part) {
  if (part == nullptr) return;
  std::memcpy(to, part, sizeof(Part));
  to += part_bytes(part);
}

template <typename Part>
void take(const uint8_t*& from, const Part*& part) {
  if (part == nullptr) return;
  part = reinterpret_cast<const Part*>(from);
  from += part_bytes(part);
}

Registers registers_of(const Core& core) {
  Registers now;
  std::memset(static_cast<void*>(&now), 0, sizeof(now));  // compared byte by byte
  now.mask_mode = core.mask_mode;
  std::copy(std::begin(core.mask), std::end(core.mask), now.mask);
  std::copy(std::begin(core.compare_mask), std::end(core.compare_mask), now.compare_mask);
  now.deq_scale_bits = core.deq_scale_bits;
  now.pad_value_bits = core.pad_value_bits;
  now.atomic_op = core.atomic_op;
  now.atomic_dtype = core.atomic_dtype;
  now.deq_scale = core.deq_scale;
  now.saturates_floats = core.saturates_floats;
  now.saturates_casts = core.saturates_casts;
  now.has_unit_flags = !core.unit_flags.empty();
  now.matrix = core.matrix;
  return now;
}

class Recorder final : public Observer {
 public:
  explicit Recorder(RecordOptions options) : options_(std::move(options)) {}

  void launch_begin(const LaunchInfo& info) override {
    ++launches_;
    current_.reset();
    const bool is_wanted = (options_.launch == 0 || options_.launch == launches_) &&
                           (options_.kernel.empty() || options_.kernel == info.kernel);
    if (!is_wanted) return;
    current_ = std::make_shared<Recording>(options_);
    current_->kernel = info.kernel;
    current_->chip = info.chip;
    current_->block_dim = info.block_dim;
    current_->launch = launches_;
    current_->is_poisoned = options_.is_poisoned;
    current_->cores.resize(info.core_count);
    current_->steps.reserve(1u << 14);
    tracks_.assign(info.core_count, Track());
    touched_.clear();
    for (const GmRange& range : info.launch->gm) {
      current_->ranges.push_back({range.name, range.begin, range.end, range.is_written, {}, {}});
      touched_.emplace_back((range.end - range.begin) / kSnapshotPageBytes + 2, false);
    }
    sites_.clear();
    distance_ = kFirstDistance;
    checkpoint_bytes_ = 0;
    is_writing_ = true;
  }

  void before(const Core& core, const Instr& instr) override {
    if (!is_writing_) return;
    Track& track = tracks_[core.index];
    settle(core, track);
    // The other half is for global memory as it is in the end.
    if (current_->arena.used() > options_.limit_bytes / 2) return cut();
    if (track.steps == 0) begin_core(core);
    if (track.steps - track.last_checkpoint >= distance_) keep_memories(core, track);
    StepRecord step;
    step.instr = pack(instr);
    step.number = core.issued;
    step.core = core.index;
    step.site = site_of(instr.where);
    step.registers = keep_registers(core, track);
    step.op = instr.op;
    step.pipe = instr.pipe;
    step.memory = keep_global(core, instr, track);
    const uint32_t space = static_cast<uint32_t>(instr.dst.space);
    if (instr.dst.space != Space::GM) {
      track.hull[space] = std::max(track.hull[space], std::min<uint64_t>(instr.dst.end, core.space_bytes[space]));
    }
    for (uint32_t i = 0; i < instr.list_count; ++i) {
      const uint32_t other = static_cast<uint32_t>(instr.list[i].space);
      track.hull[other] = std::max(track.hull[other], std::min<uint64_t>(instr.list[i].end, core.space_bytes[other]));
    }
    track.open = current_->steps.size();
    current_->steps.push_back(step);
    ++track.steps;
    if (current_->arena.is_full()) cut();
  }

  void after(const Core& core, const Instr& instr) override {
    if (!is_writing_) return;
    Track& track = tracks_[core.index];
    StepRecord& step = current_->steps[track.open];
    step.is_complete = true;
    if (instr.op == Op::SetValue && instr.dst.space != Space::GM) {
      // What it writes is there when the core goes on, not before.
      track.is_pending = true;
    } else if (track.is_opaque) {
      keep_result(core, instr, step);
    }
    if (current_->arena.is_full()) cut();
  }

  void resource(const Core& core, const ResourceEvent& event) override {
    if (!is_writing_) return;
    EventRecord record;
    record.step = current_->steps.size();
    record.core = core.index;
    record.site = site_of(event.where);
    record.queue = reinterpret_cast<uint64_t>(event.queue);
    record.address = event.address;
    record.bytes = event.bytes;
    record.action = event.action;
    record.space = event.space;
    record.first = event.first;
    record.second = event.second;
    record.event_id = event.event_id;
    record.is_queues = event.is_queues;
    current_->events.push_back(record);
  }

  void block_end(const Core& core) override {
    if (!is_writing_) return;
    settle(core, tracks_[core.index]);
    current_->cores[core.index].has_ended = true;
  }

  void launch_fault(const FaultReport& report) override {
    if (current_ != nullptr) current_->fault = report;
  }

  void launch_end() override {
    if (current_ == nullptr) return;
    if (is_writing_) keep_ranges();
    is_writing_ = false;
    recordings_.push_back(std::move(current_));
    current_.reset();
  }

  std::vector<std::shared_ptr<Recording>> take() { return std::move(recordings_); }

 private:
  struct Track {
    uint64_t steps = 0;
    uint64_t last_checkpoint = 0;
    uint64_t open = 0;  ///< its last instruction
    bool is_pending = false;
    bool is_opaque = false;
    uint32_t registers = 0;
    uint64_t hull[8] = {};  ///< how far each memory has been written
  };

  void begin_core(const Core& core) {
    CoreRecord& record = current_->cores[core.index];
    record.kind = core.kind;
    record.block = core.block;
    record.sub_block = core.sub_block;
    if (current_->is_poisoned) return;
    Track& track = tracks_[core.index];
    for (uint32_t space = 1; space < 8; ++space) track.hull[space] = core.space_bytes[space];
    keep_memories(core, track);
  }

  uint64_t pack(const Instr& instr) {
    const bool is_control = is_short(instr.op);
    const size_t head = is_control ? kShortBytes : sizeof(Instr);
    const size_t list = is_control ? 0 : instr.list_count * sizeof(Operand);
    const size_t parts = is_control ? 0
                                    : part_bytes(instr.load) + part_bytes(instr.image) + part_bytes(instr.fill) +
                                          part_bytes(instr.product) + part_bytes(instr.fixpipe);
    const uint64_t offset = current_->arena.add(head + list + parts);
    if (offset == 0) return 0;
    uint8_t* to = current_->arena.at(offset);
    std::memcpy(to, &instr, head);
    if (is_control) return offset;
    to += head;
    if (list != 0) std::memcpy(to, instr.list, list);
    to += list;
    append(to, instr.load);
    append(to, instr.image);
    append(to, instr.fill);
    append(to, instr.product);
    append(to, instr.fixpipe);
    return offset;
  }

  uint32_t site_of(const Where& where) {
    if (where.file == last_file_ && where.line == last_line_ && !sites_.empty()) return last_site_;
    const auto [found, is_new] =
        sites_.try_emplace({where.file, where.line}, static_cast<uint32_t>(current_->sites.size()));
    if (is_new) current_->sites.push_back({where.file == nullptr ? "" : where.file, where.line});
    last_file_ = where.file;
    last_line_ = where.line;
    last_site_ = found->second;
    return last_site_;
  }

  uint32_t keep_registers(const Core& core, Track& track) {
    const Registers now = registers_of(core);
    std::vector<Registers>& all = current_->registers;
    const bool is_known = !all.empty() && (std::memcmp(&all[track.registers], &now, sizeof(now)) == 0);
    if (!is_known) {
      track.registers = static_cast<uint32_t>(all.size());
      all.push_back(now);
    }
    return track.registers;
  }

  /// The range that holds all of these bytes; none: -1.
  ptrdiff_t range_of(uint64_t begin, uint64_t bytes) {
    std::vector<RangeRecord>& ranges = current_->ranges;
    const auto holds = [&](size_t i) { return begin >= ranges[i].begin && begin + bytes <= ranges[i].end; };
    if (last_range_ < ranges.size() && holds(last_range_)) return static_cast<ptrdiff_t>(last_range_);
    const auto next = std::upper_bound(ranges.begin(), ranges.end(), begin,
                                       [](uint64_t value, const RangeRecord& range) { return value < range.begin; });
    if (next == ranges.begin()) return -1;
    const auto place = static_cast<size_t>(next - ranges.begin()) - 1;
    if (!holds(place)) return -1;
    last_range_ = place;
    return static_cast<ptrdiff_t>(place);
  }

  /// Notes that bytes of GM belong to the recording; false where they are in no range.
  bool touch(uint64_t begin, uint64_t bytes) {
    const ptrdiff_t place = range_of(begin, bytes);
    if (place < 0) return false;
    std::vector<bool>& pages = touched_[static_cast<size_t>(place)];
    const uint64_t base = current_->ranges[static_cast<size_t>(place)].begin;
    for (uint64_t page = (begin - base) / kSnapshotPageBytes; page <= (begin + bytes - 1 - base) / kSnapshotPageBytes;
         ++page) {
      pages[page] = true;
    }
    return true;
  }

  /// Touches what the instruction uses of GM, and keeps what it will write there.
  uint64_t keep_global(const Core& core, const Instr& instr, Track& track) {
    track.is_opaque = row_of(instr.op).has(trait::INDEXED) || instr.op == Op::Scatter;
    const bool writes = instr.dst.space == Space::GM;
    const bool reads = instr.source_count > 0 && instr.src[0].space == Space::GM;
    if (!writes && !reads) return 0;
    if (is_short(instr.op)) {
      if (instr.op != Op::SetValue && instr.op != Op::GetValue) return 0;
      // A reference to an element may be written through.
      const Operand& element = instr.op == Op::SetValue ? instr.dst : instr.src[0];
      if (element.space != Space::GM || !touch(element.address, size_bytes(element.dtype))) return 0;
      pieces_.assign(1, {element.address, size_bytes(element.dtype), Space::GM});
      return keep_pieces(core, MemoryRecord::Kind::Swap);
    }
    pieces_.clear();
    for_each_range(core, instr, [&](const ByteRange& range) {
      const Operand& operand = range.operand == 0 ? instr.dst : instr.src[std::min(range.operand, 3u) - 1];
      if (operand.space != Space::GM || range.bytes == 0) return;
      if (!touch(range.begin, range.bytes)) {
        track.is_opaque = true;
      } else if (range.is_write) {
        add_piece(range.begin, range.bytes, Space::GM);
      }
    });
    return pieces_.empty() ? 0 : keep_pieces(core, MemoryRecord::Kind::Swap);
  }

  void add_piece(uint64_t begin, uint64_t bytes, Space space) {
    constexpr uint64_t kMost = uint64_t{1} << 31;
    if (!pieces_.empty()) {
      MemoryPiece& last = pieces_.back();
      if (last.space == space && last.address + last.bytes == begin && last.bytes + bytes < kMost) {
        last.bytes += static_cast<uint32_t>(bytes);
        return;
      }
    }
    for (; bytes > kMost; begin += kMost, bytes -= kMost) {
      pieces_.push_back({begin, static_cast<uint32_t>(kMost), space});
    }
    pieces_.push_back({begin, static_cast<uint32_t>(bytes), space});
  }

  uint64_t keep_pieces(const Core& core, MemoryRecord::Kind kind) {
    uint64_t bytes = 0;
    for (const MemoryPiece& piece : pieces_) bytes += piece.bytes;
    const uint64_t head = sizeof(MemoryRecord) + pieces_.size() * sizeof(MemoryPiece);
    const uint64_t offset = current_->arena.add(head + bytes);
    if (offset == 0) return 0;
    uint8_t* to = current_->arena.at(offset);
    const MemoryRecord record = {kind, static_cast<uint32_t>(pieces_.size())};
    std::memcpy(to, &record, sizeof(record));
    std::memcpy(to + sizeof(record), pieces_.data(), pieces_.size() * sizeof(MemoryPiece));
    to += head;
    for (const MemoryPiece& piece : pieces_) {
      std::memcpy(to, core.at(piece.space, piece.address), piece.bytes);
      to += piece.bytes;
    }
    return offset;
  }

  /// What an instruction has written to a local memory, where its sources cannot be had again.
  void keep_result(const Core& core, const Instr& instr, StepRecord& step) {
    if (instr.dst.space == Space::GM || step.memory != 0) return;
    pieces_.clear();
    for_each_range(core, instr, [&](const ByteRange& range) {
      if (range.is_write && range.operand == 0) add_piece(range.begin, range.bytes, instr.dst.space);
    });
    step.memory = keep_pieces(core, MemoryRecord::Kind::New);
  }

  /// Takes what the core's last SetValue has written since.
  void settle(const Core& core, Track& track) {
    if (!track.is_pending) return;
    track.is_pending = false;
    StepRecord& step = current_->steps[track.open];
    Instr instr;
    std::memcpy(static_cast<void*>(&instr), current_->arena.at(step.instr), kShortBytes);
    pieces_.assign(1, {instr.dst.address, size_bytes(instr.dst.dtype), instr.dst.space});
    step.memory = keep_pieces(core, MemoryRecord::Kind::New);
  }

  void keep_memories(const Core& core, Track& track) {
    Checkpoint checkpoint;
    checkpoint.core = core.index;
    checkpoint.core_step = track.steps;
    for (uint32_t space = 1; space < 8; ++space) {
      const auto bytes = static_cast<uint32_t>(track.hull[space]);
      if (bytes == 0) continue;
      checkpoint.bytes[space] = bytes;
      checkpoint.data[space] = current_->arena.add(core.space_base[space], bytes);
      checkpoint_bytes_ += bytes;
    }
    checkpoint.sparse_bytes = static_cast<uint32_t>(core.sparse_indices.size());
    checkpoint.sparse = current_->arena.add(core.sparse_indices.data(), checkpoint.sparse_bytes);
    checkpoint.unit_flag_bytes = static_cast<uint32_t>(core.unit_flags.size());
    checkpoint.unit_flags = current_->arena.add(core.unit_flags.data(), checkpoint.unit_flag_bytes);
    if (!current_->arena.is_full()) current_->checkpoints.push_back(checkpoint);
    track.last_checkpoint = track.steps;
    if (checkpoint_bytes_ <= kCheckpointBytes) return;
    // The longer the launch, the further apart they are.
    checkpoint_bytes_ = 0;
    distance_ *= 2;
  }

  /// Global memory as it is now: the place that playing back begins at.
  void keep_ranges() {
    for (size_t i = 0; i < current_->ranges.size(); ++i) {
      RangeRecord& range = current_->ranges[i];
      const uint64_t size = range.end - range.begin;
      const auto keep = [&](uint64_t from, uint64_t to) {
        constexpr uint64_t kMost = uint64_t{1} << 30;
        for (; from < to; from += kMost) {
          const auto bytes = static_cast<uint32_t>(std::min(kMost, to - from));
          const uint64_t data = current_->arena.add(reinterpret_cast<const void*>(range.begin + from), bytes);
          if (data == 0) return;
          range.pieces.push_back({range.begin + from, bytes, Space::GM});
          range.data.push_back(data);
        }
      };
      if (size <= kWholeRangeBytes) {
        keep(0, size);
        continue;
      }
      const std::vector<bool>& pages = touched_[i];
      for (size_t page = 0; page < pages.size(); ++page) {
        if (!pages[page]) continue;
        size_t end = page;
        while (end < pages.size() && pages[end]) ++end;
        keep(page * kSnapshotPageBytes, std::min(end * kSnapshotPageBytes, size));
        page = end;
      }
    }
  }

  /// There is no room for more: the recording ends here, the launch goes on.
  void cut() {
    current_->is_cut = true;
    keep_ranges();
    is_writing_ = false;
  }

  struct SiteKey {
    const char* file;
    uint32_t line;
    bool operator==(const SiteKey& other) const { return file == other.file && line == other.line; }
  };
  struct SiteHash {
    size_t operator()(const SiteKey& key) const { return std::hash<const void*>()(key.file) * 31 + key.line; }
  };

  RecordOptions options_;
  uint32_t launches_ = 0;
  bool is_writing_ = false;
  std::shared_ptr<Recording> current_;
  std::vector<std::shared_ptr<Recording>> recordings_;
  std::vector<Track> tracks_;
  std::vector<std::vector<bool>> touched_;  // pages, by range
  std::unordered_map<SiteKey, uint32_t, SiteHash> sites_;
  const char* last_file_ = nullptr;
  uint32_t last_line_ = 0;
  uint32_t last_site_ = 0;
  size_t last_range_ = 0;
  uint64_t distance_ = kFirstDistance;
  uint64_t checkpoint_bytes_ = 0;
  std::vector<MemoryPiece> pieces_;
};

std::mutex session_lock;
std::unique_ptr<Recorder> session;

}  // namespace

Instr instruction_of(const Recording& recording, const StepRecord& step) {
  Instr instr;
  const uint8_t* from = recording.arena.at(step.instr);
  const SiteRecord& site = recording.sites[step.site];
  if (is_short(step.op)) {
    std::memcpy(static_cast<void*>(&instr), from, kShortBytes);
    instr.where = {site.file.c_str(), site.line};
    return instr;
  }
  std::memcpy(static_cast<void*>(&instr), from, sizeof(Instr));
  from += sizeof(Instr);
  if (instr.list_count != 0) instr.list = reinterpret_cast<const Operand*>(from);
  from += instr.list_count * sizeof(Operand);
  take(from, instr.load);
  take(from, instr.image);
  take(from, instr.fill);
  take(from, instr.product);
  take(from, instr.fixpipe);
  instr.where = {site.file.c_str(), site.line};
  return instr;
}

void begin_recording(const RecordOptions& options) {
  end_recording();
  const std::lock_guard<std::mutex> guard(session_lock);
  session = std::make_unique<Recorder>(options);
  Device::get().attach(session.get());
}

std::vector<std::shared_ptr<Recording>> end_recording() {
  const std::lock_guard<std::mutex> guard(session_lock);
  if (session == nullptr) return {};
  Device::get().detach(session.get());
  auto found = session->take();
  session.reset();
  return found;
}

}  // namespace opkit::debug
