// Recordings of a whole program, begun and ended by what `opkit cc` links into it.
#include <unistd.h>

#include <string>

#include "debug/recording.h"
#include "opkit/record_options.h"

namespace {
std::string folder;
}

void opkit_begin_recording(const opkit_record_options* given) {
  folder = given->folder;
  opkit::debug::RecordOptions options;
  options.limit_bytes = given->limit_bytes;
  options.spill_folder = folder;
  options.launch = given->launch;
  options.kernel = given->kernel == nullptr ? "" : given->kernel;
  options.is_poisoned = given->is_poisoned != 0;
  opkit::debug::begin_recording(options);
}

const char* opkit_end_recording(void) {
  static std::string refused;
  refused.clear();
  for (const auto& recording : opkit::debug::end_recording()) {
    const std::string path =
        folder + "/" + std::to_string(getpid()) + "-" + std::to_string(recording->launch) + ".recording";
    if (!opkit::debug::save_recording(*recording, path)) refused = path;
  }
  return refused.empty() ? nullptr : refused.c_str();
}
