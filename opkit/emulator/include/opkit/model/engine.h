/// Model files of opkit.graph, run by C++ programs that link libopkit_emulator.so: no Python, no torch.
///
///     opkit::model::Engine engine("model.opkit");
///     auto context = engine.create_context();
///     std::vector<opkit::model::Array> results = context.run({{"x", opkit::model::Array::of({2, 8}, values)}});
///
/// A model file holds machine code: open only those that you would also run as programs. Wrong input is
/// std::invalid_argument; a damaged or foreign file, and a kernel that faults, std::runtime_error.
#pragma once

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "opkit/direct_launch.h"
#include "opkit/kernel_call.h"
#include "opkit/model/archive.h"
#include "opkit/model/array.h"
#include "opkit/model/digest.h"
#include "opkit/model/json.h"
#include "opkit/model/plan.h"

namespace opkit::model {

/// A model's plan, kernels and weights.
struct Loaded {
  Plan plan;
  std::vector<const opkit_kernel*> kernels;
  std::vector<std::vector<char>> constants;
};

/// Runs of one model, one after the other; each thread has its own, and those of an engine run side by side.
class Context {
 public:
  explicit Context(std::shared_ptr<const Loaded> model)
      : model_(std::move(model)), arena_(room_for(model_->plan.arena_bytes)) {}

  /// Returns the outputs. Fractions are converted to what the model reads, as are whole numbers that fit.
  std::vector<Array> run(const std::map<std::string, Array>& inputs) {
    const std::vector<Tensor>& wanted = model_->plan.inputs;
    std::vector<Array> given;
    for (const Tensor& each : wanted) {
      const auto found = inputs.find(each.name);
      if (found == inputs.end()) throw std::invalid_argument("the input \"" + each.name + "\" is missing");
      given.push_back(found->second);
    }
    if (inputs.size() != wanted.size()) throw std::invalid_argument("there are inputs that the model does not take");
    return run(given);
  }

  /// The same, with the inputs in the model's order.
  std::vector<Array> run(const std::vector<Array>& inputs) {
    const Plan& plan = model_->plan;
    if (inputs.size() != plan.inputs.size()) {
      throw std::invalid_argument("the model takes " + std::to_string(plan.inputs.size()) + " inputs, not " +
                                  std::to_string(inputs.size()));
    }
    std::vector<Array> given, results;
    for (size_t i = 0; i < inputs.size(); ++i) given.push_back(converted(plan.inputs[i], inputs[i]));
    for (const Tensor& each : plan.outputs) {
      results.push_back({each.shape, each.dtype, room_for(each.size_bytes)});
    }
    const auto place = [&](const Argument& argument) -> char* {
      char* base = arena_.data();
      if (argument.space == Argument::Space::Input) base = given[argument.index].bytes.data();
      if (argument.space == Argument::Space::Output) base = results[argument.index].bytes.data();
      if (argument.space == Argument::Space::Constant) {
        base = const_cast<char*>(model_->constants[argument.index].data());
      }
      return base + argument.offset;
    };
    for (const Launch& launch : plan.launches) {
      std::vector<opkit_kernel_argument> arguments;
      for (const Argument& each : launch.arguments) {
        if (each.space == Argument::Space::Value) {
          arguments.push_back({const_cast<char*>(each.value.data()), each.value.size(), 1});
        } else {
          arguments.push_back({place(each), each.size_bytes, 0});
        }
      }
      const auto* kernel = model_->kernels[launch.kernel];
      if (opkit_kernel_launch(kernel, arguments.data(), arguments.size(), launch.block_dim, 0) != OPKIT_OK) {
        throw std::runtime_error(opkit_last_error());
      }
    }
    for (const Copy& copy : plan.copies) {
      const bool is_value = copy.source.space == Argument::Space::Value;
      std::memcpy(place(copy.target), is_value ? copy.source.value.data() : place(copy.source), copy.target.size_bytes);
    }
    return results;
  }

 private:
  /// Zeros; a file may ask for more than there is.
  static std::vector<char> room_for(uint64_t bytes) {
    try {
      return std::vector<char>(bytes);
    } catch (const std::exception&) {
      throw std::runtime_error("the model needs " + std::to_string(bytes) + " bytes at once, which there are not");
    }
  }

  static Array converted(const Tensor& wanted, const Array& value) {
    const std::string name = "\"" + wanted.name + "\"";
    if (value.shape != wanted.shape) throw std::invalid_argument(name + " has another shape than the model's");
    if (value.bytes.size() != count_of(value.shape) * size_of(value.dtype)) {
      throw std::invalid_argument(name + " has other bytes than its shape says");
    }
    if (wanted.dtype.find("float") != std::string::npos) {
      if (value.dtype.find("float") == std::string::npos) throw std::invalid_argument(name + " takes fractions");
      return value.as(wanted.dtype);
    }
    Array made = value;
    if (value.dtype == "int64" && wanted.dtype == "int32") {
      made.dtype = wanted.dtype;
      made.bytes.resize(wanted.size_bytes);
      for (size_t i = 0; i < count_of(value.shape); ++i) {
        const int64_t number = value.data<int64_t>()[i];
        if (number != static_cast<int32_t>(number)) throw std::invalid_argument(name + " takes numbers of 32 bits");
        reinterpret_cast<int32_t*>(made.bytes.data())[i] = static_cast<int32_t>(number);
      }
    } else if (wanted.dtype == "bool" && value.dtype == "uint8") {
      made.dtype = wanted.dtype;
    }
    if (made.dtype != wanted.dtype) throw std::invalid_argument(name + " has " + value.dtype + ", not " + wanted.dtype);
    if (wanted.rows != 0 && wanted.dtype == "int32") {
      for (size_t i = 0; i < count_of(made.shape); ++i) {
        const int32_t place = made.data<int32_t>()[i];
        if (place < 0 || static_cast<uint64_t>(place) >= wanted.rows) {
          throw std::invalid_argument(name + " holds " + std::to_string(place) + ", an index of " +
                                      std::to_string(wanted.rows) + " rows");
        }
      }
    }
    return made;
  }

  std::shared_ptr<const Loaded> model_;
  std::vector<char> arena_;
};

/// A model file, loaded: kernels and weights, shared by all contexts.
class Engine {
 public:
  /// Loads what `Model.save` wrote. The device is to be the chip that the model was built for.
  explicit Engine(const std::string& path) {
    std::string bytes = bytes_of(path);
    try {
      load(Archive(std::move(bytes)));
    } catch (const std::exception& error) {
      throw std::runtime_error(path + " is no model file that runs here: " + error.what());
    }
  }

  const std::vector<Tensor>& inputs() const { return model_->plan.inputs; }
  const std::vector<Tensor>& outputs() const { return model_->plan.outputs; }
  Context create_context() const { return Context(model_); }

 private:
  static constexpr int64_t kVersion = 1;

  /// Files that are there while the kernels are loaded from them.
  class Folder {
   public:
    Folder() : path_((std::filesystem::temp_directory_path() / "opkit_model_XXXXXX").string()) {
      if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error(path_ + " cannot be made");
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path_, ignored);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    std::string write(const std::string& name, const std::string& bytes) const {
      const std::string file = path_ + "/" + name;
      std::ofstream out(file, std::ios::binary);
      if (!out.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush()) {
        throw std::runtime_error(file + " cannot be written");
      }
      return file;
    }

   private:
    std::string path_;
  };

  void load(const Archive& archive) {
    const Json document = Json::parse(archive["model.json"]);
    if (document["format"].text() != "opkit model") throw std::runtime_error("it describes no model of opkit's");
    if (document["version"].whole() != kVersion) {
      throw std::runtime_error("it has another version of the format than " + std::to_string(kVersion) +
                               ": build the model again");
    }
    const auto member_of = [&](const std::string& name) -> const std::string& {
      const std::string& bytes = archive[name];
      if (document["sha256"][name].text() != sha256_of(bytes))
        throw std::runtime_error(name + " is not what was written");
      return bytes;
    };
    const std::string& chip = document["chip"].text();
    if (chip != opkit_chip_name()) {
      throw std::runtime_error("it was built for the " + chip + ", and the device is an " + opkit_chip_name());
    }
    Loaded made{Plan(document["plan"]), {}, {}};
    name_inputs(made.plan, document["inputs"]);
    read_constants(made, member_of("weights.safetensors"));
    const Folder folder;
    for (const Json& row : document["plan"]["kernels"].items()) {
      const std::string& member = row["file"].text();
      const std::string name = member.substr(member.find('/') + 1);
      if (name.empty() || name.find('/') != std::string::npos)
        throw std::runtime_error(member + " is no kernel's file");
      opkit_kernel* kernel = nullptr;
      const std::string file = folder.write(name, member_of(member));
      if (opkit_kernel_open(file.c_str(), row["name"].text().c_str(), &kernel) != OPKIT_OK) {
        throw std::runtime_error(opkit_last_error());
      }
      made.kernels.push_back(kernel);
    }
    model_ = std::make_shared<const Loaded>(std::move(made));
  }

  static void name_inputs(Plan& plan, const Json& rows) {
    if (rows.items().size() != plan.inputs.size()) throw std::runtime_error("its inputs are not those of its plan");
    for (size_t i = 0; i < plan.inputs.size(); ++i) {
      plan.inputs[i].name = rows.items()[i]["name"].text();
      plan.inputs[i].rows = rows.items()[i]["rows"].size();
    }
  }

  /// Source of the layout: the safetensors project's description of its format.
  static void read_constants(Loaded& model, const std::string& bytes) {
    uint64_t head = 0;
    if (bytes.size() < sizeof(head)) throw std::runtime_error("its weights end too early");
    std::memcpy(&head, bytes.data(), sizeof(head));
    if (head > bytes.size() - sizeof(head)) throw std::runtime_error("its weights end too early");
    const Json names = Json::parse(bytes.substr(sizeof(head), head));
    const uint64_t begin = sizeof(head) + head;
    for (size_t i = 0; i < model.plan.constants.size(); ++i) {
      const std::vector<Json>& ends = names["c" + std::to_string(i)]["data_offsets"].items();
      if (ends.size() != 2) throw std::runtime_error("a weight lies nowhere");
      const uint64_t first = ends[0].size(), last = ends[1].size();
      if (first > last || last > bytes.size() - begin || last - first != model.plan.constants[i].size_bytes) {
        throw std::runtime_error("the weight " + model.plan.constants[i].name + " has another size");
      }
      const char* data = bytes.data() + begin;
      model.constants.emplace_back(data + first, data + last);
    }
  }

  std::shared_ptr<const Loaded> model_;
};

}  // namespace opkit::model
