// gelu_custom for PyTorch. Fake tensors and gradients are registered in Python: gelu_custom/_torch.py.
#include "opkit/extension/torch.h"

namespace {

using namespace opkit::extension;

Tensor call_gelu_custom(Tensor in_x) {
  Inputs inputs;
  inputs.add("x", in_x);
  Attributes attributes;
  Results results = run("GELUCustom", inputs, attributes, 1, 0);
  return results.one();
}

Tensor call_gelu_custom_grad(Tensor in_grad_y, Tensor in_x) {
  Inputs inputs;
  inputs.add("grad_y", in_grad_y);
  inputs.add("x", in_x);
  Attributes attributes;
  Results results = run("GELUCustomGrad", inputs, attributes, 1, 0);
  return results.one();
}

}  // namespace

STABLE_TORCH_LIBRARY(gelu_custom, library) {
  library.def("gelu_custom(Tensor x) -> Tensor");
  library.def("gelu_custom_grad(Tensor grad_y, Tensor x) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(gelu_custom, CPU, library) {
  library.impl("gelu_custom", TORCH_BOX(&call_gelu_custom));
  library.impl("gelu_custom_grad", TORCH_BOX(&call_gelu_custom_grad));
}
