"""Kernel templates under their plain name: found, and their instances chosen by the tiling key."""

from __future__ import annotations

import pytest

from opkit.errors import BuildError
from opkit.toolchain import is_kernel_template, twin_entry

DECLARED = (
    "ASCENDC_TPL_ARGS_DECL(Sum, ASCENDC_TPL_UINT_DECL(mode, 2, ASCENDC_TPL_UI_LIST, 4, 7));\n"
    "ASCENDC_TPL_SEL(ASCENDC_TPL_ARGS_SEL("
    "ASCENDC_TPL_UINT_SEL(mode, ASCENDC_TPL_UI_LIST, 4, 7)));\n"
)


def test_each_instance_is_called_with_all_arguments() -> None:
    before, behind = twin_entry(DECLARED, kernel="sum", op="Sum", arguments=2)
    assert before == ""
    assert "void sum(GM_ADDR argument_0, GM_ADDR argument_1) {" in behind
    for key, argument in ((0, 4), (1, 7)):
        call = f"if (::opkit::tiling_key_is({key}u)) return sum<{argument}>(argument_0, argument_1)"
        assert call in behind


def test_a_plain_function_needs_none() -> None:
    text = 'extern "C" __global__ __aicore__ void sum(GM_ADDR x) {}'
    assert twin_entry(text, kernel="sum", op="Sum", arguments=1) == ("", "")


def test_a_template_without_declarations_is_refused() -> None:
    text = "template <int a> __global__ __aicore__ void sum(GM_ADDR x) {}"
    with pytest.raises(BuildError, match="Sum: its kernel is a template"):
        twin_entry(text, kernel="sum", op="Sum", arguments=1)


@pytest.mark.parametrize(
    ("text", "is_template"),
    [
        ("template <uint32_t a, int b>\n__global__ __aicore__ void sum(GM_ADDR x) {}", True),
        ("template <typename T>\ninline __global__ __aicore__ void sum(GM_ADDR x) {}", True),
        ("template <int a>\n__aicore__ inline void sum(int x) {}", False),
        ("template <int a>\n__global__ __aicore__ void summed(GM_ADDR x) {}", False),
        ("template <int a> class A {};\n__global__ __aicore__ void sum(GM_ADDR x) {}", False),
    ],
)
def test_a_kernel_template_is_known_by_its_head(text: str, is_template: bool) -> None:
    assert is_kernel_template(text, "sum") is is_template


@pytest.mark.parametrize(
    ("head", "is_template"),
    [
        ("template <int N> __global__ __aicore__ void", True),
        # Which branch holds, only the preprocessed text says.
        ('#ifdef A\ntemplate <int N>\n#else\nextern "C"\n#endif\n__global__ __aicore__ void', True),
        # Another function's parameters were taken for the kernel's.
        ("template <int N> void f(); __global__ __aicore__ void", False),
        ('extern "C" __global__ __aicore__ void', False),
    ],
)
def test_a_template_of_any_branch_is_one(head: str, is_template: bool) -> None:
    assert is_kernel_template(f"{head} sum(GM_ADDR x) {{}}\n", "sum") is is_template
    assert not is_kernel_template(f"{head} sum(GM_ADDR x) {{}}\n", "other")
