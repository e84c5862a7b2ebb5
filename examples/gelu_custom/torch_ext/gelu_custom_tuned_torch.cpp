// The tuned kernel for PyTorch, beside the generated operators: torch.ops.gelu_custom_tuned.gelu_custom_tuned.
#include "opkit/extension/torch.h"

namespace {

using namespace opkit::extension;

Tensor call_gelu_custom_tuned(Tensor x) {
  Inputs inputs;
  inputs.add("x", x);
  return run("GELUCustomTuned", inputs, Attributes(), 1, 0).one();
}

}  // namespace

STABLE_TORCH_LIBRARY(gelu_custom_tuned, library) {
  library.def("gelu_custom_tuned(Tensor x) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(gelu_custom_tuned, CPU, library) {
  library.impl("gelu_custom_tuned", TORCH_BOX(&call_gelu_custom_tuned));
}
