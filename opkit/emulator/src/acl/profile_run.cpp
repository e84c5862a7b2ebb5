// Timing of a whole program, begun and ended by what `opkit cc` links into it.
#include <string>

#include "core/launch.h"
#include "observe/timing.h"
#include "opkit/profile_options.h"

void opkit_begin_profile(const opkit_profile_options* options) {
  opkit::TimingOptions timing;
  timing.event_limit = options->event_limit;
  timing.lift_limits = options->lift_limits != 0;
  opkit::set_timing_options(timing);
  opkit::DeviceConfig config = opkit::Device::get().config();
  config.profile = true;
  config.timing_only = options->timing_only != 0;
  opkit::Device::get().configure(config);
}

const char* opkit_take_profile(void) {
  static std::string text;
  text = "[";
  for (const opkit::LaunchTiming& timing : opkit::take_timings()) {
    if (text.size() > 1) text += ',';
    text += timing_json(timing);
  }
  text += ']';
  return text.c_str();
}
