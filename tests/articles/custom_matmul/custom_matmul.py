# custom_matmul.py
import torch
import torch_npu
import ctypes
from typing import Tuple


class CustomMatMulFunction(torch.autograd.Function):
    """自定义矩阵乘法Function"""

    @staticmethod
    def forward(ctx, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        assert a.dim() == 2, "输入a必须是2维矩阵"
        assert b.dim() == 2, "输入b必须是2维矩阵"
        assert a.size(1) == b.size(0), "矩阵维度不匹配"

        M, K = a.size()
        K, N = b.size()
        c = torch.empty(M, N, dtype=a.dtype, device=a.device)

        if a.device.type == 'npu':
            CustomMatMulFunction._npu_forward(a, b, c)
        else:
            c = torch.mm(a, b)

        ctx.save_for_backward(a, b)
        return c

    @staticmethod
    def backward(ctx, grad_output: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        a, b = ctx.saved_tensors

        if a.device.type == 'npu':
            grad_a = torch.empty_like(a)
            grad_b = torch.empty_like(b)
            CustomMatMulFunction._npu_backward(grad_output, a, b, grad_a, grad_b)
        else:
            grad_a = torch.mm(grad_output, b.t())
            grad_b = torch.mm(a.t(), grad_output)

        return grad_a, grad_b

    @staticmethod
    def _npu_forward(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor):
        """NPU前向实现"""
        lib_path = "/usr/local/Ascend/ascend-toolkit/7.0.RC1/lib64/libascend_custom_ops.so"
        lib = ctypes.CDLL(lib_path)

        func = lib.custom_matmul_forward
        func.argtypes = [
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_int64,
            ctypes.c_int64,
            ctypes.c_int64,
            ctypes.c_int
        ]

        M, K = a.size()
        _, N = b.size()

        func(
            a.data_ptr(), b.data_ptr(), c.data_ptr(),
            M, K, N,
            0 if a.dtype == torch.float32 else 1
        )

    @staticmethod
    def _npu_backward(grad_out: torch.Tensor, a: torch.Tensor, b: torch.Tensor,
                      grad_a: torch.Tensor, grad_b: torch.Tensor):
        """NPU反向实现"""
        pass


class CustomMatMul(torch.nn.Module):
    """自定义矩阵乘法模块"""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return CustomMatMulFunction.apply(a, b)


if __name__ == "__main__":
    device = torch.device("npu" if torch.npu.is_available() else "cpu")
    print(f"Using device: {device}")

    M, K, N = 1024, 512, 256
    a = torch.randn(M, K, dtype=torch.float32, device=device)
    b = torch.randn(K, N, dtype=torch.float32, device=device)

    custom_matmul = CustomMatMul()

    with torch.no_grad():
        c_custom = custom_matmul(a, b)
        c_ref = torch.mm(a, b)

    error = torch.max(torch.abs(c_custom - c_ref)).item()
    print(f"最大误差: {error:.6f}")
    print(f"结果形状: {c_custom.shape}")

    import time
    times = []
    for _ in range(100):
        start = time.time()
        _ = custom_matmul(a, b)
        torch.npu.synchronize()
        times.append(time.time() - start)

    avg_time = sum(times) / len(times) * 1000
    print(f"平均执行时间: {avg_time:.3f} ms")
    print(f"吞吐量: {M * K * N * 2 / (avg_time * 1e-3) / 1e9:.2f} GFLOPS")
