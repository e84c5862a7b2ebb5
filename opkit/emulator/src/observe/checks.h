/// The checking observers: what can be asked for, and what they have found. They watch ordinary kernels.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "observe/finding.h"
#include "observe/observer.h"
#include "opkit/export.h"

namespace opkit {

struct CheckOptions {
  bool race = false;     ///< accesses of two pipes of a core that no flag orders
  bool cross = false;    ///< accesses of two cores to global memory that nothing orders
  bool cache = false;    ///< scalar accesses to global memory that the cores' data caches make wrong
  bool init = false;     ///< reads of bytes that nothing wrote
  bool free = false;     ///< accesses of tensors behind their FreeTensor
  bool overlap = false;  ///< results of vector instructions over a source, where the documents forbid it
  bool memory = false;   ///< device memory of a program: bad frees, uses of what was freed, leaks
  bool place = false;    ///< buffers that lie behind a memory's end
  bool padding = false;  ///< reads of what rounds a tensor of global memory up to a whole block
  bool scratch = false;  ///< reads of what an instruction has used as scratch at the end of UB
  bool raw = false;      ///< bytes of UB that change between instructions
  bool note = false;     ///< what is no bug, and seldom meant
  bool leak = false;     ///< tensors, events and flags left over when a block ends; events signalled twice
  /// Whether the compiler orders scalar accesses of vector cores with V, MTE2 and MTE3, and dependent instructions of V
  /// with each other, as the documented default of
  /// --cce-auto-sync does. Source: Ascend C API, synchronisation inside a core, automatic synchronisation.
  bool has_auto_sync = true;
  bool unused = false;                ///< device memory of a program that nothing ever touched
  bool witness = false;               ///< run launches with races again, in the order that loses
  uint32_t only_block = kEveryBlock;  ///< findings of this block only
};

/// Turns detectors on by name, names joined by ",". Returns the first that is none; empty when all are.
OPKIT_API std::string choose_detectors(CheckOptions& options, std::string_view names);

/// One detector: an observer that has findings once a launch has ended.
class Detector : public Observer {
 public:
  /// The launch's findings; empties the list.
  virtual std::vector<Finding> take() = 0;
};

std::unique_ptr<Detector> make_race_check(const CheckOptions& options);
std::unique_ptr<Detector> make_cross_check(const CheckOptions& options);
std::unique_ptr<Detector> make_init_check(const CheckOptions& options);
std::unique_ptr<Detector> make_free_check(const CheckOptions& options);
std::unique_ptr<Detector> make_overlap_check(const CheckOptions& options);
std::unique_ptr<Detector> make_padding_check(const CheckOptions& options);
std::unique_ptr<Detector> make_place_check(const CheckOptions& options);
std::unique_ptr<Detector> make_scratch_check(const CheckOptions& options);
std::unique_ptr<Detector> make_raw_check(const CheckOptions& options);
std::unique_ptr<Detector> make_note_check(const CheckOptions& options);
std::unique_ptr<Detector> make_leak_check(const CheckOptions& options);

/// Attaches the detectors asked for to every later launch of the process, until end_checks(). Checks nest: an inner one
/// and those around it all see its launches. `key`: what alone ends it; 0: whoever asks, so that an operator's host
/// code cannot end a check that it is launched under.
OPKIT_API void begin_checks(const CheckOptions& options, uint64_t key = 0);

/// What any of the checks that run now looks at; null without checks.
const CheckOptions* running_checks();

/// Adds what was found outside launches; without checks it is dropped.
void add_finding(Finding finding);

/// Ends the innermost check of that key and returns what it found, equal ones once, faults that ended launches among
/// them. Throws std::logic_error where a key is given and no check has it.
OPKIT_API std::vector<Finding> end_checks(uint64_t key = 0);

}  // namespace opkit
