// gelu_extension.cpp
#include <torch/extension.h>
#include <torch_npu/npu_functions.h>
#include <op_plugin/AclOpsInterface.h>
#include <op_plugin/OpApiInterface.h>

namespace op_api {
using npu_preparation = at_npu::native::OpPreparation;

// Not in the article, which uses the function before it is there.
at::Tensor gelu_custom_backward(const at::Tensor& grad_y, const at::Tensor& x);

at::Tensor gelu_custom(const at::Tensor& x) {
    TORCH_CHECK(x.is_npu(), "gelu_custom: input must be NPU tensor");
    TORCH_CHECK(x.scalar_type() == at::kHalf,
                "gelu_custom: only support FP16 for now");

    at::Tensor y = npu_preparation::apply_tensor(x);

    int64_t numel = x.numel();

    EXEC_NPU_CMD(aclnnGeluCustom, x, y);

    return y;
}

class GeluCustomFunction : public torch::autograd::Function<GeluCustomFunction> {
public:
    static at::Tensor forward(
        torch::autograd::AutogradContext* ctx,
        const at::Tensor& x) {
        ctx->save_for_backward({x});
        return gelu_custom(x);
    }

    static torch::autograd::tensor_list backward(
        torch::autograd::AutogradContext* ctx,
        torch::autograd::tensor_list grad_outputs) {
        auto saved = ctx->get_saved_variables();
        auto x = saved[0];
        auto grad_y = grad_outputs[0];

        at::Tensor grad_x = gelu_custom_backward(grad_y, x);
        return {grad_x};
    }
};

at::Tensor gelu_custom_backward(const at::Tensor& grad_y, const at::Tensor& x) {
    at::Tensor grad_x = npu_preparation::apply_tensor(x);
    EXEC_NPU_CMD(aclnnGeluCustomBackward, grad_y, x, grad_x);
    return grad_x;
}

} // namespace op_api

TORCH_LIBRARY_FRAGMENT(op_api, m) {
    m.def("gelu_custom(Tensor x) -> Tensor");
    m.impl("gelu_custom", c10::DispatchKey::NPU, op_api::gelu_custom);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("gelu_custom", &op_api::gelu_custom, "Custom GELU activation");
    m.def("gelu_custom_backward", &op_api::gelu_custom_backward,
          "Gradient of custom GELU");

    py::class_<op_api::GeluCustomFunction>(m, "GeluCustomFunction")
        // The article passes &GeluCustomFunction::apply, which is a template: no compiler can choose an instance.
        .def_static("apply", [](const at::Tensor& x) { return op_api::GeluCustomFunction::apply(x); });
}
