# test_gelu.py
import torch
import torch_npu
import gelu_extension


def test_gelu_custom():
    device = torch.device("npu:0")
    x = torch.randn(2, 512, 1024, dtype=torch.float16, device=device)

    y1 = gelu_extension.gelu_custom(x)

    y2 = gelu_extension.GeluCustomFunction.apply(x)

    y3 = torch.ops.op_api.gelu_custom(x)

    y_ref = torch.nn.functional.gelu(x.cpu()).to(device)
    print(f"Direct call error: {torch.max(torch.abs(y1 - y_ref)).item():.6f}")
    print(f"Autograd error: {torch.max(torch.abs(y2 - y_ref)).item():.6f}")
    print(f"Torch ops error: {torch.max(torch.abs(y3 - y_ref)).item():.6f}")

    import time
    torch.npu.synchronize()
    start = time.time()
    for _ in range(100):
        _ = gelu_extension.gelu_custom(x)
    torch.npu.synchronize()
    elapsed = time.time() - start
    print(f"Average latency: {elapsed * 1000 / 100:.3f} ms")

    start = time.time()
    for _ in range(100):
        _ = torch.nn.functional.gelu(x)
    torch.npu.synchronize()
    elapsed_native = time.time() - start
    print(f"Native GELU latency: {elapsed_native * 1000 / 100:.3f} ms")
    print(f"Speedup: {elapsed_native / elapsed:.2f}x")


if __name__ == "__main__":
    test_gelu_custom()
