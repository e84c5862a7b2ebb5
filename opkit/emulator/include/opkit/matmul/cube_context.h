/// What the Matmul objects of one cube core share: the parts of L1, L0A, L0B and L0C that they work in, and what L1
/// holds at the moment. They take the upper ends, which TPipe has not given out.
#pragma once

#include <cstdint>

#include "opkit/api/pipe.h"
#include "opkit/api/sync.h"
#include "opkit/matmul/core_extension.h"

namespace opkit {

namespace matmul {

constexpr uint32_t kMaxSlots = 64;

/// One operand's blocks in L1. A block is a base block or several along K.
struct Slots {
  uint32_t begin = 0;
  uint32_t slot_bytes = 0;
  uint32_t count = 0;
  uint32_t next = 0;         ///< that the next copy overwrites
  int32_t outer[kMaxSlots];  ///< block of M or N that it holds; -1 nothing
  int32_t inner[kMaxSlots];  ///< block of K

  void clear() {
    for (uint32_t i = 0; i < kMaxSlots; ++i) outer[i] = -1;
    next = 0;
  }
  int32_t find(int32_t outer_index, int32_t inner_index) const {
    for (uint32_t i = 0; i < count; ++i) {
      if (outer[i] == outer_index && inner[i] == inner_index) return static_cast<int32_t>(i);
    }
    return -1;
  }
};

struct CubeContext {
  uint64_t pass;  ///< whose blocks L1 holds
  Slots a;
  Slots b;
  uint32_t bias_begin;
  uint32_t quant_begin;
  uint32_t phase;    ///< which halves of L0A and L0B are next
  uint32_t c_phase;  ///< which part of L0C is next
  bool is_in_units;  ///< unit flags alone order FIX and what M does next
};
static_assert(sizeof(CubeContext) <= kCoreExtensionBytes, "the core keeps a CubeContext");

inline CubeContext& cube_context() { return *static_cast<CubeContext*>(core_extension()); }

/// Says what the library's own code spends on the scalar pipe: the timing model charges it, nothing else happens.
inline void library_work(Where where, LibraryWork work, bool is_static) {
  constexpr auto kFirstStatic = static_cast<uint8_t>(LibraryWork::StaticStart);
  Instr instr;
  instr.op = Op::LibraryWork;
  instr.pipe = Pipe::S;
  instr.mode = static_cast<uint8_t>(static_cast<uint8_t>(work) + (is_static ? kFirstStatic : 0));
  instr.where = where;
  issue(instr);
}

/// An event for the length of one operation.
class Event {
 public:
  Event(Pipe first, Pipe second, Where where)
      : first_(first), second_(second), id_(allocate_event(first, second, where)), where_(where) {
    if (id_ < 0) {
      illegal_operand("Matmul: every event id between two pipes is taken; release some before it computes", where);
    }
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() {
    wait();
    release_event(first_, second_, id_, where_);
  }

  void set() {
    issue(Op::SetFlag);
    is_set_ = true;
  }
  /// Nothing where it is not set.
  void wait() {
    if (!is_set_) return;
    issue(Op::WaitFlag);
    is_set_ = false;
  }
  /// What the first pipe has been given so far comes before what the second is given from now on.
  void order() {
    is_own_order_ = true;
    set();
    wait();
    is_own_order_ = false;
  }

 private:
  void issue(Op op) const {
    Instr instr;
    instr.op = op;
    instr.pipe = first_;
    instr.peer_pipe = second_;
    instr.event_id = static_cast<uint8_t>(id_);
    instr.where = where_;
    instr.mode = is_own_order_ ? matmul::kLibraryOrder : 0;
    opkit::issue(instr);
  }

  Pipe first_;
  Pipe second_;
  int8_t id_;
  bool is_set_ = false;
  bool is_own_order_ = false;
  Where where_;
};

}  // namespace matmul
}  // namespace opkit
