/// Why a launch ended early.
#pragma once

#include <cstdint>
#include <string>

#include "opkit/export.h"
#include "opkit/types.h"

namespace opkit {

enum class Fault : uint8_t {
  None,
  // The kernel is wrong:
  OutOfBounds,        // an operand leaves its buffer, its memory or every GM allocation
  UseAfterFree,       // device memory that the program has given back
  Misaligned,         // an address that the hardware wants aligned is not
  UninitializedRead,  // bytes that nothing wrote
  IllegalOperand,     // a parameter outside its documented domain
  QueueMisuse,        // TQue, TBuf or TPipe used out of order
  Race,               // two pipes touch the same bytes and nothing orders them
  Deadlock,           // a wait that nothing will end
  Leak,               // a tensor or event never given back
  Assertion,          // an assert of the kernel's own failed
  Crash,              // a raw pointer access or a division by zero that the host caught
  RawWrite,           // an output changed that no instruction wrote
  // Not the kernel's fault:
  Unimplemented,  // opkit lacks it
  Unspecified,    // the documents are silent: nothing is invented
  Interrupted,    // the user stopped the launch
  Internal,       // our bug
  kCount,
};

OPKIT_API const char* fault_name(Fault fault);

/// What reports call it: the class that `opkit explain` knows, or the name where it is no bug of a kernel.
OPKIT_API const char* fault_id(Fault fault);

/// What is known of one fault; `opkit.errors.KernelFault` in Python.
struct FaultReport {
  Fault fault = Fault::None;
  std::string message;
  std::string help;
  std::string kernel;
  std::string file;
  uint32_t line = 0;
  uint32_t block = 0;
  const char* sub_core = "aiv";
  Pipe pipe = Pipe::S;
  uint64_t instruction = 0;  ///< number of instructions that the core had issued before
};

}  // namespace opkit
