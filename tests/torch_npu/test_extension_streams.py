"""Extensions of torch that launch kernels on the device's own stream."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

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


HANDLER = """
#include <torch/extension.h>
#include "torch_npu/csrc/aten/NPUNativeFunctions.h"
#include "torch_npu/csrc/core/npu/NPUStream.h"
#include "torch_npu/csrc/framework/OpCommand.h"
#include "torch_npu/csrc/framework/interface/EnvVariables.h"
#include "torch_npu/csrc/framework/utils/CalcuOpUtil.h"
#include "torch_npu/csrc/framework/utils/OpAdapter.h"
#include "torch_npu/csrc/framework/utils/OpPreparation.h"

static void named(const string&) {}

at::Tensor copied(const at::Tensor& x, int64_t status)
{
    ASCEND_LOGW("status %d", static_cast<int>(status));
    const auto device = torch_npu::utils::get_npu_device_type();
    at::Tensor y = at::empty(x.sizes(), x.options().device(device));
    TORCH_CHECK(torch_npu::utils::is_npu(x));
    auto stream = c10_npu::getCurrentNPUStream().stream(false);
    at_npu::native::OpCommand command;
    command.Name("Copied");
    if (status >= 0) command.SetCustomHandler([=]() -> int {
        aclrtMemcpyAsync(y.data_ptr(), y.nbytes(), x.data_ptr(), x.nbytes(),
                         ACL_MEMCPY_DEVICE_TO_DEVICE, stream);
        return static_cast<int>(status);
    });
    command.Run();
    return y;
}

PYBIND11_MODULE(opkit_handler, m) { m.def("copied", &copied); }
"""


@pytest.mark.slow
def test_a_handler_of_a_command_has_run_and_its_failure_is_told(tmp_path: Path) -> None:
    # Helper headers that contests hand out call operators so.
    from torch_npu.utils.cpp_extension import NpuExtension

    source = tmp_path / "handler.cpp"
    source.write_text(HANDLER)
    given = NpuExtension("opkit_handler", [str(source)])
    built = torch.utils.cpp_extension.load(
        "opkit_handler",
        [str(source)],
        extra_include_paths=[str(path) for path in extension_include_dirs()],
        extra_ldflags=list(given.extra_link_args),
        build_directory=str(tmp_path),
    )
    x = torch.arange(5.0, device="npu")
    assert torch.equal(built.copied(x, 0).cpu(), torch.arange(5.0))
    with pytest.raises(RuntimeError, match="Copied returned 7"):
        built.copied(x, 7)
    with pytest.raises(RuntimeError, match="Copied has no handler"):
        built.copied(x, -1)


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
