// What bytes were made of: backwards over the instructions, as exact as each instruction allows.
#include <algorithm>
#include <iterator>
#include <map>

#include "debug/playback.h"
#include "isa/execute.h"
#include "isa/table.h"

namespace opkit::debug {
namespace {

constexpr size_t kMostPieces = 1u << 16;
constexpr uint64_t kScalarReach = 64;  ///< instructions of a core between reading a scalar and using it

struct Bytes {
  uint64_t begin;
  uint64_t end;
};

/// Bytes of one memory, without overlap.
class ByteSet {
 public:
  bool is_empty() const { return pieces_.empty(); }
  size_t size() const { return pieces_.size(); }
  const std::map<uint64_t, uint64_t>& pieces() const { return pieces_; }

  bool meets(uint64_t begin, uint64_t end) const {
    const auto next = pieces_.lower_bound(end);
    return next != pieces_.begin() && std::prev(next)->second > begin;
  }

  void add(uint64_t begin, uint64_t end) {
    auto at = pieces_.upper_bound(begin);
    if (at != pieces_.begin() && std::prev(at)->second >= begin) --at;
    while (at != pieces_.end() && at->first <= end) {
      begin = std::min(begin, at->first);
      end = std::max(end, at->second);
      at = pieces_.erase(at);
    }
    pieces_[begin] = end;
  }

  /// Takes [begin, end) out; returns what of it there was.
  std::vector<Bytes> take(uint64_t begin, uint64_t end) {
    std::vector<Bytes> taken;
    auto at = pieces_.upper_bound(begin);
    if (at != pieces_.begin() && std::prev(at)->second > begin) --at;
    while (at != pieces_.end() && at->first < end) {
      const auto [first, last] = *at;
      at = pieces_.erase(at);
      if (first < begin) pieces_[first] = begin;
      if (last > end) pieces_[end] = last;
      taken.push_back({std::max(first, begin), std::min(last, end)});
    }
    return taken;
  }

 private:
  std::map<uint64_t, uint64_t> pieces_;
};

/// Adds to a list of footprints, joined where they touch.
void add_source(std::vector<Footprint>& sources, const Footprint& source) {
  for (Footprint& known : sources) {
    if (known.operand != source.operand || known.space != source.space) continue;
    if (source.begin > known.begin + known.bytes || known.begin > source.begin + source.bytes) continue;
    const uint64_t end = std::max(known.begin + known.bytes, source.begin + source.bytes);
    known.begin = std::min(known.begin, source.begin);
    known.bytes = end - known.begin;
    return;
  }
  sources.push_back(source);
}

uint64_t lane_address(const LaneShape& shape, const Operand& operand, uint32_t repeat, uint32_t lane) {
  const uint64_t bytes = size_bytes(operand.dtype);
  if (shape.is_count) return operand.address + (uint64_t{repeat} * shape.lanes + lane) * bytes;
  const uint64_t per_block = kBlockBytes / bytes;
  return operand.address + uint64_t{repeat} * operand.repeat_stride * kBlockBytes +
         lane / per_block * operand.block_stride * kBlockBytes + lane % per_block * bytes;
}

/// The sources of instructions whose lane i comes from lane i.
void lane_sources(const Core& core, const Instr& instr, const std::vector<Footprint>& wanted,
                  std::vector<Footprint>& sources) {
  const VectorUse use = elementwise_use(core, instr);
  const LaneShape& shape = use.shape;
  const uint32_t bytes = size_bytes(instr.dst.dtype);
  const bool reads_itself = reads_destination(instr.op);
  for (uint32_t repeat = 0; repeat < shape.repeat; ++repeat) {
    const uint32_t lanes = repeat + 1 == shape.repeat ? shape.tail : shape.active;
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      if (shape.is_bits && !shape.is_active(lane)) continue;
      const uint64_t to = lane_address(shape, instr.dst, repeat, lane);
      const bool is_wanted = std::any_of(wanted.begin(), wanted.end(), [&](const Footprint& piece) {
        return to < piece.begin + piece.bytes && to + bytes > piece.begin;
      });
      if (!is_wanted) continue;
      for (uint32_t i = 0; i < instr.source_count && i < 3; ++i) {
        const Operand& operand = instr.src[i];
        add_source(sources, {i + 1, operand.space, operand.dtype, lane_address(shape, operand, repeat, lane),
                             size_bytes(operand.dtype), false});
      }
      if (reads_itself) add_source(sources, {0, instr.dst.space, instr.dst.dtype, to, bytes, false});
    }
  }
}

/// The sources of a copy that moves its bytes as they are.
void copy_sources(const Instr& instr, const std::vector<Footprint>& wanted, std::vector<Footprint>& sources) {
  const CopyShape& copy = instr.copy;
  const uint64_t padding = instr.dst.space == Space::GM ? 0 : uint64_t{copy.left_padding} * size_bytes(instr.dst.dtype);
  const uint64_t factor = copy_widens(instr) ? 2 : 1;
  for (uint32_t plane = 0; plane < copy.plane_count; ++plane) {
    const bool is_last = plane > 0 && plane + 1 == copy.plane_count;
    const uint64_t burst_bytes = is_last ? copy.last_plane_bytes : copy.burst_bytes;
    for (uint32_t burst = 0; burst < copy.burst_count; ++burst) {
      const uint64_t from = instr.src[0].address + plane * copy.src_plane_stride + burst * copy.src_stride;
      const uint64_t to = instr.dst.address + plane * copy.dst_plane_stride + burst * copy.dst_stride + padding;
      for (const Footprint& piece : wanted) {
        const uint64_t first = std::max(to, piece.begin);
        const uint64_t last = std::min(to + burst_bytes * factor, piece.begin + piece.bytes);
        if (first >= last) continue;
        const uint64_t begin = from + (first - to) / factor;
        const uint64_t end = from + (last - to + factor - 1) / factor;
        add_source(sources, {1, instr.src[0].space, instr.src[0].dtype, begin, end - begin, false});
      }
    }
  }
}

void load_sources(const Instr& instr, const std::vector<Footprint>& wanted, std::vector<Footprint>& sources) {
  for_each_move(instr, [&](const ByteMove& move) {
    if (move.from == kNoSource) return;
    for (const Footprint& piece : wanted) {
      const uint64_t first = std::max(move.to, piece.begin);
      const uint64_t last = std::min(move.to + move.bytes, piece.begin + piece.bytes);
      if (first >= last) continue;
      add_source(sources,
                 {1, instr.src[0].space, instr.src[0].dtype, move.from + (first - move.to), last - first, false});
    }
  });
}

bool is_by_lanes(Op op) {
  const OpRow& row = row_of(op);
  return row.family == Family::VecUnary || row.family == Family::VecBinary || row.family == Family::VecBinaryScalar ||
         row.has(trait::LANES);
}

bool takes_scalar(const Instr& instr) {
  return row_of(instr.op).family == Family::VecBinaryScalar || instr.op == Op::Duplicate ||
         instr.op == Op::CompareScalar || instr.op == Op::Select || instr.op == Op::CreateVecIndex;
}

std::vector<Footprint> sources_of(Playback& playback, uint64_t step, const std::vector<Footprint>& wanted) {
  std::vector<Footprint> sources;
  const Instr instr = playback.recorded(step);
  const OpRow& row = row_of(instr.op);
  if (row.family == Family::Control || instr.op == Op::InitOutput) return sources;
  if (instr.op == Op::Duplicate || instr.op == Op::CreateVecIndex) return sources;
  if (is_by_lanes(instr.op)) {
    lane_sources(playback.core_before(step), instr, wanted, sources);
  } else if (instr.op == Op::DataCopy || instr.op == Op::DataCopyPad || instr.op == Op::DataCopyNd2Nz ||
             instr.op == Op::DataCopyNz2Nd) {
    copy_sources(instr, wanted, sources);
  } else if (instr.op == Op::LoadData2D || instr.op == Op::LoadDataWithTranspose || instr.op == Op::LoadData3D) {
    load_sources(instr, wanted, sources);
  } else {
    for (const Footprint& piece : playback.footprint(step)) {
      if (!piece.is_write) sources.push_back(piece);
    }
  }
  const bool adds = instr.dst.space == Space::GM && playback.core_before(step).atomic_op != AtomicOp::None;
  if (adds) {
    for (const Footprint& piece : wanted)
      add_source(sources, {0, piece.space, piece.dtype, piece.begin, piece.bytes, false});
  }
  return sources;
}

/// The latest GetValue of the core that the scalar of an instruction may come from; -1: none.
int64_t scalar_read(const Playback& playback, uint64_t step, uint32_t core) {
  const std::vector<uint32_t>& steps = playback.steps_of(core);
  auto at = std::lower_bound(steps.begin(), steps.end(), step);
  for (uint64_t back = 0; back < kScalarReach && at != steps.begin(); ++back) {
    --at;
    if (playback.recording().steps[*at].op == Op::GetValue) return *at;
  }
  return -1;
}

}  // namespace

Slice slice(Playback& playback, uint64_t step, uint32_t core, Space space, uint64_t address, uint64_t bytes,
            uint64_t most_nodes) {
  Slice result;
  // By memory: global, or space and core.
  std::map<std::pair<int64_t, Space>, ByteSet> asked;
  const auto key_of = [](uint32_t owner, Space place) {
    return std::make_pair(place == Space::GM ? int64_t{-1} : int64_t{owner}, place);
  };
  asked[key_of(core, space)].add(address, address + bytes);
  const std::vector<Hull>& hulls = playback.hulls();
  const std::vector<StepRecord>& steps = playback.recording().steps;
  std::map<uint64_t, bool> scalars;  // GetValues that are asked for
  for (uint64_t at = std::min<uint64_t>(step, steps.size()); at-- > 0;) {
    const StepRecord& record = steps[at];
    const bool is_scalar = record.op == Op::GetValue && scalars.erase(at) != 0;
    const Hull& hull = hulls[at];
    if (!is_scalar && hull.end == 0) continue;
    SliceNode node;
    node.step = at;
    if (is_scalar) {
      for (const Footprint& piece : playback.footprint(at)) node.sources.push_back(piece);
    } else {
      const auto found = asked.find(key_of(record.core, hull.space));
      if (found == asked.end() || !found->second.meets(hull.begin, hull.end)) continue;
      for (const Footprint& piece : playback.footprint(at)) {
        if (!piece.is_write || piece.space != hull.space) continue;
        for (const Bytes& part : found->second.take(piece.begin, piece.begin + piece.bytes)) {
          node.wanted.push_back({piece.operand, piece.space, piece.dtype, part.begin, part.end - part.begin, true});
        }
      }
      if (node.wanted.empty()) continue;
      node.sources = sources_of(playback, at, node.wanted);
      const Instr instr = playback.recorded(at);
      if (takes_scalar(instr)) {
        node.scalar_step = scalar_read(playback, at, record.core);
        if (node.scalar_step >= 0) scalars[static_cast<uint64_t>(node.scalar_step)] = true;
      }
    }
    for (const Footprint& source : node.sources) {
      asked[key_of(record.core, source.space)].add(source.begin, source.begin + source.bytes);
    }
    result.nodes.push_back(std::move(node));
    size_t pieces = 0;
    for (const auto& [key, set] : asked) pieces += set.size();
    if (result.nodes.size() >= most_nodes || pieces > kMostPieces) {
      result.is_cut = true;
      break;
    }
  }
  for (const auto& [key, set] : asked) {
    for (const auto& [begin, end] : set.pieces()) {
      result.origins.push_back({key.first, {0, key.second, DType::U8, begin, end - begin, false}});
    }
  }
  return result;
}

}  // namespace opkit::debug
