"""Which names opkit's headers declare, asked of the compiler.

For free names, a probe: one translation unit with a using-declaration a name, which the compiler
refuses line by line. For methods, the class bodies of the preprocessed headers.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opkit.chips import DEFAULT_CHIP, Chip, find_chip
from opkit.compat.api import ApiName, api_names
from opkit.compat.source import class_methods
from opkit.errors import OpkitError, SetupError
from opkit.toolchain import Toolkit, find_compiler

__all__ = ["Declared", "ask_compiler", "read_declared", "read_refused"]

# `opkit build` defines these for each input and output (toolchain/building/command.py).
_PER_OPERATOR = ("DTYPE_*", "FORMAT_*")
# Where a name of the API may stand; host-side tiling has namespaces of its own.
_NAMESPACES = ("AscendC", "", "ge", "optiling", "matmul_tiling", "platform_ascendc")
_INSIDE: Mapping[str, tuple[str, ...]] = {
    "Std": ("AscendC::Std",),
    "Reg": ("AscendC::Reg", "AscendC::MicroAPI"),
    "Simt": ("AscendC::Simt",),
}
_OUR_OWN = "opkit"
_ERROR_LINE = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+)(?::\d+)?: (?:fatal )?error: ", re.M)
_LINE_MARKER = re.compile(r'^# \d+ "(?P<file>[^"]*)"')
_REFUSED = re.compile(r"^OPKIT_(?:MISSING(?:_\w+)?|REFUSED)\((?P<name>\w+)(?:, [^\n]*)?\)$", re.M)
_IDENTIFIER = re.compile(r"^[^\W\d]\w*$")


@dataclass(frozen=True)
class Declared:
    """The names that opkit's headers declare."""

    names: frozenset[str]
    """As the list spells them, and the extra identifiers that were asked for."""

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def missing(self, names: Iterable[ApiName]) -> tuple[ApiName, ...]:
        """Return those of `names` that no header declares."""
        return tuple(name for name in names if name.text not in self.names)


def read_declared(
    extra: Collection[str] = (),
    *,
    include_dir: Path | None = None,
    chip: Chip | None = None,
) -> Declared:
    """Return which names of the API list, and which of `extra`, the headers declare.

    Args:
        extra: identifiers that code uses as `AscendC::<identifier>`.
        include_dir: the headers; the installed ones by default.
        chip: the chip that they are read for; the default one by default.
    Raises:
        SetupError: there is no compiler.
    """
    include = include_dir or Toolkit.installed().include_dir
    probe = _Probe(include, chip or find_chip(DEFAULT_CHIP))
    known = _known.setdefault(probe.key(), {})
    told, wanted = ({}, {}) if known else _names_told(probe)
    for word in extra:
        if _IDENTIFIER.match(word) and word not in known and word not in told:
            wanted.setdefault(word, [f"AscendC::{word}"])
    if wanted:
        declared = probe.declared(wanted)
        known.update(told)
        known.update({name: name in declared for name in wanted})
    of_interest = {name.text for name in api_names()}.union(extra)
    return Declared(frozenset(name for name in of_interest if known.get(name)))


# Of the headers that this process has asked about: which names are declared. A question takes the
# compiler three seconds, whether it is about one name or all.
_known: dict[tuple[str, ...], dict[str, bool]] = {}


def _names_told(probe: _Probe) -> tuple[dict[str, bool], dict[str, list[str]]]:
    """Return which names of the API the preprocessed text tells, and whether they are declared;
    and those that only the compiler tells, each with where it may stand."""
    text = probe.preprocessed()
    macros = probe.macros()
    methods = class_methods(text)
    identifiers = frozenset(re.findall(r"[^\W\d]\w*", text)) | macros
    told: dict[str, bool] = {}
    wanted: dict[str, list[str]] = {}
    for name in api_names():
        if name.text in _PER_OPERATOR:
            told[name.text] = True
        elif name.is_pattern:
            told[name.text] = any(word.startswith(name.identifier) for word in identifiers)
        elif name.is_method:
            told[name.text] = name.identifier in methods
        elif name.identifier in macros and name.namespace is None:
            told[name.text] = True
        else:
            spaces = _INSIDE[name.namespace] if name.namespace else _NAMESPACES
            wanted[name.text] = [f"{space}::{name.identifier}" for space in spaces]
    return told, wanted


def read_refused() -> tuple[str, ...]:
    """Return the names that the installed headers know only to refuse them, in their order."""
    folder = Toolkit.installed().include_dir / "opkit"
    tables = (folder / "isa" / "missing.inc", folder / "host" / "refused.inc")
    found = (_REFUSED.findall(table.read_text(encoding="utf-8")) for table in tables)
    return tuple(dict.fromkeys(name for names in found for name in names))


@dataclass(frozen=True)
class _Probe:
    """The compiler, and one translation unit that includes every public header."""

    include_dir: Path
    chip: Chip

    def key(self) -> tuple[str, ...]:
        """Return what tells these headers, as they are now, from others."""
        stamps = []
        for path in sorted(self.include_dir.rglob("*.*")):
            status = path.stat()
            stamps.append(f"{path}:{status.st_size}:{status.st_mtime_ns}")
        digest = hashlib.sha256("\n".join(stamps).encode(errors="surrogateescape")).hexdigest()
        return digest, self.chip.name, find_compiler().identity

    def includes(self) -> str:
        headers = sorted(path.relative_to(self.include_dir) for path in self._headers())
        # The kernel side first: host headers may lean on its words.
        headers.sort(key=lambda path: path.name != "kernel_operator.h")
        lines = "".join(f"#include <{path.as_posix()}>\n" for path in headers)
        # Names that only say "not implemented" do not count.
        return "#define OPKIT_NO_MISSING_NAMES 1\n" + lines

    def preprocessed(self) -> str:
        """Return the preprocessed text of our own headers; the system's is left out."""
        kept: list[str] = []
        ours = False
        for line in self._run(self.includes(), "-E").splitlines():
            marker = _LINE_MARKER.match(line)
            if marker:
                ours = marker["file"].startswith(str(self.include_dir))
            elif ours:
                kept.append(line)
        return "\n".join(kept)

    def macros(self) -> frozenset[str]:
        text = self._run(self.includes(), "-E", "-dM")
        return frozenset(re.findall(r"^#define (\w+)", text, re.MULTILINE))

    def declared(self, wanted: Mapping[str, Iterable[str]]) -> set[str]:
        """Return the keys for which one of the qualified names is declared."""
        lines = [*self.includes().splitlines()]
        by_line: dict[int, str] = {}
        for key, qualified in wanted.items():
            for name in qualified:
                by_line[len(lines) + 1] = key
                lines.append(f"namespace opkit_probe_{len(lines)} {{ using {name}; }}")
        refused = self._refused_lines("\n".join(lines) + "\n")
        stray = refused - by_line.keys()
        if stray:
            raise OpkitError(f"the emulator's headers do not compile together, line {min(stray)}")
        return {key for line, key in by_line.items() if line not in refused}

    def _refused_lines(self, text: str) -> set[int]:
        code, _, err, source = self._call(text, "-fsyntax-only")
        found = list(_ERROR_LINE.finditer(err))
        # A compiler cache may have made the path a relative one.
        own = Path(source).resolve()
        foreign = [match[0] for match in found if Path(match["file"]).resolve() != own]
        if foreign or (code != 0 and not found):
            raise OpkitError(f"the emulator's headers do not compile: {err[:2000]}")
        return {int(match["line"]) for match in found}

    def _run(self, text: str, *flags: str) -> str:
        code, out, err, _ = self._call(text, *flags)
        if code != 0:
            raise OpkitError(f"the emulator's headers cannot be read: {err[:2000]}")
        return out

    def _call(self, text: str, *flags: str) -> tuple[int, str, str, str]:
        compiler = find_compiler()
        limit = "-fmax-errors=0" if compiler.family == "gcc" else "-ferror-limit=0"
        with tempfile.TemporaryDirectory(prefix="opkit-names-") as folder:
            source = Path(folder) / "names.cpp"
            source.write_text(text, encoding="utf-8")
            argv = [*compiler.argv, "-std=gnu++17", limit, "-w"]
            argv += [f"-D__NPU_ARCH__={self.chip.npu_arch_number}", "-isystem"]
            argv += [str(self.include_dir), *flags, str(source)]
            done = ask_compiler(argv)
        return done.returncode, done.stdout, done.stderr, str(source)

    def _headers(self) -> list[Path]:
        return [
            path
            for path in self.include_dir.rglob("*.h")
            if path.relative_to(self.include_dir).parts[0] != _OUR_OWN and not _only_refuses(path)
        ]


def ask_compiler(
    argv: Sequence[str], *, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Return what a compiler says of sources, whatever its status and however long it takes.

    Args:
        folder: where it runs.
    Raises:
        SetupError: it does not start.
    """
    try:
        return subprocess.run(
            argv,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as err:
        raise SetupError(f"{argv[0]} cannot be used: {err}") from err


def _only_refuses(header: Path) -> bool:
    """Whether a header declares nothing: it says why there is nothing to declare."""
    text = header.read_text(encoding="utf-8")
    return "\n#error " in text and "\n#if" not in text
