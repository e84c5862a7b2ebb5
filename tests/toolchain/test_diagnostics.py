"""Compiler output against the user's own lines; data/ holds what the compilers printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from opkit.errors import Diagnostic
from opkit.toolchain.source.diagnostics import parse_diagnostics

DATA = Path(__file__).parent / "data"
ROOT = Path("/project")
FOREIGN = (Path("/emulator"), ROOT / "build" / "opkit.work")
KERNEL = ROOT / "op_kernel" / "twice.cpp"


def parse(text: str) -> tuple[Diagnostic, ...]:
    return parse_diagnostics(text, root=ROOT, foreign=FOREIGN)


@pytest.fixture(params=["gcc_12", "clang_zig_0_17"])
def found(request: pytest.FixtureRequest) -> tuple[Diagnostic, ...]:
    return parse((DATA / f"{request.param}.txt").read_text())


def test_every_message_is_about_the_users_file(found: tuple[Diagnostic, ...]) -> None:
    assert {diagnostic.file for diagnostic in found} == {KERNEL}


def test_a_static_assertion_of_a_header_stands_at_the_call(found: tuple[Diagnostic, ...]) -> None:
    asserted = [item for item in found if item.line == 8]
    assert [item.message for item in asserted] == ["Add takes half, float, int16_t and int32_t"]


def test_an_error_inside_a_template_stands_at_the_line_that_led_there(
    found: tuple[Diagnostic, ...],
) -> None:
    (broken,) = [item for item in found if item.line == 10]
    assert broken.severity == "error"


def test_an_error_in_a_macro_stands_where_the_macro_is_used(found: tuple[Diagnostic, ...]) -> None:
    errors = [item for item in found if item.line == 11 and item.severity == "error"]
    assert len(errors) == 1
    assert "float_is_unknown" in errors[0].message


def test_a_rejected_candidate_leaves_its_reason_only(found: tuple[Diagnostic, ...]) -> None:
    error, note = [item for item in found if item.line == 12]
    assert (error.severity, note.severity) == ("error", "note")
    assert note.message.startswith("candidate ")
    assert "2 arguments" in note.message


def test_all_six_errors_are_found(found: tuple[Diagnostic, ...]) -> None:
    lines = sorted(item.line for item in found if item.severity == "error")
    assert lines == [8, 10, 11, 12, 14, 15]


def test_the_same_message_of_two_variants_is_one() -> None:
    text = (DATA / "gcc_12.txt").read_text()
    assert parse(text + text) == parse(text)


def test_a_warning_about_a_header_alone_is_dropped() -> None:
    assert parse("/emulator/a.h:3:5: warning: unused variable 'x' [-Wunused-variable]\n") == ()


def test_a_warning_loses_the_name_of_its_flag() -> None:
    (warning,) = parse("op_kernel/twice.cpp:3:5: warning: unused variable 'x' [-Wunused-variable]")
    assert (warning.severity, warning.message) == ("warning", "unused variable 'x'")


def test_a_missing_header_is_an_error_at_its_include() -> None:
    (error,) = parse("./op_kernel/twice.cpp:2:10: fatal error: no.h: No such file or directory\n")
    assert (error.line, error.severity) == (2, "error")
    assert error.message == "no.h: No such file or directory"


def test_an_error_that_nothing_of_the_users_led_to_keeps_its_place() -> None:
    (error,) = parse("/emulator/a.h:3:5: error: 'x' was not declared in this scope\n")
    assert (error.file, error.line) == (Path("/emulator/a.h"), 3)


@pytest.mark.parametrize(
    "text",
    [
        "/usr/bin/ld: /tmp/a.o: in function `twice':\na.cpp:(.text+0x5): undefined reference to"
        " `AscendC::Sort(int)'\ncollect2: error: ld returned 1 exit status\n",
        "ld.lld: error: undefined symbol: AscendC::Sort(int)\n>>> referenced by a.cpp\n",
    ],
)
def test_an_undefined_symbol_is_named(text: str) -> None:
    messages = [item.message for item in parse(text)]
    assert "AscendC::Sort(int) is declared but nowhere defined" in messages


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "/usr/bin/ld: cannot find -lother: No such file or directory",
            "cannot find -lother: No such file or directory",
        ),
        (
            "/usr/bin/ld: b.o: in function `f()':\n"
            "b.cpp:(.text+0x0): multiple definition of `f()'; a.o: first defined here",
            "multiple definition of `f()'; a.o: first defined here",
        ),
        (
            "/usr/bin/ld:c.o: file format not recognized; treating as linker script",
            "c.o: file format not recognized; treating as linker script",
        ),
    ],
)
def test_the_linkers_own_words_are_told_and_not_only_that_it_failed(
    line: str, message: str
) -> None:
    text = f"{line}\ncollect2: error: ld returned 1 exit status\n"
    assert [item.message for item in parse(text)] == [message]


def test_a_warning_of_the_linker_is_no_error() -> None:
    assert parse("/usr/bin/ld: warning: a.o: missing .note.GNU-stack section\n") == ()


def test_a_killed_compiler_is_an_error_without_a_line() -> None:
    (error,) = parse("c++: fatal error: Killed signal terminated program cc1plus\n")
    assert error.line == 0
    assert "Killed" in error.message


def test_an_error_in_a_type_given_on_the_command_line_stands_where_it_is_used() -> None:
    text = (
        "<command-line>: error: 'half' was not declared in this scope\n"
        "op_kernel/twice.cpp:9:5: note: in expansion of macro 'DTYPE_X'\n"
    )
    (error,) = parse(text)
    assert (error.file, error.line, error.column) == (KERNEL, 9, 5)


def test_the_source_line_is_read_from_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text("int a;\n\tint b = ;\n")
    (error,) = parse_diagnostics("a.cpp:2:10: error: expected expression\n", root=tmp_path)
    assert error.source_line == "\tint b = ;"
    assert error.file == tmp_path / "a.cpp"


def test_other_output_is_ignored() -> None:
    assert parse("\n3 warnings generated.\n  24 |   detail::issue();\n      |   ^\n") == ()


@pytest.mark.parametrize(("bits", "name"), [("half", "half"), ("bfloat16", "bfloat16_t")])
def test_our_16_bit_floats_are_called_what_the_user_called_them(bits: str, name: str) -> None:
    inner = f"opkit::detail::Float16<opkit::detail::{bits}_bits, opkit::detail::{bits}_value>"
    (error,) = parse(f"op_kernel/twice.cpp:3:5: error: no match for 'LocalTensor<{inner} >'\n")
    assert error.message == f"no match for 'LocalTensor<{name}>'"
