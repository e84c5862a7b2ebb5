"""Sources that decide by the kind of core while they are compiled, edited."""

from __future__ import annotations

from pathlib import Path

import pytest

from opkit.toolchain.source.core_kinds import core_kind_edits
from opkit.toolchain.source.launch_rewrite import MIXED, apply_edits
from opkit.toolchain.source.launch_tree import read_launch_tree


def rewrite(text: str) -> str:
    return apply_edits(text, core_kind_edits(text), file=Path("a.h")).text.partition("\n")[2]


def test_a_member_by_kind_becomes_a_function_that_calls_one_of_two() -> None:
    text = (
        "struct K {\n"
        "  template <int C = g_coreType> void run(P const& p, A<int, 2>& q);\n"
        "  template <> void run<AscendC::AIC>(P const& p, A<int, 2>& q) { cube(p); }\n"
        "  template <> void run<AscendC::AIV>(P const& p, A<int, 2>& q) {}\n"
        "};\n"
    )
    lines = rewrite(text).splitlines()
    assert lines[1].strip() == (
        "void run(P const& p, A<int, 2>& q) { "
        "if (g_coreType == ::AscendC::AIC) return this->template run<::AscendC::AIC>(p, q); "
        "if (g_coreType == ::AscendC::AIV) return this->template run<::AscendC::AIV>(p, q); }"
    )
    assert lines[2].strip() == (
        "template <int opkit_kind, ::std::enable_if_t<opkit_kind == (AscendC::AIC), int> = 0> "
        "void run(P const& p, A<int, 2>& q) { cube(p); }"
    )


def test_a_member_with_a_body_keeps_it_for_the_other_kind() -> None:
    text = (
        "class K { template <int C = g_coreType> void f(int a) { rest(); }\n"
        "template <> void f<AscendC::AIC>(int a) {} };"
    )
    first = rewrite(text).splitlines()[0]
    assert "AIC>(a);  rest(); }" in first
    assert "AIV" not in first


def test_a_class_specialised_in_a_class_takes_one_parameter_more() -> None:
    text = (
        "struct K {\ntemplate <class U> struct H { using type = U; };\n"
        "template <> struct H<void> {};\n};"
    )
    lines = rewrite(text).splitlines()
    assert lines[1].startswith("template <class U, typename OpkitFull = void> struct H {")
    assert lines[2] == "template <typename OpkitFull> struct H<void, OpkitFull> {};"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if constexpr (g_coreType == AscendC::AIV) {}", "if  (g_coreType == AscendC::AIV) {}"),
        (
            "constexpr int f = n::Flag<M, g_coreType>::id;",
            "const int f = (g_coreType == ::AscendC::AIC ? n::Flag<M,::AscendC::AIC>::id "
            ": n::Flag<M,::AscendC::AIV>::id);",
        ),
        ("inline[host, aicore] int f();", "inline  int f();"),
        ("__attribute__((aic)) void f();", " void f();"),
        ("[[bisheng::core_ratio(1, 2)]] void f();", " void f();"),
    ],
)
def test_what_is_decided_while_compiling_is_decided_later(text: str, expected: str) -> None:
    assert rewrite(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "if constexpr (sizeof(T) == 2) {}",
        "template <> struct A<void> {};",
        "template <> void f<AscendC::AIC>(int a) {}",
        "__attribute__((noinline)) void f();",
        "x = list[host];",
        'auto s = "g_coreType [aicore]";',
    ],
)
def test_everything_else_stays_as_it_is(text: str) -> None:
    assert rewrite(text) == text


def test_a_macro_marks_kernels_and_attributes_say_their_mode(tmp_path: Path) -> None:
    (tmp_path / "macros.h").write_text("#define KERNEL __global__ __aicore__\n")
    source = tmp_path / "a.asc"
    source.write_text(
        '#include "macros.h"\nKERNEL __attribute__((aic)) void cube(int a) {}\n'
        "[[bisheng::core_ratio(1, 1)]] KERNEL void both(int a) {}\nKERNEL void plain(int a) {}\n"
        "auto kind = g_coreType;\n"
    )
    tree = read_launch_tree(source, include_dirs=[], foreign=[], copies=tmp_path, arch=2201)
    assert {kernel.name: kernel.mode for kernel in tree.kernels} == {
        "cube": "::opkit::KernelMode::Cube",
        "both": "::opkit::mix_mode(1, 1)",
        "plain": MIXED,
    }
