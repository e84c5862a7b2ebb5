// Compiling kernels while the program runs: the source goes to "opkit cc --kernel-library" in a scratch folder.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "acl/acl_rt_compile.h"
#include "acl/binary.h"
#include "acl/error.h"

extern char** environ;

namespace opkit::acl {
namespace {

namespace fs = std::filesystem;

/// What an aclrtcProg points at.
struct Program {
  std::string name;
  std::string source;
  std::vector<std::pair<std::string, std::string>> headers;  ///< name, text
  std::vector<std::string> expressions;
  bool is_compiled = false;
  std::string library;  ///< the bytes of the compiled kernel library
  std::string log;
  std::map<std::string, std::string> linker_names;  ///< by expression
};

std::mutex programs_lock;

std::set<Program*>& programs() {
  static auto* all = new std::set<Program*>();
  return *all;
}

Program* find_program(aclrtcProg handle, const char* function, aclError* error) {
  auto* program = static_cast<Program*>(handle);
  if (programs().count(program) != 0) return program;
  *error = fail(ACL_ERROR_RTC_INVALID_PROG, function, "%p is no program, or was destroyed", handle);
  return nullptr;
}

/// A folder of its own, gone with this object.
struct Scratch {
  Scratch() {
    std::string pattern = (fs::temp_directory_path() / "opkit-rtc-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path = pattern;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
  fs::path path;
};

bool write_file(const fs::path& path, const std::string& text) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream file(path, std::ios::binary);
  file << text;
  return static_cast<bool>(file.flush());
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The first error of a log; all of it is in the log that the program can ask for.
std::string first_line(const std::string& log) {
  const std::string mark = "error: ";
  const size_t found = log.find(mark);
  const size_t begin = found == std::string::npos ? 0 : found + mark.size();
  return log.substr(begin, log.find('\n', begin) - begin);
}

/// Whether a header's name stays below the folder that it is written to.
bool is_inside(const std::string& name) {
  const fs::path path = fs::path(name).lexically_normal();
  return !name.empty() && path.is_relative() && *path.begin() != "..";
}

/// Starts a command in a folder, its output in a file there. Returns its exit code; -1 when it cannot be started.
int run_in(const fs::path& folder, const std::vector<std::string>& words, const fs::path& output) {
  // A shell changes the folder: posix_spawn has no portable way to. The words are its arguments, never its text.
  std::vector<std::string> all = {"sh", "-c", "cd \"$0\" && exec \"$@\"", folder.string()};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : all) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int failed = posix_spawn(&child, "/bin/sh", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Asks the finished library for the linker's names of what the expressions name.
aclError read_linker_names(Program& program, const fs::path& library) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard<std::recursive_mutex> guard(runtime.lock);
  aclError error = ACL_SUCCESS;
  Binary* binary = open_binary(runtime, library.c_str(), "aclrtcCompileProg", &error);
  if (binary == nullptr) return ACL_ERROR_RTC_LINKING;
  for (const std::string& expression : program.expressions) {
    const LibraryKernel* kernel = find_kernel(*binary->table, expression);
    if (kernel != nullptr) program.linker_names[expression] = linker_name(*kernel);
  }
  close_binary(runtime, binary);
  return ACL_SUCCESS;
}

aclError compile(Program& program, const std::vector<std::string>& options) {
  const char* function = "aclrtcCompileProg";
  const Scratch scratch;
  if (scratch.path.empty()) return fail(ACL_ERROR_RTC_FAILURE, function, "a scratch folder cannot be made");
  bool is_written = write_file(scratch.path / program.name, program.source);
  for (const auto& [name, text] : program.headers) is_written &= write_file(scratch.path / "include" / name, text);
  if (!is_written) return fail(ACL_ERROR_RTC_FAILURE, function, "%s cannot be written", scratch.path.c_str());
  std::vector<std::string> words = {"opkit", "cc", "--kernel-library", "-Iinclude"};
  words.insert(words.end(), options.begin(), options.end());
  for (const std::string& expression : program.expressions) words.push_back("--name-expression=" + expression);
  words.insert(words.end(), {"-x", "asc", program.name, "-o", "kernel_library.so"});
  const fs::path log = scratch.path / "log.txt";
  const int code = run_in(scratch.path, words, log);
  program.log = read_file(log);
  switch (code) {
    case 0: break;
    case 1: return fail(ACL_ERROR_RTC_COMPILATION, function, "%s", first_line(program.log).c_str());
    case 2: return fail(ACL_ERROR_RTC_INVALID_OPTION, function, "%s", first_line(program.log).c_str());
    case 127:
      return fail(ACL_ERROR_RTC_FAILURE, function,
                  "\"opkit\", which compiles, is not on PATH: eval \"$(opkit cc --env)\" puts it there");
    default:
      return fail(ACL_ERROR_RTC_FAILURE, function, "\"opkit cc\" exited with %d: %s", code,
                  first_line(program.log).c_str());
  }
  program.library = read_file(scratch.path / "kernel_library.so");
  if (const aclError error = read_linker_names(program, scratch.path / "kernel_library.so")) return error;
  program.is_compiled = true;
  return ACL_SUCCESS;
}

using ProgramsGuard = std::lock_guard<std::mutex>;

}  // namespace
}  // namespace opkit::acl

using namespace opkit::acl;

aclError aclrtcCreateProg(aclrtcProg* handle, const char* source, const char* name, int header_count,
                          const char** headers, const char** include_names) {
  const char* function = "aclrtcCreateProg";
  if (handle == nullptr || source == nullptr) {
    return fail(ACL_ERROR_RTC_INVALID_INPUT, function, "a pointer is null");
  }
  if (header_count < 0 || (header_count > 0 && (headers == nullptr || include_names == nullptr))) {
    return fail(ACL_ERROR_RTC_INVALID_INPUT, function, "%d headers, whose texts or names are null", header_count);
  }
  auto program = std::make_unique<Program>();
  program->source = source;
  // Only the last part, for it becomes a file's name.
  program->name = std::filesystem::path(name == nullptr ? "" : name).filename().string();
  if (program->name.empty() || program->name[0] == '-') program->name = "default_program";
  for (int i = 0; i < header_count; ++i) {
    if (headers[i] == nullptr || include_names[i] == nullptr || !is_inside(include_names[i])) {
      return fail(ACL_ERROR_RTC_INVALID_INPUT, function, "header %d has no text, or a name that is no relative path",
                  i);
    }
    program->headers.emplace_back(include_names[i], headers[i]);
  }
  const ProgramsGuard guard(programs_lock);
  programs().insert(program.get());
  *handle = program.release();
  return ACL_SUCCESS;
}

aclError aclrtcDestroyProg(aclrtcProg* handle) {
  const ProgramsGuard guard(programs_lock);
  aclError error = ACL_SUCCESS;
  if (handle == nullptr) return fail(ACL_ERROR_RTC_INVALID_PROG, "aclrtcDestroyProg", "the pointer is null");
  Program* program = find_program(*handle, "aclrtcDestroyProg", &error);
  if (program == nullptr) return error;
  programs().erase(program);
  delete program;
  *handle = nullptr;
  return ACL_SUCCESS;
}

aclError aclrtcAddNameExpr(aclrtcProg handle, const char* expression) {
  const ProgramsGuard guard(programs_lock);
  aclError error = ACL_SUCCESS;
  Program* program = find_program(handle, "aclrtcAddNameExpr", &error);
  if (program == nullptr) return error;
  if (expression == nullptr || *expression == 0) {
    return fail(ACL_ERROR_RTC_INVALID_INPUT, "aclrtcAddNameExpr", "the expression is empty");
  }
  if (program->is_compiled) {
    return fail(ACL_ERROR_RTC_NO_NAME_EXPR_AFTER_COMPILATION, "aclrtcAddNameExpr",
                "\"%s\" comes after aclrtcCompileProg", expression);
  }
  program->expressions.emplace_back(expression);
  return ACL_SUCCESS;
}

aclError aclrtcCompileProg(aclrtcProg handle, int option_count, const char** options) {
  const ProgramsGuard guard(programs_lock);
  aclError error = ACL_SUCCESS;
  Program* program = find_program(handle, "aclrtcCompileProg", &error);
  if (program == nullptr) return error;
  std::vector<std::string> words;
  for (int i = 0; i < option_count; ++i) {
    if (options == nullptr || options[i] == nullptr) {
      return fail(ACL_ERROR_RTC_INVALID_INPUT, "aclrtcCompileProg", "option %d is null", i);
    }
    words.emplace_back(options[i]);
  }
  return compile(*program, words);
}

aclError aclrtcGetBinDataSize(aclrtcProg handle, size_t* size) {
  const ProgramsGuard guard(programs_lock);
  aclError error = ACL_SUCCESS;
  Program* program = find_program(handle, "aclrtcGetBinDataSize", &error);
  if (program == nullptr) return error;
  if (size == nullptr || !program->is_compiled) {
    return fail(ACL_ERROR_RTC_INVALID_INPUT, "aclrtcGetBinDataSize",
                size == nullptr ? "the pointer is null" : "the program is not compiled");
  }
  *size = program->library.size();
  return ACL_SUCCESS;
}

aclError aclrtcGetBinData(aclrtcProg handle, char* data) {
  const ProgramsGuard guard(programs_lock);
  aclError error = ACL_SUCCESS;
  Program* program = find_program(handle, "aclrtcGetBinData", &error);
  if (program == nullptr) return error;
  if (data == nullptr || !program->is_compiled) {
    return fail(ACL_ERROR_RTC_INVALID_INPUT, "aclrtcGetBinData",
                data == nullptr ? "the pointer is null" : "the program is not compiled");
  }
  std::memcpy(data, program->library.data(), program->library.size());
  return ACL_SUCCESS;
}

aclError aclrtcGetLoweredName(aclrtcProg handle, const char* expression, const char** name) {
  const ProgramsGuard guard(programs_lock);
  aclError error = ACL_SUCCESS;
  Program* program = find_program(handle, "aclrtcGetLoweredName", &error);
  if (program == nullptr) return error;
  if (expression == nullptr || name == nullptr) {
    return fail(ACL_ERROR_RTC_INVALID_INPUT, "aclrtcGetLoweredName", "a pointer is null");
  }
  if (!program->is_compiled) {
    return fail(ACL_ERROR_RTC_NO_LOWERED_NAMES_BEFORE_COMPILATION, "aclrtcGetLoweredName",
                "the program is not compiled");
  }
  const auto found = program->linker_names.find(expression);
  if (found == program->linker_names.end()) {
    return fail(ACL_ERROR_RTC_NAME_EXPR_NOT_VALID, "aclrtcGetLoweredName",
                "\"%s\" was not registered by aclrtcAddNameExpr", expression);
  }
  *name = found->second.c_str();
  return ACL_SUCCESS;
}

aclError aclrtcGetCompileLogSize(aclrtcProg handle, size_t* size) {
  const ProgramsGuard guard(programs_lock);
  aclError error = ACL_SUCCESS;
  Program* program = find_program(handle, "aclrtcGetCompileLogSize", &error);
  if (program == nullptr) return error;
  if (size == nullptr) return fail(ACL_ERROR_RTC_INVALID_INPUT, "aclrtcGetCompileLogSize", "the pointer is null");
  *size = program->log.size() + 1;
  return ACL_SUCCESS;
}

aclError aclrtcGetCompileLog(aclrtcProg handle, char* log) {
  const ProgramsGuard guard(programs_lock);
  aclError error = ACL_SUCCESS;
  Program* program = find_program(handle, "aclrtcGetCompileLog", &error);
  if (program == nullptr) return error;
  if (log == nullptr) return fail(ACL_ERROR_RTC_INVALID_INPUT, "aclrtcGetCompileLog", "the pointer is null");
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return ACL_SUCCESS;
}
