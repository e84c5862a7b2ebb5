"""What a kernel's object asks of this machine: an AI core has no operating system to ask.

A kernel that starts threads, opens files or ends processes compiles here, as the emulator's cores
are threads of this machine; the chip's compiler has no such functions. It could also reach what
judges it. So a kernel may use opkit, what the compiler itself calls, and functions that compute or
print and leave the process as it is.
"""

from __future__ import annotations

import contextlib
import functools
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from opkit.toolchain.source import Token, TokenKind, significant, tokenize

__all__ = [
    "allocating_names",
    "assembly_log",
    "foreign_host_names",
    "foreign_kernel_log",
    "foreign_launcher_names",
    "foreign_log",
    "is_foreign",
    "library_names",
    "library_names_behind",
    "named_texts",
    "pastes_tokens",
    "undefined_names",
]

_MATHS = (
    "acos|acosh|asin|asinh|atan|atan2|atanh|cbrt|ceil|copysign|cos|cosh|erf|erfc|exp|exp2|expm1"
    "|fabs|fdim|floor|fma|fmax|fmin|fmod|frexp|hypot|ilogb|ldexp|lgamma|llrint|llround|log|log10"
    "|log1p|log2|logb|lrint|lround|modf|nan|nearbyint|nextafter|pow|remainder|rint|round|roundeven"
    "|scalbn|sin|sincos|sinh|sqrt|tan|tanh|tgamma|trunc"
)
_PRINTING = (
    "printf|fprintf|vprintf|vfprintf|sprintf|snprintf|vsprintf|vsnprintf|puts|fputs|putchar|putc"
    "|fputc|fwrite|fflush|stdout|stderr"
)
# How a process ends: reported by whoever waits for it.
_ENDING = "abort|exit|_exit|_Exit|quick_exit"
_ALLOWED = re.compile(
    # The language's own templates.
    r"_ZT?[A-Z]*N?K?(?:7AscendC|4tool)"
    # The run-time library of C++: exceptions, memory, what containers and strings are made of.
    r"|__cxa_|__gxx_|_Unwind_|__dso_handle$|_ITM_|__gmon_start__$|__stack_chk_fail$|_Zn[wa]|_Zd[la]"
    r"|_ZTVN10__cxxabiv1|_ZT[ISV][PK]*[a-z]$|_ZT[ISV][PK]*N?S|_ZN?K?S|_ZN?K?9__gnu_cxx|__emutls|__tls_get_addr$"
    # What compilers call for operations that the processor lacks.
    r"|__[a-z]+[hsdtxbo]i?[fi](?:[hsdtx][fi]|[sdt]i)?\d?$|__cpu_"
    r"|mem(?:cpy|set|move|cmp|chr)$|str\w+$|bcmp$|(?:m|c|re)alloc$|free$|aligned_alloc$|abs$|l?labs$"
    rf"|(?:{_MATHS})[fl]?$|__(?:{_MATHS})[fl]?_finite$"
    rf"|(?:__)?(?:{_PRINTING})(?:_chk)?$|__memcpy_chk$|__assert_fail$|(?:{_ENDING})$"
)
# Among what C++'s library has: threads, files, other sources of time and of chance.
_REFUSED = re.compile(
    r"thread|future|condition_variable|filesystem|filebuf|fstream|random_device|6chrono|5mutex"
)
# Of what kernels may use: what this machine's libm and libc compute or keep for them. The scalar
# unit has a square root, and compilers call what copies and fills memory.
_LIBRARIES = re.compile(
    rf"(?!sqrtf?$)(?:{_MATHS})[fl]?$|__(?:{_MATHS})[fl]?_finite$|(?:__)?(?:{_PRINTING})(?:_chk)?$"
    rf"|str\w+$|(?:m|c|re)alloc$|free$|aligned_alloc$|_Zn[wa]|(?:{_ENDING})$"
)
_ALLOCATES = re.compile(r"(?P<name>(?:m|c|re)alloc|aligned_alloc)$|_Zn[wa]")
# Host code may also use what it shares with the threads that call it, and what reads text.
_ALLOWED_OF_HOSTS = re.compile(
    r"pthread_(?:mutex|once|key|[gs]etspecific|rwlock|self)\w*$|__errno_location$|__ctype_\w+$"
    r"|is[a-z]+$|to(?:upper|lower)$|(?:secure_)?getenv$|__isoc\d+_\w+$|(?:v?s)?sscanf$|ato[a-z]+$"
    r"|qsort$|bsearch$|rand(?:_r)?$|srand$|wc\w+$|wmem\w+$|localeconv$|setlocale$|div$|l?ldiv$"
)
_REFUSED_OF_HOSTS = re.compile(r"filesystem|filebuf|fstream|random_device|6threadC|_M_start_thread")
# What host code that launches kernels itself may ask of the runtime: memory, copies, streams,
# events, and what device there is. No callback, no capture: host code would run beside kernels.
_ALLOWED_OF_LAUNCHERS = re.compile(
    r"_ZN5opkit14enqueue_launchE|aclInit$|aclFinalize$|aclGetRecentErrMsg$"
    r"|aclrt(?:Malloc|Free|Memcpy|Memset|Get|Synchronize|CreateStream|DestroyStream|SetDevice"
    r"|CreateEvent|DestroyEvent|RecordEvent|StreamWaitEvent)\w*$"
)
_ASSEMBLY = frozenset(("asm", "__asm", "__asm__"))
_QUALIFIERS = frozenset(("volatile", "__volatile", "__volatile__", "inline", "goto"))
# Attributes of functions that a loader calls, and of what is put among the code.
_LOADED = frozenset(("constructor", "destructor", "ifunc", "section"))
_ON_CORES = frozenset(("__aicore__", "__global__", "__vector__", "__cube__", "__mix__"))
_SPLICED = re.compile(r"^(?:[^\n]*\\\r?\n)+[^\n]*", re.M)
_SPLICE = re.compile(r"\\\r?\n")
_PASTE = re.compile(r"##|%:%:")
_NO_CORE = "no AI core has it"
# What the emulator has for kernels, and for host code, by where its headers declare it. All else it
# has for those who launch and judge them: a kernel could end its own checks.
_FOR_KERNELS = ("opkit/api/*.h", "opkit/instr.h", "opkit/matmul/*.h")
_FOR_HOSTS = ("opkit/host/*.h",)
_DECLARED = re.compile(r"\bOPKIT_API\b[^;{(]*?\b(\w+)\(")
_OURS = re.compile(r"opkit_|_Z[A-Z]*5opkit")
_OF_ACLNN = re.compile(r"_ZNK?5opkit5aclnn")
# As texts have it, and as what a preprocessor makes of them has it.
_LINE = re.compile(r'#(?:line)? (?P<number>\d+)(?: "(?P<name>.*?)"[ \d]*)?$')
_DYNAMIC_SYMBOLS = 11
_SYMBOLS, _RELOCATIONS = 2, 4
_FUNCTION, _RESERVED = 2, 0xFF00
# In front of the names of what calls a kernel, which its compiler may have put into that.
_CALLS_KERNEL = re.compile(r"_Z\w*5opkit\w*6invoke")
# What linkers define, and compilers add where a program is built with their sanitizers or counts
# its lines.
_ADDED = re.compile(
    r"__(?:asan|tsan|ubsan|msan|sanitizer|gcov|llvm)_|_GLOBAL_OFFSET_TABLE_$|__(?:start|stop)_opkit_"
)
_HEADER, _SECTION, _SYMBOL = struct.Struct("<16x24xQ10xHHH"), struct.Struct("<IIQQQQIIQQ"), 24
_RELOCATION = struct.Struct("<12xI8x")


def undefined_names(image: bytes) -> tuple[str, ...]:
    """Return the names that an ELF shared object of 64 bits takes from others.

    Source: the generic System V ABI, chapters 4 and 5.
    """
    table, size, count, _ = _HEADER.unpack_from(image)
    sections = [_SECTION.unpack_from(image, table + at * size) for at in range(count)]
    names = []
    for section in sections:
        if section[1] != _DYNAMIC_SYMBOLS:
            continue
        texts = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], _SYMBOL):
            name, _, _, index = struct.unpack_from("<IBBH", image, at)
            if index == 0 and name != 0:
                begin = texts + name
                names.append(image[begin : image.index(b"\0", begin)].decode(errors="replace"))
    return tuple(names)


def _names_behind(image: bytes, kernels: Iterable[str]) -> tuple[str, ...]:
    """Return the names that kernels in an ELF object of 64 bits take from others.

    The object has each function and variable in a section of its own: what a kernel calls is what
    relocations lead to from its section, by way of others. Host code beside it is not among them.

    Source: the generic System V ABI, chapter 4.
    """
    table, size, count, _ = _HEADER.unpack_from(image)
    sections = [_SECTION.unpack_from(image, table + at * size) for at in range(count)]
    symbols: list[tuple[str, int, int]] = []
    for section in sections:
        if section[1] == _SYMBOLS:
            texts = sections[section[6]][4]
            for at in range(section[4], section[4] + section[5], _SYMBOL):
                name, info, _, index = struct.unpack_from("<IBBH", image, at)
                begin = texts + name
                word = image[begin : image.index(b"\0", begin)].decode(errors="replace")
                symbols.append((word, info & 15, index))
    leads: dict[int, set[int]] = {}
    for section in sections:
        if section[1] == _RELOCATIONS:
            for at in range(section[4], section[4] + section[5], _RELOCATION.size):
                leads.setdefault(section[7], set()).add(_RELOCATION.unpack_from(image, at)[0])
    words = "|".join(f"{len(name)}{re.escape(name)}" for name in kernels)
    plain = set(kernels)
    is_kernel = re.compile(rf"_Z(?:L|N(?!K?5opkit)(?:\d\w*?)?)?(?:{words})(?!\w*6invoke)")
    waiting = [
        index
        for name, kind, index in symbols
        if kind == _FUNCTION
        and 0 < index < _RESERVED
        and (name in plain or is_kernel.match(name) or _CALLS_KERNEL.match(name))
    ]
    seen, found = set(waiting), dict[str, None]()
    while waiting:
        for number in sorted(leads.get(waiting.pop(), ())):
            name, _, index = symbols[number]
            if index == 0 and name and not _ADDED.match(name):
                found[name] = None
            elif 0 < index < _RESERVED and index not in seen:
                seen.add(index)
                waiting.append(index)
    return tuple(found)


def foreign_kernel_log(
    image: bytes, kernels: Sequence[str], texts: Sequence[tuple[str, str]]
) -> str:
    """Return errors as `foreign_log`, of the kernels in an object that has host code too.

    Args:
        image: the object, with each function and variable in a section of its own.
        kernels: their names, without namespaces.
        texts: as `foreign_log` takes them.
    """
    if not kernels:
        return ""
    return _refused(_names_behind(image, kernels), texts) + assembly_log(texts, in_kernels=True)


def foreign_log(image: bytes, texts: Sequence[tuple[str, str]]) -> str:
    """Return errors, in a compiler's form, of what in a kernel no AI core has; empty: nothing.

    Args:
        image: the kernel's shared object.
        texts: what it was compiled from but the toolkit's own headers: names of files, and texts.
    """
    lines = [_refused(undefined_names(image), texts)]
    for file, text in texts:
        lines += [
            f"{file}:{line}:1: error: {what}: {_NO_CORE}\n" for line, what in _foreign_words(text)
        ]
    return "".join(lines)


def assembly_log(texts: Sequence[tuple[str, str]], *, in_kernels: bool = False) -> str:
    """Return errors as `foreign_log`, of assembly alone.

    Args:
        texts: of kernels, as a preprocessor leaves them; or of programs.
        in_kernels: host code stands in the texts, too, and may have assembly.
    """
    lines = dict.fromkeys(
        f"{file}:{line}:1: error: {what}: {_NO_CORE}\n"
        for file, text in texts
        for line, what in _foreign_words(text, attributes=frozenset(), in_kernels=in_kernels)
    )
    return "".join(lines)


def _foreign_words(
    text: str, *, attributes: frozenset[str] = _LOADED, in_kernels: bool = False
) -> Iterator[tuple[int, str]]:
    """Yield the first line of assembly, and of each attribute; a barrier alone is no assembly."""
    whole = text
    if "\\\n" in text or "\\\r\n" in text:
        whole = _SPLICED.sub(lambda at: _SPLICE.sub("", at[0]) + "\n" * at[0].count("\n"), text)
    if not any(word in whole for word in ("asm", *attributes)):
        return
    tokens = significant(tokenize(whole))
    told = set()
    for at, token in enumerate(tokens):
        if token.kind is not TokenKind.IDENTIFIER:
            continue
        if token.text in _ASSEMBLY and not _is_barrier(tokens, at):
            what = "assembly for this machine"
        elif token.text.strip("_") in attributes and _is_attribute(tokens, at):
            what = f'the attribute "{token.text}"'
        else:
            continue
        if what not in told and (not in_kernels or _is_on_cores(tokens, at)):
            told.add(what)
            yield whole.count("\n", 0, token.start) + 1, what


def _is_barrier(tokens: Sequence[Token], at: int) -> bool:
    """Whether assembly has no instruction: it only holds the compiler."""
    at += 1
    while at < len(tokens) and tokens[at].text in _QUALIFIERS:
        at += 1
    return [each.text for each in tokens[at : at + 2]] == ["(", '""']


def _is_on_cores(tokens: Sequence[Token], at: int) -> bool:
    """Whether a token stands in the body of a function that AI cores run."""
    depth = 0
    for before in range(at - 1, -1, -1):
        depth += (tokens[before].text == "}") - (tokens[before].text == "{")
        if depth >= 0 or tokens[before].text != "{":
            continue
        depth = 0
        head = before - 1
        while head >= 0 and tokens[head].text not in (";", "{", "}"):
            if tokens[head].text in _ON_CORES:
                return True
            head -= 1
    return False


def _is_attribute(tokens: Sequence[Token], at: int) -> bool:
    """Whether a word stands in `__attribute__((...))`, or behind `gnu::`."""
    before = [token.text for token in tokens[max(0, at - 40) : at]]
    if before[-2:] == ["gnu", "::"]:
        return True
    depth = 0
    for text in reversed(before):
        depth += (text == ")") - (text == "(")
        if text in ("__attribute__", "__attribute"):
            return depth < 0
        if text in (";", "{", "}"):
            return False
    return False


def pastes_tokens(texts: Iterable[tuple[str, str]]) -> bool:
    """Whether macros may make words of parts: then a preprocessor alone knows what is in texts."""
    return any(_PASTE.search(text) for _, text in texts)


def _refused(names: Iterable[str], texts: Sequence[tuple[str, str]]) -> str:
    """Return an error for each name that no kernel may use."""
    lines = []
    for name in names:
        if _is_kernels(name):
            continue
        word = _last_word(name)
        place = _place(re.compile(rf"\b{re.escape(word)}\b"), texts)
        lines.append(
            f'{place}error: a kernel calls "{word}", a function of this machine: {_NO_CORE}'
        )
    return "".join(f"{line}\n" for line in lines)


@functools.cache
def _declared(patterns: tuple[str, ...]) -> frozenset[str]:
    """Return the functions that headers of the emulator declare, as objects name them."""
    from opkit import emulator

    include = emulator.include_dir()
    words = {
        word
        for pattern in patterns
        for header in include.glob(pattern)
        for word in _DECLARED.findall(header.read_text(encoding="utf-8"))
    }
    spaces = ("_ZN5opkit", "_ZN5opkit6matmul", "_ZN5opkit4host")
    return frozenset(words | {f"{space}{len(word)}{word}E" for space in spaces for word in words})


def _is_declared(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether one of ours, whose parameters follow behind the E of its name, is declared there."""
    known = _declared(patterns)
    return name in known or any(name[: at + 1] in known for at in _ends(name))


def _ends(name: str) -> Iterator[int]:
    return (at for at, letter in enumerate(name) if letter == "E")


def _is_kernels(name: str) -> bool:
    """Whether kernels may take a name from others."""
    if _OURS.match(name):
        return _is_declared(name, _FOR_KERNELS)
    return bool(_ALLOWED.match(name)) and not _REFUSED.search(name)


def _is_hosts(name: str) -> bool:
    """Whether host code of an operator that nobody trusts may take a name from others."""
    if _OURS.match(name):
        return bool(_OF_ACLNN.match(name)) or _is_declared(name, _FOR_HOSTS)
    # Mangled names are C++'s: the interfaces, and the standard library.
    is_known = name.startswith("_Z") or _ALLOWED.match(name) or _ALLOWED_OF_HOSTS.match(name)
    return bool(is_known) and not _REFUSED_OF_HOSTS.search(name)


def is_foreign(message: str) -> bool:
    """Whether an error of a build is one of `foreign_log`."""
    return message.endswith(_NO_CORE)


def library_names(image: bytes) -> tuple[str, ...]:
    """Return the functions of libm and libc that a kernel calls; no AI core has those either.

    Public kernels print and compute constants by them, so they build; a result that is made by them
    is none of the core's.
    """
    return tuple(name for name in undefined_names(image) if _LIBRARIES.match(name))


def allocating_names(image: bytes) -> tuple[str, ...]:
    """Return the functions by which a kernel takes memory of this machine, as C++ has them."""
    found = (_ALLOCATES.match(name) for name in undefined_names(image))
    words = (match[0] if match["name"] else "new" for match in found if match)
    return tuple(dict.fromkeys(words))


def foreign_host_names(image: bytes) -> tuple[str, ...]:
    """Return what a host library asks of this machine that no host code of an operator needs.

    Processes, files, sockets, other libraries, memory maps. For judging code that nobody trusts:
    elsewhere host code may do as it likes.
    """
    return tuple(name for name in undefined_names(image) if not _is_hosts(name))


def foreign_launcher_names(image: bytes) -> tuple[str, ...]:
    """Return as `foreign_host_names`, of a library in which host code and the kernels that it
    launches are together."""
    return tuple(
        name
        for name in undefined_names(image)
        if not (_is_hosts(name) or _is_kernels(name) or _ALLOWED_OF_LAUNCHERS.match(name))
    )


def library_names_behind(image: bytes, kernels: Sequence[str]) -> tuple[str, ...]:
    """Return as `library_names`, of the kernels in an object that has host code too."""
    names = _names_behind(image, kernels) if kernels else ()
    return tuple(name for name in names if _LIBRARIES.match(name))


def named_texts(text: str | None, files: Iterable[Path], root: Path) -> list[tuple[str, str]]:
    """Return what a unit was compiled from, with names.

    Args:
        text: of the unit, where the toolchain has written it: `#line` says whose it is.
        files: relative to `root`, or absolute; those that cannot be read are left out.
    """
    found = []
    for path in files:
        with contextlib.suppress(OSError):
            content = (root / path).read_text(encoding="utf-8", errors="replace")
            found.append((str(path), content))
    return [*found, *_by_lines(text or "").items()]


def _by_lines(text: str) -> dict[str, str]:
    """Return the parts of a text by the names that `#line` gives them, each line at its number."""
    parts: dict[str, dict[int, str]] = {}
    name, number = "", 0
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is not None:
            name, number = match["name"] or name, int(match["number"])
            continue
        if name and not name.startswith("kernel table of "):
            parts.setdefault(name, {})[number] = line
        number += 1
    return {
        name: "\n".join(lines.get(at, "") for at in range(1, max(lines) + 1))
        for name, lines in parts.items()
    }


def _place(pattern: re.Pattern[str], texts: Iterable[tuple[str, str]]) -> str:
    """Return where a name is used first, behind any declaration of it; a tool where nowhere."""
    for file, text in texts:
        found = list(pattern.finditer(text))
        if found:
            line = text.count("\n", 0, found[-1].start()) + 1
            return f"{file}:{line}:1: "
    return "ld: "


def _last_word(name: str) -> str:
    """Return a function's own name from what C++ makes of it, without its classes."""
    word, rest = name, re.sub(r"^_Z\w*?(?=\d)", "", name) if name.startswith("_Z") else ""
    while (digits := re.match(r"\d+", rest)) is not None:
        length = int(digits[0])
        word = rest[digits.end() : digits.end() + length]
        rest = rest[digits.end() + length :]
    return word
