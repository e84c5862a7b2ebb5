// Linked by `opkit cc` into every program: hands the options of `opkit run`, `check`, `profile` and `debug` to the
// emulator before main(). They are in one environment variable, as "key=value" pairs joined by ";"; without it nothing
// happens.
#include <dlfcn.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <unistd.h>

#include "opkit/check_options.h"
#include "opkit/direct_launch.h"
#include "opkit/process_files.h"
#include "opkit/profile_options.h"
#include "opkit/record_options.h"
#include "opkit/run_options.h"

namespace {

// Where findings and timelines go; null without checks, or without profiling. Never destroyed: they are read behind all
// destructors.
const std::string* report_folder = nullptr;
const std::string* profile_folder = nullptr;

[[noreturn]] void refuse(const std::string& message) {
  std::fprintf(stderr, "error: %s\n", message.c_str());
  std::_Exit(2);
}

uint64_t number(const std::string& key, const std::string& value) {
  char* end = nullptr;
  const unsigned long long result = std::strtoull(value.c_str(), &end, 10);
  if (value.empty() || *end != '\0') refuse("OPKIT_RUN_OPTIONS: " + key + " is no number: \"" + value + "\"");
  return result;
}

/// Leaves <process id>.json in a folder.
void write_json(const std::string& folder, const char* text) {
  const std::string path = folder + "/" + std::to_string(getpid()) + ".json";
  const std::string aside = path + ".part";
  std::FILE* file = std::fopen(aside.c_str(), "w");
  if (file == nullptr) return;
  const bool is_written = std::fputs(text, file) >= 0;
  const bool is_closed = std::fclose(file) == 0;
  if (is_written && is_closed) std::rename(aside.c_str(), path.c_str());
}

void write_findings() { write_json(*report_folder, opkit_end_checks()); }

void write_timelines() { write_json(*profile_folder, opkit_take_profile()); }

/// A program that dies has findings all the same.
void write_and_die(int signal) {
  std::signal(signal, SIG_DFL);
  write_findings();
  std::raise(signal);
}

void write_recordings() {
  if (const char* path = opkit_end_recording()) std::fprintf(stderr, "warning: %s cannot be written\n", path);
}

void record_and_die(int signal) {
  std::signal(signal, SIG_DFL);
  write_recordings();
  std::raise(signal);
}

void begin_recording(const opkit_record_options& options) {
  opkit_begin_recording(&options);
  std::atexit(write_recordings);
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGTERM}) std::signal(signal, record_and_die);
}

void begin_checks(const opkit_check_options& options) {
  if (const char* error = opkit_begin_checks(&options)) refuse(error);
  std::atexit(write_findings);
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGTERM}) std::signal(signal, write_and_die);
}

void apply(const char* text) {
  std::string chip;
  std::string detectors;
  opkit_run_options options{};
  opkit_check_options checks{};
  opkit_profile_options profile{};
  checks.only_block = -1;
  opkit_record_options record{};
  std::string record_folder;
  std::string record_kernel;
  std::string rest = text;
  while (!rest.empty()) {
    const size_t end = rest.find(';');
    const std::string pair = rest.substr(0, end);
    rest = end == std::string::npos ? "" : rest.substr(end + 1);
    const size_t equals = pair.find('=');
    const std::string key = pair.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : pair.substr(equals + 1);
    if (key == "chip") {
      chip = value;
    } else if (key == "threads") {
      options.threads = static_cast<uint32_t>(number(key, value));
    } else if (key == "poison") {
      options.poison = static_cast<int32_t>(number(key, value));
    } else if (key == "chip_bounds") {
      options.chip_bounds = static_cast<int32_t>(number(key, value));
    } else if (key == "finds_raw_writes") {
      options.finds_raw_writes = static_cast<int32_t>(number(key, value));
    } else if (key == "seed") {
      options.seed = number(key, value);
    } else if (key == "timeout_ms") {
      options.timeout_ms = number(key, value);
    } else if (key == "check") {
      detectors = value;
    } else if (key == "check_block") {
      checks.only_block = static_cast<int64_t>(number(key, value));
    } else if (key == "check_auto_sync") {
      checks.has_auto_sync = static_cast<int32_t>(number(key, value));
    } else if (key == "check_witness") {
      checks.witness = static_cast<int32_t>(number(key, value));
    } else if (key == "check_unused") {
      checks.unused = static_cast<int32_t>(number(key, value));
    } else if (key == "check_report") {
      report_folder = new std::string(value);
    } else if (key == "record_report") {
      record_folder = value;
    } else if (key == "record_kernel") {
      record_kernel = value;
    } else if (key == "record_launch") {
      record.launch = static_cast<uint32_t>(number(key, value));
    } else if (key == "record_bytes") {
      record.limit_bytes = number(key, value);
    } else if (key == "profile_events") {
      profile.event_limit = number(key, value);
    } else if (key == "profile_limits") {
      profile.lift_limits = static_cast<int32_t>(number(key, value));
    } else if (key == "profile_timing_only") {
      profile.timing_only = static_cast<int32_t>(number(key, value));
    } else if (key == "profile_report") {
      profile_folder = new std::string(value);
    } else {
      refuse("OPKIT_RUN_OPTIONS: this program was built by another version of opkit, which knows no \"" + key +
             "\"; build it again");
    }
  }
  options.chip = chip.empty() ? nullptr : chip.c_str();
  if (const char* error = opkit_configure_run(&options)) refuse(error);
  checks.detectors = detectors.c_str();
  if (report_folder != nullptr) begin_checks(checks);
  if (!record_folder.empty()) {
    record.folder = record_folder.c_str();
    record.kernel = record_kernel.c_str();
    record.is_poisoned = options.poison;
    begin_recording(record);
  }
  if (profile_folder != nullptr) {
    opkit_begin_profile(&profile);
    std::atexit(write_timelines);
  }
}

/// The log, the findings and the state are written from here until the process ends: a library stays loaded for that.
void stay_loaded() {
  Dl_info here{};
  if (dladdr(reinterpret_cast<void*>(&stay_loaded), &here) == 0) return;
  (void)dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

__attribute__((constructor)) void apply_run_options() {
  if (opkit_is_first_start() == 0) return;
  stay_loaded();
  opkit::process::start_log();
  if (const char* text = std::getenv("OPKIT_RUN_OPTIONS")) apply(text);
  opkit::process::State::get().start(opkit_chip_name(), 1);
}

}  // namespace
