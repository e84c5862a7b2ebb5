// Checks of a whole program, begun and ended by what `opkit cc` links into it.
#include <string>

#include "acl/memory_check.h"
#include "acl/state.h"
#include "observe/checks.h"
#include "observe/finding_json.h"
#include "opkit/check_options.h"

const char* opkit_begin_checks(const opkit_check_options* given) {
  static thread_local std::string error;
  opkit::CheckOptions options;
  const std::string unknown = choose_detectors(options, given->detectors == nullptr ? "" : given->detectors);
  if (!unknown.empty()) {
    error = "\"" + unknown + "\" is not a detector";
    return error.c_str();
  }
  options.has_auto_sync = given->has_auto_sync != 0;
  options.witness = given->witness != 0;
  options.unused = given->unused != 0;
  if (given->only_block >= 0) options.only_block = static_cast<uint32_t>(given->only_block);
  opkit::begin_checks(options);
  return nullptr;
}

const char* opkit_end_checks(void) {
  static std::string text;
  {
    opkit::acl::Runtime& runtime = opkit::acl::Runtime::get();
    const std::lock_guard<std::recursive_mutex> guard(runtime.lock);
    opkit::acl::report_leaks(runtime.memory, "the program ends");
  }
  text = opkit::findings_json(opkit::end_checks());
  return text.c_str();
}
