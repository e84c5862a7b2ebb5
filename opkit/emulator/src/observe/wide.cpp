#include "observe/wide.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "core/launch_state.h"
#include "isa/execute.h"
#include "isa/footprint.h"
#include "isa/table.h"
#include "observe/wide_rows.h"

namespace opkit {
namespace {

constexpr size_t kMaxNodes = 4u << 20;
constexpr size_t kMaxScalars = 64;

struct Source {
  double actual = 0;
  double wide = 0;
  uint32_t node = 0;
};

/// What an instruction will have written, noted before it executes, completed after.
struct Pending {
  Space space = Space::UB;
  uint64_t address = 0;
  DType type = DType::F32;
  double wide = 0;
  bool is_decided = false;  ///< the result is a decision: the wider value is the actual one
  Source sources[3];
  uint8_t source_count = 0;
  uint64_t gm_address = 0;
  uint32_t earlier[3] = {0, 0, 0};  ///< sources that an earlier repeat writes: 1 + its place among the pending
  bool is_passed = false;           ///< a later repeat writes over it
  double actual = 0;                ///< of what is passed, to single precision
  uint32_t node = 0;
};

/// An element that moves unchanged: found again by its bits.
struct Moved {
  uint64_t bits;
  Source source;
  uint64_t gm_address;
};

/// Calls back with (repeat, lane, address) of every lane that takes part.
template <class Function>
void for_each_lane(const LaneShape& shape, Function&& function) {
  for (uint32_t repeat = 0; repeat < shape.repeat; ++repeat) {
    const uint32_t lanes = repeat + 1 == shape.repeat ? shape.tail : shape.active;
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      if (!shape.is_bits || shape.is_active(lane)) function(repeat, lane);
    }
  }
}

uint64_t lane_address(const LaneShape& shape, const Operand& operand, uint32_t repeat, uint32_t lane) {
  const uint64_t bytes = size_bytes(operand.dtype);
  if (shape.is_count) return operand.address + (uint64_t{repeat} * shape.lanes + lane) * bytes;
  const uint64_t per_block = kBlockBytes / bytes;
  return operand.address + uint64_t{repeat} * operand.repeat_stride * kBlockBytes +
         lane / per_block * operand.block_stride * kBlockBytes + lane % per_block * bytes;
}

class WideObserver final : public Observer {
 public:
  explicit WideObserver(const WideOptions& options) : options_(options) {}

  void launch_begin(const LaunchInfo&) override {
    is_fresh_ = true;
    nodes_.clear();
    stores_.clear();
    scalars_.clear();
  }

  void before(const Core& core, const Instr& instr) override {
    if (is_fresh_) memory_.begin(core.launch->launch->gm);
    is_fresh_ = false;
    pending_.clear();
    moved_.clear();
    const OpRow& row = row_of(instr.op);
    if (instr.op == Op::GetValue) return note_scalar(core, instr);
    if (row.family == Family::Control) return;
    if (row.family == Family::DataCopy) return note_copy(core, instr);
    if (row.family != Family::VecSpecial) return note_elementwise(core, instr);
    if (instr.op == Op::Cast) return note_cast(core, instr);
    if (instr.op == Op::Duplicate) return note_fill(core, instr);
    if (row.has(trait::SUMS)) return note_sum(core, instr);
    if (row.has(trait::MOVES)) return note_move(core, instr);
    forget_writes(core, instr, true);
  }

  void after(const Core& core, const Instr& instr) override {
    for (Pending& item : pending_) complete(core, instr, item);
    if (!moved_.empty()) complete_moves(core, instr);
    if (row_of(instr.op).family == Family::DataCopy && instr.dst.space == Space::GM) ++stores_[core.index];
    pending_.clear();
  }

  void block_end(const Core& core) override { memory_.release(core.index); }
  void launch_end() override {}

  void memory_moved(uint64_t from, uint64_t to, uint64_t bytes) override {
    memory_.move_gm(from, to, bytes);
    for (WideNode& node : nodes_) {
      if (node.gm_address >= from && node.gm_address < from + bytes) node.gm_address += to - from;
    }
  }

  const WideMemory& memory() const { return memory_; }
  const std::vector<WideNode>& nodes() const { return nodes_; }
  bool is_cut() const { return is_cut_; }

  std::vector<Unfollowed> unfollowed() const {
    std::vector<Unfollowed> result;
    for (const auto& [key, count] : unfollowed_) {
      result.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), count});
    }
    return result;
  }

 private:
  Source read(const Core& core, const Operand& operand, uint64_t address) {
    return read(core, operand.space, address, operand.dtype);
  }

  Source read(const Core& core, Space space, uint64_t address, DType type) {
    const uint32_t bytes = size_bytes(type);
    Source source;
    source.actual = source.wide = decode(type, read_bits(core.at(space, address), bytes));
    if (const WideCell* cell = memory_.find(core, space, address, bytes)) {
      source.wide = cell->wide;
      source.node = cell->node;
    }
    return source;
  }

  /// A scalar operand; one that GetValue has just read has the wider value of what it read.
  Source scalar(const Core& core, uint64_t bits, DType type) {
    Source source;
    source.actual = source.wide = decode(type, bits);
    const auto& known = scalars_[core.index];
    const auto found = known.find(source.actual);
    return found == known.end() ? source : found->second;
  }

  void note_scalar(const Core& core, const Instr& instr) {
    if (!is_floating(instr.src[0].dtype) || !is_inside(core, instr.src[0])) return;
    const Source source = read(core, instr.src[0], instr.src[0].address);
    if (source.wide == source.actual) return;
    auto& known = scalars_[core.index];
    if (known.size() >= kMaxScalars) known.clear();
    known[source.actual] = source;
    note_unfollowed(instr);
  }

  static bool is_inside(const Core& core, const Operand& operand) {
    const uint32_t bytes = size_bytes(operand.dtype);
    if (operand.space == Space::GM) return operand.address >= operand.begin && operand.address + bytes <= operand.end;
    return operand.address + bytes <= core.space_bytes[static_cast<uint32_t>(operand.space)];
  }

  /// Whether every byte that the instruction says it touches exists; one that does not will fault in a moment.
  static bool is_sound(const Core& core, const Instr& instr) {
    bool sound = true;
    for_each_range(core, instr, [&](const ByteRange& range) {
      const Operand& operand = range.operand == 0 ? instr.dst : instr.src[range.operand - 1];
      if (range.operand > 3) return;
      if (operand.space == Space::GM) {
        sound = sound && range.begin >= operand.begin && range.begin + range.bytes <= operand.end;
      } else {
        sound = sound && range.begin + range.bytes <= core.space_bytes[static_cast<uint32_t>(operand.space)];
      }
    });
    return sound;
  }

  void note_unfollowed(const Instr& instr) { ++unfollowed_[{instr.op, instr.where.file, instr.where.line}]; }

  void forget_writes(const Core& core, const Instr& instr, bool tells) {
    if (tells && is_floating(instr.dst.dtype)) note_unfollowed(instr);
    for_each_range(core, instr, [&](const ByteRange& range) {
      if (range.is_write && range.operand == 0) memory_.forget(core, instr.dst.space, range.begin, range.bytes);
    });
  }

  double rounded(double wide) const {
    return options_.is_double ? wide : static_cast<double>(static_cast<float>(wide));
  }

  void note_elementwise(const Core& core, const Instr& instr) {
    const WideRow& row = wide_row(instr.op);
    if (!is_sound(core, instr)) return;
    if (row.apply == nullptr || !is_floating(instr.dst.dtype)) return forget_writes(core, instr, false);
    const VectorUse use = elementwise_use(core, instr);
    const Source s = row.has_scalar ? scalar(core, instr.scalar_bits[0], instr.scalar_dtype) : Source();
    // What one repeat writes the next may read, as sums do whose strides between repeats are 0.
    std::unordered_map<uint64_t, uint32_t> written;
    uint32_t noted = 0;
    uint32_t last_repeat = 0;
    const auto end_repeat = [&] {
      for (; noted < pending_.size(); ++noted) {
        uint32_t& place = written[pending_[noted].address];
        if (place != 0) pending_[place - 1].is_passed = true;
        place = noted + 1;
      }
    };
    for_each_lane(use.shape, [&](uint32_t repeat, uint32_t lane) {
      if (repeat != last_repeat) end_repeat();
      last_repeat = repeat;
      Pending item;
      item.address = lane_address(use.shape, instr.dst, repeat, lane);
      item.type = instr.dst.dtype;
      const auto take = [&](const Operand& operand, uint64_t address) {
        const auto found = operand.space == instr.dst.space ? written.find(address) : written.end();
        Source& source = item.sources[item.source_count];
        if (found == written.end()) {
          source = read(core, operand, address);
        } else {
          const Pending& before = pending_[found->second - 1];
          source = {before.actual, before.wide, 0};
          item.earlier[item.source_count] = found->second;
        }
        ++item.source_count;
        return source;
      };
      for (uint32_t i = 0; i < instr.source_count; ++i) {
        take(instr.src[i], lane_address(use.shape, instr.src[i], repeat, lane));
      }
      const Source old = reads_destination(instr.op) ? take(instr.dst, item.address) : Source();
      const Source& a = item.sources[0];
      const Source& b = item.sources[instr.source_count > 1 ? 1 : 0];
      item.wide = rounded(row.apply(a.wide, b.wide, old.wide, s.wide, 0));
      item.actual = static_cast<float>(row.apply(a.actual, b.actual, old.actual, s.actual, 0));
      if (row.has_scalar && s.node != 0 && item.source_count < 3) item.sources[item.source_count++] = s;
      pending_.push_back(item);
    });
    end_repeat();
  }

  void note_cast(const Core& core, const Instr& instr) {
    if (!is_sound(core, instr)) return;
    if (!is_floating(instr.dst.dtype)) return forget_writes(core, instr, false);
    const VectorUse use = elementwise_use(core, instr);
    // To a whole number, by value or by type: a decision of the run.
    const bool is_decided = !is_floating(instr.src[0].dtype) || instr.src[0].dtype == instr.dst.dtype;
    for_each_lane(use.shape, [&](uint32_t repeat, uint32_t lane) {
      Pending item;
      item.address = lane_address(use.shape, instr.dst, repeat, lane);
      item.type = instr.dst.dtype;
      item.sources[0] = read(core, instr.src[0], lane_address(use.shape, instr.src[0], repeat, lane));
      item.source_count = 1;
      item.wide = rounded(item.sources[0].wide);
      item.is_decided = is_decided;
      pending_.push_back(item);
    });
  }

  void note_fill(const Core& core, const Instr& instr) {
    if (!is_sound(core, instr)) return;
    if (!is_floating(instr.dst.dtype)) return forget_writes(core, instr, false);
    const VectorUse use = elementwise_use(core, instr);
    const Source s = scalar(core, instr.scalar_bits[0], instr.dst.dtype);
    for_each_lane(use.shape, [&](uint32_t repeat, uint32_t lane) {
      Pending item;
      item.address = lane_address(use.shape, instr.dst, repeat, lane);
      item.type = instr.dst.dtype;
      item.wide = s.wide;
      item.sources[0] = s;
      item.source_count = 1;
      pending_.push_back(item);
    });
  }

  void note_sum(const Core& core, const Instr& instr) {
    if (!is_sound(core, instr)) return;
    const bool is_whole = instr.op == Op::ReduceSum;
    const VectorUse use = is_whole ? reduce_use(core, instr) : repeat_reduce_use(core, instr);
    const uint32_t bytes = size_bytes(instr.src[0].dtype);
    const uint32_t group = instr.op == Op::PairReduceSum    ? 2
                           : instr.op == Op::BlockReduceSum ? kBlockBytes / bytes
                                                            : ~0u;
    struct Sum {
      Pending item;
      uint32_t repeat = 0;
    };
    std::map<uint64_t, Sum> sums;
    for_each_lane(use.shape, [&](uint32_t repeat, uint32_t lane) {
      uint64_t to = instr.dst.address;
      if (!is_whole) to += repeat * use.uses.items[0].stride_bytes + lane / group * bytes;
      Sum& sum = sums[to];
      // With a stride of 0 between destinations each repeat writes over the one before.
      if (!is_whole && sum.repeat != repeat) sum = {};
      sum.repeat = repeat;
      Pending& item = sum.item;
      item.address = to;
      item.type = instr.dst.dtype;
      const Source source = read(core, instr.src[0], lane_address(use.shape, instr.src[0], repeat, lane));
      item.wide += source.wide;
      keep_largest_error(item, source);
    });
    for (auto& [to, sum] : sums) {
      sum.item.wide = rounded(sum.item.wide);
      pending_.push_back(sum.item);
    }
  }

  /// Of the many sources of a sum, those three are kept that are furthest from their wider values.
  static void keep_largest_error(Pending& item, const Source& source) {
    if (item.source_count < 3) {
      item.sources[item.source_count++] = source;
      return;
    }
    const auto error = [](const Source& one) { return std::fabs(one.actual - one.wide); };
    Source* least = std::min_element(item.sources, item.sources + 3,
                                     [&](const Source& a, const Source& b) { return error(a) < error(b); });
    if (error(source) > error(*least)) *least = source;
  }

  void note_copy(const Core& core, const Instr& instr) {
    if (!is_sound(core, instr)) return;
    if (instr.op == Op::InitOutput || !is_floating(instr.dst.dtype) || instr.dst.dtype != instr.src[0].dtype ||
        (instr.op != Op::DataCopy && instr.op != Op::DataCopyPad)) {
      return forget_writes(core, instr, instr.op != Op::InitOutput);
    }
    const bool adds = instr.dst.space == Space::GM && core.atomic_op == AtomicOp::Add;
    if (instr.dst.space == Space::GM && core.atomic_op != AtomicOp::None && !adds) {
      return forget_writes(core, instr, true);
    }
    const uint32_t bytes = size_bytes(instr.dst.dtype);
    const bool is_to_local = instr.dst.space != Space::GM;
    for (uint32_t burst = 0; burst < instr.copy.burst_count; ++burst) {
      const uint64_t from = instr.src[0].address + burst * instr.copy.src_stride;
      uint64_t to = instr.dst.address + burst * instr.copy.dst_stride;
      if (is_to_local) to += uint64_t{instr.copy.left_padding} * bytes;
      for (uint64_t at = 0; at + bytes <= instr.copy.burst_bytes; at += bytes) {
        Pending item;
        item.space = instr.dst.space;
        item.address = to + at;
        item.type = instr.dst.dtype;
        item.sources[0] = read(core, instr.src[0], from + at);
        item.source_count = 1;
        item.wide = item.sources[0].wide;
        if (adds) {
          item.sources[item.source_count++] = read(core, instr.dst, to + at);
          item.wide = rounded(item.wide + item.sources[1].wide);
        }
        if (instr.src[0].space == Space::GM) item.gm_address = from + at;
        pending_.push_back(item);
      }
    }
  }

  void note_move(const Core& core, const Instr& instr) {
    if (!is_sound(core, instr)) return;
    const uint32_t bytes = size_bytes(instr.dst.dtype);
    const auto add = [&](const Operand& operand, uint64_t begin, uint64_t length) {
      for (uint64_t at = 0; at + bytes <= length; at += bytes) {
        const WideCell* cell = memory_.find(core, operand.space, begin + at, bytes);
        if (cell == nullptr) continue;
        const DType type = bytes == 4 ? DType::F32 : operand.dtype == DType::BF16 ? DType::BF16 : DType::F16;
        Source source;
        source.actual = decode(type, cell->bits);
        source.wide = cell->wide;
        source.node = cell->node;
        moved_.push_back({cell->bits, source, 0});
      }
    };
    if (row_of(instr.op).has(trait::INDEXED)) {
      add(instr.src[0], instr.src[0].begin, instr.src[0].end - instr.src[0].begin);
    } else {
      for_each_range(core, instr, [&](const ByteRange& range) {
        if (range.is_write || range.operand == 0 || range.operand > 3) return;
        add(instr.src[range.operand - 1], range.begin, range.bytes);
      });
      for (uint32_t i = 0; i < instr.list_count; ++i) add(instr.list[i], instr.list[i].address, kBlockBytes);
    }
    std::stable_sort(moved_.begin(), moved_.end(), [](const Moved& a, const Moved& b) { return a.bits < b.bits; });
    if (moved_.empty()) forget_writes(core, instr, false);
  }

  void complete_moves(const Core& core, const Instr& instr) {
    const uint32_t bytes = size_bytes(instr.dst.dtype);
    const auto settle = [&](Space space, uint64_t begin, uint64_t length) {
      for (uint64_t at = 0; at + bytes <= length; at += bytes) {
        const uint64_t bits = read_bits(core.at(space, begin + at), bytes);
        const auto found = std::lower_bound(moved_.begin(), moved_.end(), bits,
                                            [](const Moved& one, uint64_t value) { return one.bits < value; });
        if (found == moved_.end() || found->bits != bits) {
          memory_.forget(core, space, begin + at, bytes);
          continue;
        }
        WideCell* cell = memory_.cell(core, space, begin + at);
        if (cell == nullptr) continue;
        *cell = WideCell();
        cell->wide = found->source.wide;
        cell->bits = static_cast<uint32_t>(bits);
        cell->node = found->source.node;
        cell->bytes = static_cast<uint8_t>(bytes);
      }
    };
    if (instr.op == Op::TransDataTo5HD) {
      for (uint32_t i = 0; i < instr.list_count; ++i) settle(instr.list[i].space, instr.list[i].address, kBlockBytes);
      return;
    }
    for_each_range(core, instr, [&](const ByteRange& range) {
      if (range.is_write && range.operand == 0) settle(instr.dst.space, range.begin, range.bytes);
    });
  }

  void complete(const Core& core, const Instr& instr, Pending& item) {
    for (uint8_t i = 0; i < item.source_count; ++i) {
      if (item.earlier[i] != 0) item.sources[i].node = pending_[item.earlier[i] - 1].node;
    }
    if (item.is_passed) {
      item.node = trace(core, instr, item, item.actual, item.wide);
      return;
    }
    WideCell* cell = memory_.cell(core, item.space, item.address);
    if (cell == nullptr) return;
    const uint32_t bytes = size_bytes(item.type);
    const uint64_t bits = read_bits(core.at(item.space, item.address), bytes);
    const double actual = decode(item.type, bits);
    memory_.forget(core, item.space, item.address, bytes);
    cell->bits = static_cast<uint32_t>(bits);
    cell->wide = item.is_decided ? actual : item.wide;
    cell->bytes = static_cast<uint8_t>(bytes);
    cell->core = static_cast<int32_t>(core.index);
    cell->store = item.space == Space::GM ? stores_[core.index] : 0;
    cell->node = item.node = trace(core, instr, item, actual, cell->wide);
  }

  /// A copy on the chip is no computation: it hands its source's node on.
  uint32_t trace(const Core& core, const Instr& instr, const Pending& item, double actual, double wide) {
    if (static_cast<int32_t>(core.index) != options_.traced_core) return 0;
    const bool is_copy = row_of(instr.op).family == Family::DataCopy && item.source_count == 1;
    if (is_copy && item.sources[0].node != 0) return item.sources[0].node;
    if (nodes_.size() >= kMaxNodes) {
      is_cut_ = true;
      return 0;
    }
    WideNode node;
    node.instruction = core.issued;
    node.op = instr.op;
    node.file = instr.where.file;
    node.line = instr.where.line;
    node.actual = actual;
    node.wide = wide;
    node.gm_address = item.gm_address;
    node.has_scalar = row_of(instr.op).family == Family::VecBinaryScalar;
    if (node.has_scalar) node.scalar = decode(instr.scalar_dtype, instr.scalar_bits[0]);
    node.source_count = item.source_count;
    for (uint8_t i = 0; i < item.source_count; ++i) {
      node.sources[i] = item.sources[i].node;
      node.source_actual[i] = item.sources[i].actual;
    }
    nodes_.push_back(std::move(node));
    return static_cast<uint32_t>(nodes_.size());
  }

  WideOptions options_;
  bool is_fresh_ = true;
  bool is_cut_ = false;
  WideMemory memory_;
  std::vector<Pending> pending_;
  std::vector<Moved> moved_;
  std::vector<WideNode> nodes_;
  std::unordered_map<uint32_t, uint32_t> stores_;
  std::unordered_map<uint32_t, std::map<double, Source>> scalars_;
  std::map<std::tuple<Op, std::string, uint32_t>, uint64_t> unfollowed_;
};

std::unique_ptr<WideObserver> session;

}  // namespace

void begin_wide(const WideOptions& options) {
  end_wide();
  session = std::make_unique<WideObserver>(options);
  Device::get().attach(session.get());
}

void end_wide() {
  if (session != nullptr) Device::get().detach(session.get());
  session.reset();
}

const WideCell* wide_cell(uint64_t address, uint32_t bytes) {
  return session == nullptr ? nullptr : session->memory().find_gm(address, bytes);
}

std::vector<std::pair<uint32_t, WideNode>> wide_trace(uint64_t address, uint32_t bytes) {
  std::vector<std::pair<uint32_t, WideNode>> result;
  const WideCell* cell = wide_cell(address, bytes);
  if (cell == nullptr || cell->node == 0) return result;
  const std::vector<WideNode>& nodes = session->nodes();
  // A node's sources were made before it: the ordered set is program order.
  std::set<uint32_t> wanted = {cell->node};
  for (auto at = wanted.rbegin(); at != wanted.rend(); ++at) {
    for (const uint32_t source : nodes[*at - 1].sources) {
      if (source != 0) wanted.insert(source);
    }
  }
  for (const uint32_t number : wanted) result.emplace_back(number, nodes[number - 1]);
  return result;
}

std::vector<Unfollowed> wide_unfollowed() {
  return session == nullptr ? std::vector<Unfollowed>() : session->unfollowed();
}
bool wide_trace_is_cut() { return session != nullptr && session->is_cut(); }

}  // namespace opkit
