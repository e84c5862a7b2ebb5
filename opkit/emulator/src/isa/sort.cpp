// Sort32, MrgSort and their forms on region proposals. Source: Ascend C API, sorting.
#include <algorithm>
#include <cstring>

#include "isa/execute.h"
#include "isa/table.h"
#include "opkit/api/half.h"

namespace opkit {
namespace {

constexpr uint32_t kPairBytes = 8;         // A2: a score and its index
constexpr uint32_t kScorePlace = 4;        // of the eight elements of a region proposal
constexpr uint32_t kProposalElements = 8;  // x1, y1, x2, y2, score, label, two reserved
constexpr uint32_t kPairsPerRepeat = 32;
constexpr uint32_t kProposalsPerRepeat = 16;
constexpr uint32_t kMaxQueue = 4095;
constexpr uint32_t kQueues = 4;

bool is_proposals(Op op) { return op != Op::Sort32 && op != Op::MrgSort; }

/// What is sorted: its size, and where its score lies in it.
struct Item {
  uint32_t bytes;
  uint32_t score_offset;
  DType type;

  float score(const uint8_t* item) const {
    if (type == DType::F16) {
      uint16_t bits = 0;
      std::memcpy(&bits, item + score_offset, sizeof(bits));
      return detail::half_value(bits);
    }
    float value = 0;
    std::memcpy(&value, item + score_offset, sizeof(value));
    return value;
  }
};

Item item_of(const Instr& instr) {
  const uint32_t element_bytes = size_bytes(instr.dst.dtype);
  if (!is_proposals(instr.op)) return {kPairBytes, 0, instr.dst.dtype};
  return {kProposalElements * element_bytes, kScorePlace * element_bytes, instr.dst.dtype};
}

void check_number(const Instr& instr, const Item& item, const uint8_t* place) {
  const float score = item.score(place);
  OPKIT_CHECK(score == score, Unspecified, &instr, "replace NaN before sorting",
              "%s: where a score that is not a number goes is not documented", row_of(instr.op).name);
}

void check_repeat(const Instr& instr) {
  OPKIT_CHECK(instr.repeat <= kMaxRepeat, IllegalOperand, &instr, "split the call", "%s: repeat times %u is over %u",
              row_of(instr.op).name, instr.repeat, kMaxRepeat);
}

/// Sorts `count` items, largest score first, equal scores in their order.
void sort_items(const Instr& instr, const Item& item, uint8_t* items, uint32_t count) {
  struct Key {
    float score;
    uint32_t place;
  };
  Key keys[kPairsPerRepeat];
  for (uint32_t i = 0; i < count; ++i) {
    check_number(instr, item, items + i * item.bytes);
    keys[i] = {item.score(items + i * item.bytes), i};
  }
  std::stable_sort(keys, keys + count, [](const Key& a, const Key& b) { return a.score > b.score; });
  uint8_t sorted[kPairsPerRepeat * kPairBytes * 4];
  for (uint32_t i = 0; i < count; ++i) {
    std::memcpy(sorted + i * item.bytes, items + keys[i].place * item.bytes, item.bytes);
  }
  std::memcpy(items, sorted, count * item.bytes);
}

struct Merge {
  uint32_t lengths[kQueues];
  uint32_t queues;
  uint32_t repeat;
  bool stops;  ///< when a queue has run out

  uint64_t total() const { return uint64_t{lengths[0]} + lengths[1] + lengths[2] + lengths[3]; }
};

/// scalar_bits[0] holds the four lengths; mode the bits of the valid queues and, above them, ifExhaustedSuspension.
Merge merge_of(const Instr& instr, const Item& item) {
  Merge merge = {};
  merge.stops = (instr.mode >> 4) != 0;
  for (uint32_t valid = instr.mode & 15; valid != 0; valid >>= 1) ++merge.queues;
  for (uint32_t queue = 0; queue < merge.queues; ++queue) {
    merge.lengths[queue] = instr.scalar_bits[0] >> 16 * queue & 0xffff;
  }
  // Repeats need four queues of one length, one behind the other, all to be merged. Source: MrgSort, repeatTimes
  bool has_repeats = merge.queues == kQueues && !merge.stops;
  for (uint32_t queue = 1; queue < merge.queues; ++queue) {
    has_repeats = has_repeats && merge.lengths[queue] == merge.lengths[0] &&
                  instr.list[queue].address == instr.list[queue - 1].address + uint64_t{merge.lengths[0]} * item.bytes;
  }
  merge.repeat = has_repeats || instr.repeat == 0 ? instr.repeat : 1;
  return merge;
}

}  // namespace

VectorUse sort_use(const Core&, const Instr& instr) {
  VectorUse use;
  const uint32_t element_bytes = size_bytes(instr.dst.dtype);
  use.shape.repeat = instr.repeat;
  const uint64_t repeat = instr.repeat;
  const Item item = item_of(instr);
  const uint64_t proposals = repeat * kProposalsPerRepeat;
  switch (instr.op) {
    case Op::Sort32:
      use.uses.add_run(instr.dst, 0, true, repeat * kPairsPerRepeat * kPairBytes);
      use.uses.add_run(instr.src[0], 1, false, repeat * kPairsPerRepeat * element_bytes);
      use.uses.add_run(instr.src[1], 2, false, repeat * kPairsPerRepeat * sizeof(uint32_t));
      break;
    case Op::ProposalConcat:
      use.uses.add_run(instr.dst, 0, true, proposals * item.bytes);
      use.uses.add_run(instr.src[0], 1, false, proposals * element_bytes);
      break;
    case Op::ProposalExtract:
      use.uses.add_run(instr.dst, 0, true, proposals * element_bytes);
      use.uses.add_run(instr.src[0], 1, false, proposals * item.bytes);
      break;
    default:  // RpSort16
      use.uses.add_run(instr.dst, 0, true, proposals * item.bytes);
      use.uses.add_run(instr.src[0], 1, false, proposals * item.bytes);
  }
  return use;
}

void execute_sort(Core& core, const Instr& instr) {
  check_repeat(instr);
  if (instr.repeat == 0) return;
  const VectorUse use = sort_use(core, instr);
  check_operands(core, instr, use.shape, use.uses);
  const Item item = item_of(instr);
  const uint32_t element_bytes = size_bytes(instr.dst.dtype);
  const uint32_t count = instr.op == Op::Sort32 ? kPairsPerRepeat : kProposalsPerRepeat;
  const uint8_t* scores = core.at(instr.src[0]);
  uint8_t items[kPairsPerRepeat * kPairBytes * 4] = {};
  for (uint32_t repeat = 0; repeat < instr.repeat; ++repeat) {
    uint8_t* to = core.at(instr.dst) + uint64_t{repeat} * count * item.bytes;
    if (instr.op == Op::Sort32) {
      const uint8_t* indices = core.at(instr.src[1]);
      for (uint32_t i = 0; i < count; ++i) {
        const uint64_t place = uint64_t{repeat} * count + i;
        std::memcpy(items + i * item.bytes, scores + place * element_bytes, element_bytes);
        std::memcpy(items + i * item.bytes + 4, indices + place * sizeof(uint32_t), sizeof(uint32_t));
      }
    } else {
      std::memcpy(items, scores + uint64_t{repeat} * count * item.bytes, count * item.bytes);
    }
    sort_items(instr, item, items, count);
    std::memcpy(to, items, count * item.bytes);
  }
}

/// ProposalConcat puts elements into one place of proposals, ProposalExtract takes them out; mode: the place.
void execute_proposals(Core& core, const Instr& instr) {
  check_repeat(instr);
  OPKIT_CHECK(instr.mode <= 5, IllegalOperand, &instr, "0 to 5 are x1, y1, x2, y2, score and label",
              "%s: modeNumber %u is not one of 0 to 5", row_of(instr.op).name, instr.mode);
  if (instr.repeat == 0) return;
  const VectorUse use = sort_use(core, instr);
  check_operands(core, instr, use.shape, use.uses);
  const uint32_t element_bytes = size_bytes(instr.dst.dtype);
  const bool is_concat = instr.op == Op::ProposalConcat;
  uint8_t* to = core.at(instr.dst) + (is_concat ? instr.mode * element_bytes : 0);
  const uint8_t* from = core.at(instr.src[0]) + (is_concat ? 0 : instr.mode * element_bytes);
  const uint64_t to_step = is_concat ? item_of(instr).bytes : element_bytes;
  const uint64_t from_step = is_concat ? element_bytes : item_of(instr).bytes;
  for (uint64_t i = 0; i < uint64_t{instr.repeat} * kProposalsPerRepeat; ++i) {
    std::memcpy(to + i * to_step, from + i * from_step, element_bytes);
  }
}

VectorUse merge_use(const Core&, const Instr& instr, uint32_t item_index) {
  VectorUse use;
  const Item item = item_of(instr);
  const Merge merge = merge_of(instr, item);
  use.shape.repeat = merge.repeat;
  if (merge.repeat == 0) return use;
  if (item_index == 0) {
    use.uses.add_run(instr.dst, 0, true, merge.total() * merge.repeat * item.bytes);
    return use;
  }
  const uint32_t queue = item_index - 1;
  if (queue >= merge.queues) return use;
  OperandUse& source = use.uses.add(instr.list[queue], 1, false);
  source.layout = Layout::Repeats;
  source.bytes = uint64_t{merge.lengths[queue]} * item.bytes;
  source.stride_bytes = merge.total() * item.bytes;
  // Pairs: 8 bytes. Proposals: 16 bytes for half, 32 for float. Source: MrgSort and MrgSort4, parameters
  source.alignment = item.bytes;
  return use;
}

namespace {

/// Merges one set of queues; says in `taken` how many items of each went to `to`.
void merge_queues(const Instr& instr, const Item& item, const Merge& merge, const uint8_t* const* queues, uint8_t* to,
                  uint16_t* taken) {
  std::fill(taken, taken + kQueues, uint16_t{0});
  float head[kQueues];
  const auto load_head = [&](uint32_t queue) {
    const uint8_t* place = queues[queue] + uint64_t{taken[queue]} * item.bytes;
    check_number(instr, item, place);
    head[queue] = item.score(place);
  };
  for (uint32_t queue = 0; queue < merge.queues; ++queue) {
    if (merge.lengths[queue] > 0) load_head(queue);
  }
  for (uint64_t i = 0; i < merge.total(); ++i, to += item.bytes) {
    uint32_t best = kQueues;
    for (uint32_t queue = 0; queue < merge.queues; ++queue) {
      if (taken[queue] == merge.lengths[queue]) continue;
      if (best == kQueues || head[queue] > head[best]) best = queue;
    }
    std::memcpy(to, queues[best] + uint64_t{taken[best]} * item.bytes, item.bytes);
    ++taken[best];
    if (taken[best] < merge.lengths[best]) {
      load_head(best);
    } else if (merge.stops) {
      return;
    }
  }
}

}  // namespace

void execute_merge(Core& core, const Instr& instr) {
  check_repeat(instr);
  const uint32_t valid = instr.mode & 15;
  OPKIT_CHECK(valid == 3 || valid == 7 || valid == 15, IllegalOperand, &instr, "use 3, 7 or 15",
              "%s: validBit %u does not name the first two, three or four queues", row_of(instr.op).name, valid);
  const Item item = item_of(instr);
  const Merge merge = merge_of(instr, item);
  if (merge.repeat == 0) return;
  for (uint32_t queue = 0; queue < merge.queues; ++queue) {
    OPKIT_CHECK(merge.lengths[queue] <= kMaxQueue, IllegalOperand, &instr, "merge shorter queues",
                "%s: queue %u has %u elements, more than %u", row_of(instr.op).name, queue, merge.lengths[queue],
                kMaxQueue);
  }
  const uint64_t bytes = merge.total() * item.bytes * merge.repeat;
  for (uint32_t i = 0; i <= merge.queues; ++i) {
    const VectorUse use = merge_use(core, instr, i);
    check_operands(core, instr, use.shape, use.uses);
    if (i == 0) continue;
    const OperandUse& source = use.uses.items[0];
    const uint64_t begin = source.operand->address;
    const uint64_t end = begin + (merge.repeat - 1) * source.stride_bytes + source.bytes;
    OPKIT_CHECK(begin >= instr.dst.address + bytes || end <= instr.dst.address, IllegalOperand, &instr,
                "use another destination", "%s: the destination overlaps queue %u", row_of(instr.op).name, i - 1);
  }
  for (uint32_t repeat = 0; repeat < merge.repeat; ++repeat) {
    const uint64_t step = repeat * merge.total() * item.bytes;
    const uint8_t* queues[kQueues] = {};
    for (uint32_t queue = 0; queue < merge.queues; ++queue) queues[queue] = core.at(instr.list[queue]) + step;
    merge_queues(instr, item, merge, queues, core.at(instr.dst) + step, core.merged_counts);
  }
  core.merge_stopped = merge.stops;
}

}  // namespace opkit
