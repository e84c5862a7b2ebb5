/// What the checking observers report: plain data, grouped where the same two lines meet again.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/names.h"
#include "core/core.h"

namespace opkit {

/// One instruction of a kernel, by its place in the source.
struct Site {
  std::string file;
  uint32_t line = 0;
  std::string instruction;  ///< the table's name for it
  Pipe pipe = Pipe::S;
  std::string module;   ///< of a call in a program's host code, which has no line of its own: the loaded file
  uint64_t offset = 0;  ///< and where in it, as its debug information counts
};

/// What a replay in the losing order has shown.
struct Witness {
  bool is_tried = false;
  uint64_t differing = 0;  ///< elements of global memory with another value
  std::string place;       ///< where the first of them lies
  uint64_t element = 0;    ///< its number there
  std::string ordered;     ///< its bytes after the order of the program, in hexadecimal digits
  std::string lost;        ///< and after the losing one
  std::string fault;       ///< how the replay faulted, where the order of the program does not
};

/// One kind of bug at one place. `opkit/sanitizer/classes.py` describes each id.
struct Finding {
  std::string id;     ///< empty for faults
  std::string fault;  ///< the category, where the launch ended with it
  std::string message;
  std::string help;
  std::string kernel;
  Site site;
  Site other;  ///< the access that it conflicts with; without a file when there is none
  uint32_t block = 0;
  uint32_t sub_block = 0;
  bool is_cube = false;
  uint32_t other_block = 0;
  uint32_t core = 0;  ///< its index in the launch
  uint32_t other_core = 0;
  uint64_t other_instruction = 0;  ///< of a race: the number of the earlier one
  DType dtype = DType::U8;         ///< of a race: what the instruction works on
  uint64_t instruction = 0;        ///< instructions that the core had issued when it first happened
  std::string space;
  std::string allocation;  ///< what the bytes belong to; empty where that is not known
  uint64_t begin = 0;      ///< first byte concerned, in its memory; in GM from the start of its allocation
  uint64_t end = 0;
  uint64_t count = 0;  ///< how often it happened in this launch
  Witness witness;     ///< of a race, where that was asked for
};

/// A place as the observers keep it while a launch runs; the strings belong to the kernel.
struct AccessSite {
  const char* file = "";
  uint32_t line = 0;
  Op op = Op::kCount;
  Pipe pipe = Pipe::S;
};

AccessSite site_of(const Instr& instr);
Site resolve(const AccessSite& site);

constexpr uint32_t kEveryBlock = ~0u;

/// The findings of one core, each place or pair of places once.
class FindingList {
 public:
  explicit FindingList(uint32_t only_block = kEveryBlock) : only_block_(only_block) {}

  /// The finding of these two places, and whether it is new: then the caller fills it in. Counts once an instruction.
  /// Of a block that nobody asked for it is kept nowhere.
  Finding& at(const char* id, const Core& core, const AccessSite& site, const AccessSite& other, bool& is_new);

  /// Adds another list's findings; the first of equal ones keeps its place, the counts add up.
  void merge(FindingList&& other);
  std::vector<Finding> take();
  bool empty() const { return entries_.empty(); }
  void clear() { entries_.clear(), index_.clear(); }

 private:
  using Key = std::tuple<std::string, std::string, uint32_t, Op, std::string, uint32_t, Op>;
  struct Entry {
    Key key;
    Finding finding;
    uint64_t last_instruction = 0;
  };
  uint32_t only_block_;
  Finding unwanted_;
  std::vector<Entry> entries_;
  std::map<Key, size_t> index_;
};

/// Equal findings of several launches, as one with their counts added up.
class FindingGroups {
 public:
  /// The finding as it is kept when it is the first of its kind; null otherwise.
  Finding* add(Finding finding);
  std::vector<Finding> take();

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::string, uint32_t, uint64_t, std::string, uint32_t>;
  std::deque<Finding> findings_;  // its elements stay where they are
  std::map<Key, size_t> index_;
};

/// Fills in which bytes of which memory and allocation, while the core runs; addresses as instructions have them.
void place_finding(Finding& finding, const Core& core, Space space, uint64_t first, uint64_t last);

/// "file.cpp:12", or "an unknown line".
std::string place_text(const AccessSite& site);

}  // namespace opkit
