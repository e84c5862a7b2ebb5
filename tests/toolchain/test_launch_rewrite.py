"""Launch syntax becomes plain C++, line for line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkit.errors import BuildError
from opkit.toolchain.source.launch_rewrite import (
    apply_edits,
    body_edits,
    expression_edits,
    launch_edits,
    library_edits,
    print_edits,
    scan_kernels,
)
from opkit.toolchain.source.launch_tree import read_launch_tree
from opkit.toolchain.source.tokens import plain_code, tokenize

FILE = Path("demo.asc")
VECTOR = "::opkit::KernelMode::Vector"


def rewrite(text: str) -> str:
    edits = launch_edits(text, file=FILE, kernels=scan_kernels(text))
    return apply_edits(text, edits, file=FILE).text.removeprefix('#line 1 "demo.asc"\n')


def test_a_plain_launch_becomes_a_call() -> None:
    assert rewrite("add<<<8, nullptr, stream>>>(x, y, n);") == (
        f'::opkit::launch_kernel(add, ::opkit::LaunchConfig("add", {VECTOR}, 8, nullptr, stream)'
        ", x, y, n);"
    )


def test_a_launch_without_arguments_has_no_stray_comma() -> None:
    assert rewrite("hello<<<8, 0, s>>>();").endswith("8, 0, s));")


def test_template_arguments_go_into_a_lambda() -> None:
    assert rewrite("k<float, N><<<n, 0, s>>>(x);") == (
        "::opkit::launch_template([=](auto... opkit_arguments) "
        "{ k<float, N>(opkit_arguments...); }, "
        f'::opkit::LaunchConfig("k", {VECTOR}, n, 0, s), x);'
    )


def test_a_template_whose_arguments_are_deduced_goes_into_a_lambda() -> None:
    text = "template <typename T> __global__ void k(T x) {}\nvoid f() { k<<<1, 0, s>>>(x); }"
    assert "launch_template([=](auto... opkit_arguments) { k(" in rewrite(text)


@pytest.mark.parametrize(
    "callee",
    ["k<A<B<int>>>", "k<A<(1 > 2)>, 3>", "outer::inner<int>::k<2>", "k<sizeof(int)>"],
)
def test_nested_template_arguments_belong_to_the_kernel(callee: str) -> None:
    assert f"{{ {callee}(opkit_arguments...); }}" in rewrite(f"{callee}<<<1, 0, s>>>(x);")


@pytest.mark.parametrize(
    ("callee", "name"),
    [
        ("ns::k", "k"),
        ("::ns::k", "k"),
        ("table[i]", "table[i]"),
        ("(*chosen)", "(*chosen)"),
        ("this->k", "k"),
        ("holder.k", "k"),
        ("choose(a, b)", "choose(a, b)"),
    ],
)
def test_the_callee_is_the_whole_expression(callee: str, name: str) -> None:
    result = rewrite(f"return {callee}<<<1, 0, s>>>(x);")
    assert result.startswith(f"return ::opkit::launch_kernel({callee}, ")
    assert f'LaunchConfig("{name}", ' in result


def test_a_condition_in_front_is_not_part_of_the_callee() -> None:
    assert rewrite("if (a) k<<<1, 0, s>>>(x);").startswith("if (a) ::opkit::launch_kernel(k, ")


def test_lines_keep_their_numbers() -> None:
    text = "int before;\nk<A,\n  B>\n<<<n,\n 0, s>>>\n(\n x,\n y);\nint after;\n"
    result = rewrite(text)
    assert result.count("\n") == text.count("\n")
    assert result.splitlines()[0] == "int before;"
    assert result.splitlines()[8] == "int after;"
    assert result.splitlines()[6].strip() == "x,"


def test_text_without_launches_stays_as_it_is() -> None:
    text = 'auto t = "k<<<1,0,s>>>(x)"; // k<<<1, 0, s>>>(x)\n/* k<<<1>>>() */ V<V<V<int>>> v;\n'
    assert rewrite(text) == text


def test_a_raw_string_is_no_launch() -> None:
    text = 'const char* source = R"x(k<<<1, 0, s>>>(a); ")x";\n'
    assert rewrite(text) == text


def test_an_overloaded_operator_is_no_launch() -> None:
    text = "auto f = operator<<<int>(a, b);"
    assert rewrite(text) == text


def test_a_shift_in_the_configuration_is_no_end() -> None:
    assert "(n >> 1), 0, s)" in rewrite("k<<<(n >> 1), 0, s>>>(x);")
    assert "n >> 1, 0, s)" in rewrite("k<<<n >> 1, 0, s>>>(x);")


def test_macros_in_the_launch_survive() -> None:
    assert rewrite("k<<<BLOCKS(8), 0, STREAM>>>(ARGS);").endswith("BLOCKS(8), 0, STREAM), ARGS);")


@pytest.mark.parametrize(
    "parameter",
    ["__kfc_workspace__ __gm__ uint8_t* workspace", "__gm__ uint8_t* __kfc_workspace__ workspace"],
)
def test_a_marked_workspace_makes_a_mixed_kernel_that_knows_it(parameter: str) -> None:
    text = f"__global__ __aicore__ void k(GM_ADDR x, {parameter}, int n) {{ use(x); }}"
    (kernel,) = scan_kernels(text)
    assert kernel.mode == "::opkit::KernelMode::Mix12"
    (edit,) = body_edits(text, asks_mode=False)
    assert edit.text == " ::opkit::set_system_workspace(reinterpret_cast<uint8_t*>(workspace));"
    assert text[: edit.start].endswith("int n) {")


def test_a_launch_in_a_macro_body_is_rewritten_with_its_continuations() -> None:
    result = rewrite("#define RUN(k) \\\n  k<<<1, 0, s>>> \\\n  (x)\n")
    assert result.startswith("#define RUN(k) \\\n  ::opkit::launch_kernel(k, ")
    assert result.count("\\\n") == 2


def test_two_launches_on_a_line_are_both_rewritten() -> None:
    assert rewrite("a<<<1,0,s>>>(x); b<<<2,0,s>>>(y);").count("launch_kernel") == 2


@pytest.mark.parametrize(
    ("head", "mode"),
    [
        ("__global__ __vector__ void k(int a)", VECTOR),
        ("__vector__ __global__ void k(int a)", VECTOR),
        ('extern "C" __global__ __cube__ void k(int a)', "::opkit::KernelMode::Cube"),
        ("__global__ __mix__(1, 2) void k(int a)", "::opkit::mix_mode(1, 2)"),
        ("template <int N>\n__global__ __mix__(1, R) void k(int a)", "::opkit::mix_mode(1, R)"),
        ("__global__ __aicore__ void k(int a)", VECTOR),
        (
            "__attribute__((noinline)) __global__ __cube__ void k(A<1> a)",
            "::opkit::KernelMode::Cube",
        ),
    ],
)
def test_the_mode_comes_from_the_attributes(head: str, mode: str) -> None:
    (kernel,) = scan_kernels(f"int x;\n{head} {{ int y; }}\n")
    assert (kernel.name, kernel.mode) == ("k", mode)


def test_the_mode_comes_from_the_task_type_where_no_attribute_says_it() -> None:
    body = "{ KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2); }"
    (kernel,) = scan_kernels(f"__global__ __aicore__ void k(GM_ADDR x) {body}")
    assert kernel.mode == "::opkit::KernelMode::Mix12"


def test_a_definition_says_more_than_its_declaration() -> None:
    text = "__global__ void k(int);\n__global__ __cube__ void k(int a) {}\n"
    (kernel,) = scan_kernels(text)
    assert kernel.mode == "::opkit::KernelMode::Cube"


def test_the_branch_that_is_compiled_says_the_mode(tmp_path: Path) -> None:
    source = tmp_path / "main.asc"
    source.write_text(
        "#if CUBE_ONLY\n__global__ __cube__ void k(int a)\n"
        "#else\n__global__ __vector__ void k(int a)\n#endif\n{ work(); }\n"
        "void f() { k<<<1, 0, s>>>(2); }\n"
    )
    tree = read_launch_tree(source, include_dirs=[], foreign=[], copies=tmp_path, arch=2201)
    lines = tree.files[0].rewritten.text.splitlines()[1:]
    constant = "constexpr ::opkit::KernelMode opkit_mode_of_k = ::opkit::KernelMode"
    assert lines[1] == f"{constant}::Cube; __global__ __cube__ void k(int a)"
    assert lines[3] == f"{constant}::Vector; __global__ __vector__ void k(int a)"
    assert lines[5] == "{ if (::opkit::tells_mode(opkit_mode_of_k)) return; work(); }"
    assert "::opkit::AskKernel()" in lines[6]


@pytest.mark.parametrize(
    ("head", "first", "second"),
    [
        (
            "#if ONE\n__global__ __mix__(1, 1)\n#else\n__global__ __mix__(1, 2)\n#endif\n",
            "{0}mix_mode(1, 1); __global__ __mix__(1, 1)",
            "{0}mix_mode(1, 2); __global__ __mix__(1, 2)",
        ),
        (
            "__global__\n#ifdef ONE\n__mix__(1, 1)\n#else\n__mix__(1, 2)\n#endif\n",
            "{0}mix_mode(1, 1); __mix__(1, 1)",
            "{0}mix_mode(1, 2); __mix__(1, 2)",
        ),
    ],
)
def test_a_conditional_inside_the_head_says_the_mode(
    tmp_path: Path, head: str, first: str, second: str
) -> None:
    source = tmp_path / "main.asc"
    text = head + "void k(int a) { work(); }\nvoid f() { k<<<1, 0, s>>>(2); }\n"
    source.write_text(text)
    tree = read_launch_tree(source, include_dirs=[], foreign=[], copies=tmp_path, arch=2201)
    rewritten = tree.files[0].rewritten.text
    constant = "constexpr ::opkit::KernelMode opkit_mode_of_k = ::opkit::"
    assert first.format(constant) in rewritten
    assert second.format(constant) in rewritten
    assert rewritten.count("tells_mode(opkit_mode_of_k)") == 1
    assert len(rewritten.splitlines()) == len(text.splitlines()) + 1


def test_a_kernel_with_cs_linkage_is_no_template_whatever_another_branch_says() -> None:
    # It was taken for a template without instances.
    head = '#ifdef __CCE_KT_TEST__\ntemplate <int kMode>\n#else\nextern "C"\n#endif\n'
    (kernel,) = scan_kernels(f"{head}__global__ __aicore__ void add(GM_ADDR x) {{ }}")
    assert (kernel.name, kernel.is_template) == ("add", False)


def test_a_conditional_behind_template_parameters_says_the_mode_in_the_body(tmp_path: Path) -> None:
    source = tmp_path / "main.asc"
    head = "#if ONE\n__global__ __mix__(1, 1)\n#else\n__global__ __mix__(1, 2)\n#endif\n"
    source.write_text(
        f"template <int n>\n{head}void k(int a)\n{{ work(); }}\n"
        "void f() { k<3><<<1, 0, s>>>(2); }\n"
    )
    tree = read_launch_tree(source, include_dirs=[], foreign=[], copies=tmp_path, arch=2201)
    rewritten = tree.files[0].rewritten.text
    constant = "constexpr ::opkit::KernelMode opkit_mode_of_k = ::opkit::"
    expected = (
        f"void k(int a)\n{{\n#if ONE\n{constant}mix_mode(1, 1);\n#else\n{constant}mix_mode(1, 2);\n"
        "#endif\n#line 8\n if (::opkit::tells_mode(opkit_mode_of_k)) return; work(); }\n"
    )
    assert expected in rewritten


def test_a_pointer_has_the_mode_that_all_kernels_share() -> None:
    text = "__global__ __cube__ void a(int) {}\nvoid f() { p<<<1, 0, s>>>(1); }"
    assert "::opkit::KernelMode::Cube" in rewrite(text)


def test_a_pointer_asks_its_kernel_where_kernels_differ_in_mode(tmp_path: Path) -> None:
    source = tmp_path / "main.asc"
    source.write_text(
        "__global__ __cube__ void a(int) {}\n__global__ __vector__ void b(int);\n"
        "template <typename T> __global__ __mix__(1, 2) void c(T t)\n{ use(t); }\n"
        "void f() { p<<<1, 0, s>>>(1); a<<<1, 0, s>>>(1); }\n"
    )
    tree = read_launch_tree(source, include_dirs=[], foreign=[], copies=tmp_path, arch=2201)
    lines = tree.files[0].rewritten.text.splitlines()[1:]
    assert "{ if (::opkit::tells_mode(::opkit::KernelMode::Cube)) return;}" in lines[0]
    assert "tells_mode" not in lines[1]
    assert lines[3] == "{ if (::opkit::tells_mode(::opkit::mix_mode(1, 2))) return; use(t); }"
    assert 'LaunchConfig("p", ::opkit::AskKernel(), 1' in lines[4]
    assert f'LaunchConfig("a", {VECTOR.replace("Vector", "Cube")}, 1' in lines[4]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("k<<<1, 0, s>>(x);", "has no >>>"),
        ("k<<<1, 0, s>>>;", "no argument list"),
        ("k<<<1, 0, s>>>(x;", "has no end"),
        ("k<<<>>>(x);", "how many blocks"),
    ],
)
def test_a_broken_launch_is_refused_with_its_position(text: str, message: str) -> None:
    with pytest.raises(BuildError) as caught:
        rewrite(f"\n  {text}\n")
    diagnostic = caught.value.diagnostics[0]
    assert message in diagnostic.message
    assert diagnostic.line == 2
    assert diagnostic.source_line == f"  {text}"


def test_columns_behind_an_edit_lead_back_to_the_users() -> None:
    text = "int a;\n  add<<<8, 0, s>>>(x, wrong);\n"
    edits = launch_edits(text, file=FILE)
    rewritten = apply_edits(text, edits, file=FILE)
    ours = rewritten.text.splitlines()[2]
    assert (
        rewritten.user_column(2, ours.index("wrong") + 1) == text.splitlines()[1].index("wrong") + 1
    )
    assert rewritten.user_column(1, 5) == 5
    assert rewritten.user_column(2, ours.index("launch_kernel") + 1) == 3


@given(st.text(alphabet="ab<>()[]{};,:'\"/*\\\n #R", max_size=60))
def test_tokens_joined_are_the_text(text: str) -> None:
    assert "".join(token.text for token in tokenize(text)) == text


def test_a_header_with_a_launch_is_copied_and_others_are_read_in_place(tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "kernel.h").write_text("__global__ __cube__ void k(int a) {}\n")
    (tmp_path / "inc" / "launch.h").write_text(
        '#include "../kernel.h"\ninline void go() { k<<<1, 0, s>>>(1); }\n'
    )
    (tmp_path / "plain.h").write_text("int plain;\n")
    source = tmp_path / "main.asc"
    source.write_text('#include "plain.h"\n#include <launch.h>\nint main() { go(); }\n')
    tree = read_launch_tree(
        source, include_dirs=[tmp_path / "inc"], foreign=[], copies=tmp_path / "copies", arch=2201
    )
    assert [file.source.name for file in tree.files] == ["launch.h", "main.asc"]
    header, main = (file.rewritten.text for file in tree.files)
    assert "::opkit::KernelMode::Cube" in header
    assert f'#include "{tree.files[0].copy}"' in main
    assert f'#include "{tmp_path / "plain.h"}"' in main
    assert f'#include "{tmp_path / "kernel.h"}"' in header
    assert main.startswith(f'#line 1 "{source}"\n')


def test_a_source_without_launches_is_not_copied(tmp_path: Path) -> None:
    source = tmp_path / "main.asc"
    source.write_text("int main() {}\n")
    tree = read_launch_tree(source, include_dirs=[], foreign=[], copies=tmp_path, arch=2201)
    assert tree.files == ()
    assert tree.source_copy is None


@pytest.mark.parametrize(
    ("call", "is_ours"),
    [
        ('printf("a");', True),
        ('if (x) ::printf("a");', True),
        ('return printf("a");', True),
        ('std::printf("a");', False),
        ('AscendC::printf("a");', False),
        ('log.printf("a");', False),
        ("int printf(const char*);", False),
        ("auto p = printf;", False),
        ('"printf(1)";', False),
    ],
)
def test_a_plain_printf_becomes_the_kernels_where_there_are_kernels(
    call: str, is_ours: bool
) -> None:
    text = f"__global__ void kernel() {{ {call} }}\n"
    edits = print_edits(text)
    assert bool(edits) is is_ours
    assert all(text[edit.start : edit.end].lstrip(":") == "printf" for edit in edits)
    assert print_edits(call) == ()


def test_an_entry_stands_behind_each_kernel_of_a_library() -> None:
    text = "__global__ __cube__ void a() { if (1) {} }\ntemplate <int N> __global__ void b() {}\n"
    text += "__global__ void declared();\n"
    (edit,) = library_edits(text)
    assert text[: edit.start].endswith("if (1) {} }")
    assert '<&a> opkit_library_entry_a("a", ::opkit::KernelMode::Cube)' in edit.text
    kernels = scan_kernels("template <int N> __global__ __mix__(1, 2) void b() {}")
    (end,) = expression_edits(text, ["ns::b<3>"], kernels)
    assert end.start == len(text)
    assert '<&ns::b<3>> opkit_library_entry_0("ns::b<3>", ::opkit::mix_mode(1, 2))' in end.text


def test_plain_code_keeps_lines_and_loses_comments_and_literals() -> None:
    text = (
        'int a = 1\'000\'000; // it\'s\nchar c = \'x\'; /* two\nlines */ f(L"a\\"b", R"x("\n)x");\n'
    )
    assert plain_code(text) == "int a = 1'000'000;  \nchar c =  ; \n f( , \n);\n"
    # What ends like a prefix is none, and an apostrophe is no literal.
    assert plain_code('#error don\'t use "it"\nMAX_L"abc"') == "#error don't use  \nMAX_L "
