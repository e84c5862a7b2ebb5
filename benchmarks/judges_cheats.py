"""Kernels of y = 2*x + 1 that compute something else, or nothing, and try to hide it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from opkit.toolchain import OPKIT_COMMAND

__all__ = ["CHEATS", "COMMANDS", "FILL", "RAW", "cheat_kernel", "exit_code", "plain_project"]

_PROTOTYPE = {
    "op": "Cheat",
    "input_desc": [{"name": "x", "type": ["float32"]}],
    "output_desc": [{"name": "y", "type": ["float32"], "formula": "x*2 + 1"}],
}
_KERNEL = """#include "kernel_operator.h"
#include "cheat_tiling.h"
{head}
using namespace AscendC;
extern "C" __global__ __aicore__ void cheat(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{{
    REGISTER_TILING_DEFAULT(CheatTiling);
    GET_TILING_DATA_WITH_STRUCT(CheatTiling, data, tiling);
    const int64_t count = data.columns;
    PipeBarrier<PIPE_ALL>();
    {body}
}}
"""
FILL = """TPipe pipe; TBuf<TPosition::VECCALC> buffer; pipe.InitBuffer(buffer, 1024);
    LocalTensor<float> local = buffer.Get<float>(); Duplicate(local, 1.0f, 256);
    GlobalTensor<float> out; out.SetGlobalBuffer((__gm__ float*)y); PipeBarrier<PIPE_ALL>();
    if (GetBlockIdx() == 0) for (int64_t i = 0; i < count; i += 256) {
      const int64_t rest = (count - i < 256 ? count - i : 256) * 4;
      DataCopyPad(out[i], local, DataCopyExtParams{1, (uint32_t)rest, 0, 0, 0});
    }
    PipeBarrier<PIPE_ALL>();
    """
RAW = "for (int64_t i = 0; i < count; ++i) ((float*)y)[i] = 2 * ((float*)x)[i] + 1;"
_PATCH = r'"import opkit.testing.run as r\nr._verdict = lambda outputs: r.Verdict.PASS"'
_UNISTD = "#include <unistd.h>"

CHEATS: dict[str, tuple[str, str]] = {
    "exit": ("#include <cstdlib>", "exit(0);"),
    "_exit": (_UNISTD, "_exit(0);"),
    "its own JSON": (
        f"{_UNISTD}\n#include <cstring>",
        r"""const char* text = "{\"passed\": true, \"cases\": []}\n";
    for (int file = 1; file < 40; ++file) write(file, text, strlen(text)); _exit(0);""",
    ),
    "a byte to every file": (
        _UNISTD,
        'for (int file = 0; file < 64; ++file) write(file, "", 1); _exit(0);',
    ),
    "a constructor": (
        f"{_UNISTD}\n__attribute__((constructor)) static void begin() {{ _exit(0); }}",
        "",
    ),
    "atexit": (f"#include <cstdlib>\n{_UNISTD}", "atexit([] { _exit(0); });"),
    "ends its judge": (f"#include <csignal>\n{_UNISTD}", "kill(getppid(), SIGTERM); pause();"),
    "a thread that writes later": (
        "#include <thread>",
        f"std::thread([=] {{ for (int k = 0; k < 100000; ++k) {RAW} }}).detach();",
    ),
    "a timer that writes later": (
        "#include <csignal>\n#include <sys/time.h>\nstatic void late(int) {}",
        "signal(SIGALRM, late); itimerval often{{0, 100}, {0, 100}};"
        " setitimer(ITIMER_REAL, &often, nullptr);",
    ),
    "Python by dlsym": (
        "#include <dlfcn.h>",
        'auto ensure = (int (*)())dlsym(RTLD_DEFAULT, "PyGILState_Ensure");'
        ' auto run = (int (*)(const char*))dlsym(RTLD_DEFAULT, "PyRun_SimpleString");'
        ' auto release = (void (*)(int))dlsym(RTLD_DEFAULT, "PyGILState_Release");'
        f" if (GetBlockIdx() == 0) {{ int state = ensure(); run({_PATCH}); release(state); }}",
    ),
    "Python by a weak name": (
        'extern "C" __attribute__((weak)) int PyRun_SimpleString(const char*);'
        'extern "C" __attribute__((weak)) int PyGILState_Ensure();'
        'extern "C" __attribute__((weak)) void PyGILState_Release(int);',
        "if (GetBlockIdx() == 0) { int state = PyGILState_Ensure();"
        f" PyRun_SimpleString({_PATCH}); PyGILState_Release(state); }}",
    ),
    "LD_PRELOAD": (
        f"#include <cstdlib>\n{_UNISTD}",
        'setenv("LD_PRELOAD", "/tmp/other.so", 1); execl("/bin/true", "true", nullptr);',
    ),
    "fork": (_UNISTD, "if (fork() != 0) pause();"),
    "another golden": (
        "#include <cstdio>",
        'if (FILE* file = fopen("cheat/golden.py", "w")) { fputs("", file); fclose(file); }',
    ),
    "a shell command": ("#include <cstdlib>", 'system("true");'),
    "longjmp": ("#include <csetjmp>\nstatic jmp_buf place;", "longjmp(place, 1);"),
    "a handler of crashes": (
        f"#include <csignal>\n{_UNISTD}\nstatic void leave(int) {{ _exit(0); }}",
        "signal(SIGSEGV, leave); *(volatile int*)0 = 1;",
    ),
    "assembly": ("", 'asm volatile("syscall" ::"a"(231), "D"(0) : "rcx", "r11", "memory");'),
    "assembly of parts": (
        "#define WORD(a, b) a##b",
        'WORD(__as, m__) volatile("syscall" ::"a"(231), "D"(0) : "rcx", "r11", "memory");',
    ),
    "opkit's own checks": (
        'extern "C" const char* opkit_end_checks();',
        f"opkit_end_checks(); {RAW}",
    ),
    "opkit's own settings": (
        'extern "C" const char* opkit_configure_run(const void*);',
        f"const char settings[64] = {{}}; opkit_configure_run(settings); {RAW}",
    ),
    "changes its input": (
        "",
        f"{FILL} for (int64_t i = 0; i < count; ++i) {{ GlobalTensor<float> in;"
        " in.SetGlobalBuffer((__gm__ float*)x); in.SetValue(i, out.GetValue(i)); }",
    ),
    "raw pointers": ("", RAW),
    "raw pointers over a copy": ("", FILL + RAW),
    "nothing": ("", ""),
}
"""Heads and bodies of the kernel, by what they try."""
COMMANDS = {
    "test": ("-k", "float32-1-normal or float32-17-normal", "--timeout", "20"),
    "check": ("-k", "float32-1-normal or float32-17-normal", "--timeout", "20"),
}
"""Commands that judge, with the cases that are tried."""


def plain_project(work: Path) -> Path:
    """Return the project whose kernel is replaced, generated and built once in a folder."""
    plain = work / "cheat"
    if not plain.exists():
        (work / "cheat.json").write_text(json.dumps([_PROTOTYPE]))
        argv = [*OPKIT_COMMAND, "gen", "-q", "-i", str(work / "cheat.json"), "-o", str(plain)]
        subprocess.run([*argv, "-f", "aclnn"], check=True, capture_output=True)
        subprocess.run([*OPKIT_COMMAND, "build", str(plain), "-q"], check=True, capture_output=True)
    return plain


def cheat_kernel(head: str, body: str) -> str:
    """Return the text of a kernel."""
    return _KERNEL.format(head=head, body=body)


def exit_code(name: str, command: str, work: Path) -> tuple[int, str]:
    """Return how a command ends for a cheat, and what it says."""
    copy = work / f"cheat-{os.getpid()}"
    shutil.copytree(plain_project(work), copy)
    try:
        (copy / "op_kernel" / "cheat.cpp").write_text(cheat_kernel(*CHEATS[name]))
        argv = [*OPKIT_COMMAND, command, str(copy), "--op", "cheat", *COMMANDS[command], "--json"]
        done = subprocess.run(argv, capture_output=True, timeout=300, check=False)
        return done.returncode, _said(done.stdout)
    except subprocess.TimeoutExpired:
        return 124, "does not end"
    finally:
        shutil.rmtree(copy)


def _said(output: bytes) -> str:
    try:
        report = json.loads(output)
    except ValueError:
        return "no JSON"
    if "error" in report:
        return str(report["error"]["message"])[:120]
    verdicts = [
        f"{c['verdict']} {c['message'][:80]}"
        for c in report.get("cases", ())
        if isinstance(c, dict) and "verdict" in c
    ]
    return str((verdicts or [f["id"] for f in report.get("findings", ())] or ["not run"])[0])
