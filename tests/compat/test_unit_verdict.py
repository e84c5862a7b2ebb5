"""What the scripts of kernel unit tests say, as they print it."""

from __future__ import annotations

import pytest

from opkit.compat.unit_verdict import comparisons, failed_script


@pytest.mark.parametrize(
    ("output", "counts"),
    [
        ("compare result: True\n", (1, 0)),
        ("compare result:False\n", (0, 1)),
        ("PASSED!\nPASSED!\n", (2, 0)),
        ("FAILED! 3 of 64 differ\n", (0, 1)),
        ("FAILED: y differs\n", (0, 1)),
        ("Failed!\n", (0, 1)),
        ("passed! \n", (1, 0)),
        ("Failed! to open the log\n", (0, 0)),
        ("COMPARE DATA FAILED!\n", (0, 1)),
        ("PASSED! MERE=0.0001\n", (1, 0)),
        ("PASSED: y\n", (1, 0)),
        ("PASSED!\ncompare result: True\n", (1, 0)),
        ("FAILED!\ncompare result: True\n", (1, 1)),
        ("[  PASSED  ] 2 tests.\n[  FAILED  ] shift.one (3 ms)\n 1 FAILED TEST\n", (0, 0)),
    ],
)
def test_every_phrase_of_a_comparison_counts_and_none_twice(
    output: str, counts: tuple[int, int]
) -> None:
    assert comparisons(output) == counts


def test_a_script_that_ends_in_a_traceback_is_told_by_its_last_words() -> None:
    output = (
        "[ RUN      ] shift.one\n"
        "Traceback (most recent call last):\n"
        '  File "gen_data.py", line 3, in <module>\n'
        "    import elsewhere\n"
        "ModuleNotFoundError: No module named 'elsewhere'\n"
        "[       OK ] shift.one (3 ms)\n"
    )
    assert failed_script(output) == "ModuleNotFoundError: No module named 'elsewhere'"


@pytest.mark.parametrize(
    "line",
    [
        "python3: can't open file '/tests/gen_data.py': [Errno 2] No such file or directory",
        "sh: 1: python3: not found",
    ],
)
def test_a_script_that_never_starts_has_failed(line: str) -> None:
    assert failed_script(f"[ RUN      ] shift.one\n{line}\n") == line


def test_a_program_without_such_scripts_has_none_that_failed() -> None:
    assert failed_script("[       OK ] shift.one (3 ms)\n[  PASSED  ] 1 test.\n") is None
