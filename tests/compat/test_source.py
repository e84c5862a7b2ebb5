"""Names in C++ source: whose they are, and for which chip."""

from __future__ import annotations

import pytest

from opkit.chips import find_chip
from opkit.compat import names_used
from opkit.compat.conditionals import drop_other_chips
from opkit.compat.source import class_methods, local_names, tokens_of, variable_names
from opkit.toolchain import plain_code


def used(code: str) -> set[str]:
    return set(names_used(tokens_of(plain_code(code))))


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("AscendC::Add(z, x, y, n);", {"Add"}),
        ("using namespace AscendC; Muls(y, x, s, n);", {"Muls"}),
        ("tensor.SetValue(0, x); queue->EnQue(y);", {".SetValue", ".EnQue"}),
        ("tensor.template ReinterpretCast<half>();", {".ReinterpretCast"}),
        ("PipeBarrier<PIPE_V>();", {"PipeBarrier", "PIPE_*"}),
        ("AscendC::Std::min(a, b); std::max(a, b);", {"Std::min"}),
        ("AscendC::MicroAPI::RegTensor<float> a;", {"Reg::RegTensor"}),
        ("AscendC::NotInAnyList(x);", {"NotInAnyList"}),
        ("AscendC::tiling::Shape shape;", set()),
        ('// AscendC::Add(z)\n/* Muls( */ f("Add(x)");', set()),
        ("config.Add = 1; int Add; Other::Add(x);", set()),
    ],
)
def test_a_use_of_the_api_is_told_from_other_words(code: str, names: set[str]) -> None:
    assert used(code) == names


@pytest.mark.parametrize(
    "definition",
    [
        "template <typename T> __aicore__ inline void Add(T a) { f(a); }\n",
        "class Add { public: int x; };\n",
        "#define Add(x) x\n",
    ],
)
def test_a_name_that_the_code_defines_is_its_own(definition: str) -> None:
    assert used(definition + "void run() { Add(1); }") == set()
    assert used(definition + "void run() { AscendC::Add(1); }") == {"Add"}


@pytest.mark.parametrize(
    "definition",
    [
        "const int32_t MAX_BLOCK_LEN = 65535;",
        "static constexpr unsigned long MAX_BLOCK_LEN{65535};",
        "constexpr std::array<int, 2> MAX_BLOCK_LEN = {1, 2};",
        "const uint16_t MAX_BLOCK_LEN[] = {1, 2};",
    ],
)
def test_a_constant_that_the_code_defines_is_its_own(definition: str) -> None:
    # It counted as the API's constant of that name, which no header here declares.
    assert used(f"{definition} bool Fits(int n) {{ return n <= MAX_BLOCK_LEN; }}") == set()
    assert used("bool Fits(int n) { return n <= MAX_BLOCK_LEN; }") == {"MAX_BLOCK_LEN"}
    assert "Ceil" not in local_names(tokens_of("const int n = Ceil(a, b); if constexpr (c[0]) {}"))


def test_a_call_is_no_definition() -> None:
    assert "Add" not in local_names(tokens_of("void run() { return Add(x); if (Add(y)) { } }"))


def test_variables_follow_their_types() -> None:
    tokens = tokens_of("Params first; Tensor<half> second, third; return fourth; x = fifth;")
    assert {"first", "second", "third"} <= variable_names(tokens)
    assert not variable_names(tokens) & {"fourth", "fifth"}


def test_methods_are_those_of_class_bodies() -> None:
    code = """
    namespace a { template <class T> class Tensor : Base<T> {
      T GetValue(int i) const { return helper(i); }
      template <typename U> Tensor<U> Cast();
      int size = count(3);
      template <Mode mode = Mode::RW> void SetHint(int hint = none());
    };
    class Tensor make(int n) { return other(n); }
    void free_one(); }
    """
    methods = class_methods(code)
    assert {"GetValue", "Cast", "SetHint"} <= methods
    assert not methods & {"helper", "other", "free_one", "count", "none"}


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("#if __NPU_ARCH__ == 2201", "then"),
        ("#if __NPU_ARCH__ == 3510 || __NPU_ARCH__ == 5102", "else"),
        ("#if defined(__DAV_C310__)", "else"),
        ("#ifndef __DAV_C310__", "then"),
        ("#if defined(__CCE_AICORE__) && __CCE_AICORE__ == 220", "then"),
        ("#if !(__CCE_AICORE__ >= 220)", "else"),
        ("#if 0", "else"),
        ("#if ORIG_DTYPE_X == DT_FLOAT && __NPU_ARCH__ == 3510", "both"),
        ("#ifdef SOME_OPTION", "both"),
    ],
)
def test_only_conditions_on_the_architecture_are_decided(condition: str, kept: str) -> None:
    text = drop_other_chips(
        f"{condition}\nthen\n#else\nelse\n#endif\nafter", find_chip("Ascend910B2")
    )
    words = set(text.split())
    expected = {"then": {"then"}, "else": {"else"}, "both": {"then", "else"}}[kept]
    assert words == expected | {"after"}


def test_an_elif_behind_a_taken_branch_goes() -> None:
    code = "#if __NPU_ARCH__ == 2201\na\n#elif OTHER\nb\n#else\nc\n#endif"
    assert drop_other_chips(code, find_chip("Ascend910B2")).split() == ["a"]
