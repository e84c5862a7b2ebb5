"""Kernels that are templates: what is declared, and what the tiling function then chooses."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from opkit import runtime
from opkit.errors import BuildError, UsageError
from opkit.toolchain import Artifact, build, load_project
from opkit.toolchain.source.kernel_templates import (
    beside_template,
    is_plain_function,
    read_instances,
)

# y = x * FACTOR, with a sign: a template over the type, the factor and the sign.
SCALED = Path(__file__).parent / "data" / "scaled"


# What unit tests link, in a branch of theirs, was taken for the kernel: it had no instance but 0.
_LINKED_BY_TESTS = """
#ifdef UNIT_TESTS
extern "C" __global__ __aicore__ void scaled(GM_ADDR x, GM_ADDR y, GM_ADDR work, GM_ADDR tiling) {}
#endif
"""


def _declared(parameters: str, selected: str) -> str:
    return (
        f"ASCENDC_TPL_ARGS_DECL(Add, {parameters},);\n"
        f"ASCENDC_TPL_SEL(ASCENDC_TPL_ARGS_SEL({selected}));"
    )


def _instances(text: str) -> list[tuple[str, int]]:
    found = read_instances(text, op="Add", inputs=["DT_FLOAT"], outputs=["DT_FLOAT"])
    return [(", ".join(instance.arguments), instance.tiling_key) for instance in found]


def test_an_unsigned_parameter_is_numbered_by_its_place_and_ranges_come_first() -> None:
    text = _declared(
        "ASCENDC_TPL_BOOL_DECL(A, 0, 1),"
        "ASCENDC_TPL_UINT_DECL(B, 4, ASCENDC_TPL_UI_MIX, 1, 3, 4, 9)",
        "ASCENDC_TPL_BOOL_SEL(A, 1), ASCENDC_TPL_UINT_SEL(B, ASCENDC_TPL_UI_LIST, 9, 3)",
    )
    assert _instances(text) == [("1, 9", 0b101), ("1, 3", 0b001)]


def test_a_branch_without_the_template_is_a_plain_function() -> None:
    # A template in the branch for another chip made the kernel one that declares no instances.
    plain = 'extern "C" __attribute__((x)) void add(uint8_t* a) { if (a) { other(); } }'
    template = "template <int A> void add(uint8_t* a) {}"
    assert is_plain_function(plain, "add")
    assert not is_plain_function(plain, "other")
    assert not is_plain_function(template, "add")
    declared = _declared("ASCENDC_TPL_BOOL_DECL(A, 0, 1)", "ASCENDC_TPL_BOOL_SEL(A, 1)")
    assert not is_plain_function(declared + plain, "add")


def test_a_plain_function_beside_a_template_of_its_name_has_a_name_of_its_own() -> None:
    # The name alone stands for both, and the kernel's table had neither.
    plain = 'extern "C" __attribute__((x)) void add(uint8_t* a) { if (a) { other(); } }'
    template = "template <int A> void add(uint8_t* a) {}\n"
    name, declaration = beside_template(template + plain, "add")
    assert name == "opkit_plain_add"
    assert declaration == f'extern "C" void {name}(uint8_t* a) __attribute__((alias("add")));\n'
    assert beside_template(plain, "add") == ("add", "")


def test_combinations_may_stand_in_front_of_the_parameters() -> None:
    text = _declared("ASCENDC_TPL_BOOL_DECL(A, 0, 1)", "ASCENDC_TPL_BOOL_SEL(A, 1)")
    parameters, selected = text.splitlines()
    assert _instances(f"{selected}\n{parameters}") == [("1", 1)]


def test_values_may_be_constants_of_the_source_and_expressions() -> None:
    text = "enum { kOne = 1, kTwo = kOne << 1u };\n" + _declared(
        "ASCENDC_TPL_UINT_DECL(A, 2, ASCENDC_TPL_UI_LIST, kTwo, (kOne))",
        "ASCENDC_TPL_UINT_SEL(A, ASCENDC_TPL_UI_RANGE, 1, kOne, 1 + 1)",
    )
    assert _instances(text) == [("1", 1), ("2", 0)]


def test_types_become_those_of_kernels_and_follow_an_input_where_they_say_so() -> None:
    enumeration = "enum { C_DT_FLOAT = 0, C_DT_FLOAT16 = 1 };\n"
    selected = "ASCENDC_TPL_DATATYPE_SEL(T, C_DT_FLOAT16, C_DT_FLOAT)"
    free = "ASCENDC_TPL_DATATYPE_DECL(T, C_DT_FLOAT, C_DT_FLOAT16)"
    assert _instances(enumeration + _declared(free, selected)) == [("half", 1), ("float", 0)]
    bound = "ASCENDC_TPL_DATATYPE_DECL(T, C_DT_FLOAT, C_DT_FLOAT16, ASCENDC_TPL_INPUT(0))"
    assert _instances(enumeration + _declared(bound, selected)) == [("float", 0)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no pair of ASCENDC_TPL_ARGS_DECL"),
        ("ASCENDC_TPL_ARGS_DECL(Add, );", "no pair of ASCENDC_TPL_ARGS_DECL"),
        (
            _declared("ASCENDC_TPL_BOOL_DECL(A, 0)", "ASCENDC_TPL_BOOL_SEL(A, 1)"),
            "A is declared without 1",
        ),
        (_declared("ASCENDC_TPL_BOOL_DECL(A, 0)", ""), "has no value for A"),
        (
            _declared("ASCENDC_TPL_BOOL_DECL(A, unknown)", "ASCENDC_TPL_BOOL_SEL(A, 0)"),
            "unknown is no constant",
        ),
        (
            _declared(
                "ASCENDC_TPL_UINT_DECL(A, 1, ASCENDC_TPL_UI_LIST, 5, 6, 7)",
                "ASCENDC_TPL_UINT_SEL(A, ASCENDC_TPL_UI_LIST, 5)",
            ),
            "7 does not fit into 1 bits",
        ),
        (
            _declared(
                "ASCENDC_TPL_UINT_DECL(A, 16, ASCENDC_TPL_UI_RANGE, 1, 0, 4096)",
                "ASCENDC_TPL_UINT_SEL(A, ASCENDC_TPL_UI_RANGE, 1, 0, 4096)",
            ),
            "more than 4096 instances",
        ),
        (
            _declared(
                "ASCENDC_TPL_BOOL_DECL(A, 0)",
                "ASCENDC_TPL_KERNEL_TYPE_SEL(ASCENDC_TPL_VECTORCORE), ASCENDC_TPL_BOOL_SEL(A, 0)",
            ),
            "ASCENDC_TPL_VECTORCORE",
        ),
    ],
)
def test_what_cannot_be_read_is_an_error_that_names_it(text: str, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        _instances(text)


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    root = tmp_path_factory.mktemp("template") / "scaled"
    shutil.copytree(SCALED, root)
    kernel = root / "op_kernel" / "scaled.cpp"
    kernel.write_text(kernel.read_text() + _LINKED_BY_TESTS)
    # What is as old as the build is read again by the next one.
    shutil.copystat(SCALED / "op_kernel" / "scaled.cpp", kernel)
    return build(load_project(root))


@pytest.mark.parametrize(
    ("dtype", "factor", "is_negated"),
    [(np.float16, 2, False), (np.float32, 2, True), (np.float32, 8, False), (np.float32, 8, True)],
)
def test_the_tiling_function_chooses_the_instance(
    artifact: Artifact, dtype: type[np.floating], factor: int, is_negated: bool
) -> None:
    x = np.arange(5, dtype=dtype)
    attributes = {"factor": factor, "is_negated": is_negated}
    (y,) = runtime.open(artifact.folder).run("Scaled", [x], attributes)
    np.testing.assert_array_equal(y, x * (-factor if is_negated else factor))


def test_a_choice_that_no_combination_allows_is_an_error(artifact: Artifact) -> None:
    library = runtime.open(artifact.folder)
    x = np.arange(5, dtype=np.float16)
    with pytest.raises(UsageError, match=r"no ASCENDC_TPL_ARGS_SEL allows \(1, 8, 0\)"):
        library.run("Scaled", [x], {"factor": 8, "is_negated": False})


def test_a_second_build_knows_the_instances_already(artifact: Artifact) -> None:
    again = build(load_project(artifact.project.root))
    assert (again.compiled, again.cached) == (0, 0)
