"""The command line of the compiler driver, read into data.

It takes what users of the vendor's compiler and of CMake pass. Flags that only the vendor's
compiler knows are collected, to be named in one note; all others go to the host compiler.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from opkit.errors import UsageError
from opkit.toolchain.building import COMPILE_COMMANDS
from opkit.toolchain.flags import AUTO_SYNC, sync_macros

__all__ = ["COVERED_LIBRARIES", "DriverRequest", "Input", "parse_driver_arguments"]

_LANGUAGES = {
    ".asc": "asc",
    ".cpp": "c++",
    ".cc": "c++",
    ".cxx": "c++",
    ".c++": "c++",
    ".C": "c++",
    ".cce": "asc",
    ".c": "c",
}
_FORCED_LANGUAGES = {"asc": "asc", "cce": "asc", "c++": "c++", "c": "c", "none": None}
# Host compiler flags whose value is the next word.
_WITH_VALUE = (
    "-include",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-imacros",
    "-arch",
    "-Xpreprocessor",
)
_LINK_WITH_VALUE = ("-Xlinker", "-u", "-z", "-T")
_DEPFILE_WITH_VALUE = ("-MF", "-MT", "-MQ")
_DEPFILE = ("-MD", "-MMD", "-MP")
_MODES = ("-c", "-S", "-E", "-M", "-MM", "-fsyntax-only")
# The vendor's compiler's own. Some take their value as the next word.
_VENDOR_PREFIXES = (
    "--cce-",
    "--npu-",
    "--cannrt",
    "--asc-",
    "--run-mode",
    "--enable-",
    "-mllvm",
    "-Xclang",
    "-Xaicore",
    "-Xhost",
    "-Xascendc",
    "-fcce-",
    "--soc-version",
    "--sanitizer",
    "--gcc-toolchain",
    "--target",
)
_VENDOR_WITH_VALUE = ("-mllvm", "-Xclang", "-Xaicore", "-Xhost-start", "-Xascendc")
# What these libraries hold is in libopkit_emulator or is not needed on a host. A symbol that opkit
# lacks still fails, at link time and by its name.
COVERED_LIBRARIES = frozenset(
    {
        "acl_mdl",
        "acl_op_compiler",
        "acl_op_executor",
        "acl_rt",
        "acl_rtc",
        "aclnn",
        "ascend_dump",
        "ascend_hal",
        "ascendalog",
        "ascendc_runtime",
        "ascendcl",
        "c_sec",
        "error_manager",
        "exe_graph",
        "ge_common",
        "graph",
        "graph_base",
        "lowering",
        "metadef",
        "mmpa",
        "msprofiler",
        "nnopbase",
        "opp_registry",
        "platform",
        "profapi",
        "register",
        "rt2_registry",
        "runtime",
        "td_mm",
        "tiling_api",
        "unified_dlog",
    }
)
_OLD_STANDARDS = ("98", "03", "0x", "11", "1y", "14")


@dataclass(frozen=True)
class Input:
    """One file of the command line."""

    path: Path
    """As the user names it."""
    language: str | None
    """`asc`, `c++` or `c`; None: an object or a library, for the linker."""


@dataclass(frozen=True)
class DriverRequest:
    """What one command line asks for."""

    inputs: tuple[Input, ...] = ()
    output: Path | None = None
    mode: str = "link"
    """`link`, or the flag that stops earlier: `-c`, `-S`, `-E`, `-M`, `-MM`, `-fsyntax-only`."""
    is_shared: bool = False
    is_archive: bool = False
    """Whether to put the objects into a static library (`-lib`)."""
    is_library: bool = False
    """Whether to make a kernel library, which programs load with aclrtBinaryLoadFromFile."""
    name_expressions: tuple[str, ...] = ()
    """For a kernel library, the kernels of templates that it has, such as `add<float>`."""
    npu_arch: str | None = None
    """As given, such as `dav-2201`; None: the default chip's."""
    standard: str | None = None
    """The `-std=` flag; raised where it is older than C++17, which our headers need."""
    include_dirs: tuple[Path, ...] = ()
    """Folders of `-I`, in order; also among `compile_flags`."""
    compile_flags: tuple[str, ...] = ()
    depfile_flags: tuple[str, ...] = ()
    compile_commands: Path | None = None
    """The compilation database that editors read, to write the sources into."""
    link_parts: tuple[Input | str, ...] = ()
    """Inputs, libraries and linker flags in the order given, which linkers mind."""
    ignored: tuple[str, ...] = ()
    """Flags that have no meaning here."""
    notes: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[Input, ...]:
        """The inputs to compile."""
        return tuple(item for item in self.inputs if item.language is not None)


@dataclass
class _Parser:
    words: list[str]
    position: int = 0
    forced: str | None = None
    fields: dict[str, object] = field(default_factory=dict)
    inputs: list[Input] = field(default_factory=list)
    compile_flags: list[str] = field(default_factory=list)
    include_dirs: list[Path] = field(default_factory=list)
    depfile_flags: list[str] = field(default_factory=list)
    compile_commands: Path | None = None
    link_parts: list[Input | str] = field(default_factory=list)
    synchronisation: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    output: Path | None = None
    mode: str = "link"
    is_shared: bool = False
    is_archive: bool = False
    is_library: bool = False
    name_expressions: list[str] = field(default_factory=list)
    npu_arch: str | None = None
    standard: str | None = None

    def value_of(self, flag: str) -> str:
        self.position += 1
        if self.position >= len(self.words):
            raise UsageError(f"{flag} wants a value", help='"opkit cc --help" shows an example')
        return self.words[self.position]

    def run(self) -> DriverRequest:
        while self.position < len(self.words):
            self.one(self.words[self.position])
            self.position += 1
        return DriverRequest(
            inputs=tuple(self.inputs),
            output=self.output,
            mode=self.mode,
            is_shared=self.is_shared,
            is_archive=self.is_archive,
            is_library=self.is_library,
            name_expressions=tuple(self.name_expressions),
            npu_arch=self.npu_arch,
            standard=self.standard,
            include_dirs=tuple(self.include_dirs),
            compile_flags=(*self.compile_flags, *sync_macros(self.synchronisation)),
            depfile_flags=tuple(self.depfile_flags),
            compile_commands=self.compile_commands,
            link_parts=tuple(self.link_parts),
            ignored=tuple(dict.fromkeys(self.ignored)),
            notes=tuple(self.notes),
        )

    def one(self, word: str) -> None:
        if word == "-" or not word.startswith("-"):
            self.file(word)
        elif word.startswith(("--npu-arch", "--cce-soc-version", "--npu-soc")):
            self.architecture(word)
        elif word == "-o" or (word.startswith("-o") and "=" not in word):
            self.output = Path(word[2:] or self.value_of("-o"))
        elif word in _MODES:
            self.mode = word
        elif word == "-dc":
            # The vendor's separate compilation of device code; a host's compiler knows no other.
            self.mode = "-c"
        elif word == "--kernel-library":
            self.is_library = self.is_shared = True
            self.compile_flags.append("-fPIC")
        elif word == "--compile-commands" or word.startswith("--compile-commands="):
            self.compile_commands = Path(word.partition("=")[2] or COMPILE_COMMANDS)
        elif word.startswith("--name-expression="):
            self.name_expressions.append(word.partition("=")[2])
        elif word in ("-shared", "--shared"):
            self.is_shared = True
        elif word == "-lib":
            self.is_archive = True
        elif word == "-x" or (word.startswith("-x") and word[2:] in _FORCED_LANGUAGES):
            self.language(word[2:] or self.value_of("-x"))
        elif word.startswith("-I"):
            folder = word[2:] or self.value_of("-I")
            self.include_dirs.append(Path(folder))
            self.compile_flags.append(f"-I{folder}")
        elif word in ("-D", "-U"):
            self.compile_flags.append(word + self.value_of(word))
        elif word.startswith("-std="):
            self.set_standard(word)
        elif word.startswith(("-l", "-L")) or word in ("--library", "--library-path"):
            self.library(word)
        elif word.partition("=")[0] == AUTO_SYNC:
            self.synchronisation.append(word)
        elif word.startswith(_VENDOR_PREFIXES):
            self.vendor(word)
        elif word in _DEPFILE_WITH_VALUE:
            self.depfile_flags += [word, self.value_of(word)]
        elif word in _DEPFILE:
            self.depfile_flags.append(word)
        elif word in _LINK_WITH_VALUE:
            self.link_parts += [word, self.value_of(word)]
        elif word.startswith(("-Wl,", "-static", "-rdynamic", "-nostartfiles", "-nodefaultlibs")):
            self.link_parts.append(word)
        elif word in _WITH_VALUE:
            self.compile_flags += [word, self.value_of(word)]
        else:
            self.compile_flags.append(word)

    def file(self, word: str) -> None:
        path = Path(word)
        language = self.forced or _LANGUAGES.get(path.suffix)
        if word == "-" or path.suffix in (".o", ".a", ".so") or ".so." in path.name:
            language = None
        item = Input(path, language)
        self.inputs.append(item)
        self.link_parts.append(item)

    def language(self, name: str) -> None:
        if name not in _FORCED_LANGUAGES:
            raise UsageError(
                f"-x {name}: opkit cc does not know this language",
                help=f"it knows {', '.join(_FORCED_LANGUAGES)}",
            )
        self.forced = _FORCED_LANGUAGES[name]

    def architecture(self, word: str) -> None:
        name, equals, value = word.partition("=")
        if not equals:
            value = self.value_of(word)
        if name == "--npu-arch":
            self.npu_arch = value
        else:
            self.ignored.append(word)

    def set_standard(self, word: str) -> None:
        if word.startswith(("-std=c++", "-std=gnu++")) and word.endswith(_OLD_STANDARDS):
            family = word[: word.rindex("+") + 1]
            self.notes.append(f"{word} becomes {family}17, which kernel headers need")
            word = f"{family}17"
        self.standard = word

    def library(self, word: str) -> None:
        if word in ("-l", "-L"):
            word += self.value_of(word)
        if word.startswith("-l") and word[2:] in COVERED_LIBRARIES:
            return
        if word == "-ltorch_npu":
            self.link_parts += self.torch_python()
            return
        self.link_parts.append(word)

    def torch_python(self) -> list[str]:
        """Return PyTorch's Python part beside the libtorch that is linked.

        The vendor's libtorch_npu needs it, so extensions that link that need not name it.
        """
        paths = [part.path for part in self.link_parts if isinstance(part, Input)]
        beside = (path.parent / "libtorch_python.so" for path in paths if path.stem == "libtorch")
        return [str(path) for path in beside if path.is_file()][:1]

    def vendor(self, word: str) -> None:
        self.ignored.append(word)
        if word in _VENDOR_WITH_VALUE:
            self.ignored[-1] += " " + self.value_of(word)


def parse_driver_arguments(words: Sequence[str]) -> DriverRequest:
    """Return what a command line asks for.

    Raises:
        UsageError: no input, a flag without its value, `-o` with several outputs, or a name
            expression without a kernel library.
    """
    request = _Parser(list(words)).run()
    if not request.inputs:
        raise UsageError("there is nothing to compile", help='"opkit cc --help" shows an example')
    if request.name_expressions and not request.is_library:
        raise UsageError("--name-expression is for --kernel-library")
    if request.is_archive and (request.is_shared or request.output is None):
        raise UsageError(
            "-lib writes a static library, whose name -o gives",
            help="bisheng -lib add.asc -o libadd.a",
        )
    if request.mode != "link" and request.output and len(request.sources) > 1:
        raise UsageError(f"-o {request.output} cannot hold {len(request.sources)} outputs")
    if request.mode != "link" and not request.sources:
        names = " ".join(str(item.path) for item in request.inputs)
        raise UsageError(f"{request.mode} has nothing to compile: {names}")
    return request
