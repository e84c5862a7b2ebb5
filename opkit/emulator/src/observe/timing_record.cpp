#include "observe/timing_record.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/launch_state.h"
#include "isa/footprint.h"
#include "isa/table.h"
#include "opkit/matmul/core_extension.h"

namespace opkit {
namespace {

uint64_t line_hash(const Instr& instr) {
  const uint64_t file = reinterpret_cast<uint64_t>(instr.where.file);
  return (file ^ (uint64_t{instr.where.line} << 12) ^ static_cast<uint64_t>(instr.op)) * 0x9E3779B97F4A7C15ull;
}

uint8_t unit_flag_of(const Instr& instr) {
  if (instr.product != nullptr) return instr.product->unit_flag;
  return instr.fixpipe != nullptr ? instr.fixpipe->unit_flag : 0;
}

}  // namespace

bool is_aligned(const TimingCosts& costs, const CopyRecord& copy) {
  // Every burst is aligned when the first is and the distance between two keeps it so.
  const bool distance_is = copy.burst_count <= 1 || copy.stride % costs.alignment_bytes == 0;
  return copy.address % costs.alignment_bytes == 0 && distance_is;
}

CoreRecord::CoreRecord(const TimingCosts& costs, const Core& core, uint64_t detail_limit, std::vector<Record> storage)
    : index(core.index),
      block(core.block),
      sub_block(core.sub_block),
      kind(core.kind),
      records(std::move(storage)),
      costs_(costs),
      detail_left_(detail_limit),
      line_cache_(kLineCacheSize) {
  records.clear();
  std::fill(last_wait_, last_wait_ + kPipeCount, kNone);
}

void CoreRecord::add(const Core& core, const Instr& instr) {
  if (last_wait_[static_cast<uint32_t>(instr.pipe)] != kNone) note_target(instr);
  switch (row_of(instr.op).cost) {
    case Cost::flag: add_sync(instr, instr.op == Op::SetFlag ? RecordKind::SetFlag : RecordKind::WaitFlag); return;
    case Cost::barrier: add_sync(instr, RecordKind::Barrier); return;
    case Cost::cross_core: add_cross(core, instr); return;
    case Cost::scalar_load:
    case Cost::scalar_store:
    case Cost::scalar_move: add_scalar(instr, line_of(instr)); return;
    case Cost::library: add_library(instr, line_of(instr)); return;
    case Cost::dma: add_copy(core, instr, line_of(instr)); return;
    case Cost::load_2d:
    case Cost::load_3d:
    case Cost::fill_l1:
    case Cost::mmad:
    case Cost::fixpipe:
      add_cube(core, instr, line_of(instr));
      note_sums(instr);
      return;
    default: add_vector(core, instr, line_of(instr)); return;
  }
}

void CoreRecord::note_sums(const Instr& instr) {
  const bool is_product = instr.product != nullptr;
  if (!is_product && instr.fixpipe == nullptr) return;
  const uint64_t begin = is_product ? instr.dst.address : instr.src[0].address;
  const uint32_t m = is_product ? instr.product->m : instr.fixpipe->m;
  const uint32_t n = is_product ? instr.product->n : instr.fixpipe->n;
  const uint64_t bytes = uint64_t{m + kCubeSide - 1} / kCubeSide * ((n + kCubeSide - 1) / kCubeSide) * kSumBytes;
  const uint64_t size = std::max<uint64_t>(costs_.l0c_bytes, kSumBytes);
  const uint64_t end = std::min(size, begin % size + bytes);
  if (end < kSumBytes) return;
  records.back().l0c_first = static_cast<uint8_t>(begin % size / kSumBytes);
  records.back().l0c_last = static_cast<uint8_t>(end / kSumBytes - 1);
}

void CoreRecord::note_buffer(const Instr& instr, RecordKind kind) {
  const auto from = static_cast<uint32_t>(instr.pipe), to = static_cast<uint32_t>(instr.peer_pipe);
  if (kind == RecordKind::SetFlag) {
    signalled_at_[from][to][instr.event_id % kEventCount] = consumed_[from];
    return;
  }
  if (place_of(instr.pipe) < place_of(instr.peer_pipe)) {
    ++consumed_[to];
    return;
  }
  records.back().has_other =
      instr.mode == matmul::kLibraryOrder || consumed_[from] != signalled_at_[from][to][instr.event_id % kEventCount];
  last_wait_[to] = records.size() - 1;
}

void CoreRecord::note_target(const Instr& instr) {
  const Cost cost = row_of(instr.op).cost;
  if (cost == Cost::flag || cost == Cost::barrier || cost == Cost::cross_core) return;
  size_t& wait = last_wait_[static_cast<uint32_t>(instr.pipe)];
  const uint32_t line = line_of(instr);
  records[wait].line = line;
  wait = kNone;
  LineTotals& totals = lines[line];
  if (totals.first_target == ~0ull) totals.first_target = instr.dst.address;
  totals.rotates |= totals.first_target != instr.dst.address;
}

void CoreRecord::add_vector(const Core& core, const Instr& instr, uint32_t line) {
  const VectorWork work = vector_work(costs_, core, instr);
  const double issue = costs_.issue_cycles[static_cast<uint32_t>(instr.op)];
  const double stall = dependence_stall(instr, work.repeats);
  vector_clock_ += stall + work.cycles;
  const Reach written = reach_of(instr, instr.dst, work.repeats);
  recent_[next_recent_] = {written, vector_clock_};
  // The reach is that of lanes: a comparison writes bits, a reduction less than it reads.
  if (instr.dst.space == Space::UB && written.end > ub_bytes_used) {
    for_each_range(core, instr, [this](const ByteRange& range) {
      if (range.operand == 0) ub_bytes_used = std::max(ub_bytes_used, range.begin + range.bytes);
    });
  }
  next_recent_ = (next_recent_ + 1) % kRecentWrites;

  LineTotals& totals = lines[line];
  ++totals.count;
  totals.cycles += work.cycles + stall;
  totals.conflict_cycles += work.conflict_cycles;
  totals.operations += work.elements;

  const bool is_detailed = detail_left_ > 0;
  if (is_detailed) {
    --detail_left_;
  } else {
    ++dropped;
    if (!records.empty() && records.back().kind == RecordKind::Vector) {
      Record& run = records.back();
      run.scalar_cycles += issue;
      run.busy_cycles += stall + work.cycles;
      run.path_cycles = std::max(run.path_cycles + stall, run.scalar_cycles) + work.cycles;
      run.conflict_cycles += static_cast<float>(work.conflict_cycles);
      run.stall_cycles += static_cast<float>(stall);
      ++run.instructions;
      return;
    }
  }
  records.push_back({RecordKind::Vector, static_cast<uint8_t>(Pipe::V), is_detailed, 0, line, issue,
                     stall + work.cycles, issue + work.cycles, stall, static_cast<float>(work.conflict_cycles),
                     static_cast<float>(stall), 0, 0});
}

/// How long the vector pipe must drain before this instruction may start, because an instruction still in flight
/// writes what it reads or writes. Published runs of one Add repeated onto its own result pay the start-up each time.
double CoreRecord::dependence_stall(const Instr& instr, uint64_t repeats) {
  double stall = 0;
  for (const Written& written : recent_) {
    const double wait = written.issued_until + costs_.vector_startup - vector_clock_;
    if (wait <= stall) continue;
    const auto overlaps = [&](const Operand& operand) {
      return operand.space == Space::UB && written.reach.meets(reach_of(instr, operand, repeats));
    };
    bool is_dependent = overlaps(instr.dst);
    for (uint32_t i = 0; i < instr.source_count && !is_dependent; ++i) is_dependent = overlaps(instr.src[i]);
    if (is_dependent) stall = wait;
  }
  return stall;
}

void CoreRecord::add_scalar(const Instr& instr, uint32_t line) {
  const double cycles = costs_.issue_cycles[static_cast<uint32_t>(instr.op)];
  const float of_elements = row_of(instr.op).cost == Cost::scalar_move ? 0 : static_cast<float>(cycles);
  LineTotals& totals = lines[line];
  ++totals.count;
  totals.cycles += cycles;
  if (!records.empty()) {
    Record& last = records.back();
    // A detailed vector record (peer != 0) keeps its own extent on the timeline.
    if (last.kind == RecordKind::Scalar || (last.kind == RecordKind::Vector && last.peer == 0)) {
      last.scalar_cycles += cycles;
      last.element_cycles += of_elements;
      return;
    }
  }
  records.push_back(
      {RecordKind::Scalar, static_cast<uint8_t>(Pipe::S), 0, 0, line, cycles, 0, 0, 0, 0, 0, of_elements, 0});
}

void CoreRecord::add_library(const Instr& instr, uint32_t line) {
  constexpr auto kFirstStatic = static_cast<uint32_t>(LibraryWork::StaticStart);
  has_library_work = true;
  const double cycles = costs_.library_cycles[instr.mode];
  const double saved = instr.mode < kFirstStatic ? cycles - costs_.library_cycles[instr.mode + kFirstStatic] : 0;
  LineTotals& totals = lines[line];
  ++totals.count;
  totals.cycles += cycles;
  if (records.empty() || records.back().kind != RecordKind::Scalar) {
    records.push_back({RecordKind::Scalar, static_cast<uint8_t>(Pipe::S), 0, 0, line, 0, 0, 0, 0, 0, 0, 0, 0});
  }
  records.back().scalar_cycles += cycles;
  records.back().library_cycles += static_cast<float>(saved);
}

void CoreRecord::add_copy(const Core& core, const Instr& instr, uint32_t line) {
  const CopyShape& copy = instr.copy;
  // The planes of ND2NZ and NZ2ND are the columns of one matrix: together they are whole rows of global memory.
  uint32_t burst_bytes = copy.burst_bytes;
  if (copy.plane_count > 1) burst_bytes = (copy.plane_count - 1) * copy.burst_bytes + copy.last_plane_bytes;
  if (instr.op == Op::InitOutput) burst_bytes = instr.count * size_bytes(instr.dst.dtype);
  const uint64_t bytes = uint64_t{copy.burst_count} * burst_bytes;
  const bool is_read = instr.source_count > 0 && instr.src[0].space == Space::GM;
  const bool is_write = instr.dst.space == Space::GM;
  use_ub(instr.dst, bytes);
  if (!is_read && !is_write) return add_local(instr, line, bytes);
  const bool reorders = instr.op == Op::DataCopyNd2Nz || instr.op == Op::DataCopyNz2Nd;
  add_global(core, instr, line, is_read,
             {0, is_read ? copy.src_stride : copy.dst_stride, copy.burst_count, burst_bytes, false, reorders, 0});
}

LineTotals& CoreRecord::count(const Instr& instr, uint32_t line) {
  LineTotals& totals = lines[line];
  ++totals.count;
  totals.to = instr.dst.space;
  totals.from = instr.source_count > 0 ? instr.src[0].space : Space::kCount;
  return totals;
}

/// A copy through global memory; `shape` lacks its address and hint.
void CoreRecord::add_global(const Core& core, const Instr& instr, uint32_t line, bool is_read, CopyRecord shape) {
  const Operand& global = is_read ? instr.src[0] : instr.dst;
  shape.address = launch_relative(core, global.address);
  shape.bypasses_l2 = global.bypasses_l2;
  LineTotals& totals = count(instr, line);
  totals.bytes += uint64_t{shape.burst_count} * shape.burst_bytes;
  totals.bursts += shape.burst_count;
  totals.unaligned += !is_aligned(costs_, shape);
  copies.push_back(shape);
  records.push_back({RecordKind::Copy, static_cast<uint8_t>(instr.pipe), is_read, unit_flag_of(instr), line,
                     costs_.issue_cycles[static_cast<uint32_t>(instr.op)], 0, 0, 0, 0, 0, 0, 0});
}

void CoreRecord::add_local(const Instr& instr, uint32_t line, uint64_t copy_bytes) {
  if (instr.product != nullptr) {
    l0c_bytes_used = std::max<uint64_t>(l0c_bytes_used, uint64_t{instr.product->m} * instr.product->n * 4);
  }
  const LocalWork work = local_work(costs_, instr, copy_bytes);
  LineTotals& totals = count(instr, line);
  totals.bytes += work.bytes;
  totals.cycles += work.cycles;
  totals.operations += work.operations;
  if (instr.pipe == Pipe::V) vector_clock_ += work.cycles;
  records.push_back({RecordKind::Local, static_cast<uint8_t>(instr.pipe), 0, unit_flag_of(instr), line,
                     costs_.issue_cycles[static_cast<uint32_t>(instr.op)], work.cycles, 0, 0, 0, 0, 0,
                     static_cast<float>(work.startup_cycles)});
}

void CoreRecord::add_cube(const Core& core, const Instr& instr, uint32_t line) {
  if (instr.load != nullptr && instr.src[0].space == Space::GM) {
    const FractalLoad& load = *instr.load;
    return add_global(core, instr, line, true,
                      {0, static_cast<uint64_t>(load.src_stride), load.repeat, kFractalBytes, false, false, 0});
  }
  if (instr.fixpipe != nullptr && instr.dst.space == Space::GM) {
    const FixpipeCopy& copy = *instr.fixpipe;
    const uint32_t size = size_bytes(instr.dst.dtype);
    const double elements = static_cast<double>(copy.m) * copy.n;
    const double rate = costs_.fixpipe_elements_per_cycle;
    const auto cycles = static_cast<float>(rate > 0 ? elements / rate : 0);
    if (copy.is_nd) {
      for (uint32_t matrix = 0; matrix < copy.matrices; ++matrix) {
        add_global(core, instr, line, false, {0, copy.dst_stride, copy.m, copy.n * size, false, false, cycles});
      }
      return;
    }
    return add_global(
        core, instr, line, false,
        {0, copy.dst_stride, (copy.n + kCubeSide - 1) / kCubeSide, copy.m * kCubeSide * size, false, false, cycles});
  }
  add_local(instr, line, 0);
}

void CoreRecord::add_sync(const Instr& instr, RecordKind kind) {
  // After a barrier or a flag of V's the drain is paid there; the clock must not charge it again.
  const bool drains_vector = kind == RecordKind::Barrier && (instr.pipe == Pipe::V || instr.pipe == Pipe::ALL);
  if (drains_vector) vector_clock_ += costs_.vector_startup;
  // Barriers of all pipes are worth naming: they are what advice points at.
  uint32_t line = 0;
  if (kind == RecordKind::Barrier && instr.pipe == Pipe::ALL) {
    line = line_of(instr);
    ++lines[line].count;
  }
  records.push_back({kind, static_cast<uint8_t>(instr.pipe), static_cast<uint8_t>(instr.peer_pipe), instr.event_id,
                     line, costs_.issue_cycles[static_cast<uint32_t>(instr.op)], 0, 0, 0, 0, 0, 0, 0});
  if (kind != RecordKind::Barrier) note_buffer(instr, kind);
}

void CoreRecord::add_cross(const Core& core, const Instr& instr) {
  crosses.push_back({instr.op,
                     instr.pipe,
                     instr.mode,
                     instr.event_id,
                     instr.count,
                     launch_relative(core, instr.dst.address),
                     {instr.scalar_bits[0], instr.scalar_bits[1]}});
  if (instr.op == Op::GroupWait) crosses.back().count = instr.repeat;
  const uint32_t line = line_of(instr);
  ++lines[line].count;
  records.push_back({RecordKind::Cross, static_cast<uint8_t>(instr.pipe), 0, 0, line,
                     costs_.issue_cycles[static_cast<uint32_t>(instr.op)], 0, 0, 0, 0, 0, 0, 0});
}

uint32_t CoreRecord::line_of(const Instr& instr) {
  const uint64_t hash = line_hash(instr);
  CachedLine& cached = line_cache_[hash >> 56];
  if (cached.file == instr.where.file && cached.line == instr.where.line && cached.op == instr.op) return cached.index;
  const auto [begin, end] = line_index_.equal_range(hash);
  uint32_t index = static_cast<uint32_t>(lines.size());
  for (auto candidate = begin; candidate != end; ++candidate) {
    const LineTotals& known = lines[candidate->second];
    if (known.file == instr.where.file && known.line == instr.where.line && known.op == instr.op) {
      index = candidate->second;
    }
  }
  if (index == lines.size()) {
    LineTotals totals;
    totals.file = instr.where.file;
    totals.line = instr.where.line;
    totals.op = instr.op;
    const Cost cost = row_of(instr.op).cost;
    const bool is_scalar =
        cost == Cost::scalar_load || cost == Cost::scalar_store || cost == Cost::library || instr.pipe == Pipe::ALL;
    totals.pipe = is_scalar ? Pipe::S : instr.pipe;
    lines.push_back(totals);
    line_index_.emplace(hash, index);
  }
  cached = {instr.where.file, instr.where.line, instr.op, index};
  return index;
}

uint64_t launch_relative(const Core& core, uint64_t address) {
  if (core.launch == nullptr) return address;
  const std::vector<GmRange>& ranges = core.launch->launch->gm;
  const auto behind = std::upper_bound(ranges.begin(), ranges.end(), address,
                                       [](uint64_t value, const GmRange& range) { return value < range.begin; });
  if (behind == ranges.begin()) return address;
  const uint64_t index = static_cast<uint64_t>(behind - ranges.begin());
  return (index << 44) + (address - (behind - 1)->begin);
}

}  // namespace opkit
