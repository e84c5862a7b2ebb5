"""What the scripts that a kernel's unit test starts say of its results.

Tests start them by `system()`, and many look at no exit code: what they print is all there is.
Source: the phrases that the comparing scripts of public operator libraries print.
"""

from __future__ import annotations

import re

__all__ = ["comparisons", "failed_script"]

# GoogleTest's own lines begin with a bracket; its last one, "1 FAILED TEST", has no such mark.
# A sentence in other letters is one only where nothing else is on its line.
_MARK = re.compile(r"^(?:(?:[A-Z]+ )*(?:PASSED|FAILED)[!:]|(?i:passed|failed)!\s*$)", re.MULTILINE)
_RESULT = re.compile(r"^compare result: *(?P<verdict>true|false)\b", re.MULTILINE | re.IGNORECASE)
_TRACEBACK = re.compile(
    r"^Traceback \(most recent call last\):\n(?:[ \t][^\n]*\n|\n)+(?P<error>[^\s\n][^\n]*)",
    re.MULTILINE,
)
_NOT_STARTED = re.compile(
    r"^(?P<error>\S*python[\d.]*: can't open file [^\n]+"
    r"|(?:ba)?sh: [^\n]*python[\d.]*: (?:command )?not found)$",
    re.MULTILINE,
)


def comparisons(output: str) -> tuple[int, int]:
    """Return how many comparisons said that a result is right, and how many that it is wrong.

    A script that says both of the phrases of one comparison counts once.
    """
    marks = ["PASSED" in found[0].upper() for found in _MARK.finditer(output)]
    results = [found["verdict"].lower() == "true" for found in _RESULT.finditer(output)]
    right = max(said.count(True) for said in (marks, results))
    wrong = max(said.count(False) for said in (marks, results))
    return right, wrong


def failed_script(output: str) -> str | None:
    """Return the last words of a Python script that failed or never started, None without one.

    The data of its test is then not made, or not compared, whatever the test itself says.
    """
    found = _TRACEBACK.search(output) or _NOT_STARTED.search(output)
    return found["error"].strip() if found else None
