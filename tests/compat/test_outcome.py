"""What builds, programs and scripts print, read for verdicts."""

from __future__ import annotations

import pytest

from opkit.compat.outcome import (
    build_cause,
    fault_cause,
    foreign_software,
    missing_download,
    missing_module,
    names_in_build_log,
    names_in_faults,
    one_line,
    other_chip,
    other_products,
    refused_chip,
    says_fail,
    says_pass,
    shown_assertion,
    shows,
    wrong_cause,
)


@pytest.mark.parametrize(
    "line",
    [
        "test pass!",
        "[Success] Case accuracy verification passed.",
        "Output result check: PASS",
        "CompareResult golden.bin success!",
        "Verification result is correct",
    ],
)
def test_a_line_that_says_pass(line: str) -> None:
    assert says_pass(f"first\n{line}\nlast") == line
    assert says_fail(line) is None


@pytest.mark.parametrize(
    "line",
    [
        "test failed!",
        "[ERROR] result error",
        "CompareResult golden.bin failed output is 1, golden is 2",
        "name: FAIL",
        "3 mismatches",
    ],
)
def test_a_line_that_says_fail(line: str) -> None:
    assert says_fail(f"first\n{line}") == line


@pytest.mark.parametrize(
    "line", ["initialisation success", "Hello", "0 failed", "compass", "no mismatch", ""]
)
def test_a_line_that_says_neither(line: str) -> None:
    assert says_pass(line) is None
    assert says_fail(line) is None


def test_a_wrong_result_shows_its_first_element() -> None:
    text = "data index: 000003, expected: 2.0, actual: 1.0\ndata index: 000004\nresult error"
    assert wrong_cause(text) == "data index: 000003, expected: 2.0, actual: 1.0"
    assert wrong_cause("well\ntest failed!") == "test failed!"


FAULT = """before
error: Copy in counter mode [Unimplemented]
  --> /some/where/copy.asc:96      copy block 0, aiv, pipe V, instruction 2
  help: none
"""


def test_a_fault_is_told_with_its_category_and_place() -> None:
    assert fault_cause(FAULT) == "Unimplemented: Copy in counter mode (copy.asc:96)"
    assert names_in_faults(FAULT) == ("Copy in counter mode",)
    assert fault_cause("error: aclrtMalloc: out of memory [207001]") == (
        "aclrtMalloc: out of memory [207001]"
    )
    assert fault_cause(
        "error: Add reads 8 bytes too many [MEM-BOUNDS]\n  --> add.asc:7  add\n"
    ) == ("MEM-BOUNDS: Add reads 8 bytes too many (add.asc:7)")
    assert fault_cause("error: nothing in brackets") is None


GCC = """
error: 'GatherMask' is not a member of 'AscendC'; did you mean 'Gather'?
  --> gather.asc:42:14
error: 'params' was not declared in this scope
error: 'Conditional' in namespace 'AscendC' does not name a template type
error: 'class AscendC::TPipe' has no member named 'Reset'
error: GroupNorm is not implemented in opkit; see `opkit isa --missing`
error: there are no arguments to 'GetTPipePtr' that depend on a template parameter, so a \
declaration of 'GetTPipePtr' must be available [-fpermissive]
/usr/bin/ld: a.o: undefined reference to `aclopExecute'
/usr/bin/ld: cannot find -lnnopbase: No such file or directory
fatal error: graph/custom_op.h: No such file or directory
"""


def test_names_that_a_build_lacks() -> None:
    assert names_in_build_log(GCC, own={"params"}) == (
        "GatherMask",
        "Conditional",
        ".Reset",
        "GroupNorm",
        "GetTPipePtr",
        "graph/custom_op.h",
        "aclopExecute",
        "-lnnopbase",
    )


def test_a_name_behind_ascendc_counts_whoever_declares_it() -> None:
    assert "GatherMask" in names_in_build_log(GCC, own={"GatherMask", "params"})


def test_clangs_words_are_read_too() -> None:
    text = "a.asc:3:10: error: no member named 'Foo' in namespace 'AscendC'\n"
    text += "a.asc:4:1: error: use of undeclared identifier 'Bar'\n"
    assert names_in_build_log(text) == ("Foo", "Bar")


def test_the_first_error_is_the_cause() -> None:
    assert build_cause(GCC).startswith("'GatherMask' is not a member of 'AscendC'")
    late = "error: there are no arguments to 'F' that so a declaration of 'F' must be available"
    assert build_cause(late) == "'F' was not declared"
    cmake = "CMake Error at CMakeLists.txt:3 (message):\n  N must be 1,\n  not 2\n\n"
    assert build_cause(cmake) == "CMake: N must be 1, not 2"


def test_what_make_was_doing_is_the_cause_and_not_that_it_gave_up() -> None:
    log = (
        "[ 50%] Packing\npack.sh: 9: cannot create x.run\ngmake[2]: *** [a] Error 2\ngmake: *** [b]"
    )
    assert build_cause(log) == "pack.sh: 9: cannot create x.run"
    assert build_cause("make: *** [all] Error 2") == "make: *** [all] Error 2"


def test_a_cause_is_one_plain_line() -> None:
    assert one_line("\x1b[31mwrong\x1b[0m\n at\t7\x00\ufffd") == "wrong at 7"
    assert one_line("x" * 301) == "x" * 297 + "..."


def test_another_chip_is_one_that_opkit_does_not_emulate() -> None:
    cmake = "CMake Error at CMakeLists.txt:3 (message):\n  {}\n"
    assert other_chip(cmake.format("scenario 3 needs dav-3510, not dav-2201")) == "dav-3510"
    assert other_chip(cmake.format("scenario 3 needs dav-2201")) is None
    assert other_chip("-- configured for dav-3510") is None


def test_a_chip_that_sources_refuse_themselves_is_no_build_error() -> None:
    source = (
        '#if X\n#error "this case needs the A5 series"\n#endif\n'
        'static_assert(N == 1, "Atlas A2 takes one case");\n'
        'static_assert(M > 0, "M is too small");\n'
    )
    logged = 'a.asc:2:2: error: #error "this case needs the A5 series"'
    assert refused_chip(logged, [source]) == "this case needs the A5 series"
    asserted = "a.asc:4:9: error: static assertion failed: Atlas A2 takes one case"
    assert refused_chip(asserted, ["", source]) == "Atlas A2 takes one case"
    # Of the sample's own sizes, and of a text that is not the sample's.
    small = "a.asc:5:9: error: static assertion failed: M is too small"
    assert refused_chip(small, [source]) is None
    assert refused_chip(asserted, ["int main() {}"]) is None


def test_missing_modules_and_packages_are_named() -> None:
    module = "ModuleNotFoundError: No module named 'tensorflow'"
    assert missing_module(module) == "the Python module tensorflow"
    package = 'Could not find a package configuration file provided by "Torch" with any'
    assert missing_module(package) == "the CMake package Torch"
    assert missing_module("all is here") is None


def test_a_download_that_fails_is_told_by_its_address() -> None:
    log = 'CMake Error at a:18 (message):\n  Failed to download x.zip: 6;"Could not resolve host"\n'
    assert missing_download(log) == 'CMake: Failed to download x.zip: 6;"Could not resolve host"'
    log += "* Trying https://example.org/x.zip\n"
    assert missing_download(log) == "https://example.org/x.zip"
    assert missing_download("a.cpp:1:1: error: download is no type (https://example.org)") is None


def test_a_build_that_lacks_a_header_needs_the_foreign_software_that_its_sources_include() -> None:
    log = "add.asc:3:10: fatal error: ge/ge_api.h: No such file or directory"
    source = '#include "acl/acl.h"\n # include <ge/ge_api.h>\n'
    assert foreign_software(log, [source]) == "the graph engine GE"
    assert foreign_software(log, ['#include "acl/acl.h"']) is None
    assert foreign_software("add.asc:3:10: error: expected ';'", [source]) is None


def test_python_tests_that_ran_and_ended_in_ok_say_pass() -> None:
    assert says_pass(".\n------\nRan 2 tests in 0.5s\n\nOK\n") == "Ran 2 tests in 0.5s"
    assert says_pass("Ran 0 tests in 0.0s\n\nOK\n") is None
    assert says_pass("Ran 1 test in 0.1s\n\nFAILED (errors=1)\n") is None
    assert says_pass("Ran 1 test in 0.1s\n\nOK (skipped=1)\n") is None


def test_an_exception_of_python_is_told_by_its_last_line() -> None:
    log = 'Traceback (most recent call last):\n  File "a.py", line 1\nImportError: no symbol\n'
    assert wrong_cause(log) == "ImportError: no symbol"


def test_an_assertion_is_meant_to_fail_where_the_readme_shows_it() -> None:
    fault = 'API-ASSERT: assertion failed: M < 100 && "too large" (log.asc:40)'
    line = '[ASSERT] log.asc:<line>: : Assertion `M < 100 && "too large"\' failed.'
    assert shown_assertion(fault, ["first", line]) == line
    assert shown_assertion(fault, ["Assertion `M < 50' failed."]) is None
    assert shown_assertion(fault, ['M < 100 && "too large" holds']) is None
    assert shown_assertion("MEM-BOUNDS: M < 100 (log.asc:40)", [line]) is None


def test_three_dots_stand_for_what_a_readme_leaves_out() -> None:
    printed = "head\nmore\n1.00 1.00 1.00 1.00\n"
    assert shows(printed, ["head", "...", "1.00 1.00 ..."])
    assert not shows(printed, ["head", "...", "2.00 ..."])
    assert not shows(printed, ["head", "tail"])
    assert not shows(printed, ["..."])
    assert not shows(printed, [])


def test_a_readme_says_which_products_its_sample_is_for() -> None:
    table = "| 产品 | 版本 |\n|---|---|\n| Ascend 950PR/Ascend 950DT | >= CANN 9.1.0 |\n"
    assert other_products(table) == "Ascend 950PR/Ascend 950DT"
    assert other_products(table + "| Atlas A2训练系列产品 | >=CANN 9.0.0 |\n") is None
    assert other_products(table + "| Atlas Inference Series Products | >= CANN 9 |\n") is None
    assert other_products("for the Ascend 950") is None
    # 79 scenarios were configured to learn what a list of points says.
    points = (
        "## 支持的产品\n\n- Ascend 950PR/Ascend 950DT\n\n## 目录\n\n- Atlas A2 serves as well\n"
    )
    assert other_products(points) == "Ascend 950PR/Ascend 950DT"
    both = "## Supported Products\n- Ascend 950PR\n- Atlas A2 Training Series Products\n"
    assert other_products(both) is None
    assert other_products("## Notes\n- Ascend 950PR is faster\n") is None
    small = "| Atlas 200I/500 A2 Inference Products | >= CANN 9.0.0 |"
    assert other_products(small) == "Atlas 200I/500 A2 Inference Products"
