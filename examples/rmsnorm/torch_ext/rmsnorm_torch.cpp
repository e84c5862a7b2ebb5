// rmsnorm for PyTorch. Fake tensors and gradients are registered in Python: rmsnorm/_torch.py.
#include "opkit/extension/torch.h"

namespace {

using namespace opkit::extension;

Tensor call_rmsnorm(Tensor in_x, Tensor in_gamma, double attr_epsilon) {
  Inputs inputs;
  inputs.add("x", in_x);
  inputs.add("gamma", in_gamma);
  Attributes attributes;
  attributes.add("epsilon", attr_epsilon);
  Results results = run("Rmsnorm", inputs, attributes, 1, 0);
  return results.one();
}

std::tuple<Tensor, Tensor> call_rmsnorm_grad(Tensor in_grad_y, Tensor in_x, Tensor in_gamma, double attr_epsilon) {
  Inputs inputs;
  inputs.add("grad_y", in_grad_y);
  inputs.add("x", in_x);
  inputs.add("gamma", in_gamma);
  Attributes attributes;
  attributes.add("epsilon", attr_epsilon);
  Results results = run("RmsnormGrad", inputs, attributes, 2, 0);
  return {results.one(), results.one()};
}

}  // namespace

STABLE_TORCH_LIBRARY(rmsnorm, library) {
  library.def("rmsnorm(Tensor x, Tensor gamma, float epsilon=1e-06) -> Tensor");
  library.def("rmsnorm_grad(Tensor grad_y, Tensor x, Tensor gamma, float epsilon=1e-06) -> (Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(rmsnorm, CPU, library) {
  library.impl("rmsnorm", TORCH_BOX(&call_rmsnorm));
  library.impl("rmsnorm_grad", TORCH_BOX(&call_rmsnorm_grad));
}
