"""What a kernel asks of this machine: functions that no AI core has are errors at their lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from opkit.errors import BuildError
from opkit.toolchain import compile_kernel
from opkit.toolchain.building.imports import (
    _foreign_words,
    _last_word,
    allocating_names,
    undefined_names,
)

KERNEL = """#include "kernel_operator.h"
%s
extern "C" __global__ __aicore__ void kernel(GM_ADDR x) {
%s
}
"""
# Each reached what judges it: one of them made `opkit test` pass a kernel that writes nothing.
FOREIGN_HEAD = """#include <dlfcn.h>
#include <sys/time.h>
#include <unistd.h>
#include <cstdio>
#include <csetjmp>
#include <csignal>
#include <thread>
extern "C" __attribute__((weak)) int PyRun_SimpleString(const char*);
extern "C" const char* opkit_end_checks();
namespace opkit { struct Device { static Device& get(); }; }
static jmp_buf place;"""
FOREIGN = {
    "dlsym": 'dlsym(RTLD_DEFAULT, "PyGILState_Ensure");',
    "PyRun_SimpleString": 'PyRun_SimpleString("pass");',
    "fopen": 'fopen("golden.py", "w");',
    "write": 'write(3, "", 1);',
    "fork": "fork();",
    "kill": "kill(getppid(), SIGTERM);",
    "setitimer": "setitimer(0, nullptr, nullptr);",
    "execl": 'execl("/bin/true", "true", nullptr);',
    "longjmp": "longjmp(place, 1);",
    "_M_start_thread": "std::thread([] {}).detach();",
    # What the emulator has for those who judge: a kernel has ended its own checks by it.
    "opkit_end_checks": "opkit_end_checks();",
    "get": "opkit::Device::get();",
    "assembly": 'asm volatile("syscall" ::"a"(231), "D"(0));',
}


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    folder = tmp_path_factory.mktemp("imports")
    source = folder / "kernel.cpp"
    calls = (f"if (*x == {at}) {call}" for at, call in enumerate(FOREIGN.values()))
    source.write_text(KERNEL % (FOREIGN_HEAD, "\n".join(calls)))
    with pytest.raises(BuildError) as caught:
        compile_kernel(source, cache_dir=folder / "cache")
    return {error.message: error.line or 0 for error in caught.value.diagnostics}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_function_of_this_machine_is_an_error_at_its_line(
    errors: dict[str, int], name: str
) -> None:
    wanted = f'"{name}"' if name != "assembly" else name
    (message,) = (each for each in errors if wanted in each)
    assert "no AI core" in message
    first = len(FOREIGN_HEAD.splitlines()) + 3
    if not name.startswith("_M"):
        assert errors[message] == first + list(FOREIGN).index(name)


def test_what_computes_prints_and_throws_is_no_function_of_the_machine(tmp_path: Path) -> None:
    body = """float a[8]; memset(a, 0, sizeof(a)); a[0] = std::exp(a[1]) + strlen("x");
    printf("%f", std::sqrt(a[0])); asm volatile("" ::: "memory");
    if (a[0] > 3) throw std::runtime_error(std::string("no"));
    if (a[0] > 2) throw 5;
    if (a[0] > 1) throw "text";
    std::vector<float> more(*x); more[1] = a[1];
    *(volatile float*)x = *std::max_element(a, a + 8) + more[*x - 1];"""
    head = "\n".join(
        f"#include <{name}>"
        for name in ("algorithm", "cmath", "cstdio", "cstring", "stdexcept", "string", "vector")
    )
    image = compile_kernel(KERNEL % (head, body), cache_dir=tmp_path)
    data = image.library.read_bytes()
    assert {"expf", "printf", "strlen"} & set(undefined_names(data))
    assert allocating_names(data) == ("new",)


# Each was no assembly to a pattern over the text.
@pytest.mark.parametrize(
    "text",
    [
        'void f() {\n  asm volatile /* a */ ( /* b */ "nop");\n}',
        'void f() {\n  asm(R"(nop)");\n}',
        "#define THIS(x) x\n#define WORD __asm__ \\\n  volatile\n",
        'void f() {\n  as\\\nm("nop");\n}',
        "\n__attribute__((constructor)) void f();",
        '\n__attribute__((used, section(".text.x,\\"ax\\",@progbits#"))) const char code[1] = {};',
        '\n[[gnu::ifunc("choose")]] int f();',
    ],
)
def test_assembly_and_what_loaders_call_are_found_in_any_spelling(text: str) -> None:
    ((line, what),) = _foreign_words(text)
    assert line == 2
    assert "assembly" in what or "attribute" in what


def test_a_barrier_of_the_compiler_and_a_variable_are_no_assembly() -> None:
    text = 'void f(int section) { asm volatile("" ::: "memory"); g((section)); // asm("nop")\n}'
    assert list(_foreign_words(text)) == []


def test_assembly_that_a_macro_makes_of_parts_is_an_error_at_its_line(tmp_path: Path) -> None:
    source = tmp_path / "kernel.cpp"
    source.write_text(KERNEL % ("#define WORD(a, b) a##b", 'WORD(__as, m__)("nop");'))
    with pytest.raises(BuildError) as caught:
        compile_kernel(source, cache_dir=tmp_path / "cache")
    (error,) = caught.value.diagnostics
    assert "assembly" in error.message
    assert error.line == 4


def test_names_are_told_without_their_classes() -> None:
    assert _last_word("_ZNSt6thread15_M_start_threadESt10unique_ptr") == "_M_start_thread"
    assert _last_word("fopen64") == "fopen64"
