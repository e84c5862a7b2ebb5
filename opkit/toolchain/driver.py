"""The compiler driver: command lines as the vendor's compiler takes them, run on a host compiler.

`parse_driver_arguments` reads a command line into a `DriverRequest`; `run_driver` rewrites
launches, compiles each source and links. Only `run_driver` touches disk and processes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from opkit.chips import DEFAULT_CHIP, Chip, all_chips, find_chip
from opkit.errors import BuildError, Diagnostic, OpkitError, SetupError, UsageError
from opkit.log import write as write_log
from opkit.toolchain.building import foreign_kernel_log, named_texts
from opkit.toolchain.compiler import Compiler, find_compiler, needs_late_standard
from opkit.toolchain.driver_arguments import DriverRequest, Input, parse_driver_arguments
from opkit.toolchain.driver_commands import add_commands
from opkit.toolchain.flags import chip_macros
from opkit.toolchain.program_start import write_program_start
from opkit.toolchain.source import (
    LaunchTree,
    Rewritten,
    compiler_crash,
    join_passes,
    late_macros,
    parse_diagnostics,
    pass_macros,
    read_launch_tree,
)
from opkit.toolchain.toolkit import Toolkit

__all__ = ["DriverRequest", "DriverResult", "parse_driver_arguments", "run_driver"]

_STANDARD = "-std=gnu++17"
_LATE_STANDARD = "-std=gnu++20"
_SYSTEM_DIRS = (Path("/usr"), Path("/lib"), Path("/opt/rh"))
_BEHIND_KERNELS = re.compile(r"<<<|\bmain\s*\(")
_NAMES_A_FILE = re.compile(
    r"^(?P<before>(?:In file included from |[ \t]+from )?)(?P<name>[^\s:/<][^:\n]*)(?=:\d+[:,])",
    re.MULTILINE,
)


@dataclass(frozen=True)
class DriverResult:
    """What a run of the driver has to tell."""

    diagnostics: tuple[Diagnostic, ...]
    """Warnings; errors are raised."""
    output: str
    """What the compiler wrote to stdout: preprocessed text, mostly."""


Report = Callable[[Sequence[str]], None]


def run_driver(
    request: DriverRequest, *, toolkit: Toolkit | None = None, verbose: Report | None = None
) -> DriverResult:
    """Compile and link what `request` asks for.

    Args:
        toolkit: the emulator to build against; the installed one by default.
        verbose: called with each command before it runs.
    Raises:
        UsageError: a source cannot be read, or its chip is not emulated.
        BuildError: the compiler or the linker refused.
        SetupError: there is no compiler, or the emulator is incomplete.
    """
    toolkit = toolkit or Toolkit.installed()
    compiler = find_compiler()
    chip = chip_of_arch(request.npu_arch)
    if request.compile_commands is not None:
        add_commands(
            request.compile_commands, request, toolkit=toolkit, chip=chip, standard=_STANDARD
        )
    with tempfile.TemporaryDirectory(prefix="opkit-cc-") as folder:
        run = _Run(request, toolkit, compiler, chip, Path(folder), verbose or (lambda _: None))
        return run.everything()


def chip_of_arch(npu_arch: str | None) -> Chip:
    """Return the chip that sources are compiled for.

    Raises:
        UsageError: no emulated chip has this architecture.
    """
    if npu_arch is None:
        return find_chip(DEFAULT_CHIP)
    for chip in all_chips():
        if npu_arch.lower() in (chip.npu_arch, chip.npu_arch.rpartition("-")[2]):
            return chip
    known = sorted({chip.npu_arch for chip in all_chips()})
    raise UsageError(
        f"--npu-arch={npu_arch}: opkit does not emulate this architecture",
        help=f"it emulates {', '.join(known)}",
    )


@dataclass(frozen=True)
class _Run:
    """One run of the driver."""

    request: DriverRequest
    toolkit: Toolkit
    compiler: Compiler
    chip: Chip
    scratch: Path
    verbose: Report

    def everything(self) -> DriverResult:
        request = self.request
        diagnostics: list[Diagnostic] = []
        output = ""
        if request.mode != "link":
            for index, source in enumerate(request.sources):
                target = request.output or self._default_output(source)
                found, text = self._compile(index, source, target)
                diagnostics += found
                output += text
            return DriverResult(tuple(diagnostics), output)
        objects: dict[Input, Path] = {}
        for index, source in enumerate(request.sources):
            objects[source] = self.scratch / f"{index}.o"
            found, _ = self._compile(index, source, objects[source])
            diagnostics += found
        diagnostics += (self._archive if request.is_archive else self._link)(objects)
        return DriverResult(tuple(diagnostics), output)

    def _default_output(self, source: Input) -> Path | None:
        suffix = {"-c": ".o", "-S": ".s"}.get(self.request.mode)
        return Path(source.path.stem + suffix) if suffix else None

    def _compile(
        self, index: int, source: Input, target: Path | None
    ) -> tuple[tuple[Diagnostic, ...], str]:
        tree = self._tree(source, self.scratch / str(index))
        code, out, err = self._compile_passes(source, target, tree, _STANDARD)
        if code != 0 and self.request.standard is None and needs_late_standard(err):
            tree = self._tree(source, self.scratch / f"{index}-20", keeps_aggregates=True)
            code, out, err = self._compile_passes(source, target, tree, _LATE_STANDARD)
        columns = {str(file.source): file.rewritten for file in tree.files}
        diagnostics = self._diagnostics(err, columns, about=source.path)
        if code != 0:
            raise self._refusal(f"{source.path} does not compile", diagnostics, err)
        if tree.kernels and target is not None and self.request.mode in ("link", "-c"):
            self._refuse_foreign(source, target, tree)
        self._restore_names(tree, self._texts_written(source, target))
        return diagnostics, _with_user_names(out, tree)

    def _refuse_foreign(self, source: Input, target: Path, tree: LaunchTree) -> None:
        """Raise BuildError where a kernel calls what no AI core has, as builds of operators do.

        Host code in the same file may. What clang leaves a linker to compile says nothing yet.
        """
        if self.compiler.family != "gcc" and self._is_linkers():
            return
        files = [*(file.source for file in tree.files), source.path]
        texts = named_texts(None, files, Path())
        # Device code comes first, host code behind it may call the same functions.
        device = [(name, _BEHIND_KERNELS.split(text, maxsplit=1)[0]) for name, text in texts]
        names = [kernel.name for kernel in tree.kernels]
        log = foreign_kernel_log(target.read_bytes(), names, [*device, *texts])
        if log:
            target.unlink()
            diagnostics = self._diagnostics(log, {}, about=source.path)
            raise self._refusal(f"{source.path} does not compile", diagnostics, log)

    def _tree(self, source: Input, copies: Path, *, keeps_aggregates: bool = False) -> LaunchTree:
        """Return a source's rewritten files, written below `copies`."""
        if source.language == "c":
            return LaunchTree(files=(), kernels=())
        tree = read_launch_tree(
            source.path,
            include_dirs=self.request.include_dirs,
            foreign=self._foreign(),
            copies=copies,
            is_library=self.request.is_library,
            name_expressions=self.request.name_expressions,
            keeps_aggregates=keeps_aggregates,
            arch=self.chip.npu_arch_number,
        )
        for file in tree.files:
            file.copy.parent.mkdir(parents=True)
            data = file.rewritten.text.encode("utf-8", errors="surrogateescape")
            file.copy.write_bytes(data)
        return tree

    def _compile_passes(
        self, source: Input, target: Path | None, tree: LaunchTree, standard: str
    ) -> tuple[int, str, str]:
        """Compile a source: twice, and joined, where kernels of both kinds of cores ask for it."""
        arch, passes = self.chip.npu_arch_number, tree.core_passes
        makes_object = self.request.mode in ("link", "-c") and target is not None
        first, depfile = passes[:1], tuple(self._depfile_flags(source, target))
        extra = [word for kind in first for word in pass_macros(kind, passes, arch)]
        argv = self._compile_argv(source, target, tree, standard, extra=(*extra, *depfile))
        code, out, err = self._call(argv)
        if code != 0 or len(passes) < 2 or not makes_object or target is None:
            return code, out, err
        vector, cube = (Path(tempfile.mkdtemp(dir=self.scratch), f"{kind}.o") for kind in passes)
        shutil.move(target, vector)
        read = cube.with_suffix(".d")
        options = (*pass_macros(passes[1], passes, arch), "-MD", "-MF", str(read))
        argv = self._compile_argv(source, cube, tree, standard, extra=options)
        code, out, err = self._call(argv)
        if code != 0:
            return code, out, err
        if "-MF" in depfile:
            rules = read.read_text(errors="surrogateescape").replace(str(cube), str(target))
            with Path(depfile[depfile.index("-MF") + 1]).open("a", errors="surrogateescape") as to:
                to.write(rules)

        def run(argv: list[str]) -> tuple[int, str]:
            code, _, err = self._call(argv)
            return code, err

        kernels = {kernel.name for kernel in tree.kernels}
        objects, messages = join_passes(
            vector, cube, kernels=kernels, is_program=True, compiler=self.compiler, run=run
        )
        if not objects:
            return 1, "", messages
        words = ["-r", "-nostdlib", "-o", str(target), *map(str, objects)]
        return self._call([*self.compiler.argv, *words])

    def _compile_argv(
        self,
        source: Input,
        target: Path | None,
        tree: LaunchTree,
        standard: str,
        *,
        extra: Sequence[str],
    ) -> list[str]:
        real = tree.source_copy or source.path
        mode = "-c" if self.request.mode == "link" else self.request.mode
        argv = [*self.compiler.argv, *self._compile_flags(source, tree, standard), *extra]
        argv += ["-x", "c" if source.language == "c" else "c++", mode, str(real)]
        return [*argv, "-o", str(target)] if target is not None else argv

    def _compile_flags(self, source: Input, tree: LaunchTree, standard: str) -> list[str]:
        flags = list(self.request.compile_flags)
        include = str(self.toolkit.include_dir)
        has_kernels = source.language == "asc" or bool(tree.files)
        late = ""
        if has_kernels:
            kept, late = late_macros(flags, self.toolkit.include_dir)
            flags = list(kept)
        gcc = self.compiler.family == "gcc"
        flags += ["-fmessage-length=0", *(["-fno-diagnostics-show-caret"] if gcc else [])]
        flags += ["-fno-caret-diagnostics"] if not gcc else []
        if source.language != "c":
            flags += [self.request.standard or standard, "-ffp-contract=off"]
        # Kernels copy tiling structs word by word, through pointers of another type.
        flags.append("-fno-strict-aliasing")
        if not any(flag.startswith("-O") for flag in flags):
            flags.append("-O2")
        if has_kernels and self._is_linkers():
            # What kernels call is read from the object: its code has to be in it.
            flags.append("-ffat-lto-objects" if gcc else "-fno-lto")
        flags += ["-isystem", include]
        if tree.files:
            flags += ["-iquote", str(source.path.parent)]
            # What no #line reaches, the name of the whole unit in the debug information.
            flags += [f"-ffile-prefix-map={file.copy}={file.source}" for file in tree.files]
        if tree.kernels:
            # What kernels call is read from the object, function by function; without the second
            # all functions' jump tables lie in one section.
            flags += ["-ffunction-sections", "-fdata-sections"]
        if has_kernels:
            flags += [*chip_macros(self.chip), "-include", "opkit/launch_entry.h"]
        if late:
            macros = self.scratch / "macros.h"
            macros.write_text(late, encoding="utf-8")
            flags += ["-include", str(macros)]
        if self.request.is_library:
            flags += ["-include", "opkit/kernel_library.h", *(["-fno-gnu-unique"] if gcc else [])]
        return flags

    def _is_linkers(self) -> bool:
        """Whether a linker is to compile what objects hold."""
        return any(flag.startswith("-flto") for flag in self.request.compile_flags)

    def _depfile_flags(self, source: Input, target: Path | None) -> list[str]:
        # CMake names the depfile; where nobody does, it goes where the compiler would put it.
        flags = list(self.request.depfile_flags)
        if not flags:
            return []
        if "-MF" not in flags and ("-MD" in flags or "-MMD" in flags):
            flags += ["-MF", str(_default_depfile(source, self.request.output or target))]
        if "-MT" not in flags and "-MQ" not in flags:
            flags += ["-MT", str(self.request.output or source.path.with_suffix(".o").name)]
        return flags

    def _texts_written(self, source: Input, target: Path | None) -> list[Path]:
        """Return the text files, besides the listing of -S, that a compilation has written."""
        flags = self._depfile_flags(source, target)
        texts = [Path(flags[flags.index("-MF") + 1])] if "-MF" in flags else []
        if target is not None and self.request.mode in ("-E", "-M", "-MM"):
            texts.append(target)
        return texts

    def _restore_names(self, tree: LaunchTree, texts: list[Path]) -> None:
        """Name the user's files where the compiler has read copies."""
        for path in texts if tree.files else []:
            text = path.read_text(encoding="utf-8", errors="surrogateescape")
            path.write_text(
                _with_user_names(text, tree), encoding="utf-8", errors="surrogateescape"
            )

    def _link(self, objects: dict[Input, Path]) -> tuple[Diagnostic, ...]:
        request = self.request
        target = request.output or Path("a.out")
        parts = [
            str(objects.get(part, part.path)) if isinstance(part, Input) else part
            for part in request.link_parts
        ]
        argv = [*self.compiler.argv, *self._link_modes(), "-o", str(target), *parts]
        argv += [str(self._program_start()), *self._emulator_flags(), "-ldl", "-lpthread", "-lm"]
        code, _, err = self._call(argv)
        diagnostics = self._diagnostics(err, {}, about=target)
        if code != 0:
            raise self._refusal(f"{target} does not link", diagnostics, err)
        return diagnostics

    def _archive(self, objects: dict[Input, Path]) -> tuple[Diagnostic, ...]:
        """Put objects into a static library: what is linked with it brings the emulator along."""
        target = self.request.output or Path("a.a")
        with contextlib.suppress(FileNotFoundError):
            target.unlink()
        names = [part.path.stem for part in self.request.inputs]
        members = []
        for index, part in enumerate(self.request.inputs):
            # Members are found by name: two sources of one name are two members.
            folder = self.scratch / "members" / str(names[:index].count(part.path.stem))
            folder.mkdir(parents=True, exist_ok=True)
            members.append(folder / f"{part.path.stem}.o")
            shutil.copyfile(objects.get(part, part.path), members[-1])
        code, _, err = self._call(["ar", "rcs", str(target), *map(str, members)])
        if code != 0:
            raise self._refusal(f"{target} cannot be written", (), err)
        return ()

    def _link_modes(self) -> list[str]:
        kept = (
            "-shared",
            "-g",
            "-O",
            "-fPIC",
            "-pie",
            "-no-pie",
            "-fsanitize",
            "-m",
            "-static-lib",
        )
        modes = ["-shared"] if self.request.is_shared else []
        if self.request.is_library:
            # A kernel named as a function of the C library, such as "step", is its own.
            modes.append("-Wl,-Bsymbolic")
        modes += [flag for flag in self.request.compile_flags if flag.startswith(kept)]
        return modes

    def _program_start(self) -> Path:
        """Return what hands the options of `opkit run` over; see its source."""
        target = self.scratch / "program_start.o"
        write_program_start(target, self.toolkit, self.compiler, verbose=self.verbose)
        return target

    def _emulator_flags(self) -> list[str]:
        library = self.toolkit.library
        if library is None:
            return []
        folder = str(library.parent)
        # By rpath, so that the program starts as the vendor's do: by its name.
        return [f"-L{folder}", f"-Wl,-rpath,{folder}", f"-l{library.stem.removeprefix('lib')}"]

    def _call(self, argv: Sequence[str]) -> tuple[int, str, str]:
        self.verbose(argv)
        try:
            done = subprocess.run(
                list(argv),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                # English messages: we parse them.
                env={**os.environ, "LC_ALL": "C"},
                check=False,
            )
        except OSError as err:
            raise SetupError(f"{argv[0]} cannot be started: {err}") from err
        level = 3 if done.returncode else 0
        printed = done.stderr.decode(errors="replace") if done.returncode else ""
        write_log(level, "TOOLCHAIN", f"{shlex.join(argv)}\n{printed}".rstrip())
        return (
            done.returncode,
            done.stdout.decode(errors="replace"),
            done.stderr.decode(errors="replace"),
        )

    def _foreign(self) -> tuple[Path, ...]:
        return (self.toolkit.include_dir, *_SYSTEM_DIRS)

    def _diagnostics(
        self, text: str, columns: dict[str, Rewritten], *, about: Path
    ) -> tuple[Diagnostic, ...]:
        here = Path.cwd()
        text = _NAMES_A_FILE.sub(lambda found: f"{found['before']}{here / found['name']}", text)
        by_path = {str(here / name): rewritten for name, rewritten in columns.items()}
        # Everything may be the user's but our headers and the system's.
        root = Path("/")
        found = parse_diagnostics(text, root=root, foreign=self._foreign())
        return tuple(
            # What has no place in a file is about the command as a whole.
            dataclasses.replace(item, file=here / about)
            if item.file == root
            else _at_user_column(item, by_path)
            for item in found
        )

    def _refusal(self, message: str, diagnostics: tuple[Diagnostic, ...], log: str) -> OpkitError:
        if (crash := compiler_crash(log)) is not None:
            return crash
        if any(diagnostic.severity == "error" for diagnostic in diagnostics):
            return BuildError(message, diagnostics=diagnostics, log=log)
        # Nothing in it that we can read: show it as it is.
        return BuildError(f"{message}:\n{log.strip()}", diagnostics=diagnostics, log=log)


def _at_user_column(diagnostic: Diagnostic, columns: dict[str, Rewritten]) -> Diagnostic:
    rewritten = columns.get(str(diagnostic.file))
    if rewritten is None:
        return diagnostic
    column = rewritten.user_column(diagnostic.line, diagnostic.column)
    return dataclasses.replace(diagnostic, column=column)


def _with_user_names(text: str, tree: LaunchTree) -> str:
    for file in tree.files:
        text = text.replace(str(file.copy), str(file.source).replace(" ", "\\ "))
    return text


def _default_depfile(source: Input, target: Path | None) -> Path:
    return target.with_suffix(".d") if target else Path(source.path.stem + ".d")
