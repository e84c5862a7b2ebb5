// Writing out the artifact folders that programs carry inside.
#include "aclnn/packed.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>

namespace opkit::aclnn {
namespace {

namespace fs = std::filesystem;

/// The folders of this process.
class Unpacked {
 public:
  ~Unpacked() {
    // A child of fork() ends too; the folders are its parent's.
    if (getpid() != owner_) return;
    std::error_code ignored;
    for (const auto& [folder, path] : paths_) fs::remove_all(path, ignored);
  }

  std::string path_of(const PackedFolder& folder, std::string* reason) {
    const std::lock_guard<std::mutex> guard(lock_);
    const auto found = paths_.find(&folder);
    if (found != paths_.end()) return found->second;
    std::error_code error;
    std::string path = (fs::temp_directory_path(error) / "opkit-operators-XXXXXX").string();
    if (error || mkdtemp(path.data()) == nullptr) {
      *reason = "the operators that this program carries cannot be written to " + path + ": " +
                (error ? error.message() : std::strerror(errno)) + "; set TMPDIR to a folder of yours";
      return "";
    }
    paths_[&folder] = path;
    for (size_t i = 0; i < folder.count; ++i) {
      const PackedFile& packed = folder.files[i];
      const fs::path place = fs::path(path) / packed.name;
      std::ofstream file(place, std::ios::binary);
      file.write(packed.begin, packed.end - packed.begin);
      if (!file.flush()) {
        *reason = place.string() + " cannot be written: is the disk full?";
        fs::remove_all(path, error);
        paths_.erase(&folder);
        return "";
      }
    }
    return path;
  }

 private:
  const pid_t owner_ = getpid();
  std::mutex lock_;
  std::map<const PackedFolder*, std::string> paths_;
};

}  // namespace

std::string unpacked(const PackedFolder& folder, std::string* reason) {
  static Unpacked all;
  return all.path_of(folder, reason);
}

}  // namespace opkit::aclnn
