/// What a model file says is to be done: kernels launched over buffers.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "opkit/model/array.h"
#include "opkit/model/json.h"

namespace opkit::model {

/// An input, output or constant.
struct Tensor {
  std::string name;
  Shape shape;
  std::string dtype;
  uint64_t size_bytes = 0;
  uint64_t rows = 0;  ///< of the table that an input's elements are indices of; 0: they are none
};

/// Bytes of a buffer, or a value.
struct Argument {
  enum class Space { Input, Output, Constant, Arena, Value };
  Space space = Space::Value;
  size_t index = 0;
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
  std::string value;
};

struct Launch {
  size_t kernel;
  uint32_t block_dim;
  std::vector<Argument> arguments;
};

struct Copy {
  Argument source, target;
};

/// Throws std::runtime_error where a launch would leave its buffers.
class Plan {
  static constexpr uint64_t kMostBlocks = 65535;  // what a launch takes

 public:
  explicit Plan(const Json& document)
      : inputs(tensors(document["inputs"])),
        outputs(tensors(document["outputs"])),
        constants(tensors(document["constants"])),
        arena_bytes(document["arena_bytes"].size()) {
    const size_t kernels = document["kernels"].items().size();
    for (const Json& row : document["launches"].items()) {
      const uint64_t kernel = row["kernel"].size(), blocks = row["block_dim"].size();
      if (kernel >= kernels) throw std::runtime_error("it launches no kernel of its own");
      if (blocks == 0 || blocks > kMostBlocks) {
        throw std::runtime_error("it launches a kernel with " + std::to_string(blocks) + " blocks");
      }
      Launch launch{kernel, static_cast<uint32_t>(blocks), {}};
      for (const Json& argument : row["arguments"].items()) launch.arguments.push_back(argument_of(argument));
      launches.push_back(std::move(launch));
    }
    for (const Json& row : document["copies"].items()) {
      if (row.items().size() != 2) throw std::runtime_error("it copies from nowhere");
      Copy copy{argument_of(row.items()[0]), argument_of(row.items()[1])};
      const bool is_value = copy.source.space == Argument::Space::Value;
      const uint64_t size = is_value ? copy.source.value.size() : copy.source.size_bytes;
      if (copy.target.space == Argument::Space::Value || size != copy.target.size_bytes) {
        throw std::runtime_error("it copies between places of different sizes");
      }
      copies.push_back(std::move(copy));
    }
  }

  std::vector<Tensor> inputs, outputs, constants;
  uint64_t arena_bytes;
  std::vector<Launch> launches;
  std::vector<Copy> copies;

 private:
  static std::vector<Tensor> tensors(const Json& rows) {
    std::vector<Tensor> found;
    for (const Json& row : rows.items()) {
      Tensor made{row["name"].text(), {}, row["dtype"].text(), row["size_bytes"].size(), 0};
      for (const Json& extent : row["shape"].items()) made.shape.push_back(static_cast<int64_t>(extent.size()));
      if (size_of(made.dtype) == 0 || count_of(made.shape) * size_of(made.dtype) != made.size_bytes) {
        throw std::runtime_error(made.name + " has another size than its shape says");
      }
      found.push_back(std::move(made));
    }
    return found;
  }

  Argument argument_of(const Json& row) const {
    Argument made;
    if (row.is_text()) {
      const std::string& digits = row.text();
      if (digits.size() % 2 != 0 || digits.find_first_not_of("0123456789abcdef") != std::string::npos) {
        throw std::runtime_error("a value is not written in hexadecimal digits");
      }
      for (size_t at = 0; at < digits.size(); at += 2) {
        made.value += static_cast<char>(std::stoi(digits.substr(at, 2), nullptr, 16));
      }
      return made;
    }
    const std::vector<Json>& fields = row.items();
    if (fields.size() != 4) throw std::runtime_error("a place has not four fields");
    const std::array<const char*, 4> names{"input", "output", "constant", "arena"};
    size_t space = 0;
    while (space < names.size() && fields[0].text() != names[space]) ++space;
    if (space == names.size()) throw std::runtime_error("there is no memory \"" + fields[0].text() + "\"");
    made.space = static_cast<Argument::Space>(space);
    made.index = fields[1].size();
    made.offset = fields[2].size();
    made.size_bytes = fields[3].size();
    uint64_t room = 0;
    if (made.space == Argument::Space::Arena) {
      if (made.index == 0) room = arena_bytes;
    } else {
      const auto& group = space == 0 ? inputs : space == 1 ? outputs : constants;
      if (made.index < group.size()) room = group[made.index].size_bytes;
    }
    if (made.offset > room || made.size_bytes > room - made.offset) {
      throw std::runtime_error("it reaches beyond its " + fields[0].text() + " " + std::to_string(made.index));
    }
    return made;
  }
};

}  // namespace opkit::model
