"""From the text of a kernel to a shared object that can be launched, and that describes itself.

This is the one way: `opkit build` compiles its variants with the same flags into the same cache,
the compiler of tensor programs, the tuner and the tests call `compile_kernel`. On which cores a
kernel runs, the compiled object says (`opkit/kernel_notes.h`); nobody reads the source for it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from opkit.chips import DEFAULT_CHIP, Chip, find_chip
from opkit.errors import BuildError, UsageError
from opkit.files import write_aside
from opkit.folders import cache_folder, filling_cache
from opkit.toolchain.building import (
    MANIFEST_NAME,
    BuildCache,
    BuildState,
    CompileUnit,
    ProcessGroup,
    Session,
    precompiled_headers,
)
from opkit.toolchain.compiler import Compiler, find_compiler
from opkit.toolchain.flags import generated_flags, kernel_flags, link_flags
from opkit.toolchain.kernel_table import TableEntry, kernel_table
from opkit.toolchain.toolkit import Toolkit

__all__ = [
    "MODES",
    "ImageKernel",
    "KernelImage",
    "OperatorImage",
    "TilingUse",
    "compile_kernel",
    "open_image",
    "operator_images",
]

MODES: Mapping[str, str] = {
    "vector": "::opkit::KernelMode::Vector",
    "cube": "::opkit::KernelMode::Cube",
    "mix 1:1": "::opkit::KernelMode::Mix11",
    "mix 1:2": "::opkit::KernelMode::Mix12",
}
"""Which cores a block has, and its C++. "mix 1:2" is one cube core and two vector cores."""

# Images are small (some 100 kB); a program that holds one open is not bothered by its deletion.
_MOST_IMAGES = 4096


@dataclass(frozen=True)
class ImageKernel:
    """One entry point of an image."""

    name: str
    mode: str
    """Mode of a launch without a tiling key: `vector`, `cube`, `mix 1:1` or `mix 1:2`."""
    tiling_key: int | None
    """The only key that it serves; None: any."""
    argument_bytes: tuple[int, ...]
    """The size of each argument: 8 for global memory."""
    keyed_modes: tuple[tuple[int, str], ...] = ()
    """(tiling key, mode) where KERNEL_TASK_TYPE gives a key a mode of its own."""


@dataclass(frozen=True)
class TilingUse:
    """A struct that a function of the image reads tiling data into."""

    function: str
    name: str
    size_bytes: int


@dataclass(frozen=True)
class KernelImage:
    """Compiled kernels: a shared object that says what it holds; equal texts are one image."""

    library: Path
    """The shared object."""
    chip: Chip
    """What it was compiled for."""
    source: str
    """What messages call the text."""
    log: str = field(default="", compare=False, repr=False)
    """What the compiler printed, such as warnings."""
    was_compiled: bool = field(default=False, compare=False)
    """Whether a compiler ran; otherwise it came out of the cache."""

    @property
    def kernels(self) -> tuple[ImageKernel, ...]:
        """Its entry points, as the object itself tells them."""
        document = self._description
        keyed: dict[str, list[tuple[int, str]]] = {}
        for note in document["keyed_modes"]:
            keyed.setdefault(note["function"], []).append((note["tiling_key"], note["mode"]))
        return tuple(
            ImageKernel(
                name=entry["name"],
                mode=entry["mode"],
                tiling_key=entry["tiling_key"],
                argument_bytes=tuple(entry["argument_bytes"]),
                keyed_modes=tuple(sorted(keyed.get(_own_name(entry["name"]), ()))),
            )
            for entry in document["kernels"]
            if not entry["is_template"]
        )

    @property
    def templates(self) -> tuple[str, ...]:
        """Names in it that are templates: name an instance, such as `add<half>`, to launch one."""
        entries = self._description["kernels"]
        return tuple(entry["name"] for entry in entries if entry["is_template"])

    @property
    def tiling_structs(self) -> tuple[TilingUse, ...]:
        """What GET_TILING_DATA and its like read."""
        return tuple(
            TilingUse(note["function"], note["name"], note["size_bytes"])
            for note in reversed(self._description["tiling_structs"])
        )

    @property
    def tiling_keys(self) -> tuple[int, ...]:
        """What its TILING_KEY_IS and its templates' combinations name, ascending."""
        return tuple(self._description["tiling_keys"])

    @functools.cached_property
    def _description(self) -> dict[str, Any]:
        # On first use: the compiled module is loaded for it.
        from opkit.emulator import _emulator

        document: dict[str, Any] = json.loads(_emulator.describe_kernels(str(self.library)))
        return document


def open_image(library: Path, chip: Chip | str = DEFAULT_CHIP) -> KernelImage:
    """Return the image of a shared object that is there, such as one of `opkit build`."""
    target = find_chip(chip) if isinstance(chip, str) else chip
    return KernelImage(library.absolute(), target, library.name)


@dataclass(frozen=True)
class OperatorImage:
    """The image of an operator's kernel for one combination of data types, as a build left it."""

    op: str
    dtypes: tuple[str, ...]
    """Data types of its inputs, then of its outputs."""
    is_callable: bool
    """Whether its arrays can be given from here."""
    image: KernelImage


def operator_images(folder: Path) -> tuple[OperatorImage, ...]:
    """Return the images of an artifact folder of `opkit build`, operator by operator.

    Raises:
        UsageError: the folder has no manifest.
    """
    path = folder / MANIFEST_NAME
    try:
        manifest = json.loads(path.read_bytes())
    except OSError as err:
        raise UsageError(
            f"{path}: cannot be read: {err.strerror}", help="opkit build writes it"
        ) from err
    chip = find_chip(manifest["chip"])
    return tuple(
        OperatorImage(
            operator["op"],
            tuple(variant["dtypes"]),
            variant["callable"],
            open_image(folder / variant["file"], chip),
        )
        for operator in manifest["operators"]
        for variant in operator["variants"]
    )


Recorder: TypeAlias = Callable[[str, Chip, tuple[str, ...], str | None, bool, bool], KernelImage]
_recorder: Recorder | None = None


def kernels_go_to(recorder: Recorder) -> None:
    """From now on have this process's kernels not compiled, but their texts told.

    Args:
        recorder: takes text, chip, kernels and mode as `compile_kernel` does, whether it includes
            other files, and whether it is generated; returns what goes for an image.
    """
    global _recorder
    _recorder = recorder


def compile_kernel(
    source: str | Path,
    chip: Chip | str = DEFAULT_CHIP,
    *,
    kernels: Sequence[str] = (),
    mode: str | None = None,
    name: str = "kernel.cpp",
    include_dirs: Sequence[Path] = (),
    options: Sequence[str] = (),
    is_generated: bool = False,
    cache_dir: Path | None = None,
    toolkit: Toolkit | None = None,
) -> KernelImage:
    """Compile Ascend C text, or find what was compiled from the same text before.

    Args:
        source: the text of a translation unit, or the file that holds it.
        chip: any name that `find_chip` takes.
        kernels: what can be launched: functions with their namespaces, instances of templates such
            as `add<half>`. All kernels that the text itself declares when empty.
        mode: a key of `MODES` that overrules what the source says.
        name: what messages, faults and profiles call a text that says no `#line`.
        include_dirs: folders of `#include`.
        options: further options of the compiler, such as `-DTILE=64`.
        is_generated: opkit's compiler wrote it: nothing but the basic API is declared to it, and it
            compiles in half of the time.
        cache_dir: the user's build cache when None.
        toolkit: the installed emulator when None.
    Raises:
        BuildError: the compiler rejected the text; carries the diagnostics.
        UsageError: the text declares no kernel, or there is no such mode or chip.
        SetupError: there is no compiler.
    """
    if mode is not None and mode not in MODES:
        raise UsageError(f'"{mode}" is no mode of a kernel: there is {", ".join(MODES)}')
    target = find_chip(chip) if isinstance(chip, str) else chip
    if _recorder is not None:
        text = source.read_text(encoding="utf-8") if isinstance(source, Path) else source
        return _recorder(text, target, tuple(kernels), mode, bool(include_dirs), is_generated)
    request = _Request(
        text=source.read_text(encoding="utf-8") if isinstance(source, Path) else source,
        chip=target,
        kernels=tuple(kernels),
        mode=MODES[mode] if mode is not None else None,
        name=str(source) if isinstance(source, Path) else name,
        root=(source.parent if isinstance(source, Path) else Path.cwd()).absolute(),
        include_dirs=tuple(path.absolute() for path in include_dirs),
        options=tuple(options),
        is_generated=is_generated,
        cache_dir=cache_dir or cache_folder(),
        toolkit=toolkit or _installed_toolkit(),
    )
    known = _known.get(request.key)
    if known is not None and known.library.exists():
        return known
    image, is_whole = _compile(request)
    if is_whole:
        _known[request.key] = image
    return image


@dataclass(frozen=True)
class _Request:
    """Everything that decides on an image but the headers of the user's that it includes."""

    text: str
    chip: Chip
    kernels: tuple[str, ...]
    mode: str | None
    name: str
    root: Path
    include_dirs: tuple[Path, ...]
    options: tuple[str, ...]
    is_generated: bool
    cache_dir: Path
    toolkit: Toolkit

    @property
    def key(self) -> tuple[object, ...]:
        """All of it; a chip is known by its name."""
        fields = {**vars(self), "chip": self.chip.name}
        return tuple(fields.values())


# Of this process: texts that include nothing but opkit's headers need no look at the disk.
_known: dict[tuple[object, ...], KernelImage] = {}


def _compile(request: _Request) -> tuple[KernelImage, bool]:
    """Return an image, and whether its text is all that it was made of."""
    compiler = find_compiler()
    toolkit = request.toolkit
    macros, passes = _passes(request)
    flags = (
        *kernel_flags(compiler, toolkit, request.chip),
        *(generated_flags(compiler) if request.is_generated else ()),
        # Only the user's headers are watched; a changed toolkit changes the key.
        "-MMD",
        f"-DOPKIT_TOOLKIT={_fingerprint(toolkit.include_dir)}",
        "-iquote",
        ".",
        *(word for folder in request.include_dirs for word in ("-I", str(folder))),
        *macros,
        *request.options,
        *link_flags(toolkit, strict=True),
    )
    unit = CompileUnit(
        name="image.so",
        kind="kernel",
        source=request.root / "image.cpp",
        text=_unit_text(request),
        flags=flags,
        linked=True,
        core_passes=passes,
    )
    cache = BuildCache(request.cache_dir)
    with tempfile.TemporaryDirectory(prefix="opkit-image-") as work:
        session = Session(
            root=request.root,
            work=Path(work),
            compiler=compiler,
            state=BuildState({}, {}),
            cache=cache,
            processes=ProcessGroup(),
            verbose=lambda argv: None,
            before_compiling=lambda unit: _with_headers(unit, compiler, request),
        )
        result = session.compile(unit)
        if result.status == "failed" or result.data is None:
            raise _rejected(request, Path(work), result.log)
    if result.status == "compile":
        cache.evict()
    library = _place(request.cache_dir / "images", result.digest, result.data)
    image = KernelImage(
        library,
        request.chip,
        request.name,
        log=result.log,
        was_compiled=result.status == "compile",
    )
    return image, result.reusable and not result.dependencies


def _unit_text(request: _Request) -> str:
    entries = [TableEntry(name, mode=request.mode) for name in request.kernels]
    entries = entries or _declared_kernels(request)
    if not entries:
        raise UsageError(
            f"{request.name} declares no kernel: no function in it is marked __global__",
            help="name the kernels of headers: compile_kernel(..., kernels=[...])",
        )
    table = kernel_table(entries)
    quoted = request.name.replace("\\", "\\\\").replace('"', '\\"')
    # The table's lines are ours: nothing in them is the user's fault.
    return (
        f'{_edited(request, quoted)}\n#line 1 "kernel table of {quoted}"\n'
        f'#include "opkit/kernel_entry.h"\n{table}'
    )


def _passes(
    request: _Request,
) -> tuple[tuple[str, ...], tuple[tuple[str, tuple[str, ...]], ...]]:
    """Return the options and the passes of a text that asks for the kind of core."""
    # Reading C++ is for texts of other people: compiling one of ours does not load it.
    if request.is_generated:
        return (), ()
    from opkit.toolchain.source import included_texts, split_passes

    texts = included_texts(request.text, request.root, request.include_dirs)
    return split_passes(texts, request.chip.npu_arch_number)


def _edited(request: _Request, quoted: str) -> str:
    # Reading C++ is for texts of other people: compiling one of ours does not load it.
    if request.is_generated:
        return f'#line 1 "{quoted}"\n{request.text}'
    from opkit.toolchain.source import edited_text

    return edited_text(request.text, request.name, request.root, request.include_dirs)


def _declared_kernels(request: _Request) -> list[TableEntry]:
    from opkit.toolchain.source import mark_overloaded, scan_kernels

    kernels = mark_overloaded(scan_kernels(request.text), [request.text])
    return [TableEntry(kernel.name, mode=request.mode, cast=kernel.cast) for kernel in kernels]


def _with_headers(unit: CompileUnit, compiler: Compiler, request: _Request) -> tuple[str, ...]:
    """Return the flags that make a compiler read opkit's headers precompiled, where it can."""
    folder = precompiled_headers(compiler, request.toolkit, unit.flags, cache_dir=request.cache_dir)
    return () if folder is None else ("-isystem", str(folder))


def _rejected(request: _Request, work: Path, log: str) -> BuildError:
    from opkit.toolchain.source import parse_diagnostics

    diagnostics = parse_diagnostics(
        log, root=request.root, foreign=(request.toolkit.include_dir, work)
    )
    errors = [item for item in diagnostics if item.severity == "error"]
    found = f"{len(errors)} error{'' if len(errors) == 1 else 's'}" if errors else log.rstrip()
    return BuildError(f"{request.name} does not compile: {found}", diagnostics=diagnostics, log=log)


def _place(folder: Path, digest: str, data: bytes) -> Path:
    library = folder / digest[:2] / f"{digest}.so"
    if not library.exists():
        with filling_cache(library.parent):
            write_aside(library, data, mode=0o755)
            _forget_old(folder)
    return library


def _forget_old(folder: Path) -> None:
    images = list(folder.glob("*/*.so"))
    if len(images) > _MOST_IMAGES:
        images.sort(key=lambda path: path.stat().st_mtime_ns)
        for path in images[: len(images) // 4]:
            path.unlink(missing_ok=True)


def _own_name(name: str) -> str:
    return name.partition("<")[0].rpartition("::")[2]


@functools.cache
def _installed_toolkit() -> Toolkit:
    return Toolkit.installed()


@functools.cache
def _fingerprint(include_dir: Path) -> str:
    """Return a short hash of the headers' names and texts: installed anew they are the same key."""
    texts = []
    for folder, _, names in os.walk(include_dir):
        for name in names:
            path = Path(folder, name)
            texts.append((str(path.relative_to(include_dir)), path.read_bytes()))
    digest = hashlib.sha256()
    for name, text in sorted(texts):
        digest.update(f"{name}:{len(text)}:".encode() + text)
    return digest.hexdigest()[:16]
