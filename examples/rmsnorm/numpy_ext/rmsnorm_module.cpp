// rmsnorm for NumPy: arrays in, arrays out.
#include "opkit/extension/numpy.h"

namespace {

using namespace opkit::extension;

py::object call_rmsnorm(const py::object& in_x, const py::object& in_gamma, double attr_epsilon) {
  Inputs inputs;
  inputs.add("x", in_x, false, true);
  inputs.add("gamma", in_gamma, false, true);
  Attributes attributes;
  attributes.add("epsilon", attr_epsilon);
  return run("Rmsnorm", inputs, attributes, {false});
}

py::object call_rmsnorm_grad(const py::object& in_grad_y, const py::object& in_x, const py::object& in_gamma, double attr_epsilon) {
  Inputs inputs;
  inputs.add("grad_y", in_grad_y, false, true);
  inputs.add("x", in_x, false, true);
  inputs.add("gamma", in_gamma, false, true);
  Attributes attributes;
  attributes.add("epsilon", attr_epsilon);
  return run("RmsnormGrad", inputs, attributes, {false, false});
}

}  // namespace

PYBIND11_MODULE(_numpy, module) {
  module.doc() = "Operators of rmsnorm on NumPy arrays: inputs, then attributes.";
  module.def("rmsnorm", &call_rmsnorm, py::arg("x"), py::arg("gamma"), py::arg("epsilon"));
  module.def("rmsnorm_grad", &call_rmsnorm_grad, py::arg("grad_y"), py::arg("x"), py::arg("gamma"), py::arg("epsilon"));
}
