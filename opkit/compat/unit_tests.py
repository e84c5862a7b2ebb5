"""Kernel unit tests of operator libraries, written for the CPU twin: built, run and counted.

    OPERATOR/tests/ut/op_kernel/CMakeLists.txt    AddOpTestCase(NAME "CHIP;CHIP" "-DOPTION ..." ...)
                                                  or AddOpsTestCase(OP_NAME NAME SOC_VERSION CHIP
                                                  ... OTHER_COMPILE_OPTIONS ... UT_SRC_FILES ...)
    OPERATOR/tests/ut/op_kernel/test_NAME*.cpp    tests of GoogleTest
    OPERATOR/tests/ut/op_kernel/NAME_tiling_def.h     first in every source, where there is one;
                                                      some libraries call it NAME_tiling.h
    LIBRARY/tests/ut/op_kernel/*.cpp              what tests share; not the main function
    LIBRARY/tests/ut/common/NAME.cpp              where a test includes NAME.h; such tests may run
                                                  the operator's host code, which comes with it

A test's program has the kernel, the tests, and what they share. It starts four folders below a
folder with everything of the library, as in the library's own build, so relative paths fit.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from opkit.chips import DEFAULT_CHIP, find_chip
from opkit.compat.outcome import (
    Verdict,
    bounds_to_try,
    build_cause,
    fault_cause,
    last_line,
    one_line,
)
from opkit.compat.processes import Ran, Running
from opkit.compat.scan import LATER_FOLDER
from opkit.compat.texts import read_text
from opkit.compat.unit_verdict import comparisons, failed_script
from opkit.errors import BuildError, OpkitError, UsageError
from opkit.schema import camel_case
from opkit.toolchain import (
    LIST_TEMPLATES,
    HostDescription,
    Project,
    Tree,
    chip_macros,
    find_library,
    host_description,
    include_names,
    includes_in,
    is_kernel_template,
    is_operator_for,
    load_project,
    plain_code,
    scan_kernels,
    significant,
    tokenize,
    twin_entry,
)

__all__ = [
    "UnitTest",
    "UnitTestOutcome",
    "find_unit_tests",
    "needs_googletest",
    "try_unit_test",
]

_FOLDER = Path("tests") / "ut" / "op_kernel"
_OWN_TILING = ("_tiling_def.h", "_tiling.h")
_COMMON = Path("tests") / "ut" / "common"
_SHARED_HEADERS = (_FOLDER, _COMMON)
_CASE = re.compile(r"\bAddOpTestCase\s*\(([^)]*)\)")
_KEYED_CASE = re.compile(r"\bAddOpsTestCase\s*\(([^)]*)\)")
_KEYS = ("OP_NAME", "SOC_VERSION", "OTHER_COMPILE_OPTIONS", "TILING_SRC_FILES", "UT_SRC_FILES")
_COMMENT = re.compile(r"#[^\n]*")
_HERE = "${CMAKE_CURRENT_SOURCE_DIR}"
# What a test's CMakeLists.txt copies to where its program starts.
_OWN_FILE = re.compile(re.escape(_HERE) + r"/([\w./-]+)")
_STARTED_WITH = re.compile(r"\$\{CMAKE_BINARY_DIR\}/tests/ut/op_kernel/([\w.-]+)")
_MAIN = re.compile(r"\bint(?:32_t)?\s+main\s*\(")
_TILING_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+GET_TILING_DATA", re.MULTILINE)
_STRUCT = re.compile(r"\bstruct\s+(\w+)\s*\{")
_DECLARED = re.compile(r'\bextern\s+"C"[^;{}()]*\b(\w+)\s*\(([^()]*)\)\s*;')
_WORD = re.compile(r"\w+")
_GE_TYPE = re.compile(r"\bge::(DT_\w+)")
_PASSED = re.compile(r"^\[  PASSED  \] (\d+) test", re.MULTILINE)
_FAILED = re.compile(r"^\[  FAILED  \] (\S+)(?: \(\d+ ms\))?$", re.MULTILINE)
# As GoogleTest tells of it, or the C++ library where nothing catches it.
_THROWN = re.compile(r'(?:C\+\+ exception with description "|^ *what\(\): +)([^"\n]+)', re.M)
# Numbers, elements and what a comparing function gives; not the return codes of tiling or scripts.
_ASSERTION = re.compile(
    r"\b(?:EXPECT|ASSERT)_(?:(?:NEAR|FLOAT_EQ|DOUBLE_EQ)\s*\("
    r"|(?:EQ|TRUE)\s*\(\s*(?:[^,;]*[\[*]|\w*[Cc]ompare\w*\())"
)
# As the twin's build has it; the test's own headers decide the rest.
_DEFINES = ("-DKERNELUT=1", "-D__CCE_KT_TEST__=1", "-DASCENDC_CPU_DEBUG=1")


@dataclass(frozen=True)
class UnitTest:
    """The tests of one operator's kernel."""

    name: str
    """The operator's folder from the library's root."""
    folder: Path
    """Where they lie."""
    operator: str
    """The kernel's file, without its suffix."""
    chips: tuple[str, ...]
    """Chips that its build names; empty: any."""
    options: tuple[str, ...]
    is_named: bool
    """Whether a CMakeLists.txt says how they are built; else the OpDef's first types are taken."""
    sources: tuple[Path, ...]


@dataclass(frozen=True)
class UnitTestOutcome:
    """What became of the tests of one operator."""

    name: str
    verdict: Verdict
    """A pass: GoogleTest says so, something compares a result, no comparison says otherwise and
    none of the test's scripts fails."""
    cause: str = ""
    tests: int = 0
    """How many passed by GoogleTest."""
    compared: int = 0
    """How many comparisons said that a result is right, or wrong."""
    seconds: float = 0.0


def find_unit_tests(below: Path) -> tuple[UnitTest, ...]:
    """Return the kernel unit tests below a folder of a library, by path.

    Raises:
        UsageError: the folder is of no library.
    """
    library = find_library(below.resolve())
    if library is None:
        raise UsageError(
            f"{below}: is not of a library of operators",
            help="a library's root has a CMakeLists.txt and common/inc",
        )
    found = []
    for folder in sorted(below.resolve().rglob(_FOLDER.as_posix())):
        operator = folder.parent.parent.parent
        if operator == library.root or not (operator / "op_kernel").is_dir():
            continue
        places = (folder, folder.parent, operator / "tests", operator)
        cmake = _COMMENT.sub("", "\n".join(read_text(p / "CMakeLists.txt") for p in places))
        name = operator.name
        chips: list[str] = []
        options: list[str] = []
        for body in _CASE.findall(cmake):
            words = shlex.split(body)
            if words and not words[0].startswith("ascend"):
                name, words = words[0], words[1:]
            if words:
                chips += words[0].split(";")
                options = [word for word in words[1:2] if word.startswith("-")] or options
        listed: list[Path] = []
        for body in _KEYED_CASE.findall(cmake):
            words_of = _by_key(shlex.split(body))
            name = next(iter(words_of["OP_NAME"]), name)
            # A variable of CMake's is what the build is asked for: any chip.
            chips += [chip for chip in words_of["SOC_VERSION"] if "$" not in chip]
            options = words_of["OTHER_COMPILE_OPTIONS"][:1] or options
            listed += _own_files(folder, " ".join(words_of["UT_SRC_FILES"]))
        sources = (
            tuple(listed)
            or tuple(sorted(folder.glob(f"test_{name}*.cpp")))
            or tuple(sorted(folder.glob("test_*.cpp")))
        )
        if sources:
            found.append(
                UnitTest(
                    operator.relative_to(library.root).as_posix(),
                    folder,
                    name,
                    tuple(chips),
                    tuple(
                        word.replace(_HERE, str(folder))
                        for text in options
                        for word in text.split()
                    ),
                    bool(chips),
                    sources,
                )
            )
    return tuple(found)


def needs_googletest(test: UnitTest) -> bool:
    """Whether a test's sources include GoogleTest, or headers of its own do."""
    return any("gtest/gtest.h" in read_text(p) for p in (*test.sources, *_own_headers(test)))


def try_unit_test(
    test: UnitTest,
    place: Path,
    *,
    compiler: Sequence[str],
    environment: Mapping[str, str],
    seconds: float,
    includes: Sequence[Path] = (),
    chip: str = DEFAULT_CHIP,
    show: Callable[[Sequence[str]], None] = lambda _: None,
) -> UnitTestOutcome:
    """Build the tests of one operator, run them and say what became of them.

    Args:
        place: an empty folder of its own.
        compiler: how to call `opkit cc`.
        environment: variables of every step, over those of the process.
        seconds: the limit of each step.
        includes: folders searched behind the library's own, such as those of GoogleTest.
        show: called with each command before it runs.
    """
    begin = time.monotonic()
    attempt = _Attempt(
        test, place, tuple(compiler), environment, seconds, tuple(includes), chip, show, Running()
    )
    try:
        outcome = attempt.outcome()
    except OpkitError as err:
        outcome = UnitTestOutcome(test.name, Verdict.BUILD, one_line(str(err)))
    finally:
        attempt.running.stop()
    return replace(outcome, seconds=time.monotonic() - begin)


@dataclass(frozen=True)
class _Attempt:
    test: UnitTest
    place: Path
    compiler: tuple[str, ...]
    environment: Mapping[str, str]
    seconds: float
    includes: tuple[Path, ...]
    chip: str
    show: Callable[[Sequence[str]], None]
    running: Running

    def outcome(self) -> UnitTestOutcome:
        test = self.test
        family = find_chip(self.chip).soc_config
        if test.chips and not any(name.lower().startswith(family) for name in test.chips):
            return self._say(Verdict.CHIP, f"is for {', '.join(test.chips)}")
        operator = test.folder.parent.parent.parent
        has_opdef = any((operator / "op_host").glob("*_def*.cpp"))
        if not test.chips and has_opdef and not is_operator_for(operator, soc_config=family):
            return self._say(Verdict.CHIP, f"the OpDef does not name {family}")
        later = next((path for path in _own_headers(test) if LATER_FOLDER in path.parts), None)
        if not test.chips and later is not None:
            return self._say(Verdict.CHIP, f"includes {LATER_FOLDER}/{later.name}")
        program = self._workplace() / "test"
        built = self._run(self._command(program), self.place)
        if built.timed_out:
            return self._say(Verdict.TIMEOUT, "compiling")
        if built.code != 0:
            return self._say(Verdict.BUILD, build_cause(built.output))
        result = self._verdict(self._run([str(program)], program.parent))
        environment = bounds_to_try(result.cause, self.environment)
        if result.verdict is not Verdict.FAULT or environment is None:
            return result
        more = replace(self, environment=environment)
        again = more._verdict(more._run([str(program)], program.parent))
        if again.verdict is Verdict.RAN:
            return replace(again, cause=result.cause)
        if again.verdict is not Verdict.PASS:
            return result
        return replace(again, verdict=Verdict.BEHIND, cause=result.cause)

    def _verdict(self, ran: Ran) -> UnitTestOutcome:
        """Return what a run of the tests came to."""
        test = self.test
        if ran.timed_out:
            return self._say(Verdict.TIMEOUT, last_line(ran.output))
        passed = _PASSED.search(ran.output)
        right, wrong = comparisons(ran.output)
        result = UnitTestOutcome(
            test.name, Verdict.PASS, "", int(passed[1]) if passed else 0, right + wrong
        )
        thrown = _THROWN.search(ran.output)
        if thrown is not None or ran.code < 0:
            cause = thrown[1] if thrown else fault_cause(ran.output) or last_line(ran.output)
            return replace(result, verdict=Verdict.FAULT, cause=one_line(cause))
        failed = list(dict.fromkeys(_FAILED.findall(ran.output)))
        if ran.code != 0 or failed:
            cause = ", ".join(failed) or last_line(ran.output)
            return replace(result, verdict=Verdict.WRONG, cause=one_line(cause))
        if wrong:
            told = f"{wrong} of {right + wrong} comparisons"
            return replace(result, verdict=Verdict.WRONG, cause=told)
        script = failed_script(ran.output)
        if script is not None:
            cause = f"passes, though a script that it starts fails: {script}"
            return replace(result, verdict=Verdict.UNVERIFIED, cause=one_line(cause))
        if not result.tests and not right:
            return replace(result, verdict=Verdict.UNVERIFIED, cause="runs no test")
        if not result.compared and not self._asserts():
            return replace(result, verdict=Verdict.RAN)
        return result

    def _asserts(self) -> bool:
        """Whether the tests themselves compare what a kernel has written."""
        texts = (path.read_text("utf-8", "replace") for path in self.test.sources)
        return any(_ASSERTION.search(text) for text in texts)

    def _say(self, verdict: Verdict, cause: str) -> UnitTestOutcome:
        return UnitTestOutcome(self.test.name, verdict, one_line(cause))

    def _run(self, argv: Sequence[str], folder: Path) -> Ran:
        self.show(argv)
        env = {**os.environ, **self.environment}
        return self.running.call(argv, cwd=folder, env=env, seconds=self.seconds)

    def _workplace(self) -> Path:
        """Return where the program starts: four folders below links to what the library has."""
        library = find_library(self.test.folder)
        assert library is not None
        for entry in library.root.iterdir():
            if entry.name not in ("build", ".git"):
                (self.place / entry.name).symlink_to(entry)
        folder = self.place / "build" / _FOLDER
        folder.mkdir(parents=True)
        for path in _started_with(self.test):
            (folder / path.name).symlink_to(path)
        return folder

    def _command(self, program: Path) -> list[str]:
        test = self.test
        library = find_library(test.folder)
        assert library is not None
        shared = [
            path
            for path in sorted((library.root / _FOLDER).glob("*.cpp"))
            if not _MAIN.search(read_text(path))
        ]
        own = "".join(read_text(path) for path in (*test.sources, *_own_headers(test)))
        project = load_project(test.folder.parent.parent.parent)
        if project.tree is None:
            raise UsageError(f"{project.root}: is no operator of a library")
        chip = find_chip(self.chip)
        kernel = _kernel_of(test, project.tree, chip.soc_config)
        common = _common_sources(test, library.root / _COMMON)
        has_own = _own_tiling(test) is not None
        described: HostDescription | None = None
        if common:
            # Such tests may run the host code: without it they do not build.
            described = host_description(project, chip=self.chip, out=self.place / "host")
        elif not (has_own and test.is_named):
            described = self._described(project)
        first = self._first_header(described)
        options = project.tree.kernel_options("ALL", soc_config=chip.soc_config)
        headers = [test.folder, *(library.root / folder for folder in _SHARED_HEADERS)]
        includes = [*headers, *self.includes]
        compiled = [
            *self.compiler,
            f"--npu-arch={chip.npu_arch}",
            *chip_macros(chip),
            "-O1",
            "-fno-access-control",
            "-fpermissive",
            "-w",
            *_DEFINES,
            f'-DUT_SOC_VERSION="{self.chip}"',
            f"-DBUILD_SOC_VERSION={chip.soc_config}",
            *(test.options if test.is_named else _type_macros(described, test)),
            *(word for folder in includes for word in ("-I", str(folder))),
            *options,
            # The library's own build begins every source with a generated header, which has it.
            *("-include", "cstdint"),
            *(word for path in first for word in ("-include", str(path))),
        ]
        kernels = [str(self._kernel_unit(kernel, compiled))] if _calls(test, kernel) else []
        return [
            *compiled,
            *kernels,
            *map(str, (*test.sources, *shared, *common)),
            *(_linked(described.library) if common and described else ()),
            *(() if _MAIN.search(own) else ("-lgtest_main",)),
            *(("-lgtest",) if needs_googletest(test) else ()),
            "-lpthread",
            "-o",
            str(program),
        ]

    def _described(self, project: Project) -> HostDescription | None:
        """Return what the host code says; None where it does not build, as some need not."""
        try:
            return host_description(project, chip=self.chip, out=self.place / "host")
        except (BuildError, UsageError):
            return None

    def _first_header(self, described: HostDescription | None) -> tuple[Path, ...]:
        """Return what comes first in every source: what the kernel's tiling data is.

        NAME_tiling_def.h or NAME_tiling.h beside the tests; else the structs that the host code
        defines, unless a header of the tests has them, too.
        """
        named = _own_tiling(self.test)
        if named is not None:
            return (named,)
        text, default = self._tiling(described)
        # A kernel's source that the tests include would come twice.
        headers = {p: read_text(p) for p in _own_headers(self.test) if p.suffix != ".cpp"}
        structs = set(_STRUCT.findall(text))
        for path, header in headers.items():
            if structs & set(_STRUCT.findall(header)) or (
                not text and _TILING_MACRO.search(header)
            ):
                return (path,)
        if default is None:
            return ()
        derived = self.place / f"{self.test.operator}_tiling_data.h"
        guard = f"OPKIT_{self.test.operator.upper()}_TILING_DATA"
        derived.write_text(
            f"#ifndef {guard}\n#define {guard}\n#include <cstdint>\n"
            f'#include "kernel_tiling/kernel_tiling.h"\n{text}\n'
            f"#define OPKIT_TILING_DEFAULT {default}\n#endif\n",
            encoding="utf-8",
        )
        return (derived,)

    def _tiling(self, described: HostDescription | None) -> tuple[str, str | None]:
        """Return the structs of the kernel's tiling data, and the default one's name."""
        if described is None:
            return "", None
        names = [entry.op for entry in described.operators]
        chosen = [op for op in names if _same(op, self.test.operator)] or names[:1]
        return described.tiling_text(chosen[0]) if chosen else ("", None)

    def _kernel_unit(self, kernel: Path, compiled: Sequence[str]) -> Path:
        """Return a source that compiles the kernel with the numbers of types and formats.

        Args:
            compiled: the words that compile it, without a source.
        """
        name = self.test.operator
        unit = self.place / f"{name}_kernel.cpp"
        source = f'#include "opkit/kernel_constants.h"\n#include "{kernel}"\n'
        unit.write_text(source, "utf-8")
        arguments = _plain_arguments(self.test)
        if arguments is None or not is_kernel_template(plain_code(read_text(kernel)), name):
            return unit
        listing = self.place / f"{name}_kernel.txt"
        words = ("-E", "-P", f"-D{LIST_TEMPLATES}", str(unit), "-o", str(listing))
        if self._run((*compiled, *words), self.place).code != 0:
            # Compiling it tells why.
            return unit
        text = listing.read_text(encoding="utf-8", errors="replace")
        before, behind = twin_entry(text, kernel=name, op=camel_case(name), arguments=arguments)
        unit.write_text(f"{before}{source}{behind}", "utf-8")
        return unit


def _common_sources(test: UnitTest, common: Path) -> tuple[Path, ...]:
    """Return the sources in the library's common folder for headers that these tests include."""
    found: dict[Path, None] = {}
    waiting = list(test.sources)
    while waiting:
        for name in include_names(read_text(waiting.pop(0)), quoted_only=True):
            header = common / name
            for path in (header, header.with_suffix(".cpp")):
                if path.is_file() and path not in found:
                    found[path] = None
                    waiting.append(path)
    return tuple(path for path in found if path.suffix == ".cpp")


def _calls(test: UnitTest, kernel: Path) -> bool:
    """Whether the tests need the kernel's source beside theirs.

    They do not where they include it, nor where they name none of its functions: kernels of their
    own around its headers then take its place, and its macros of types need not be there.
    """
    own = _own_headers(test)
    if kernel in own:
        return False
    entries = {found.name for found in scan_kernels(read_text(kernel))}
    beside = (path for path in own if test.folder in path.parents)
    words = {
        word
        for path in (*test.sources, *beside)
        for word in _WORD.findall(plain_code(read_text(path)))
    }
    # Macros may make a kernel that names no function.
    return not entries or not words.isdisjoint({*entries, test.operator})


def _plain_arguments(test: UnitTest) -> int | None:
    """Return how many arguments the kernel has as a function of C that the tests declare."""
    for path in test.sources:
        code = " ".join(token.text for token in significant(tokenize(read_text(path))))
        for name, parameters in _DECLARED.findall(code):
            if name == test.operator:
                return len(parameters.split(","))
    return None


def _linked(library: Path | None) -> tuple[str, ...]:
    """Return words that load a library with a program, though the program calls nothing in it."""
    if library is None:
        return ()
    return (
        "-Wl,--no-as-needed",
        str(library.absolute()),
        f"-Wl,-rpath,{library.parent.absolute()}",
    )


def _own_tiling(test: UnitTest) -> Path | None:
    """Return the header beside the tests that says what the kernel's tiling data is."""
    named = (test.folder / f"{test.operator}{ending}" for ending in _OWN_TILING)
    return next((path for path in named if path.is_file()), None)


def _started_with(test: UnitTest) -> list[Path]:
    """Return the files that the tests find in the folder in which their program starts."""
    cmake = read_text(test.folder / "CMakeLists.txt")
    wanted = set(_STARTED_WITH.findall(cmake))
    return [path for path in _own_files(test.folder, cmake) if path.name in wanted]


def _own_files(folder: Path, cmake: str) -> list[Path]:
    """Return the files of a folder that text for CMake names by ${CMAKE_CURRENT_SOURCE_DIR}."""
    named = dict.fromkeys(folder / name for name in _OWN_FILE.findall(cmake))
    return [path for path in named if path.is_file()]


def _by_key(words: Sequence[str]) -> dict[str, list[str]]:
    """Return the words behind each key of AddOpsTestCase; lists of CMake's are taken apart."""
    found: dict[str, list[str]] = {key: [] for key in _KEYS}
    key = ""
    for word in words:
        if word in found:
            key = word
        elif key:
            found[key] += [part for part in word.split(";") if part]
    return found


def _type_macros(described: HostDescription | None, test: UnitTest) -> tuple[str, ...]:
    """Return the macros of the combination of data types that the tests say, else of the first."""
    if described is None:
        return ()
    for entry in described.operators:
        if _same(entry.op, test.operator) and entry.spec.variant_count:
            tensors = (*entry.spec.inputs, *entry.spec.outputs)
            variants = [entry.spec.variant_dtypes(i) for i in range(entry.spec.variant_count)]
            text = "\n".join(plain_code(read_text(path)) for path in test.sources)
            chosen = said_variant(text, [[dtype.ge for dtype in dtypes] for dtypes in variants])
            return tuple(
                macro
                for tensor, dtype in zip(tensors, variants[chosen], strict=True)
                for macro in (
                    f"-DDTYPE_{tensor.name.upper()}={dtype.kernel}",
                    f"-DORIG_DTYPE_{tensor.name.upper()}={dtype.ge_value}",
                )
            )
    return ()


def said_variant(text: str, variants: Sequence[Sequence[str]]) -> int:
    """Return which combination the first tiling context of a test has, else 0.

    Args:
        text: the test, without comments; its context lists inputs, then outputs.
        variants: `DT_...` names of each combination's inputs and outputs.
    """
    said = _GE_TYPE.findall(text)
    matching = (i for i, names in enumerate(variants) if said[: len(names)] == list(names))
    return next(matching, 0)


def _same(op: str, name: str) -> bool:
    return op.lower() == name.replace("_", "").lower()


def _kernel_of(test: UnitTest, tree: Tree, soc_config: str) -> Path:
    by_name = [path for path in tree.kernel_sources if path.stem == test.operator]
    if by_name:
        return by_name[0]
    camel = "".join(word.capitalize() for word in test.operator.split("_"))
    return tree.find_kernel(camel, None, soc_config=soc_config).source


def _own_headers(test: UnitTest) -> tuple[Path, ...]:
    """Return the files that these tests include by their place, the nearest first, and so on."""
    found: dict[Path, None] = {}
    waiting = list(test.sources)
    while waiting:
        path = waiting.pop(0)
        for include in includes_in(read_text(path), path.parent, ()):
            header = include.target.resolve()
            if header not in found:
                found[header] = None
                waiting.append(header)
    return tuple(found)
