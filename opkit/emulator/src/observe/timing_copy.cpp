/// Copies of a core through global memory: what they cost the core, and what they take of what all cores share.
#include <algorithm>
#include <cmath>

#include "observe/timing_core.h"

namespace opkit {
namespace {

/// The power of two that every burst's address is a multiple of.
uint64_t granule(const CopyRecord& shape) {
  const uint64_t places = shape.burst_count > 1 ? shape.address | shape.stride : shape.address;
  return places & (~places + 1);
}

}  // namespace

const CopyCosts& CoreReplay::law_of(const Record& record) const {
  if (record.peer != 0) return costs_.mte2;
  return record.pipe == at(Pipe::FIX) ? costs_.fixpipe : costs_.mte3;
}

/// What a burst off the alignment fetches beyond its own bytes: it ends in one more unit of global memory than it
/// needs.
double CoreReplay::excess_bytes(const CopyRecord& shape) const {
  if (lifted_.is(Limit::Alignment) || is_aligned(costs_, shape) || shape.burst_bytes == 0) return 0;
  const uint64_t begins_at = granule(shape);
  const uint64_t tail = (shape.burst_bytes - 1) % costs_.alignment_bytes + 1;
  // Of bursts that begin anywhere on the granule, so many reach into one more unit, on average.
  return tail > begins_at ? static_cast<double>(tail - begins_at) : 0;
}

double CoreReplay::drift_of(uint32_t copy, const SharedMemory& memory) const {
  if (!is_drifting_ || memory.read_by_several.count(record_.copies[copy].address) > 0) return 1;
  // SplitMix64 of whose copy it is and which, from 0 to 1: addresses differ from run to run.
  uint64_t bits = copy ^ (uint64_t{index_} << 32);
  bits += 0x9E3779B97F4A7C15ull;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9ull;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBull;
  bits ^= bits >> 31;
  return 1 + costs_.drift_variation * (2 * static_cast<double>(bits >> 11) * 0x1p-53 - 1);
}

/// Cycles of the copy itself, without start-up, waiting for memory that cores share, and contention.
double CoreReplay::moving_cycles(const Record& record, const CopyRecord& shape, const BurstTraffic& traffic) const {
  const bool is_read = record.peer != 0;
  const CopyCosts& law = law_of(record);
  const auto bytes = static_cast<double>(shape.burst_bytes);
  // L2 counts whole lines; what the core moves is the copy's own bytes, split in the same proportion.
  const uint64_t touched = traffic.hit_bytes + traffic.hbm_read_bytes;
  const double share = touched == 0 ? 0 : static_cast<double>(traffic.hit_bytes) / static_cast<double>(touched);
  const bool is_slow = !lifted_.is(Limit::Alignment) && !is_aligned(costs_, shape);
  const auto kind = static_cast<uint32_t>(record_.kind);
  const double rate = is_read ? costs_.hbm_read_bytes_per_cycle[kind] : law.bytes_per_cycle;
  const double shortest = lifted_.is(Limit::Bursts) ? 0 : law.burst_cycles;
  double burst = (1 - share) * std::max(bytes / (rate * (is_slow ? law.unaligned_rate : 1)), shortest);
  if (share > 0) burst += share * std::max(bytes / costs_.l2_hit_bytes_per_cycle[kind], shortest);
  // What is put together or taken apart within a block of UB goes a way of its own.
  if (!shape.reorders && record_.kind == SubCore::AIV && shape.burst_bytes % kBlockBytes != 0) {
    burst += law.partial_block_cycles;
  }
  // Rows that begin anywhere among the units of global memory are put together again one after the other, wherever
  // they come from; parts of rows that have a pitch of whole units are not.
  const bool has_odd_pitch = shape.burst_count > 1 && shape.stride % costs_.alignment_bytes != 0;
  if (is_slow && is_read && shape.reorders && (has_odd_pitch || granule(shape) < costs_.bank_bytes)) {
    burst = std::max(burst, bytes / costs_.nd_to_nz_unaligned_bytes_per_cycle);
  }
  const double calls = lifted_.is(Limit::CopyStartup) ? 0 : lifted_.is(Limit::SmallTiles) ? 0.5 : 1;
  double cycles = std::max(burst * shape.burst_count, static_cast<double>(shape.core_cycles));
  if (is_read) cycles *= base_block_share();
  return (cycles + law.instruction_cycles * calls) / (is_second_vector_core_there_ ? 2 : 1);
}

bool CoreReplay::copy(uint32_t pipe, SharedMemory& memory) {
  const Queued& item = queues_[pipe].front();
  const Record& record = record_.records[item.record];
  const CopyRecord& shape = record_.copies[item.detail];
  Transfer& transfer = transfers_[pipe];
  const bool is_read = record.peer != 0;
  const bool is_shared = !lifted_.is(Limit::Hbm);
  const bool is_from_cube = record.pipe == at(Pipe::FIX);
  const double start = transfer.start;

  using Access = L2Contents::Access;
  const Access access = is_read ? (shape.bypasses_l2 ? Access::ReadPast : Access::Read)
                                : (shape.bypasses_l2 ? Access::WritePast : Access::Write);
  BurstTraffic traffic;
  for (uint32_t burst = 0; burst < shape.burst_count; ++burst) {
    memory.l2.touch(shape.address + burst * shape.stride, shape.burst_bytes, access, traffic);
  }
  const auto bytes = static_cast<double>(shape.burst_bytes) * shape.burst_count;
  (is_read ? totals_.gm_read_bytes : totals_.gm_write_bytes) += static_cast<uint64_t>(bytes);
  totals_.l2_read_hit_bytes += traffic.hit_bytes;
  totals_.l2_write_hit_bytes += traffic.write_hit_bytes;
  totals_.hbm_read_bytes += traffic.hbm_read_bytes;
  totals_.hbm_write_bytes += traffic.hbm_write_bytes;
  timing_.l2_lost_bytes += traffic.lost_bytes;

  transfer.is_hit = is_read && traffic.hbm_read_bytes == 0;
  // L2 counts whole lines: what passes HBM is that share of the copy's own bytes.
  const auto touched = static_cast<double>(traffic.hit_bytes + traffic.hbm_read_bytes);
  const bool is_past_l2 = !is_read && shape.bypasses_l2 && traffic.write_hit_bytes == 0;
  const double of_hbm = is_past_l2 ? 1 : touched > 0 ? static_cast<double>(traffic.hbm_read_bytes) / touched : 0;
  transfer.l2_bytes = static_cast<uint64_t>(std::llround(bytes * (1 - of_hbm)));
  double end = start + moving_cycles(record, shape, traffic);
  // What leaves L2 takes HBM's time from the reads; a write itself only waits for the room.
  const auto pushed_out = static_cast<double>(traffic.hbm_write_bytes);
  if (is_shared && pushed_out > 0) memory.hbm.begin(start, pushed_out, FairShare::kNobody);
  if (is_read) {
    const uint32_t readers = memory.reads.note(index_, shape.address);
    if (readers > 1 && !lifted_.is(Limit::SameAddress)) {
      // Those that read one line in step are served one after the other.
      const uint64_t lines = uint64_t{shape.burst_count} * ((shape.burst_bytes + kL2LineBytes - 1) / kL2LineBytes);
      // Of those that L2 serves a few wait for each other at a time; past L2 all of them do.
      const uint32_t others = shape.bypasses_l2 ? readers - 1 : std::min(readers - 1, costs_.same_address_others);
      transfer.served_after = costs_.same_address_cycles * others * static_cast<double>(lines) * base_block_share();
    }
    if (is_shared && traffic.hbm_read_bytes > 0) {
      // L2 fetches whole units: bursts that share one waste no more than one burst of its length would.
      const double units = static_cast<double>(shape.burst_bytes) / costs_.alignment_bytes;
      const double share = shape.bypasses_l2 ? 1 : std::min(1.0, units);
      const double overhead = lifted_.is(Limit::Bursts) ? 0 : costs_.hbm_burst_bytes * share;
      const double wasted = (overhead + excess_bytes(shape)) * shape.burst_count;
      transfer.end = end;
      transfer.is_of_hbm = true;
      const double taken = static_cast<double>(traffic.hbm_read_bytes) + wasted;
      memory.hbm.begin(start, taken * drift_of(item.detail, memory), owner(pipe));
      return false;
    }
  } else if (is_shared) {
    // What is posted has left the core; beyond it a write waits for room in L2, and for its share of the way there.
    const double waits = std::max(0.0, pushed_out - costs_.posted_bytes);
    if (waits > 0) end = std::max(end, memory.evictions.take(start, waits));
    const double behind = std::max(0.0, bytes - costs_.posted_bytes);
    // Reads under way are in its way: it gets no more than one of them does.
    if (!is_from_cube) end = std::max(end, start + behind * memory.hbm.cycles_per_byte());
    transfer.end = end;
    if (behind > 0) {
      memory.writes.begin(start, behind, owner(pipe));
      return false;
    }
  }
  end_copy(pipe, end + transfer.served_after);
  return true;
}

void CoreReplay::end_transfer(uint32_t pipe, double cycle) {
  const Transfer& transfer = transfers_[pipe];
  double end = std::max(transfer.end, cycle);
  const double own = transfer.end - transfer.start;
  const double shared = cycle - transfer.start;
  // A cube core's rate was read off products that share the link already.
  const bool is_joint = transfer.is_of_hbm && record_.kind == SubCore::AIV && costs_.hbm_joint_exponent > 0;
  if (is_joint && own > 0 && shared > 0) {
    // Requests wait for each other before the link is full: the nearer it is to that, the longer.
    const double less = std::min(own, shared) / std::max(own, shared);
    end = transfer.start + std::max(own, shared) *
                               std::pow(1 + std::pow(less, costs_.hbm_joint_exponent), 1 / costs_.hbm_joint_exponent);
  }
  end_copy(pipe, end + transfer.served_after);
}

void CoreReplay::end_copy(uint32_t pipe, double end) {
  const Queued& item = queues_[pipe].front();
  const Record& record = record_.records[item.record];
  const CopyRecord& shape = record_.copies[item.detail];
  const Transfer& transfer = transfers_[pipe];
  const double start = transfer.asked;
  end = unit_flag_end(record, start, end);
  const CopyCosts& law = law_of(record);
  const double startup = transfer.is_hit ? costs_.l2_hit_startup : law.startup_cycles;
  const double latency = lifted_.is(Limit::CopyStartup) ? 0 : lifted_.is(Limit::SmallTiles) ? startup / 2 : startup;
  charge_wait(pipe, record.line);
  note(record.line, start, end + latency, uint64_t{shape.burst_count} * shape.burst_bytes, transfer.l2_bytes);
  copy_cycles_[record.line] += end - start;
  occupy(pipe, start, end + latency);
  free_[pipe] = end;
  transfers_[pipe].is_begun = has_begun_[pipe] = false;
  queues_[pipe].pop();
}

}  // namespace opkit
