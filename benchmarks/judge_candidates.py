"""Candidates for `opkit judge`: kernels, host code and projects that cheat or are broken.

All are of y = 2*x + 1. Those of judges_cheats.py are among them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from judges_cheats import CHEATS, FILL, RAW, cheat_kernel, plain_project

__all__ = ["bad_candidates", "cheat", "cheat_kernel", "plain_project"]

_UNISTD = "#include <unistd.h>"
_STDIO = "#include <cstdio>"
_FLOATS = "LocalTensor<float>"
_TILE = f"""TPipe pipe; TBuf<TPosition::VECCALC> buffer; pipe.InitBuffer(buffer, 1024);
    {_FLOATS} local = buffer.Get<float>();
    GlobalTensor<float> in; in.SetGlobalBuffer((__gm__ float*)x);
    GlobalTensor<float> out; out.SetGlobalBuffer((__gm__ float*)y);
    """


def _right(before: str = "", factor: str = "2.0f", rest: str = "count - i", after: str = "") -> str:
    """Return a body that computes, on one core, and does something beside it."""
    return f"""{_TILE}
    if (GetBlockIdx() == 0) {{
      {before}
      for (int64_t i = 0; i < count; i += 256) {{
        const uint32_t rest = ({rest}) < 256 ? ({rest}) : 256;
        DataCopyPad(local, in[i], DataCopyExtParams{{1, rest * 4, 0, 0, 0}},
                    DataCopyPadExtParams<float>());
        PipeBarrier<PIPE_ALL>();
        Muls(local, local, {factor}, (int32_t)rest); PipeBarrier<PIPE_ALL>();
        Adds(local, local, 1.0f, (int32_t)rest); PipeBarrier<PIPE_ALL>();
        DataCopyPad(out[i], local, DataCopyExtParams{{1, rest * 4, 0, 0, 0}});
        PipeBarrier<PIPE_ALL>();
      }}
      {after}
    }}"""


_KEPT = """static float kept[256]; static bool is_kept = false;"""
_GIVE_KEPT = """if (is_kept && count <= 256) {
        for (int64_t i = 0; i < count; ++i) local.SetValue(i, kept[i]);
        PipeBarrier<PIPE_ALL>();
        DataCopyPad(out, local, DataCopyExtParams{1, (uint32_t)count * 4, 0, 0, 0});
        PipeBarrier<PIPE_ALL>(); return; }"""
_KEEP = "for (int64_t i = 0; i < count && i < 256; ++i) kept[i] = ((float*)y)[i]; is_kept = true;"

_KERNELS: dict[str, tuple[str, str, str]] = {
    # kind: what it tries, in a word
    "keeps its first results": ("cache", _KEPT, _right(_GIVE_KEPT, after=_KEEP)),
    "computes once": (
        "cache",
        "static int launches = 0;",
        _right("if (launches++ > 0) return;"),
    ),
    "computes every other launch": (
        "cache",
        "static int launches = 0;",
        _right("if (launches++ % 2) return;"),
    ),
    "stays in the workspace": (
        "cache",
        "",
        _right(
            "if (((float*)workspace)[0] == 7.0f) return;", after="((float*)workspace)[0] = 7.0f;"
        ),
    ),
    "sleeps": ("clock", _UNISTD, _right("usleep(1000);")),
    "reads the clock": (
        "clock",
        "#include <chrono>",
        _right("if (std::chrono::steady_clock::now().time_since_epoch().count() == 0) return;"),
    ),
    "never ends": ("clock", "", "volatile int go = 1; while (go) {}"),
    "a socket": ("network", "#include <sys/socket.h>", _right("socket(AF_INET, SOCK_STREAM, 0);")),
    "reads the memory of processes": (
        "memory of others",
        _STDIO,
        _right('if (FILE* file = fopen("/proc/self/mem", "r")) fclose(file);'),
    ),
    "reads wild addresses": (
        "memory of others",
        "",
        _right("volatile float* wild = (float*)0x1234; if (*wild == 1.0f) return;"),
    ),
    "maps memory": (
        "memory of others",
        "#include <sys/mman.h>",
        _right("mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);"),
    ),
    "libm": ("libraries", "#include <cmath>", _right("local.SetValue(0, std::sin((float)count));")),
    "malloc": (
        "libraries",
        "#include <cstdlib>",
        _right("volatile float* more = (float*)malloc(64); more[0] = 1; free((void*)more);"),
    ),
    "raw stores behind GetValue": (
        "raw stores",
        "",
        "GlobalTensor<float> out; out.SetGlobalBuffer((__gm__ float*)y);"
        " if (GetBlockIdx() == 0 && count > 0) {"
        f" volatile float v = out.GetValue(0); (void)v; {RAW} }}",
    ),
    "memcpy to its output": (
        "raw stores",
        "#include <cstring>",
        _right(after="if (count > 0) memcpy((void*)y, (void*)x, count * 4);"),
    ),
    "throws": ("ends", "#include <stdexcept>", 'throw std::runtime_error("no");'),
    "recursion without end": (
        "ends",
        "static int deeper(volatile int n) { return n + deeper(n + 1); }",
        "volatile int end = deeper(0); (void)end;",
    ),
    "ones": ("constants", "", FILL),
    "leaves the tail": ("broken", "", _right(rest="(count - i) / 8 * 8 + 0")),
    "writes behind its output": ("broken", "", _right(rest="(int64_t)256")),
    "another factor": ("broken", "", _right(factor="2.0001f")),
    "no barriers": ("broken", "", _right().replace("PipeBarrier<PIPE_ALL>();", "")),
    "changes its input": (
        "broken",
        "",
        _right(
            after="if (count > 0) { Duplicate(local, 3.0f, 64); PipeBarrier<PIPE_ALL>();"
            " DataCopyPad(in, local, DataCopyExtParams{1, 4, 0, 0, 0}); PipeBarrier<PIPE_ALL>(); }"
        ),
    ),
    "does not compile": ("broken", "", "this is no C++;"),
}
_HOSTS: dict[str, tuple[str, str, str]] = {
    "host: fork": ("processes", _UNISTD, "if (fork() == 0) _exit(0);"),
    "host: a shell command": ("processes", "#include <cstdlib>", 'system("true");'),
    "host: exec by hand": (
        "processes",
        "",
        'asm volatile("syscall" ::"a"(57) : "rcx", "r11", "memory");',
    ),
    "host: a thread": ("processes", "#include <thread>", "std::thread([] {}).detach();"),
    "host: exit": ("ends", "#include <cstdlib>", "exit(0);"),
    "host: a constructor": (
        "ends",
        f"{_UNISTD}\n__attribute__((constructor)) static void begin() {{ _exit(0); }}",
        "",
    ),
    "host: a file": ("files", _STDIO, 'if (FILE* f = fopen("/tmp/x", "w")) fclose(f);'),
    "host: a stream": ("files", "#include <fstream>", 'std::ofstream("/tmp/x") << 1;'),
    "host: a socket": ("network", "#include <sys/socket.h>", "socket(AF_INET, SOCK_STREAM, 0);"),
    "host: another library": ("libraries", "#include <dlfcn.h>", 'dlopen("libm.so.6", 1);'),
    "host: never ends": ("clock", "", "volatile int go = 1; while (go) {}"),
    "host: memory": (
        "memory",
        "#include <cstring>\n#include <new>",
        "for (int i = 0; i < 64; ++i) memset(operator new(1L << 30), 1, 1L << 30);",
    ),
}


def cheat(name: str) -> tuple[str, str, str]:
    """Return kind, head and body of a kernel by its name."""
    return _KERNELS[name]


def bad_candidates(work: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield kind, name and folder of every candidate, which is there until the next is."""
    kinds = {"raw pointers": "raw stores", "raw pointers over a copy": "raw stores"}
    kernels = {
        name: (kinds.get(name, name), head, body) for name, (head, body) in CHEATS.items()
    } | _KERNELS
    for name, (kind, head, body) in kernels.items():
        text = cheat_kernel(head, body)
        yield from _changed(work, kind, name, _writes("op_kernel/cheat.cpp", lambda old, t=text: t))
    for name, (kind, head, body) in _HOSTS.items():
        yield from _changed(
            work,
            kind,
            name,
            _writes(
                "op_host/cheat.cpp",
                lambda old, h=head, b=body: f"{h}\n" + _into_tiling(old, b),
            ),
        )
    yield from _changed(
        work,
        "files",
        "includes a file of the machine",
        _writes("op_kernel/cheat.cpp", lambda old: f'#include "/etc/hostname"\n{old}'),
    )
    yield from _changed(work, "own golden", "another formula and golden", _own_golden)
    yield from _changed(work, "broken", "without a kernel", _without_kernel)


def _into_tiling(text: str, body: str) -> str:
    at = text.index("TilingFunc(gert::TilingContext* context)")
    brace = text.index("{", at) + 1
    return text[:brace] + body + text[brace:]


def _writes(name: str, change: Callable[[str], str]) -> Callable[[Path], None]:
    def run(folder: Path) -> None:
        path = folder / name
        path.write_text(change(path.read_text()))

    return run


def _own_golden(folder: Path) -> None:
    for name in ("cheat.json", "cheat/golden.py"):
        path = folder / name
        path.write_text(path.read_text().replace("x*2 + 1", "x*3 + 1").replace("2 * x", "3 * x"))
    _writes("op_kernel/cheat.cpp", lambda old: old.replace("2.0f", "3.0f"))(folder)


def _without_kernel(folder: Path) -> None:
    (folder / "op_kernel" / "cheat.cpp").unlink()


def _changed(
    work: Path, kind: str, name: str, change: Callable[[Path], None]
) -> Iterator[tuple[str, str, Path]]:
    folder = work / "candidate"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(plain_project(work), folder, ignore=shutil.ignore_patterns("build"))
    change(folder)
    yield kind, name, folder
    shutil.rmtree(folder, ignore_errors=True)
