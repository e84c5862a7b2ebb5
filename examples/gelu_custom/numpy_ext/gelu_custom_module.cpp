// gelu_custom for NumPy: arrays in, arrays out.
#include "opkit/extension/numpy.h"

namespace {

using namespace opkit::extension;

py::object call_gelu_custom(const py::object& in_x) {
  Inputs inputs;
  inputs.add("x", in_x, false, false);
  Attributes attributes;
  return run("GELUCustom", inputs, attributes, {false});
}

py::object call_gelu_custom_grad(const py::object& in_grad_y, const py::object& in_x) {
  Inputs inputs;
  inputs.add("grad_y", in_grad_y, false, false);
  inputs.add("x", in_x, false, false);
  Attributes attributes;
  return run("GELUCustomGrad", inputs, attributes, {false});
}

}  // namespace

PYBIND11_MODULE(_numpy, module) {
  module.doc() = "Operators of gelu_custom on NumPy arrays: inputs, then attributes.";
  module.def("gelu_custom", &call_gelu_custom, py::arg("x"));
  module.def("gelu_custom_grad", &call_gelu_custom_grad, py::arg("grad_y"), py::arg("x"));
}
