// Linked by `opkit cc` into every program: hands the options of `opkit run` to the emulator before main().
// The options are in one environment variable, as "key=value" pairs joined by ";"; without it nothing happens.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "opkit/run_options.h"

namespace {

[[noreturn]] void refuse(const std::string& message) {
  std::fprintf(stderr, "error: %s\n", message.c_str());
  std::_Exit(2);
}

uint32_t number(const std::string& key, const std::string& value) {
  char* end = nullptr;
  const unsigned long result = std::strtoul(value.c_str(), &end, 10);
  if (value.empty() || *end != '\0') refuse("OPKIT_RUN_OPTIONS: " + key + " is no number: \"" + value + "\"");
  return static_cast<uint32_t>(result);
}

__attribute__((constructor)) void apply_run_options() {
  const char* text = std::getenv("OPKIT_RUN_OPTIONS");
  if (text == nullptr) return;
  std::string chip;
  opkit_run_options options{};
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
      options.threads = number(key, value);
    } else if (key == "poison") {
      options.poison = static_cast<int32_t>(number(key, value));
    } else {
      refuse("OPKIT_RUN_OPTIONS: this program was built by another version of opkit, which knows no \"" + key +
             "\"; build it again");
    }
  }
  options.chip = chip.empty() ? nullptr : chip.c_str();
  if (const char* error = opkit_configure_run(&options)) refuse(error);
}

}  // namespace
