/// The files in which a process tells of itself: its log, and its state for npu-smi. For whoever starts the emulator:
/// what `opkit cc` links into programs, and Python's binding. opkit/log.py writes the same lines, opkit/processes.py
/// reads the state; their tests hold them to this file.
#pragma once

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string>

#include "opkit/process_report.h"

namespace opkit::process {

inline std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

/// $NAME, or a folder below the home where that is no absolute path; empty where there is no home either.
inline std::string base_folder(const char* name, const char* below_home) {
  const std::string given = variable(name);
  if (!given.empty() && given[0] == '/') return given;
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/" + below_home;
}

inline bool make_folders(const std::string& path) {
  for (size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    const std::string part = path.substr(0, at);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) return false;
    if (at == std::string::npos) return true;
  }
}

inline std::string process_name() {
  char name[256] = {};
  const int file = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  const ssize_t count = read(file, name, sizeof name - 1);
  close(file);
  std::string text(name, count > 0 ? static_cast<size_t>(count) : 0);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// --- the log ------------------------------------------------------------------------------------------------------

/// ASCEND_PROCESS_LOG_PATH, else below ASCEND_WORK_PATH, else opkit's own folder of the user.
inline std::string log_folder() {
  if (const std::string given = variable("ASCEND_PROCESS_LOG_PATH"); !given.empty()) return given;
  if (const std::string work = variable("ASCEND_WORK_PATH"); !work.empty()) return work + "/log";
  const std::string base = base_folder("XDG_STATE_HOME", ".local/state");
  return base.empty() ? "" : base + "/opkit/log";
}

/// ERROR where the variable is not set, or is no level.
inline int32_t log_level() {
  const std::string text = variable("ASCEND_GLOBAL_LOG_LEVEL");
  return text.size() == 1 && text[0] >= '0' && text[0] <= '4' ? text[0] - '0' : OPKIT_LOG_ERROR;
}

class LogFile {
 public:
  static LogFile& get() {
    static auto* file = new LogFile();
    return *file;
  }

  void write(int32_t level, const char* component, const char* where, const char* message) {
    static constexpr const char* kNames[] = {"DEBUG", "INFO", "WARNING", "ERROR"};
    timeval now{};
    gettimeofday(&now, nullptr);
    tm local{};
    localtime_r(&now.tv_sec, &local);
    char date[32];
    std::strftime(date, sizeof date, "%Y-%m-%d-%H:%M:%S", &local);
    char rest[64];
    std::snprintf(rest, sizeof rest, ".%03d.%03d", static_cast<int>(now.tv_usec / 1000),
                  static_cast<int>(now.tv_usec % 1000));
    const std::string line = std::string("[") + kNames[level] + "] " + component + "(" + std::to_string(getpid()) +
                             "," + name_ + "):" + date + rest + " [" + where + "]" +
                             std::to_string(syscall(SYS_gettid)) + " " + escaped(message) + "\n";
    const std::lock_guard<std::mutex> guard(lock_);
    const int file = variable("ASCEND_SLOG_PRINT_TO_STDOUT") == "1" ? STDOUT_FILENO : file_of_this_process(now.tv_sec);
    // One write a line: lines of several processes and threads do not mix.
    if (file >= 0) (void)!::write(file, line.data(), line.size());
  }

 private:
  LogFile() : name_(process_name()) {}

  static std::string escaped(const char* text) {
    std::string made;
    for (; *text != '\0'; ++text) {
      if (*text == '\n') {
        made += "\\n";
      } else if (*text == '\\') {
        made += "\\\\";
      } else {
        made += *text;
      }
    }
    return made;
  }

  int file_of_this_process(time_t seconds) {
    if (owner_ == getpid()) return file_;
    owner_ = getpid();
    file_ = -1;
    std::string folder = log_folder();
    if (folder.empty()) return -1;
    folder += "/debug/plog";
    if (!make_folders(folder)) return -1;
    const std::string path =
        folder + "/plog-" + std::to_string(owner_) + "_" + std::to_string(static_cast<long long>(seconds)) + ".log";
    file_ = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
    return file_;
  }

  const std::string name_;
  std::mutex lock_;
  pid_t owner_ = 0;
  int file_ = -1;
};

inline void write_log(int32_t level, const char* component, const char* where, const char* message) {
  LogFile::get().write(level, component, where, message);
}

/// Sends the emulator's records to the log that the environment names.
inline void start_log() { opkit_set_log(write_log, log_level()); }

// --- the state ----------------------------------------------------------------------------------------------------

/// A file that is mapped: the published figures, then from this byte on a JSON object, ended by a zero byte.
constexpr size_t kStateText = sizeof(int64_t) * OPKIT_PUBLISHED_DEVICES * OPKIT_PUBLISHED_FIGURES;
constexpr size_t kStateBytes = 8192;

/// $XDG_RUNTIME_DIR/opkit/devices, else below the user's cache.
inline std::string state_folder() {
  if (const std::string runtime = variable("XDG_RUNTIME_DIR"); !runtime.empty() && runtime[0] == '/') {
    return runtime + "/opkit/devices";
  }
  const std::string base = base_folder("XDG_CACHE_HOME", ".cache");
  return base.empty() ? "" : base + "/opkit/devices";
}

/// When the process started, in the kernel's ticks: tells it from a later one with its number.
inline std::string start_ticks() {
  char text[2048] = {};
  const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return "0";
  const ssize_t count = read(file, text, sizeof text - 1);
  close(file);
  if (count <= 0) return "0";
  const char* at = std::strrchr(text, ')');
  // Field 22 of proc(5); the name in parentheses is the second.
  for (int field = 2; at != nullptr && field < 22; ++field) at = std::strchr(at + 1, ' ');
  return at == nullptr ? "0" : std::to_string(std::strtoull(at + 1, nullptr, 10));
}

inline std::string quoted(const std::string& text) {
  std::string made = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') made += '\\';
    made += static_cast<unsigned char>(letter) < 0x20 ? ' ' : letter;
  }
  return made + "\"";
}

class State {
 public:
  static State& get() {
    static auto* state = new State();
    return *state;
  }

  /// Makes the file; where that does not work the process is not shown, and nothing else is different.
  void start(const std::string& chip, int32_t devices) {
    chip_ = chip;
    devices_ = devices;
    if (owner_ == getpid()) {
      describe();
      return;
    }
    const int64_t (*before)[OPKIT_PUBLISHED_FIGURES] = figures_;
    const std::string folder = state_folder();
    figures_ = nullptr;
    if (!folder.empty() && make_folders(folder)) {
      path_ = folder + "/" + std::to_string(getpid()) + ".state";
      const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
      if (file >= 0 && ftruncate(file, kStateBytes) == 0) {
        void* mapped = mmap(nullptr, kStateBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (mapped != MAP_FAILED) figures_ = static_cast<int64_t (*)[OPKIT_PUBLISHED_FIGURES]>(mapped);
      }
      if (file >= 0) close(file);
    }
    // Another copy of this code in the process may have begun it; otherwise it is of a process that is gone. A forked
    // child has what its parent held.
    if (figures_ != nullptr && std::strncmp(text(), head().c_str(), head().size()) != 0) {
      std::memset(figures_, 0, kStateText);
      if (before != nullptr) std::memcpy(figures_, before, kStateText);
    }
    owner_ = getpid();
    describe();
    opkit_memory_publish(figures_);
    if (!is_registered_) {
      is_registered_ = true;
      std::atexit([] { State::get().end(); });
      pthread_atfork(nullptr, nullptr, [] { State::get().start(State::get().chip_, State::get().devices_); });
    }
  }

 private:
  State() = default;

  /// What tells this process from all others.
  static std::string head() { return "{\"pid\":" + std::to_string(getpid()) + ",\"start_ticks\":" + start_ticks(); }

  char* text() { return reinterpret_cast<char*>(figures_) + kStateText; }

  void describe() {
    if (figures_ == nullptr) return;
    const std::string made = head() + ",\"name\":" + process::quoted(process_name()) +
                             ",\"chip\":" + process::quoted(chip_) + ",\"devices\":" + std::to_string(devices_) + "}";
    if (made.size() >= kStateBytes - kStateText) return;
    std::memcpy(text(), made.c_str(), made.size() + 1);
  }

  void end() {
    if (owner_ == getpid() && !path_.empty()) unlink(path_.c_str());
  }

  std::string chip_;
  int32_t devices_ = 0;
  pid_t owner_ = 0;
  std::string path_;
  int64_t (*figures_)[OPKIT_PUBLISHED_FIGURES] = nullptr;
  bool is_registered_ = false;
};

}  // namespace opkit::process
