// Kernels of compiled images: launched on arrays, or on memory that somebody else owns.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <vector>

#include "bindings.h"
#include "core/launch.h"
#include "host/launch_run.h"
#include "opkit/kernel_call.h"

namespace py = pybind11;

namespace opkit {
namespace {

/// Arguments in the C form; keeps the objects whose memory they point at.
class Arguments {
 public:
  explicit Arguments(const py::sequence& values) {
    const size_t count = py::len(values);
    arguments_.reserve(count);
    kept_.reserve(count);
    for (const py::handle value : values) add(value);
  }

  const opkit_kernel_argument* data() const { return arguments_.data(); }
  size_t size() const { return arguments_.size(); }

 private:
  void add(py::handle value) {
    if (value.is_none()) {
      arguments_.push_back({nullptr, 0, 0});
    } else if (PyBytes_Check(value.ptr())) {
      const auto size = static_cast<uint64_t>(PyBytes_GET_SIZE(value.ptr()));
      arguments_.push_back({PyBytes_AS_STRING(value.ptr()), size, 1});
      kept_.push_back(py::reinterpret_borrow<py::object>(value));
    } else if (PyTuple_Check(value.ptr())) {
      const auto place = value.cast<std::pair<uint64_t, uint64_t>>();
      arguments_.push_back({reinterpret_cast<void*>(place.first), place.second, 0});
    } else {
      const auto array = py::reinterpret_borrow<py::object>(value).cast<py::array>();
      if ((array.flags() & py::array::c_style) == 0) raise_usage("arguments must be C-contiguous arrays");
      arguments_.push_back({const_cast<void*>(array.data()), static_cast<uint64_t>(array.nbytes()), 0});
      kept_.push_back(array);
    }
  }

  std::vector<opkit_kernel_argument> arguments_;
  std::vector<py::object> kept_;
};

class Kernel {
 public:
  Kernel(const std::string& file, const std::optional<std::string>& name) {
    opkit_status status;
    {
      const py::gil_scoped_release release;
      status = opkit_kernel_open(file.c_str(), name ? name->c_str() : nullptr, &kernel_);
    }
    check_status(status);
  }

  uint64_t launch(const py::sequence& values, uint32_t block_dim, uint64_t tiling_key) const {
    const Arguments arguments(values);
    opkit_status status;
    {
      const py::gil_scoped_release release;
      status = opkit_kernel_launch(kernel_, arguments.data(), arguments.size(), block_dim, tiling_key);
    }
    check_status(status);
    return host::last_instruction_count();
  }

 private:
  opkit_kernel* kernel_ = nullptr;
};

std::string describe_kernels(const std::string& file) {
  const char* text = "";
  check_status(opkit_kernel_describe(file.c_str(), &text));
  return text;
}

}  // namespace

void bind_kernel(py::module_& module) {
  py::class_<Kernel>(module, "Kernel", "One kernel of a shared object.")
      .def(py::init<const std::string&, const std::optional<std::string>&>(), py::arg("file"),
           py::arg("name") = py::none())
      .def("launch", &Kernel::launch, py::arg("arguments"), py::arg("block_dim"), py::arg("tiling_key") = 0,
           "Run it and return the number of instructions. Arrays are global memory, as are pairs of an address and a "
           "size in bytes; bytes are values; None is a null address.");
  module.def("describe_kernels", &describe_kernels, py::arg("file"),
             "Return what a shared object says of its kernels, as JSON.");
}

}  // namespace opkit
