"""Classes that C++20 no longer takes for aggregates, edited, and through the driver."""

from __future__ import annotations

from pathlib import Path

import pytest

from opkit import emulator
from opkit.toolchain import Toolkit, parse_driver_arguments, run_driver
from opkit.toolchain.source.aggregates import aggregate_edits
from opkit.toolchain.source.launch_rewrite import apply_edits

# GCC takes the first class in C++20 alone and the last line in C++17 alone.
SOURCE = """
struct Coord {
  int values[2];
  constexpr explicit Coord(int value) { values[0] = values[1] = value; }
};
static_assert(Coord(3).values[1] == 3, "");
struct Kernel {
  struct Step {
    Step() = default;
    Kernel* kernel{nullptr};
    int stage;
  };
  Step steps[2];
  void run() { steps[1] = {this, 1}; }
};
void run_all(Kernel& kernel) { kernel.run(); }
"""


def rewrite(text: str) -> str:
    return apply_edits(text, aggregate_edits(text), file=Path("a.h")).text.partition("\n")[2]


def test_a_lone_defaulted_constructor_becomes_a_function() -> None:
    text = "struct S { INLINE\n S() = default;\n ~S() = default; int a; };"
    expected = "struct S { INLINE\n void opkit_defaulted() {}\n ~S() = default; int a; };"
    assert rewrite(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "struct S { S() = default; S(int a); };",
        "struct S { S() = default; S(S const&) = default; };",
        "struct S { explicit S() = default; };",
        "struct S { S(); };\nS::S() = default;",
        "struct S { ~S() = default; };",
    ],
)
def test_other_classes_stay_as_they_are(text: str) -> None:
    assert rewrite(text) == text


def test_a_class_that_makes_itself_in_a_function_has_no_second_constructor() -> None:
    text = "struct S { S() = default; S make() { return S(); } };"
    assert "opkit_defaulted" in rewrite(text)


def test_a_source_may_need_c20s_constructors_and_c17s_aggregates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("both.cpp").write_text(SOURCE)
    toolkit = Toolkit(include_dir=emulator.include_dir(), library=None)
    run_driver(parse_driver_arguments(["-c", "both.cpp", "-o", "both.o"]), toolkit=toolkit)
    assert Path("both.o").is_file()
