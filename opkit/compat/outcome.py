"""Verdicts, and how they are read from what builds, programs and scripts print."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from opkit.chips import all_chips
from opkit.runtime import program_variables
from opkit.toolchain import include_names

__all__ = [
    "Outcome",
    "Verdict",
    "bounds_to_try",
    "build_cause",
    "fault_cause",
    "first_line",
    "foreign_software",
    "missing_download",
    "missing_module",
    "names_in_build_log",
    "names_in_faults",
    "one_line",
    "other_chip",
    "other_products",
    "refused_chip",
    "says_fail",
    "says_pass",
    "shown_assertion",
    "shows",
    "wrong_cause",
]


class Verdict(Enum):
    """How a scenario ended."""

    PASS = "pass"
    """It ran, and its own check says that the result is right."""
    BEHIND = "pass (behind a tensor)"
    """A kernel touches bytes behind a tensor, a fault; where it may, as on the chip, its own check
    says that the result is right."""
    RAN = "ran"
    """Unit tests whose kernels ran, and that compare no result."""
    WRONG = "wrong result"
    """It ran, and its own check says that the result is wrong."""
    FAULT = "fault"
    """The kernel faulted, the program crashed, or a call of the runtime failed."""
    BUILD = "build error"
    """It does not configure, compile or link."""
    CHIP = "unsupported chip"
    """It is for a chip that opkit does not emulate."""
    TIMEOUT = "timeout"
    """One of its steps took longer than the limit."""
    UNVERIFIED = "unverified"
    """Something else is missing here, or nothing says whether its result is right."""

    @property
    def passed(self) -> bool:
        """Whether the result is right."""
        return self in (Verdict.PASS, Verdict.BEHIND)


@dataclass(frozen=True)
class Outcome:
    """What became of one scenario of one sample."""

    sample: str
    scenario: str
    verdict: Verdict
    cause: str
    """The first cause, one line; for a pass, who said so."""
    missing: tuple[str, ...] = ()
    """Names that the build or the run lacks."""
    seconds: float = 0.0


_BOUNDS = "MEM-BOUNDS"
_FAULT = re.compile(
    r"^error: (?P<message>.+) \[(?P<category>[A-Z][A-Za-z]+(?:-[A-Z]+)*)\]\s*$", re.MULTILINE
)
_RUNTIME_ERROR = re.compile(r"^error: (?P<message>.+\[\d+\])\s*$", re.MULTILINE)
_COMPILER_ERROR = re.compile(r"^(?:[^\s:]+:\d+:(?:\d+:)? )?(?:fatal )?error: (?P<text>.+)$", re.M)
_LINKER_ERROR = re.compile(
    r"undefined reference to|cannot find -l|No rule to make target", re.IGNORECASE
)
_CONTROL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|.)|[\x00-\x08\x0b-\x1f\x7f-\x9f]|\ufffd")
_MOST_CAUSE = 300
_MAKE_ERROR = re.compile(r"^(?:g?make(?:\[\d+\])?: \*\*\* )", re.MULTILINE)
_CMAKE_ERROR = re.compile(r"^CMake Error[^\n]*\n(?P<body>(?:[ \t]*[^\n]*\n?){1,8})", re.MULTILINE)
_MODULE = re.compile(r"(?:ModuleNotFoundError|ImportError): No module named '?([\w.]+)'?")
_PACKAGE = re.compile(r'package configuration file provided by\s+"([^"]+)"|Could NOT find (\w+)')
# Of CMake's file(DOWNLOAD), FetchContent and ExternalProject, and of the library that they call.
_NO_DOWNLOAD = re.compile(
    r"failed to download|each download failed|error: downloading|resolve host|connect to server",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"\bhttps?://[^\s\"']+")
_ARCHITECTURE = re.compile(r"\bdav-\w?\d{3,4}\b", re.IGNORECASE)
# A row of a README's table of supported products.
_PRODUCT = re.compile(
    r"^\|\s*(?P<name>(?:Ascend|Atlas) [^|]*?)\s*\|\s*(?:[>=≥]+\s*CANN|√|支持|yes\b)", re.M | re.I
)
# The same as a list of points, in the section that says so.
_PRODUCT_SECTION = re.compile(
    r"^#+[^\n]*(?:支持的产品|产品支持|supported products|product support)[^\n]*\n"
    r"(?P<text>.*?)(?=^#|\Z)",
    re.M | re.S | re.I,
)
_PRODUCT_BULLET = re.compile(r"^\s*[-*]\s+(?:<term>)?((?:Ascend|Atlas) [^<\n]*[^<\s])", re.M)
_OUR_PRODUCT = re.compile(
    r"Atlas A[23](?!\d)|Atlas 推理系列产品|Atlas inference (?:series )?product", re.IGNORECASE
)
_OWN_REFUSAL = re.compile(
    r"^[ \t]*#[ \t]*error[ \t]+(?P<error>[^\n]+)"
    r'|\bstatic_assert\s*\([^;]*?"(?P<assertion>[^"\n]+)"\s*\)\s*;',
    re.MULTILINE,
)
_CHIP_WORD = re.compile(
    r"\bA[2-5]\b|\bAtlas\b|\bAscend ?\d|\b910|\b950|\b310P|\bdav-|\barch|\bNPU\b|\bchip\b|\bSoC\b",
    re.IGNORECASE,
)
_MISSING_NAME_LATE = re.compile(r"declaration of ['‘](?P<name>\w+)['’] must be available")
_MISSING_NAME = (
    re.compile(r"['‘](?P<name>[\w:]+)['’] is not a member of ['‘](?P<space>[\w:]+)"),
    re.compile(r"['‘](?:AscendC::)?(?P<name>[\w:]+)['’] (?:was not|has not been) declared"),
    _MISSING_NAME_LATE,
    re.compile(r"['‘](?P<name>[\w:]+)['’] in namespace ['‘](?P<space>[\w:]+)['’] does not name"),
    re.compile(r"['‘](?P<name>[\w:]+)['’] does not name a (?:template )?type"),
    re.compile(r"no (?:member|type|template) named ['‘](?P<name>\w+)['’] in"),
    re.compile(r"(?:undeclared identifier|unknown type name) ['‘](?P<name>\w+)"),
    re.compile(r"\b(?P<name>\w+) is not implemented in opkit; see"),  # isa/missing.inc
    re.compile(r"(?P<name>[\w./+-]+\.h(?:pp)?): No such file"),
    re.compile(r"fatal error: ['‘](?P<name>[\w./+-]+)['’] file not found"),
)
_MISSING_MEMBER = re.compile(r"has no member named ['‘](?P<name>\w+)['’]")
_UNDEFINED = re.compile(r"undefined reference to [`'‘](?P<name>[\w:]+)")
_NO_HEADER = re.compile(r"[\w./+-]+\.h(?:pp)?['’]?:? (?:No such file|file not found)")
# Headers of software that opkit does not stand in for, by the beginning of their paths.
_FOREIGN_HEADERS = {
    "ge/ge_": "the graph engine GE",
    "graph/custom_op.h": "the graph engine GE",
}
_LIBRARY = re.compile(r"cannot find -l(?P<name>[\w.]+)")
_UNIMPLEMENTED = re.compile(r"^error: (?P<message>.+) \[Unimplemented\]", re.MULTILINE)
_FAIL = re.compile(
    r"\bfail(?:ed|ure|s)?\b|\bFAIL(?:ED)?\b|\[ERROR\]|\bresult error\b|\bmismatch(?:es|ed)?\b"
    r"|\bnot equal\b|\bincorrect\b|\bTraceback\b",
    re.IGNORECASE,
)
_NO_FAIL = re.compile(r"\b(?:0|no|without) (?:fail\w*|mismatch\w*|errors?)\b", re.IGNORECASE)
_PASS = re.compile(
    r"\bpass(?:ed|es)?\b|\b(?:result|output|verification|accuracy|compar\w+)\b.{0,60}"
    r"\b(?:success\w*|correct|ok|match(?:es|ed)?)\b",
    re.IGNORECASE,
)
_WHICH_CORE = re.compile(r"^\[AI[CV] Block \d+/\d+\] ")
_ASSERTION = re.compile(
    r"API-ASSERT: assertion failed: (?P<condition>.+?)(?: \([^()]*:\d+\))?$", re.DOTALL
)
_FAILS = re.compile(r"\bassertion\b.*\bfailed\b", re.IGNORECASE)
# Of Python's unittest, which says no more than OK.
_TESTS = re.compile(r"^(?P<ran>Ran [1-9]\d* tests? in \S+)\s+OK$", re.MULTILINE)


def says_pass(text: str) -> str | None:
    """Return the line that says that a result is right, None where none does."""
    tests = _TESTS.search(text)
    if tests is not None:
        return tests["ran"]
    return next((line.strip() for line in text.splitlines() if _PASS.search(line)), None)


def shown_assertion(fault: str, shown: Sequence[str]) -> str | None:
    """Return the line in which a README shows the assertion of a fault failing; None: it does not.

    Some samples are about what a kernel's `assert` prints.
    """
    found = re.match(
        r"API-ASSERT: assertion failed: (?P<condition>.+?)(?: \([^()]*:\d+\))?$", fault
    )
    if found is None:
        return None
    told = (line for line in shown if found["condition"] in line)
    return next(
        (line for line in told if re.search(r"\bassertion\b.*\bfailed\b", line, re.I)), None
    )


def shows(output: str, expected: Sequence[str]) -> bool:
    """Whether a program has printed every line that a README shows; not where it shows none."""
    # Which core prints, some READMEs show and some do not.
    lines = {line.strip() for line in output.splitlines()}
    lines |= {_WHICH_CORE.sub("", line) for line in lines}
    # Three dots stand for what a README leaves out: lines, or the rest of one.
    told = [line for line in expected if line.strip(".")]
    return bool(told) and all(_is_shown(line, lines) for line in told)


def _is_shown(expected: str, lines: Collection[str]) -> bool:
    if not expected.endswith(" ..."):
        return expected in lines
    begin = expected.removesuffix("...").rstrip()
    return any(line.startswith(begin) for line in lines)


def says_fail(text: str) -> str | None:
    """Return the line that says that a result is wrong, None where none does."""
    for line in text.splitlines():
        if _FAIL.search(_NO_FAIL.sub("", line)):
            return line.strip()
    return None


def wrong_cause(text: str) -> str:
    """Return the first line that shows a wrong value, else the one that says so."""
    shown = re.search(r"^.*\b(?:expected|golden|index)\b.*\d.*$", text, re.MULTILINE)
    if shown is None:
        # What Python writes last of an exception says more than that there was one.
        shown = re.search(r"^\w+(?:\.\w+)*(?:Error|Exception): .+$", text, re.MULTILINE)
    return shown[0].strip() if shown else (says_fail(text) or first_line(text))


def fault_cause(text: str) -> str | None:
    """Return the first fault or error of the runtime in a program's output."""
    found = _FAULT.search(text) or _RUNTIME_ERROR.search(text)
    if found is None:
        return None
    place = re.match(r"\s*--> (\S+)", text[found.end() :].lstrip("\n"))
    category = found.groupdict().get("category")
    head = f"{category}: {found['message']}" if category else found["message"]
    return f"{head} ({place[1].rpartition('/')[2]})" if place else head


def bounds_to_try(cause: str, environment: Mapping[str, str]) -> Mapping[str, str] | None:
    """Return an environment with the chip's bounds for a fault that these may let pass.

    None for another fault, and where options are given already, such as those of checks, which are
    to find it.
    """
    variables = program_variables({"chip_bounds": 1})
    if _BOUNDS not in cause or environment.keys() & variables.keys():
        return None
    return {**environment, **variables}


def build_cause(text: str) -> str:
    """Return the first error of a build, one line."""
    found = _COMPILER_ERROR.search(text)
    if found is not None:
        # What gcc says at length of a function that only an argument could find.
        late = _MISSING_NAME_LATE.search(found["text"])
        return f"'{late['name']}' was not declared" if late else found["text"].strip()
    cmake = _CMAKE_ERROR.search(text)
    if cmake is not None:
        body = [line.strip() for line in cmake["body"].splitlines() if line.strip()]
        return f"CMake: {' '.join(body[:2])}" if body else cmake[0].strip()
    linker = next((line for line in text.splitlines() if _LINKER_ERROR.search(line)), None)
    # What make was doing says more than that make gives up.
    before = _MAKE_ERROR.split(text, maxsplit=1)[0]
    return (linker or last_line(before) or last_line(text)).strip()


def names_in_build_log(text: str, own: Collection[str] = ()) -> tuple[str, ...]:
    """Return the names that the compiler or the linker did not find, first one first.

    `own` are the names that the source declares itself: the compiler does not know one whose type
    is missing, and then only the type counts.
    """
    found: dict[str, None] = {}
    errors = [match["text"] for match in _COMPILER_ERROR.finditer(text)]
    for error in errors:
        for pattern in _MISSING_NAME:
            match = pattern.search(error)
            if match is not None:
                surely = "space" in pattern.groupindex or match["name"] not in own
                found |= {_qualified(match): None} if surely else {}
                break
        else:
            member = _MISSING_MEMBER.search(error)
            if member is not None and member["name"] not in own:
                found["." + member["name"]] = None
    found |= {match["name"]: None for match in _UNDEFINED.finditer(text)}
    found |= {f"-l{match['name']}": None for match in _LIBRARY.finditer(text)}
    return tuple(found)


def names_in_faults(text: str) -> tuple[str, ...]:
    """Return what a program asked for at run time that opkit has not built."""
    return tuple(dict.fromkeys(match["message"] for match in _UNIMPLEMENTED.finditer(text)))


def missing_module(text: str) -> str | None:
    """Return the Python module or the CMake package that a step needs and this machine lacks."""
    module = _MODULE.search(text)
    if module is not None:
        return f"the Python module {module[1]}"
    package = _PACKAGE.search(text)
    if package is not None:
        return f"the CMake package {package[1] or package[2]}"
    return None


def missing_download(text: str) -> str | None:
    """Return what a step could not download, as its error says it; None where it did not try."""
    if _NO_DOWNLOAD.search(text) is None:
        return None
    address = _ADDRESS.search(text)
    return address[0] if address else build_cause(text)


def foreign_software(log: str, sources: Iterable[str]) -> str | None:
    """Return what software a build lacks that opkit does not stand in for; None where it is none.

    Args:
        log: what the failed build printed.
        sources: the texts that it compiled.
    """
    if _NO_HEADER.search(log) is None:
        return None
    headers = [header for text in sources for header in include_names(text)]
    for beginning, software in _FOREIGN_HEADERS.items():
        if any(header.startswith(beginning) for header in headers):
            return software
    return None


def other_chip(text: str) -> str | None:
    """Return the architecture that an error asks for, where opkit does not emulate it."""
    ours = {chip.npu_arch.lower() for chip in all_chips()}
    for error in _errors_of(text):
        for found in _ARCHITECTURE.finditer(error):
            if found[0].lower() not in ours:
                return found[0]
    return None


def refused_chip(log: str, sources: Iterable[str]) -> str | None:
    """Return what sources say of the chip where an `#error` or an assertion of theirs refuses it.

    Args:
        log: what the failed build printed.
        sources: the texts that it compiled.
    """
    errors = list(_errors_of(log))
    for source in sources:
        for found in _OWN_REFUSAL.finditer(source):
            text = (found["error"] or found["assertion"]).strip().strip('"')
            if _CHIP_WORD.search(text) and any(text in error for error in errors):
                return text
    return None


def other_products(readme: str) -> str | None:
    """Return the products that a README says its sample is for, where opkit emulates none."""
    names = [match["name"] for match in _PRODUCT.finditer(readme)]
    section = _PRODUCT_SECTION.search(readme)
    if section is not None:
        names += _PRODUCT_BULLET.findall(section["text"])
    if not names or any(_OUR_PRODUCT.search(name) for name in names):
        return None
    return ", ".join(dict.fromkeys(names))


def one_line(text: str) -> str:
    """Return a cause for a table: no escape sequences or control characters, and no novel."""
    plain = " ".join(_CONTROL.sub("", text).split())
    return plain if len(plain) <= _MOST_CAUSE else f"{plain[: _MOST_CAUSE - 3]}..."


def first_line(text: str) -> str:
    """Return the first line with something in it."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def last_line(text: str) -> str:
    """Return the last line with something in it."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _errors_of(text: str) -> Iterable[str]:
    for cmake in _CMAKE_ERROR.finditer(text):
        yield cmake["body"]
    for error in _COMPILER_ERROR.finditer(text):
        yield error["text"]


def _qualified(match: re.Match[str]) -> str:
    space = match.groupdict().get("space") or ""
    name = match["name"].removeprefix("AscendC::")
    inner = space.removeprefix("AscendC").removeprefix("::")
    return f"{inner}::{name}" if inner else name
