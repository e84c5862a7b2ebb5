"""What kernels print, and how their assertions fail."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import KernelFault

KERNEL = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x) {
  LocalTensor<half> local(TPosition::VECIN, 0, 64);
  GlobalTensor<int32_t> global;
  global.SetGlobalBuffer((__gm__ int32_t*)x, 6);
  half pi = 3.140625f;
  int64_t big = -5000000000;
  for (uint32_t i = 0; i < 64; ++i) local.SetValue(i, i);
  %s
}
"""


CORE = "[AIV Block 0/1] "


def printed(compile_kernel, capfd, body: str, **options: int) -> str:
    compile_kernel(KERNEL % body)(np.arange(6, dtype=np.int32), **options)
    return capfd.readouterr().out


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("call", "text"),
    [
        (r'printf("%d %i %u\n", 1, -2, 3u)', "1 -2 3\n"),
        (r'printf("%f %F %5.1f|\n", pi, 2.5f, 0.25)', "3.140625 2.500000   0.2|\n"),
        (r'printf("%x %X 0x%08x\n", 255, 255u, -1)', "ff FF 0xffffffff\n"),
        (r'printf("%ld %d\n", big, big)', "-5000000000 -5000000000\n"),
        (r'printf("%ld %lu\n", 7, 8)', "7 8\n"),
        (r'printf("%s is %-4d|%%\n", "it", 5)', "it is 5   |%\n"),
        (r'printf("%p\n", (void*)16)', "0x10\n"),
        (r'printf("%d %d\n", pi, HardEvent::MAX)', "3 255\n"),
        (r'PRINTF("%d\n", block_num)', "1\n"),
        (r'printf("no end")', "no end\n"),
        (r'KERNEL_LOG(KERNEL_ERROR, "bad %d\n", 3)', "[KERNEL_ERROR] bad 3\n"),
    ],
)
def test_printf_takes_the_documented_formats(compile_kernel, capfd, call, text) -> None:
    assert printed(compile_kernel, capfd, call + ";") == CORE + text


def test_the_header_of_the_log_can_be_included_by_its_own_name(compile_kernel, capfd) -> None:
    # Tiling headers of kernel unit tests do, and did not compile.
    compile_kernel('#include "kernel_log.h"\n' + KERNEL % r'KERNEL_LOG(KERNEL_INFO, "seen\n");')(
        np.arange(6, dtype=np.int32)
    )
    assert capfd.readouterr().out == CORE + "[KERNEL_INFO] seen\n"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (r'printf("%d %d", 1)', "wants more than 1 arguments"),
        (r'printf("%s", 1)', "no string"),
        (r'printf("%w", 1)', "%w is not a conversion"),
        (r'printf("%l", 1)', "ends within a conversion"),
    ],
)
def test_a_format_that_does_not_fit_its_arguments_faults(compile_kernel, call, text) -> None:
    with pytest.raises(KernelFault, match=text):
        compile_kernel(KERNEL % (call + ";"))(np.zeros(6, np.int32))


def test_lines_of_many_cores_stay_whole(compile_kernel, capfd) -> None:
    from opkit.emulator import _emulator

    _emulator.configure(**{**_emulator.configuration(), "threads": 3})
    body = (
        r'printf("core %d ", block_idx); printf("says "); printf("hello\nagain %d\n", block_idx);'
    )
    lines = printed(compile_kernel, capfd, body, block_dim=20).splitlines()
    expected = [f"[AIV Block {i}/20] core {i} says hello" for i in range(20)]
    expected += [f"again {i}" for i in range(20)]
    assert sorted(lines) == sorted(expected)


def test_dump_tensor_prints_what_where_and_the_values(compile_kernel, capfd) -> None:
    out = printed(
        compile_kernel, capfd, "DumpTensor(local[32], 5, 3);\n  DumpTensor(global, 6, 2);"
    )
    lines = out.splitlines()
    assert lines[0].startswith("block 0, line ")
    assert lines[0].endswith(
        "DumpTensor: desc=5, addr=0x40, data_type=float16, position=UB, dump_size=3"
    )
    assert lines[1] == "[32.000000,33.000000,34.000000]"
    assert "data_type=int32, position=GM, dump_size=2" in lines[2]
    assert lines[3] == "[0,1]"


def test_asc_dump_prints_what_a_pointer_points_to(compile_kernel, capfd) -> None:
    body = """
      asc_dump_ubuf<half>((__ubuf__ half*)local[32].GetPhyAddr(), 5, 3);
      asc_dump_gm(global.GetPhyAddr() + 4, 6, 2);
      asc_dump(global.GetPhyAddr(), 7, 1);
    """
    lines = printed(compile_kernel, capfd, body).splitlines()
    assert "desc=5, addr=0x40, data_type=float16, position=UB, dump_size=3" in lines[0]
    assert lines[1] == "[32.000000,33.000000,34.000000]"
    assert "data_type=int32, position=GM, dump_size=2" in lines[2]
    assert (lines[3], lines[5]) == ("[4,5]", "[0]")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("asc_dump_l1buf((half*)local.GetPhyAddr(), 1, 1);", "the pointer is to UB, not to L1"),
        ("asc_dump_gm(global.GetPhyAddr(), 1, 7);", "the last 4 of them behind the end"),
    ],
)
def test_asc_dump_of_other_memory_faults(compile_kernel, call: str, text: str) -> None:
    with pytest.raises(KernelFault, match=text):
        compile_kernel(KERNEL % call)(np.zeros(6, np.int32))


def test_dump_tensor_follows_a_shape_and_marks_what_is_not_there(compile_kernel, capfd) -> None:
    body = """
      uint32_t shape[] = {2, 4};
      DumpTensor(global, 6, 6, ShapeInfo(2, shape));
    """
    assert printed(compile_kernel, capfd, body).split("\n", 1)[1] == "[[0,1,2,3],\n[4,5,-,-]]\n"


def test_a_dump_beyond_its_tensor_faults(compile_kernel) -> None:
    with pytest.raises(KernelFault, match="128 bytes"):
        compile_kernel(KERNEL % "DumpTensor(local, 1, 65);")(np.zeros(6, np.int32))


def test_print_shows_a_data_block_a_line(compile_kernel, capfd) -> None:
    out = printed(compile_kernel, capfd, "local.Print(18);")
    assert out == "0000: " + " ".join(map(str, range(16))) + "\n0016: 16 17\n"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("check", "text"),
    [
        ("ASSERT(big > 0)", "assertion failed: big > 0"),
        ('ASSERT(big > 0 && "too small")', "too small"),
        (r'ascendc_assert(big > 0, "big is %ld\n", big)', "big > 0: big is -5000000000"),
        ("assert(big > 0)", "assertion failed: big > 0"),
        (r'assert(big > 0, "big is %ld", big)', "big is -5000000000"),
        (r'ASCENDC_ASSERT((big > 0), { KERNEL_LOG(KERNEL_ERROR, "no"); })', "big > 0"),
        ("Trap()", "Trap"),
    ],
)
def test_a_failed_assertion_ends_the_launch_at_its_line(compile_kernel, check, text) -> None:
    run = compile_kernel(KERNEL % (check + ";"))
    with pytest.raises(KernelFault, match=text.replace("(", r"\(").replace(")", r"\)")) as caught:
        run(np.zeros(6, np.int32))
    assert caught.value.category == "Assertion"
    assert check.split("(")[0] in run.source.read_text().splitlines()[caught.value.line - 1]


def test_the_hosts_assert_included_later_ends_the_launch_too(compile_kernel) -> None:
    run = compile_kernel("#include <cassert>\n" + KERNEL % "assert(big > 0);")
    with pytest.raises(KernelFault, match="assertion failed: big > 0"):
        run(np.zeros(6, np.int32))


def test_assertions_that_hold_cost_nothing(compile_kernel, capfd) -> None:
    body = 'ASSERT(big < 0); assert(big < 0); ascendc_assert(big < 0, "%d", 1);'
    assert printed(compile_kernel, capfd, body) == ""
