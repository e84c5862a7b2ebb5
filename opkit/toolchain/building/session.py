"""Making one unit: fresh from the last build, out of the cache, or with the compiler."""

from __future__ import annotations

import hashlib
import os
import shlex
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from opkit.errors import BuildError
from opkit.toolchain.building.cache import BuildCache, unit_key
from opkit.toolchain.building.depfile import parse_depfile
from opkit.toolchain.building.digests import FileDigests, FileStat
from opkit.toolchain.building.imports import (
    assembly_log,
    foreign_log,
    named_texts,
    pastes_tokens,
)
from opkit.toolchain.building.processes import ProcessGroup
from opkit.toolchain.building.state import BuildState
from opkit.toolchain.building.unit import (
    CompileUnit,
    LinkUnit,
    compile_argv,
    is_for_linker,
    link_argv,
)
from opkit.toolchain.compiler import Compiler, needs_late_standard
from opkit.toolchain.source import join_passes

__all__ = ["Session", "UnitResult"]

# A file system may stamp a write a tick earlier than the clock says.
_TICK_NS = 20_000_000
_LATE_STANDARD = "-std=c++20"


@dataclass(frozen=True)
class UnitResult:
    """One unit, made."""

    name: str
    status: str
    """`fresh`, `cached`, `compile`, `link` or `failed`."""
    seconds: float
    key: str = ""
    data: bytes | None = None
    """What was made; None where the last build's file stays, or where it failed."""
    digest: str = ""
    """Hash of what was made."""
    log: str = ""
    """What the compiler printed."""
    dependencies: tuple[tuple[str, str], ...] = ()
    """(path, hash) of what it read, below the project where relative."""
    reusable: bool = True
    """False if a file changed meanwhile: nobody knows which text the compiler read."""


class Session:
    """What the units of one build share."""

    def __init__(
        self,
        *,
        root: Path,
        work: Path,
        compiler: Compiler,
        state: BuildState,
        cache: BuildCache,
        processes: ProcessGroup,
        verbose: Callable[[list[str]], None],
        before_compiling: Callable[[CompileUnit], tuple[str, ...]] = lambda unit: (),
    ) -> None:
        """`before_compiling` gives flags that change how fast a unit compiles, nothing else."""
        self._root = root
        self._work = work
        self._compiler = compiler
        self._state = state
        self._cache = cache
        self._processes = processes
        self._verbose = verbose
        self._before_compiling = before_compiling
        self._started_ns = time.time_ns()
        self._seen: dict[str, bool] = {}
        self._lock = threading.Lock()
        self.digests = FileDigests(state.files)

    def key_of(self, unit: CompileUnit) -> str:
        """Return a unit's cache key: everything that decides on it but the files that it reads."""
        source = os.path.relpath(unit.source, self._root)
        mode = "link" if unit.linked else "object"
        return unit_key(
            self._compiler.identity,
            mode,
            unit.flags,
            source,
            unit.text or "",
            [word for kind, macros in unit.core_passes for word in (kind, *macros)],
        )

    def fresh(self, unit: CompileUnit, output: Path) -> UnitResult | None:
        """Return the last build's result if nothing that it came from has changed."""
        key = self.key_of(unit)
        if not self._state.is_fresh(unit.name, key, output, self._seen):
            return None
        last = self._state.units[unit.name]
        dependencies = tuple(
            (self._relative(file), self._state.files[file][1]) for file in last.dependencies
        )
        return UnitResult(
            unit.name,
            "fresh",
            0.0,
            key=key,
            digest=last.digest,
            log=last.log,
            dependencies=dependencies,
        )

    def compile(self, unit: CompileUnit) -> UnitResult:
        """Return a unit out of the cache, or compile it.

        A rejected source is a result, not an exception: the others go on.
        """
        begin = time.monotonic()
        key = self.key_of(unit)
        entry = self._cache.lookup(key, self.digests, self._root)
        if entry is not None:
            return UnitResult(
                unit.name,
                "cached",
                time.monotonic() - begin,
                key=key,
                data=entry.data,
                digest=hashlib.sha256(entry.data).hexdigest(),
                log=entry.log,
                dependencies=entry.dependencies,
            )
        source = self._write_source(unit)
        output = self._work / f"{unit.name}.tmp"
        depfile = self._work / f"{unit.name}.d"
        faster = replace(unit, flags=(*self._before_compiling(unit), *unit.flags))
        code, log = self._make(faster, source, output, depfile)
        if code != 0 and unit.kind == "kernel" and needs_late_standard(log):
            late = replace(faster, flags=(*faster.flags, _LATE_STANDARD))
            late_code, late_log = self._make(late, source, output, depfile)
            if late_code == 0:
                code, log = late_code, late_log
        if code != 0:
            output.unlink(missing_ok=True)
            words = log or _no_words(list(self._compiler.argv), code)
            return UnitResult(unit.name, "failed", time.monotonic() - begin, log=words)
        data = _take(output, list(self._compiler.argv))
        written = source if unit.text is not None else None
        dependencies, reusable = self._dependencies(depfile, written)
        if unit.kind == "kernel" and unit.linked:
            texts = self._own_texts(unit, dependencies)
            refused = foreign_log(data, texts)
            if not refused and pastes_tokens(texts):
                refused = assembly_log(self._preprocessed(faster, source, texts))
            if refused:
                seconds = time.monotonic() - begin
                return UnitResult(unit.name, "failed", seconds, log=f"{log}{refused}")
        if reusable:
            self._cache.store(key, data=data, log=log, dependencies=dependencies)
        return UnitResult(
            unit.name,
            "compile",
            time.monotonic() - begin,
            key=key,
            data=data,
            digest=hashlib.sha256(data).hexdigest(),
            log=log,
            dependencies=dependencies,
            reusable=reusable,
        )

    def link(
        self, unit: LinkUnit, output: Path, objects: Mapping[str, tuple[Path, str]]
    ) -> UnitResult:
        """Link a unit, unless its objects are those that the last build linked.

        Args:
            objects: place and hash by the object's name.
        """
        begin = time.monotonic()
        members = [objects[name] for name in unit.objects]
        hashes = [digest for _, digest in members]
        key = unit_key(self._compiler.identity, unit.flags, list(unit.objects), hashes)
        if self._state.is_fresh(unit.name, key, output, self._seen):
            last = self._state.units[unit.name]
            return UnitResult(unit.name, "fresh", 0.0, key=key, digest=last.digest, log=last.log)
        made = self._work / f"{unit.name}.tmp"
        paths = [path for path, _ in members]
        argv = link_argv(self._compiler, unit, objects=paths, output=made)
        code, log = self._run(argv)
        seconds = time.monotonic() - begin
        if code != 0:
            made.unlink(missing_ok=True)
            return UnitResult(unit.name, "failed", seconds, log=log or _no_words(argv, code))
        data = _take(made, argv)
        digest = hashlib.sha256(data).hexdigest()
        return UnitResult(unit.name, "link", seconds, key=key, data=data, digest=digest, log=log)

    def _make(
        self, unit: CompileUnit, source: Path, output: Path, depfile: Path
    ) -> tuple[int, str]:
        """Run the compiler; twice, and join, where the text asks for the kind of core."""
        if len(unit.core_passes) < 2:
            argv = compile_argv(self._compiler, unit, source=source, output=output, depfile=depfile)
            return self._run(argv)
        objects: list[Path] = []
        read, messages = "", ""
        for kind, macros in unit.core_passes:
            part = replace(
                unit,
                flags=tuple(flag for flag in (*unit.flags, *macros) if flag != "-s"),
                linked=False,
            )
            objects.append(output.with_suffix(f".{kind}.o"))
            argv = compile_argv(
                self._compiler, part, source=source, output=objects[-1], depfile=depfile
            )
            code, log = self._run(argv)
            messages += log
            if code != 0:
                return code, messages
            read += depfile.read_text(encoding="utf-8", errors="surrogateescape")
        depfile.write_text(read, encoding="utf-8", errors="surrogateescape")
        vector, cube = objects
        # Each is called by its entry in the table.
        joined, log = join_passes(vector, cube, kernels=(), compiler=self._compiler, run=self._run)
        if not joined:
            return 1, messages + log
        link = LinkUnit(unit.name, (), tuple(flag for flag in unit.flags if is_for_linker(flag)))
        code, log = self._run(link_argv(self._compiler, link, objects=joined, output=output))
        for path in joined:
            path.unlink(missing_ok=True)
        return code, messages + log

    def _run(self, argv: list[str]) -> tuple[int, str]:
        with self._lock:
            self._verbose(argv)
        return self._processes.run(argv, cwd=self._root)

    def _write_source(self, unit: CompileUnit) -> Path:
        if unit.text is None:
            return unit.source.relative_to(self._root)
        source = self._work / f"{unit.name.removesuffix('.so')}.cpp"
        source.write_text(unit.text, encoding="utf-8")
        return source

    def _dependencies(
        self, depfile: Path, written: Path | None
    ) -> tuple[tuple[tuple[str, str], ...], bool]:
        try:
            names = parse_depfile(depfile.read_text(encoding="utf-8", errors="surrogateescape"))
        except OSError:
            return (), False
        depfile.unlink(missing_ok=True)
        dependencies = []
        reusable = True
        for name in names:
            file = os.path.normpath(self._root / name)
            if file == str(written):
                continue
            stat = FileStat.of(file)
            digest = self.digests.of(file)
            if stat is None or digest is None:
                reusable = False
                continue
            reusable = reusable and stat.mtime_ns < self._started_ns - _TICK_NS
            dependencies.append((self._relative(file), digest))
        return tuple(dependencies), reusable

    def _own_texts(
        self, unit: CompileUnit, dependencies: Iterable[tuple[str, str]]
    ) -> list[tuple[str, str]]:
        """Return what a unit was compiled from, but the headers of the system and the toolkit."""
        flags = unit.flags
        system = (flags[at + 1] for at, flag in enumerate(flags[:-1]) if flag == "-isystem")
        others = tuple(f"{folder}{os.sep}" for folder in (*system, "/usr"))
        read = (Path(file) for file, _ in dependencies if not file.startswith(others))
        source = Path(os.path.relpath(unit.source, self._root))
        return named_texts(unit.text, dict.fromkeys((source, *read)), self._root)

    def _preprocessed(
        self, unit: CompileUnit, source: Path, texts: Iterable[tuple[str, str]]
    ) -> list[tuple[str, str]]:
        """Return the same texts as the preprocessor leaves them; none where it does not run."""
        code, out = self._run([*self._compiler.argv, *unit.flags, "-w", "-E", str(source)])
        own = {name for name, _ in texts}
        return [each for each in named_texts(out, (), self._root) if each[0] in own and code == 0]

    def _relative(self, file: str) -> str:
        root = f"{self._root}{os.sep}"
        return file.removeprefix(root)


def _take(output: Path, argv: list[str]) -> bytes:
    try:
        data = output.read_bytes()
    except OSError as err:
        raise BuildError(
            f"{argv[0]} reported success and made no {output.name}",
            log=shlex.join(argv),
            help="run the command by hand: opkit build -v shows it",
        ) from err
    output.unlink(missing_ok=True)
    return data


def _no_words(argv: list[str], code: int) -> str:
    if code < 0:
        return f"{Path(argv[0]).name}: error: killed by signal {-code} (out of memory?)\n"
    return f"{Path(argv[0]).name}: error: exit code {code} without a message\n"
