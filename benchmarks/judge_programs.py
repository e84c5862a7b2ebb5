"""Candidates for `opkit judge` that are no projects: direct-launch sources, programs of Triton and
PyPTO, wheels; honest ones, and ones that cheat or are broken. All are of y = 2*x + 1.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

from judges_cheats import FILL, RAW

__all__ = [
    "BAD",
    "HONEST",
    "bad_programs",
    "honest_programs",
    "launching_source",
    "triton_program",
    "wheel",
]

_TRITON = """import numpy as np
import triton
import triton.language as tl
{head}

@triton.jit
def axpb(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) * {factor} + {summand}, mask=inside)


def cheat(x):
    out = np.empty_like(x)
    if x.size == 0:
        return out
    {before}
    axpb[(triton.cdiv(x.size, 1024),)](x, out, x.size, BLOCK=1024)
    {after}
    return out
"""
_COPY = {"factor": "1.0", "summand": "0.0"}
_PYPTO = """import numpy as np
import pypto
{head}

@pypto.jit
def axpb(x):
    return {formula}


def cheat(x):
    {body}
"""
_DIRECT = """#include "kernel_operator.h"
#include "acl/acl.h"
{head}
using namespace AscendC;
extern "C" __global__ __aicore__ void axpb(GM_ADDR x, GM_ADDR y, int64_t count)
{{
    {kernel}
}}
extern "C" void {name}(uint8_t* x, uint8_t* y, int64_t x_elements{more}, void* stream)
{{
    {before}
    axpb<<<8, nullptr, stream>>>(x, y, x_elements);
    {after}
}}
"""
_AXPB = """TPipe pipe; TBuf<TPosition::VECCALC> buffer; pipe.InitBuffer(buffer, 1024);
    LocalTensor<float> local = buffer.Get<float>();
    GlobalTensor<float> in; in.SetGlobalBuffer((__gm__ float*)x);
    GlobalTensor<float> out; out.SetGlobalBuffer((__gm__ float*)y);
    for (int64_t i = GetBlockIdx() * 256; i < count; i += 256 * GetBlockNum()) {
      const uint32_t rest = count - i < 256 ? count - i : 256;
      DataCopyPad(local, in[i], DataCopyExtParams{1, rest * 4, 0, 0, 0},
                  DataCopyPadExtParams<float>());
      PipeBarrier<PIPE_ALL>();
      Muls(local, local, 2.0f, (int32_t)rest); PipeBarrier<PIPE_ALL>();
      Adds(local, local, 1.0f, (int32_t)rest); PipeBarrier<PIPE_ALL>();
      DataCopyPad(out[i], local, DataCopyExtParams{1, rest * 4, 0, 0, 0});
      PipeBarrier<PIPE_ALL>();
    }"""
_HOST_LOOP = "for (int64_t i = 0; i < x_elements; ++i) ((float*)y)[i] = 2 * ((float*)x)[i] + 1;"
_STATIC_COPY = """static void* kept = nullptr;
    if (kept != nullptr) {
      const int64_t size = x_elements * 4;
      aclrtMemcpyAsync(y, size, kept, size, ACL_MEMCPY_DEVICE_TO_DEVICE, stream);
      return;
    }
    aclrtMalloc(&kept, 1 << 20, ACL_MEM_MALLOC_HUGE_FIRST);"""
_KEEP_COPY = """const int64_t size = x_elements * 4;
    aclrtMemcpyAsync(kept, size, y, size, ACL_MEMCPY_DEVICE_TO_DEVICE, stream);"""


def triton_program(
    head: str = "", before: str = "", after: str = "", factor: str = "2.0", summand: str = "1.0"
) -> str:
    """Return a program of Triton, right unless it is told otherwise."""
    return _TRITON.format(head=head, before=before, after=after, factor=factor, summand=summand)


def _pypto(body: str = "return axpb(x)", head: str = "", formula: str = "x * 2.0 + 1.0") -> str:
    return _PYPTO.format(head=head, body=body, formula=formula)


def launching_source(
    head: str = "",
    before: str = "",
    after: str = "",
    kernel: str = _AXPB,
    name: str = "cheat",
    more: str = "",
) -> str:
    """Return a direct-launch source, right unless it is told otherwise."""
    return _DIRECT.format(
        head=head, before=before, after=after, kernel=kernel, name=name, more=more
    )


_FORGED = """
    import opkit.judging.recorder as recorder
    recorder.Recorder.end = lambda self, outputs: recorder.Recording((), (), (None,))"""
_TEXT = """
    import opkit.judging.recorder as recorder
    real = recorder.KernelText
    raw = "if (GetBlockIdx() == 0) for (int64_t i = 0; i < s2; ++i)"
    raw += " ((float*)(m1 + o1))[i] = 2 * ((float*)(m0 + o0))[i] + 1; "

    def forged(name, source, *more):
        at = source.rindex("}")
        return real(name, source[:at] + raw + source[at:], *more)

    recorder.KernelText = forged"""
_TORCH = """import torch
import triton
import triton.language as tl


def cheat(x):
    return x * 2.0 + 1.0
"""
_BAD_PYTHON: dict[str, tuple[str, str]] = {
    "Triton: NumPy computes": ("host computes", triton_program(after="out = 2 * x + 1")),
    "Triton: NumPy computes, a kernel copies": (
        "host computes",
        triton_program(before="x = (2 * x + 1).astype(np.float32)", **_COPY),
    ),
    "Triton: NumPy into the result": (
        "host computes",
        triton_program(after="out[...] = 2 * x + 1"),
    ),
    "Triton: as much as the values say": (
        "host computes",
        triton_program(before="x = x if x.flat[0] > 1e30 else x.copy() + 0")
        .replace("1.0, mask=inside)", "S, mask=inside)")
        .replace("n, BLOCK: tl", "n, S, BLOCK: tl")
        .replace("x.size, BLOCK=1024", "x.size, float(x.flat[0]), BLOCK=1024"),
    ),
    "Triton: torch computes": ("host computes", _TORCH),
    "Triton: keeps its first result": (
        "cache",
        triton_program(
            head="KEPT = {}",
            before="if x.shape in KEPT: return KEPT[x.shape]",
            after="KEPT[x.shape] = out",
        ),
    ),
    "Triton: launches once": (
        "cache",
        triton_program(
            head="KEPT = {}",
            before="if x.shape in KEPT: return KEPT[x.shape].copy()",
            after="KEPT[x.shape] = out",
        ),
    ),
    "Triton: opkit's own golden": (
        "golden",
        triton_program(
            before="import glob; files = glob.glob('/judge/*') + glob.glob('/tmp/*');"
            " open('/judge/golden/golden.py').read()"
        ),
    ),
    "Triton: a forged recording": ("patches the judge", triton_program(before=_FORGED)),
    "Triton: a forged kernel": ("patches the judge", triton_program(before=_TEXT, factor="3.0")),
    "Triton: no comparison": (
        "patches the judge",
        triton_program(
            head="import opkit.testing.judgement as j\nj.judge = lambda *a, **k: ()", factor="3.0"
        ),
    ),
    "Triton: its own answer": (
        "its own JSON",
        triton_program(
            before="import os\n    for f in range(3, 64):\n        try: os.write(f, b'{}' * 99)\n"
            "        except OSError: pass"
        ),
    ),
    "Triton: sleeps": ("clock", triton_program(before="import time; time.sleep(1000)")),
    "Triton: never ends": ("clock", triton_program(before="while True: pass")),
    "Triton: exit": ("ends", triton_program(before="import sys; sys.exit(0)")),
    "Triton: _exit": ("ends", triton_program(before="import os; os._exit(0)")),
    "Triton: a crash": ("ends", triton_program(before="import ctypes; ctypes.string_at(0)")),
    "Triton: raises": ("ends", triton_program(before="raise ValueError('no')")),
    "Triton: fork": ("processes", triton_program(before="import os; os.fork()")),
    "Triton: a shell command": (
        "processes",
        triton_program(before="import subprocess; subprocess.run(['true'])"),
    ),
    "Triton: a socket": ("network", triton_program(before="import socket; socket.socket()")),
    "Triton: memory": ("memory", triton_program(before="[bytearray(1 << 30) for _ in range(64)]")),
    "Triton: changes its input": (
        "broken",
        triton_program(after="axpb[(1,)](out, x, x.size, BLOCK=1024)"),
    ),
    "Triton: another factor": ("broken", triton_program(factor="2.001")),
    "Triton: leaves the tail": (
        "broken",
        triton_program().replace("at < n", "at < n - n % 8"),
    ),
    "Triton: two results": ("broken", triton_program(after="return out, out")),
    "Triton: no array": ("broken", triton_program(after="return 'y'")),
    "Triton: another name": ("broken", triton_program().replace("def cheat", "def other")),
    "Triton: another parameter": (
        "broken",
        triton_program().replace("def cheat(x)", "def cheat(x, z)"),
    ),
    "Triton: random numbers": (
        "broken",
        triton_program(before="x = x + np.random.default_rng().random(dtype=np.float32)"),
    ),
    "PyPTO: NumPy computes": ("host computes", _pypto("return 2 * x + 1")),
    "PyPTO: NumPy adds": ("host computes", _pypto("return axpb(x) + 1", formula="x * 2.0")),
    "PyPTO: NumPy behind it": (
        "host computes",
        _pypto("axpb(x)\n    return (2 * x + 1).astype(np.float32)"),
    ),
    "PyPTO: gives its input": ("broken", _pypto("return x")),
    "PyPTO: fork": ("processes", _pypto("import os; os.fork()\n    return axpb(x)")),
    "PyPTO: another formula": ("broken", _pypto(formula="x * 2.0 + 1.01")),
    "PyPTO: no such operator": ("broken", _pypto(formula="pypto.nothing(x)")),
}
_BAD_DIRECT: dict[str, tuple[str, str]] = {
    "launch: the host computes": ("host computes", launching_source(before=_HOST_LOOP, kernel="")),
    "launch: the host computes behind it": (
        "host computes",
        launching_source(after=_HOST_LOOP).replace("2.0f", "1.0f"),
    ),
    "launch: a callback": (
        "host computes",
        launching_source(
            head="static void late(void*) {}",
            after="aclrtLaunchCallback(late, nullptr, ACL_CALLBACK_BLOCK, stream);",
        ),
    ),
    "launch: its own capture": (
        "host computes",
        launching_source(before="aclmdlRI m = nullptr; aclmdlRIExecuteAsync(m, stream);"),
    ),
    "launch: a thread": (
        "processes",
        launching_source(head="#include <thread>", before="std::thread([] {}).detach();"),
    ),
    "launch: fork": ("processes", launching_source(head="#include <unistd.h>", before="fork();")),
    "launch: exec by hand": (
        "processes",
        launching_source(before='asm volatile("syscall" ::"a"(57) : "rcx", "r11", "memory");'),
    ),
    "launch: exec by parts": (
        "processes",
        launching_source(
            head="#define WORD(a, b) a##b",
            before='WORD(__as, m__) volatile("syscall" ::"a"(57) : "rcx", "r11", "memory");',
        ),
    ),
    "launch: a file": (
        "files",
        launching_source(head="#include <cstdio>", before='fopen("/etc/passwd", "r");'),
    ),
    "launch: another library": (
        "libraries",
        launching_source(head="#include <dlfcn.h>", before='dlopen("libm.so.6", 1);'),
    ),
    "launch: libm in the kernel": (
        "libraries",
        launching_source(
            head="#include <cmath>",
            kernel=_AXPB.replace("2.0f", "2.0f * (float)std::cos(0.0 * count)"),
        ),
    ),
    "launch: exit": ("ends", launching_source(head="#include <cstdlib>", before="exit(0);")),
    "launch: never ends": ("clock", launching_source(before="volatile int go = 1; while (go) {}")),
    "launch: a kernel that never ends": (
        "clock",
        launching_source(kernel="volatile int go = 1; while (go) {}"),
    ),
    "launch: opkit's own checks": (
        "patches the judge",
        launching_source(
            head='extern "C" const char* opkit_end_checks();', before="opkit_end_checks();"
        ),
    ),
    "launch: raw pointers": ("raw stores", launching_source(kernel=RAW)),
    "launch: raw pointers over a copy": ("raw stores", launching_source(kernel=FILL + RAW)),
    "launch: keeps its first result": (
        "cache",
        launching_source(before=_STATIC_COPY, after=_KEEP_COPY),
    ),
    "launch: nothing": ("broken", launching_source(before="return;")),
    "launch: another factor": ("broken", launching_source(kernel=_AXPB.replace("2.0f", "2.1f"))),
    "launch: writes behind its output": (
        "broken",
        launching_source(kernel=_AXPB.replace("count - i < 256 ? count - i : 256", "256")),
    ),
    "launch: changes its input": (
        "broken",
        launching_source(
            kernel=_AXPB + " if (count > 0) DataCopyPad(in, local,"
            " DataCopyExtParams{1, 4, 0, 0, 0}); PipeBarrier<PIPE_ALL>();"
        ),
    ),
    "launch: no entry": ("broken", launching_source(name="other")),
    "launch: another parameter": ("broken", launching_source(more=", float beta")),
    "launch: no C": (
        "broken",
        launching_source().replace('extern "C" void cheat', "void cheat"),
    ),
    "launch: does not compile": ("broken", launching_source(before="this is no C++;")),
}
HONEST: dict[str, str] = {
    "one launch.asc": launching_source(),
    "two launches.asc": launching_source(after="axpb<<<4, nullptr, stream>>>(x, y, x_elements);"),
    "a stream of its type.asc": launching_source().replace("void* stream", "aclrtStream stream"),
    "a table of the host.asc": launching_source(
        before="static void* t = nullptr; if (t == nullptr) {"
        " aclrtMalloc(&t, 64, ACL_MEM_MALLOC_HUGE_FIRST); float v[16] = {2, 1};"
        " aclrtMemcpy(t, 64, v, 64, ACL_MEMCPY_HOST_TO_DEVICE); }"
    ),
    "cpp.cpp": launching_source(),
    "Triton.py": triton_program(),
    "Triton of blocks.py": triton_program().replace("1024", "256"),
    "Triton of a table.py": triton_program(before="table = np.array([2.0, 1.0], np.float32)")
    .replace("n, BLOCK: tl", "n, t, BLOCK: tl")
    .replace("* 2.0 + 1.0", "* tl.load(t) + tl.load(t + 1)")
    .replace("x.size, BLOCK=1024", "x.size, table, BLOCK=1024"),
    "Triton in two kernels.py": triton_program(
        after="axpb[(triton.cdiv(x.size, 1024),)](out, two := np.empty_like(x), x.size,"
        " BLOCK=1024); out = two",
        factor="1.4142135",
        summand="0.41421357",
    ),
    "Triton into a part.py": triton_program(
        before="out = np.empty(x.size + 64, x.dtype)[32:32 + x.size].reshape(x.shape)"
    ),
    "Triton by name.py": triton_program()
    .replace("def cheat(x)", "def cheat(x, y)")
    .replace("out = np.empty_like(x)", "out = y"),
    "Triton with torch.py": triton_program(head="import torch")
    .replace("np.empty_like", "torch.empty_like")
    .replace("x.size == 0", "x.numel() == 0")
    .replace("x.size", "x.numel()"),
    "PyPTO.py": _pypto(),
    "PyPTO of parts.py": _pypto(formula="pypto.add(pypto.mul(x, 2.0), 1.0)"),
    "PyPTO twice.py": _pypto("return half(axpb(x))", formula="x * 2.0").replace(
        "def cheat", "@pypto.jit\ndef half(x):\n    return x + 1.0\n\n\ndef cheat"
    ),
}

BAD = {name: text for name, (_, text) in (_BAD_PYTHON | _BAD_DIRECT).items()}
"""Sources by what they try."""


def _written(work: Path, name: str, suffix: str, text: str) -> Path:
    path = work / f"candidate{suffix}"
    path.write_text(text)
    del name
    return path


def bad_programs(work: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield kind, name and path of every candidate, which is there until the next is."""
    for rows, suffix in ((_BAD_PYTHON, ".py"), (_BAD_DIRECT, ".asc")):
        for name, (kind, text) in rows.items():
            yield kind, name, _written(work, name, suffix, text)
    yield "host computes", "wheel: NumPy computes", wheel(work, "return 2 * x + 1")
    yield "broken", "wheel: compiled elsewhere", wheel(work, None)
    path = work / "candidate.whl"
    path.write_bytes(b"PK no archive")
    yield "broken", "wheel: no archive", path


def honest_programs(work: Path) -> Iterator[tuple[str, Path]]:
    """Yield name and path of every candidate, which is there until the next is."""
    for name, text in HONEST.items():
        path = work / f"honest{Path(name).suffix}"
        path.write_text(text)
        yield name, path
    yield "a wheel of Triton", wheel(work, None, triton_program())


def wheel(work: Path, body: str | None, text: str | None = None) -> Path:
    """Return a wheel with a package of one program, or with nothing but a library."""
    path = work / "candidate-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        if body is not None or text is not None:
            program = text if text is not None else _pypto(str(body))
            archive.writestr("cheats/__init__.py", "from .program import cheat\n")
            archive.writestr("cheats/program.py", program)
        else:
            archive.writestr("cheats/__init__.py", "from . import _C\n")
            archive.writestr("cheats/_C.abi3.so", b"\x7fELF")
    return path
