"""Extensions of torch that launch kernels on the device's own stream."""

from __future__ import annotations

import subprocess
import sysconfig

import pytest

from opkit.toolchain import OPKIT_COMMAND
from opkit.torch_npu import extension_include_dirs

torch = pytest.importorskip("torch")

SOURCE = """
#include <torch/extension.h>
#include "torch_npu/csrc/core/npu/NPUStream.h"
#include "kernel_operator.h"

__global__ __vector__ void twice(__gm__ float* from, __gm__ float* to, uint32_t count)
{
    AscendC::TPipe pipe;
    AscendC::TBuf<AscendC::TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, count * sizeof(float));
    auto local = buffer.Get<float>();
    AscendC::GlobalTensor<float> source, target;
    source.SetGlobalBuffer(from);
    target.SetGlobalBuffer(to);
    AscendC::DataCopy(local, source, count);
    AscendC::PipeBarrier<PIPE_ALL>();
    AscendC::Add(local, local, local, count);
    AscendC::PipeBarrier<PIPE_ALL>();
    AscendC::DataCopy(target, local, count);
}

at::Tensor run(const at::Tensor& x, int64_t count)
{
    at::Tensor y = at::empty_like(x);
    const c10_npu::NPUStream stream = c10_npu::getCurrentNPUStream();
    TORCH_CHECK(stream == c10_npu::NPUStream(stream.unwrap()) && stream.device() == x.device());
    TORCH_CHECK(stream.id() != c10_npu::getNPUStreamFromPool().id() && stream.query());
    twice<<<1, nullptr, stream.stream(false)>>>(x.data_ptr<float>(), y.data_ptr<float>(), count);
    return y;
}

TORCH_LIBRARY(opkit_streams, m) { m.def("twice(Tensor x, int count) -> Tensor"); }
TORCH_LIBRARY_IMPL(opkit_streams, PrivateUse1, m) { m.impl("twice", TORCH_FN(run)); }
"""


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> torch._ops.OpOverloadPacket:
    """Return the extension's operator, built by the driver."""
    from torch.utils.cpp_extension import include_paths, library_paths

    folder = tmp_path_factory.mktemp("extension")
    source = folder / "twice.asc"
    source.write_text(SOURCE)
    library = folder / "libtwice.so"
    folders = [*include_paths(), *extension_include_dirs(), sysconfig.get_path("include")]
    (torch_folder,) = library_paths()[:1]
    command = [*OPKIT_COMMAND, "cc", "--npu-arch=dav-2201", "-shared", "-fPIC", "-O1", str(source)]
    command += [f"-I{path}" for path in folders]
    abi = int(torch.compiled_with_cxx11_abi())
    command += [f"-D_GLIBCXX_USE_CXX11_ABI={abi}", f"{torch_folder}/libtorch.so"]
    command += [f"-L{torch_folder}", "-lc10", "-ltorch_cpu", "-ltorch_npu", "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    torch.ops.load_library(str(library))
    return torch.ops.opkit_streams.twice


@pytest.mark.slow
def test_a_launch_on_the_current_stream_has_run_when_the_tensor_is_read(
    twice: torch._ops.OpOverloadPacket,
) -> None:
    x = torch.arange(64, dtype=torch.float32, device="npu")
    assert torch.equal(twice(x, 64).cpu(), torch.arange(64, dtype=torch.float32) * 2)
    with torch.npu.stream(torch.npu.Stream()):
        assert torch.equal(twice(twice(x, 64), 64).cpu(), torch.arange(64.0) * 4)


@pytest.mark.slow
def test_a_fault_is_raised_where_the_host_waits_and_the_device_works_on(
    twice: torch._ops.OpOverloadPacket,
) -> None:
    x = torch.ones(64, device="npu")
    beyond = twice(x, 128)
    with pytest.raises(RuntimeError, match=r"(?s)MEM-BOUNDS.*launch by an extension"):
        beyond.cpu()
    assert twice(x, 64).sum().item() == 128
