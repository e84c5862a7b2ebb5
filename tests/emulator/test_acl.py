"""The host runtime, as programs built by `opkit cc` see it: order, errors with reasons, faults."""

from __future__ import annotations

import json
import subprocess
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from opkit import emulator
from opkit.errors import SetupError
from opkit.toolchain import parse_driver_arguments, run_driver

PROLOGUE = """
#include <cstdio>
#include <cstring>
#include <thread>
#include "acl/acl.h"
#include "acl/acl_prof.h"
#include "kernel_operator.h"
#include "opkit/device_memory.h"
#include "opkit/device_stream.h"

struct Step { int32_t add; int32_t times; };

// One block changes one number: value = value * times + add.
__global__ __vector__ void step(__gm__ uint8_t* data, Step s)
{
    AscendC::GlobalTensor<int32_t> values;
    values.SetGlobalBuffer((__gm__ int32_t*)data);
    const auto block = AscendC::GetBlockIdx();
    values.SetValue(block, values.GetValue(block) * s.times + s.add);
}

__global__ __vector__ void copy_out(__gm__ uint8_t* data, uint32_t offset)
{
    AscendC::TPipe pipe;
    AscendC::TBuf<AscendC::TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 256);
    AscendC::LocalTensor<int32_t> local = buffer.Get<int32_t>();
    AscendC::Duplicate<int32_t>(local, 1, 64);
    AscendC::GlobalTensor<int32_t> out;
    out.SetGlobalBuffer((__gm__ int32_t*)data);
    AscendC::DataCopy(out[offset], local, 64);
}

// Every vector sub-core leaves its number in its group.
__global__ __mix__(1, 2) void mark_pairs(__gm__ uint8_t* data)
{
    AscendC::GlobalTensor<int32_t> values;
    values.SetGlobalBuffer((__gm__ int32_t*)data);
    if ASCEND_IS_AIV {
        values.SetValue(AscendC::GetBlockIdx(), 1 + AscendC::GetSubBlockIdx());
    }
}

__global__ __cube__ void mark_cube(__gm__ uint8_t* data)
{
    AscendC::GlobalTensor<int32_t> values;
    values.SetGlobalBuffer((__gm__ int32_t*)data);
    if ASCEND_IS_AIC {
        values.SetValue(AscendC::GetBlockIdx(), 7);
    }
}

namespace outer {
template <int N, typename T>
struct Numbers { T values[N]; };

template <int N, typename T>
__global__ __vector__ void sum(GM_ADDR out, Numbers<N, T> numbers)
{
    AscendC::GlobalTensor<T> result;
    result.SetGlobalBuffer((__gm__ T*)out);
    T total = 0;
    for (int i = 0; i < N; ++i) total += numbers.values[i];
    result.SetValue(AscendC::GetBlockIdx(), total);
}
}  // namespace outer
#define LAUNCH(kernel, n, ...) kernel<<<n, nullptr, stream>>>(__VA_ARGS__)

__global__ __vector__ void write_raw(__gm__ uint8_t* data, int64_t offset) { data[offset] = 1; }

static int32_t* device_numbers(size_t count)
{
    void* pointer = nullptr;
    aclrtMalloc(&pointer, count * 4, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemset(pointer, count * 4, 0, count * 4);
    return (int32_t*)pointer;
}
static int32_t read(const int32_t* device)
{
    int32_t value = -1;
    aclrtMemcpy(&value, 4, device, 4, ACL_MEMCPY_DEVICE_TO_HOST);
    return value;
}
#define U8(pointer) ((uint8_t*)(pointer))
#define SHOW(call) do { int code = (call); const char* why = aclGetRecentErrMsg(); \\
    std::printf("%d %s\\n", code, code == 0 || why == nullptr ? "" : why); } while (0)
"""


@dataclass(frozen=True)
class Outcome:
    """What a program printed."""

    lines: list[str]
    errors: str
    source: Path


Run = Callable[[str], Outcome]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that compiles the body of a main() and runs it."""
    try:
        emulator.library_path()
    except SetupError:
        pytest.skip("the emulator's library is not built")

    def compile_and_run(body: str) -> Outcome:
        source, program = tmp_path / "program.asc", tmp_path / "program"
        text = textwrap.indent(textwrap.dedent(body), "    ")
        source.write_text(f"{PROLOGUE}\nint main()\n{{\n{text}\n    return 0;\n}}\n")
        run_driver(parse_driver_arguments(["-O1", str(source), "-o", str(program)]))
        done = subprocess.run([program], capture_output=True, text=True, check=True, timeout=60)
        return Outcome(done.stdout.splitlines(), done.stderr, source)

    return compile_and_run


def test_a_stream_runs_its_launches_in_order(run: Run) -> None:
    result = run("""
        aclrtSetDevice(0);
        aclrtStream stream;
        aclrtCreateStream(&stream);
        int32_t* data = device_numbers(8);
        step<<<1, nullptr, stream>>>(U8(data), Step{3, 1});
        step<<<1, nullptr, stream>>>(U8(data), Step{1, 10});
        SHOW(aclrtSynchronizeStream(stream));
        std::printf("%d\\n", read(data));
    """)
    assert result.lines == ["0 ", "31"]
    assert result.errors == ""


def test_arguments_are_those_of_the_launch_not_of_the_run(run: Run) -> None:
    result = run("""
        aclrtSetDevice(0);
        int32_t* data = device_numbers(8);
        Step s{5, 1};
        step<<<1, nullptr, nullptr>>>(U8(data), s);
        s.add = 100;
        aclrtSynchronizeDevice();
        std::printf("%d\\n", read(data));
    """)
    assert result.lines == ["5"]


def test_nothing_has_run_before_somebody_waits(run: Run) -> None:
    result = run("""
        aclrtSetDevice(0);
        int32_t* data = device_numbers(8);
        step<<<1, nullptr, nullptr>>>(U8(data), Step{5, 1});
        std::printf("%d\\n", read(data));
        aclrtSynchronizeStream(nullptr);
        std::printf("%d\\n", read(data));
    """)
    assert result.lines == ["0", "5"]


@pytest.mark.parametrize("waits", [True, False])
def test_an_event_orders_two_streams(run: Run, waits: bool) -> None:
    result = run(f"""
        aclrtSetDevice(0);
        aclrtStream first, second;
        aclrtEvent event;
        aclrtCreateStream(&first);
        aclrtCreateStream(&second);
        aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC);
        int32_t* data = device_numbers(8);
        step<<<1, nullptr, first>>>(U8(data), Step{{3, 1}});
        aclrtRecordEvent(event, first);
        if ({int(waits)}) aclrtStreamWaitEvent(second, event);
        step<<<1, nullptr, second>>>(U8(data), Step{{1, 10}});
        SHOW(aclrtSynchronizeStream(second));
        std::printf("%d\\n", read(data));
        SHOW(aclrtSynchronizeStream(first));
        SHOW(aclrtDestroyEvent(event));
        SHOW(aclrtDestroyEvent(event));
    """)
    assert result.lines[:4] == ["0 ", "31" if waits else "1", "0 ", "0 "]
    assert "was destroyed" in result.lines[4]


CAPTURE = """
        aclrtSetDevice(0);
        aclrtStream stream, other;
        aclrtCreateStream(&stream);
        aclrtCreateStream(&other);
        aclrtEvent ready, done;
        aclrtCreateEvent(&ready);
        aclrtCreateEvent(&done);
        int32_t* data = device_numbers(8);
        aclmdlRI model = nullptr;
"""


def test_captured_tasks_run_when_they_are_executed_and_as_often(run: Run) -> None:
    result = run(
        CAPTURE
        + """
        aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL);
        step<<<1, nullptr, stream>>>(U8(data), Step{1, 1});
        aclrtRecordEvent(ready, stream);
        aclrtStreamWaitEvent(other, ready);
        step<<<1, nullptr, other>>>(U8(data), Step{0, 10});
        aclrtRecordEvent(done, other);
        aclrtStreamWaitEvent(stream, done);
        SHOW(aclmdlRICaptureEnd(stream, &model));
        SHOW(aclrtSynchronizeStream(stream));
        std::printf("%d\\n", read(data));
        aclmdlRIExecuteAsync(model, stream);
        std::printf("%d\\n", read(data));
        SHOW(aclrtSynchronizeStream(stream));
        std::printf("%d\\n", read(data));
        SHOW(aclmdlRIExecute(model, -1));
        std::printf("%d\\n", read(data));
        aclmdlRIExecuteAsync(model, other);
        SHOW(aclmdlRIDebugJsonPrint(model, "/dev/stderr", 0));
        SHOW(aclmdlRIDestroy(model));
        SHOW(aclrtSynchronizeStream(other));
        std::printf("%d\\n", read(data));
        SHOW(aclmdlRIDestroy(model));
        """
    )
    assert result.lines[:8] == ["0 ", "0 ", "0", "0", "0 ", "10", "0 ", "110"]
    text = result.errors
    captured = json.loads(text[text.index("{") : text.rindex("}") + 1])["tasks"]
    assert [(task["stream"], task["name"]) for task in captured] == [
        (0, "step"),
        (0, "aclrtRecordEvent"),
        (1, "aclrtStreamWaitEvent"),
        (1, "step"),
        (1, "aclrtRecordEvent"),
        (0, "aclrtStreamWaitEvent"),
    ]
    assert result.lines[-2] == "1110"
    assert "was destroyed" in result.lines[-1]


def test_a_capture_refuses_what_it_could_not_repeat(run: Run) -> None:
    result = run(
        CAPTURE
        + """
        aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL);
        SHOW(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
        SHOW(aclrtSynchronizeStream(stream));
        SHOW(aclrtDestroyStream(stream));
        SHOW(aclrtMemset(data, 32, 0, 32));
        aclrtRecordEvent(ready, other);
        SHOW(aclrtStreamWaitEvent(stream, ready));
        SHOW(aclmdlRICaptureEnd(other, &model));
        SHOW(aclmdlRICaptureEnd(stream, &model));
        SHOW(aclrtDestroyStream(stream));
        """
    )
    reasons = [
        "is being captured",
        "is being captured",
        "is being captured",
        "asynchronous form",
        "outside the capture",
        "was not called with the stream",
    ]
    for line, reason in zip(result.lines, reasons, strict=False):
        assert reason in line
    assert result.lines[len(reasons) :] == ["0 ", "0 "]


def test_an_asynchronous_copy_takes_its_place_in_the_stream(run: Run) -> None:
    result = run("""
        aclrtSetDevice(0);
        aclrtStream stream;
        aclrtCreateStream(&stream);
        int32_t* data = device_numbers(8);
        int32_t *in, *out;
        aclrtMallocHost((void**)&in, 4);
        aclrtMallocHost((void**)&out, 4);
        *in = 7;
        aclrtMemcpyAsync(data, 32, in, 4, ACL_MEMCPY_HOST_TO_DEVICE, stream);
        step<<<1, nullptr, stream>>>(U8(data), Step{1, 2});
        aclrtMemcpyAsync(out, 4, data, 4, ACL_MEMCPY_DEVICE_TO_HOST, stream);
        SHOW(aclrtSynchronizeStream(stream));
        std::printf("%d\\n", *out);
    """)
    assert result.lines == ["0 ", "15"]


def test_memory_is_freed_behind_the_launches_that_use_it(run: Run) -> None:
    result = run("""
        aclrtSetDevice(0);
        aclrtStream stream;
        aclrtCreateStream(&stream);
        int32_t* data = device_numbers(8);
        int32_t* out;
        aclrtMallocHost((void**)&out, 4);
        step<<<1, nullptr, stream>>>(U8(data), Step{1, 2});
        aclrtMemcpyAsync(out, 4, data, 4, ACL_MEMCPY_DEVICE_TO_HOST, stream);
        SHOW(aclrtFree(data));
        SHOW(aclrtSynchronizeStream(stream));
        std::printf("%d\\n", *out);
    """)
    assert result.lines == ["0 ", "0 ", "1"]


# body of the call, the code, a part of the reason
MISUSE = [
    ("aclrtFree(d); SHOW(aclrtFree(d));", 107000, "double free"),
    ("SHOW(aclrtFree(h));", 107000, "aclrtFreeHost"),
    ("SHOW(aclrtFreeHost(d));", 107000, "free it with aclrtFree"),
    ("aclrtFreeHost(h); SHOW(aclrtFreeHost(h));", 107000, "double free"),
    ("SHOW(aclrtFree(d + 4));", 107000, "16 bytes behind the start"),
    ("SHOW(aclrtFree(nullptr));", 107000, "null"),
    ("SHOW(aclrtMalloc(nullptr, 4, ACL_MEM_MALLOC_HUGE_FIRST));", 107000, "null"),
    ("SHOW(aclrtMalloc(&p, 0, ACL_MEM_MALLOC_HUGE_FIRST));", 107000, "size is 0"),
    ("SHOW(aclrtMalloc(&p, ~0ull / 4, ACL_MEM_MALLOC_HUGE_FIRST));", 207001, "no room"),
    ("SHOW(aclrtMemcpy(d, 64, h, 64, ACL_MEMCPY_DEVICE_TO_HOST));", 107000, "is host memory"),
    ("SHOW(aclrtMemcpy(h, 64, d, 64, ACL_MEMCPY_HOST_TO_DEVICE));", 107000, "is device memory"),
    ("SHOW(aclrtMemcpy(d, 32, h, 64, ACL_MEMCPY_HOST_TO_DEVICE));", 107000, "do not fit"),
    ("SHOW(aclrtMemcpy(d, 999, h, 65, ACL_MEMCPY_HOST_TO_DEVICE));", 107000, "source has 64"),
    ("SHOW(aclrtMemcpy(d, 999, big, 65, ACL_MEMCPY_HOST_TO_DEVICE));", 107000, "has 64 bytes"),
    ("SHOW(aclrtMemcpy(nullptr, 64, h, 64, ACL_MEMCPY_DEFAULT));", 107000, "destination is null"),
    ("SHOW(aclrtMemcpy(d, 64, h, 64, (aclrtMemcpyKind)9));", 107000, "9 is no kind"),
    (
        "aclrtFree(d); SHOW(aclrtMemcpy(h, 64, d, 64, ACL_MEMCPY_DEVICE_TO_HOST));",
        107000,
        "use after free",
    ),
    ("SHOW(aclrtMemset(d, 64, 0, 65));", 107000, "do not fit"),
    ("SHOW(aclrtSetDevice(1));", 107001, "no device 1"),
    ("SHOW(aclrtSynchronizeStream(h));", 107000, "no stream"),
    ("aclInit(nullptr); SHOW(aclInit(nullptr));", 100002, "called before"),
    ("aclFinalize(); SHOW(aclFinalize());", 100001, "aclInit was not called"),
    (
        "aclrtMemcpy((char*)d + 32, 32, h, 32, ACL_MEMCPY_HOST_TO_DEVICE);"
        "SHOW(aclrtMemcpy((char*)d + 48, 64, h, 64, ACL_MEMCPY_HOST_TO_DEVICE));",
        107000,
        "has 16 bytes from here on in an allocation of 64",
    ),
    (
        "SHOW(aclrtMemcpyAsync(d, 64, h, 64, ACL_MEMCPY_DEVICE_TO_DEVICE, nullptr));",
        107000,
        "is host memory, and the kind of this call wants device memory",
    ),
    ("SHOW(aclrtMemsetAsync(d, 64, 0, 65, nullptr));", 107000, "do not fit"),
    (
        "aclrtCreateContext(&p, 0); aclrtStream s; aclrtCreateStream(&s); aclrtDestroyContext(p);"
        "aclrtSetDevice(0); SHOW(aclrtSynchronizeStream(s));",
        107003,
        "belongs to a context that was destroyed",
    ),
    (
        "aclrtStream s; aclrtCreateStream(&s); aclrtCreateContext(&p, 0);"
        "SHOW(aclrtSynchronizeStream(s));",
        107003,
        "is not this thread's: call aclrtSetCurrentContext",
    ),
    (
        "aclrtCreateContext(&p, 0); aclrtDestroyContext(p); SHOW(aclrtSetCurrentContext(p));",
        107000,
        "no context, or was destroyed",
    ),
    (
        "aclrtStream s; aclrtCreateStream(&s); aclrtDestroyStream(s); SHOW(aclrtDestroyStream(s));",
        107000,
        "no stream, or was destroyed",
    ),
    (
        "aclrtEvent e; aclrtCreateEvent(&e); aclrtDestroyEvent(e);"
        "SHOW(aclrtRecordEvent(e, nullptr));",
        107000,
        "no event, or was destroyed",
    ),
    ("aclrtResetDevice(0); SHOW(aclrtCreateStream(&p));", 107002, "aclrtSetDevice"),
    (
        "step<<<0, nullptr, nullptr>>>(U8(d), Step{}); SHOW(aclrtSynchronizeStream(nullptr));",
        107000,
        "0 blocks",
    ),
]


def test_misuse_is_an_error_with_a_reason(run: Run) -> None:
    cases = "\n".join(
        f"""{{
            aclrtSetDevice(0);
            int32_t *d = device_numbers(16), *h;
            aclrtMallocHost((void**)&h, 64);
            static char big[4096];
            void* p = nullptr;
            (void)p, (void)big;
            {body}
            while (aclrtResetDevice(0) == 0 && aclrtGetCurrentContext(&p) == 0) {{}}
            aclGetRecentErrMsg();
        }}"""
        for body, _, _ in MISUSE
    )
    result = run(cases)
    assert len(result.lines) == len(MISUSE)
    for line, (body, code, reason) in zip(result.lines, MISUSE, strict=True):
        shown, _, text = line.partition(" ")
        assert (shown, reason in text) == (str(code), True), f"{body}\n{line}"
    assert result.errors.count("double free") == 2


def test_no_package_has_a_version_here(run: Run) -> None:
    # Host code of public operators asks whether one is new enough.
    result = run("""
        char package[] = "asc-devkit";
        int32_t version = -7;
        SHOW(aclsysGetVersionNum(package, &version));
        std::printf("%d\\n", version);
    """)
    assert result.lines[0].startswith("200001 ") and "no version of asc-devkit" in result.lines[0]
    assert result.lines[1] == "-7"


def test_the_device_says_its_cores_and_memory_where_it_lies(run: Run) -> None:
    # Public programs take the number of blocks from the first, and did not compile.
    result = run("""
        aclrtSetDevice(0);
        int64_t cubes = 0, vectors = 0;
        SHOW(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_AICORE_CORE_NUM, &cubes));
        SHOW(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_VECTOR_CORE_NUM, &vectors));
        std::printf("%d %d\\n", (int)cubes, (int)vectors);
        SHOW(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_AICPU_CORE_NUM, &cubes));
        SHOW(aclrtGetDeviceInfo(1, ACL_DEV_ATTR_AICORE_CORE_NUM, &cubes));
        uint8_t *device = nullptr, *host = nullptr, own = 0;
        aclrtMalloc((void**)&device, 64, ACL_MEM_MALLOC_HUGE_FIRST);
        aclrtMallocHost((void**)&host, 64);
        for (uint8_t* pointer : {device + 63, host, &own}) {
            aclrtPtrAttributes found;
            const int code = aclrtPointerGetAttributes(pointer, &found);
            std::printf("%d %d %d\\n", code, (int)found.location.type, (int)found.location.id);
        }
        std::printf("%d\\n", (int)aclDataTypeSize(ACL_FLOAT8_E4M3FN));
        aclrtFree(device);
        aclrtFreeHost(host);
    """)
    assert result.lines[:3] == ["0 ", "0 ", "24 48"]
    assert "attribute 1 is not known" in result.lines[3]
    assert "there is no device 1" in result.lines[4]
    assert result.lines[5:] == ["0 1 0", "0 0 0", "0 2 0", "1"]


def test_a_fault_is_reported_once_and_a_reset_repairs_the_device(run: Run) -> None:
    result = run("""
        aclrtSetDevice(0);
        int32_t* data = device_numbers(64);
        copy_out<<<2, nullptr, nullptr>>>(U8(data), 8);
        SHOW(aclrtSynchronizeStream(nullptr));
        SHOW(aclrtSynchronizeDevice());
        copy_out<<<1, nullptr, nullptr>>>(U8(data), 0);
        SHOW(aclrtSynchronizeStream(nullptr));
        SHOW(aclrtResetDevice(0));
        aclrtSetDevice(0);
        data = device_numbers(64);
        copy_out<<<1, nullptr, nullptr>>>(U8(data), 0);
        SHOW(aclrtSynchronizeStream(nullptr));
        std::printf("%d\\n", read(data));
    """)
    line = 1 + next(
        number
        for number, text in enumerate(result.source.read_text().splitlines())
        if "DataCopy(out" in text
    )
    assert [text.split()[0] for text in result.lines] == ["507035"] * 3 + ["0", "0", "1"]
    assert "MEM-BOUNDS" in result.lines[0]
    assert result.errors.count("error:") == 1
    assert f"--> {result.source}:{line}      copy_out block 0, aiv, pipe MTE3" in result.errors


def test_an_event_that_no_stream_recorded_is_done_only_where_its_creation_says_so(run: Run) -> None:
    result = run("""
        aclrtSetDevice(0);
        aclrtEvent plain, reusable;
        aclrtCreateEvent(&plain);
        aclrtCreateEventExWithFlag(&reusable, ACL_EVENT_SYNC);
        for (aclrtEvent event : {plain, reusable}) {
            aclrtEventRecordedStatus before, after;
            aclrtQueryEventStatus(event, &before);
            aclrtRecordEvent(event, nullptr);
            aclrtQueryEventStatus(event, &after);
            std::printf("%d %d\\n", before, after);
        }
    """)
    assert result.lines == ["0 1", "1 1"]


PLACES = [
    ("copy_out", "16", "that lie in no tensor of this launch: 64 bytes in front of an allocation"),
    ("copy_out", "64", "the last 128 of them behind the end of an allocation of 384 bytes"),
    ("copy_out", "112", "64 bytes behind the end of an allocation of 384 bytes"),
    ("write_raw", "384", "the kernel reads or writes 0 bytes behind the end of an allocation of"),
    (
        "write_raw",
        "-5",
        "a kernel wrote through a raw pointer 5 bytes in front of an allocation of",
    ),
]


def test_a_bad_address_is_told_by_the_nearest_allocation(run: Run) -> None:
    cases = "\n".join(
        f"""{{
            aclrtSetDevice(0);
            uint8_t* data = U8(device_numbers(96));
            {kernel}<<<1, nullptr, nullptr>>>({"data - 128" if offset == "16" else "data"}, {offset});
            SHOW(aclrtSynchronizeStream(nullptr));
            aclrtResetDevice(0);
        }}"""
        for kernel, offset, _ in PLACES
    )
    host = """
        aclrtSetDevice(0);
        void* host;
        aclrtMallocHost(&host, 256);
        copy_out<<<1, nullptr, nullptr>>>(U8(host), 0);
        SHOW(aclrtSynchronizeStream(nullptr));
    """
    result = run(cases + host)
    for line, (_, _, text) in zip(result.lines, PLACES, strict=False):
        assert text in line
    assert "an allocation of 256 bytes of aclrtMallocHost, which no kernel can" in result.lines[-1]
    assert len(result.lines) == len(PLACES) + 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("offset", "code"), [("63", 0), ("96", 507015), ("-1", 507015), ("1 << 20", 507035)]
)
def test_a_raw_write_outside_an_allocation_is_found(run: Run, offset: str, code: int) -> None:
    result = run(f"""
        aclrtSetDevice(0);
        int32_t* data = device_numbers(17);
        write_raw<<<1, nullptr, nullptr>>>(U8(data), {offset});
        SHOW(aclrtSynchronizeStream(nullptr));
    """)
    assert result.lines[0].split()[0] == str(code)


def test_a_kernels_mode_decides_which_sub_cores_run(run: Run) -> None:
    result = run("""
        aclrtSetDevice(0);
        int32_t* data = device_numbers(8);
        mark_pairs<<<2, nullptr, nullptr>>>(U8(data));
        SHOW(aclrtSynchronizeStream(nullptr));
        for (int i = 0; i < 5; ++i) std::printf("%d\\n", read(data + i));
        mark_cube<<<2, nullptr, nullptr>>>(U8(data));
        SHOW(aclrtSynchronizeStream(nullptr));
        for (int i = 0; i < 3; ++i) std::printf("%d\\n", read(data + i));
    """)
    assert result.lines == ["0 ", "1", "2", "1", "2", "0", "0 ", "7", "7", "1"]


def test_a_fault_on_a_cube_core_has_a_code_of_its_own(run: Run) -> None:
    result = run("""
        aclrtSetDevice(0);
        mark_cube<<<1, nullptr, nullptr>>>(nullptr);
        SHOW(aclrtSynchronizeStream(nullptr));
    """)
    assert result.lines[0].startswith("507015 ")
    assert "block 0, aic" in result.errors


def test_templates_macros_namespaces_and_threads_launch_alike(run: Run) -> None:
    result = run("""
        struct Host {
            static int go(int32_t* out)
            {
                aclrtSetDevice(0);
                aclrtStream stream;
                aclrtCreateStream(&stream);
                constexpr int N = 3;
                outer::Numbers<N, int32_t> numbers{{1, 2, 3}};
                LAUNCH((outer::sum<N, int32_t>), 2, U8(out), numbers);
                outer::sum<N, int32_t>
                    <<<2, nullptr, stream>>>(U8(out + 2), numbers);
                outer::sum<<<1, nullptr, stream>>>(U8(out + 4), numbers);
                auto chosen = &outer::sum<N, int32_t>;
                chosen<<<1, nullptr, stream>>>(U8(out + 5), numbers);
                return aclrtSynchronizeStream(stream);
            }
        };
        aclrtSetDevice(0);
        int32_t* data = device_numbers(64);
        std::thread other([&] { Host::go(data + 8); });
        const int error = Host::go(data);
        other.join();
        std::printf("%d\\n", error);
        for (int i = 0; i < 14; ++i) std::printf("%d ", read(data + i));
    """)
    assert result.lines[0] == "0"
    assert result.lines[1].split() == ["6"] * 6 + ["0"] * 2 + ["6"] * 6


@pytest.mark.parametrize("field", ["abi_version", "table_fingerprint"])
def test_a_program_of_another_version_is_refused(run: Run, field: str) -> None:
    result = run(f"""
        aclrtSetDevice(0);
        opkit::LaunchConfig config("old", opkit::KernelMode::Vector, 1);
        config.{field} += 1;
        opkit::launch_kernel(write_raw, config, nullptr, 0);
        SHOW(aclrtSynchronizeStream(nullptr));
    """)
    assert result.lines[0].startswith("107000")
    assert "another version of opkit" in result.lines[0]


def test_host_memory_is_out_of_a_kernels_reach(run: Run) -> None:
    result = run("""
        aclrtSetDevice(0);
        void* host;
        aclrtMallocHost(&host, 256);
        copy_out<<<1, nullptr, nullptr>>>((uint8_t*)host, 0);
        SHOW(aclrtSynchronizeStream(nullptr));
    """)
    assert result.lines[0].startswith("507035 MEM-BOUNDS")


def test_a_devices_stream_runs_a_launch_when_it_is_made_and_reaches_tensors(run: Run) -> None:
    result = run("""
        auto stream = (aclrtStream)opkit_device_stream(7);
        std::printf("%d\\n", stream == opkit_device_stream(7) && stream != opkit_device_stream(8));
        auto* tensor = (int32_t*)opkit_memory_allocate(0, 256, 7);
        tensor[0] = 5;
        step<<<1, nullptr, stream>>>((uint8_t*)tensor, Step{3, 2});
        std::printf("%d\\n", tensor[0]);
        char text[256] = "";
        std::printf("%d\\n", (int)opkit_take_device_fault(text, sizeof(text)));
    """)
    assert result.lines == ["1", "13", "0"]


def test_a_fault_on_a_devices_stream_is_taken_once_and_the_device_works_on(run: Run) -> None:
    result = run("""
        auto stream = (aclrtStream)opkit_device_stream(0);
        auto* tensor = (int32_t*)opkit_memory_allocate(0, 256, 0);
        copy_out<<<1, nullptr, stream>>>((uint8_t*)tensor, 64);
        char text[512] = "";
        const bool is_faulted = opkit_take_device_fault(text, sizeof(text));
        std::printf("%d %s\\n", is_faulted, text);
        std::printf("%d\\n", (int)opkit_take_device_fault(text, sizeof(text)));
        copy_out<<<1, nullptr, stream>>>((uint8_t*)tensor, 0);
        std::printf("%d %d\\n", (int)opkit_take_device_fault(text, sizeof(text)), tensor[63]);
    """)
    assert result.lines[0].startswith("1 MEM-BOUNDS")
    assert "behind the end of a block of 256 bytes of the device's memory" in result.lines[0]
    assert result.lines[1:] == ["0", "0 1"]


def test_a_profilers_range_takes_tensors_of_up_to_eight_dims_and_ends_once(run: Run) -> None:
    result = run("""
        aclprofTensor tensor = {0, ACL_FORMAT_ND, ACL_FLOAT, 2, {8, 2048}};
        aclprofTensorInfo info = {aclprofStr2Id("add"), aclprofStr2Id("Add"), 0, 1, 0, 8, nullptr,
                                  &tensor};
        aclprofEventAttributes range = {1, sizeof(range.message), MESSAGE_TYPE_TENSOR_INFO, {&info}};
        std::printf("%d\\n", info.opNameId == aclprofStr2Id("add") && info.opNameId != info.opTypeId);
        SHOW(aclprofRangePushEx(&range));
        SHOW(aclprofRangePop());
        SHOW(aclprofRangePop());
        tensor.shapeDim = 9;
        SHOW(aclprofRangePushEx(&range));
    """)
    assert result.lines[0] == "1"
    assert [line.split()[0] for line in result.lines[1:]] == ["0", "0", "100000", "100000"]
    assert "no range is open" in result.lines[3]
    assert "more than 8 dims" in result.lines[4]


def test_half_precision_converts_every_value_both_ways(run: Run) -> None:
    result = run("""
        int wrong = 0;
        for (uint32_t number = 0; number < 65536; ++number) {
            const uint16_t bits = (uint16_t)number;
            _Float16 host;
            std::memcpy(&host, &bits, 2);
            const float expected = (float)host;
            const float value = aclFloat16ToFloat(bits);
            if (expected != expected && value != value) continue;
            if (std::memcmp(&value, &expected, 4) != 0) ++wrong;
            if (aclFloatToFloat16(value) != bits) ++wrong;
        }
        for (float sample : {65519.9f, 65520.0f, 1e-8f, 2.98e-8f, 2.99e-8f, 6.1e-5f, 1.0004883f,
                             1.001465f, 6.1034e-5f, -0.0f, 1e30f}) {
            const _Float16 host = (_Float16)sample;
            uint16_t bits;
            std::memcpy(&bits, &host, 2);
            if (aclFloatToFloat16(sample) != bits) ++wrong;
        }
        std::printf("%d\\n", wrong);
    """)
    assert result.lines == ["0"]
