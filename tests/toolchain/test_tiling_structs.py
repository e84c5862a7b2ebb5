"""Which struct GET_TILING_DATA reads in an instance; test_kernel_templates.py builds and runs."""

from __future__ import annotations

import pytest

from opkit.errors import BuildError
from opkit.toolchain.source.kernel_templates import Instance
from opkit.toolchain.source.structs import tiling_structs

KERNEL = "template <typename T, int N = (1 + 2), bool B> void kernel(unsigned char* x) {}"


def instances(*structs: str | None) -> list[Instance]:
    return [
        Instance(("half", str(number), "1"), number, None, struct)
        for number, struct in enumerate(structs)
    ]


def test_a_kernel_whose_combinations_name_no_struct_is_compiled_as_it_is() -> None:
    assert tiling_structs(KERNEL, "kernel", instances(None, None)) == ("", "")


def test_one_struct_of_all_combinations_is_read_without_a_default() -> None:
    before, behind = tiling_structs("", "kernel", instances("Own", "Own"))
    assert before == "#define OPKIT_TILING_SELECTED Own\n"
    assert behind == ""


def test_several_structs_are_chosen_by_the_kernels_own_template_arguments() -> None:
    before, behind = tiling_structs(KERNEL, "kernel", instances(None, "Own", "space::Other"))
    assert "template <typename Default, typename, uint64_t, uint64_t>" in before
    assert "T, static_cast<uint64_t>(N), static_cast<uint64_t>(B)>::type" in before
    assert "TilingOfInstance<Default, half, 0, 1>" not in behind
    assert "TilingOfInstance<Default, half, 1, 1> {\n  using type = ::Own;" in behind
    assert "TilingOfInstance<Default, half, 2, 1> {\n  using type = ::space::Other;" in behind


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("void kernel(int);", "its template parameters are not found"),
        ("template <typename T, int> void kernel(T);", "its template parameter 'int' has no name"),
    ],
)
def test_a_head_that_cannot_be_read_is_an_error(text: str, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        tiling_structs(text, "kernel", instances("Own", "Other"))
