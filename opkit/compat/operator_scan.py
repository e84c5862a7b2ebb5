"""What a library's operators lack, from reading them: headers of host code and kernels, and names.

The compiler's preprocessor lists what a source includes, missing headers among it, under the
options of a build; nothing is compiled. It reads the library's own files first, without the
headers of the system and of opkit, which are most of the text: a source that names none but those
that are there is done with. The others are read with all headers, which may decide what a source
includes. What an operator lacks by these counts does not build; what lacks nothing may still fail
in the compiler, by a call that no function here takes.
"""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from opkit.chips import Chip
from opkit.compat.declared import ask_compiler
from opkit.compat.scan import KernelNames
from opkit.errors import OpkitError, UsageError
from opkit.toolchain import Toolkit, Tree, chip_macros, find_compiler, load_project

__all__ = ["OperatorScan", "scan_operators"]

_REGISTERED = re.compile(r"\bOP_ADD\s*\(\s*(\w+)")
_OP_FILE = re.compile(r'\b(\w+)\s*\..*"opFile\.value"\s*,\s*"(\w+)"', re.DOTALL)
_CONFIG = re.compile(r'\bAddConfig\s*\(\s*"(\w+)"\s*,\s*(\w+)')
_RULE = re.compile(r"^[^\s:]+\.o:", re.MULTILINE)
# Other complaints come of macros that only a variant's build has, such as its data types.
_REFUSAL = re.compile(r"error: #error (.*)")


@dataclass(frozen=True)
class OperatorScan:
    """What one operator lacks."""

    operator: str
    """Its folder, from the scanned one."""
    missing: tuple[str, ...]
    """Headers, names of the API that its kernels use, and what a header refuses."""


def scan_operators(
    folder: Path,
    operators: Collection[Path],
    kernels: Sequence[KernelNames],
    *,
    chip: Chip,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[OperatorScan, ...]:
    """Return what each operator of a library lacks.

    Args:
        folder: what was scanned; operators and kernels lie below it.
        operators: their folders, absolute.
        kernels: what `scan` found of the kernels below the folder.
        progress: is given each operator's name once it is read.
    Raises:
        SetupError: there is no compiler.
    """
    root = folder.resolve()
    names = {(root / kernel.kernel).resolve(): kernel.missing for kernel in kernels}
    found = []
    for operator in operators:
        name = operator.relative_to(root).as_posix()
        headers, chosen = _read(operator, chip)
        # Other files are kernels for other chips; where none is known, any may be its own.
        own = [kernel.resolve() for kernel in chosen] or [
            kernel for kernel in names if kernel.is_relative_to(operator / "op_kernel")
        ]
        lacking = [*headers, *(each for kernel in own for each in names.get(kernel, ()))]
        found.append(OperatorScan(name, tuple(dict.fromkeys(lacking))))
        progress(name)
    return tuple(found)


def _read(operator: Path, chip: Chip) -> tuple[list[str], list[Path]]:
    """Return the headers that an operator's sources include and nobody has, and the sources of its
    kernels for the chip."""
    try:
        tree = load_project(operator).tree
    except OpkitError as error:
        return [str(error).partition("\n")[0]], []
    if tree is None:
        return [], []
    host_options = (*tree.host_options, *tree.own_host_options)
    lacking = [*_missing(tree.host_sources, host_options, tree)]
    kernels: dict[Path, None] = {}
    for file in sorted((operator / "op_host").glob("*_def*.cpp")):
        text = file.read_text(encoding="utf-8", errors="replace")
        for op, op_file in _registered(text, chip.soc_config):
            try:
                kernels[tree.find_kernel(op, op_file, soc_config=chip.soc_config).source] = None
            except UsageError:
                lacking.append(f"a kernel of {op}")
    options = (*chip_macros(chip), *tree.kernel_includes)
    return [*lacking, *_missing(tuple(kernels), options, tree)], list(kernels)


def _registered(text: str, soc_config: str) -> Iterator[tuple[str, str | None]]:
    """Yield the operators that a source registers, with the file that one names for its kernel.

    It names one in a configuration, and says which chips that is for.
    """
    by_config: dict[str, str] = {}
    op_file: str | None = None
    for statement in text.split(";"):
        named = _OP_FILE.search(statement)
        if named:
            by_config[named[1]] = named[2]
        added = _CONFIG.search(statement)
        if added and added[1] == soc_config:
            op_file = by_config.get(added[2])
        for op in _REGISTERED.findall(statement):
            yield op, op_file
            by_config, op_file = {}, None


def _missing(sources: Sequence[Path], options: Sequence[str], tree: Tree) -> Iterator[str]:
    if not sources:
        return
    alone = _ask(sources, ("-nostdinc", *options), tree)
    if "error: " not in alone.stderr:
        outside = {name for name in _listed(alone.stdout) if not (tree.root / name).exists()}
        if all(map(_is_installed, outside)):
            return
    headers = Toolkit.installed().include_dir
    whole = _ask(sources, ("-isystem", str(headers), *options), tree)
    for line in whole.stderr.splitlines():
        refused = _REFUSAL.search(line)
        if refused:
            yield refused[1]
            return
    for path in _listed(whole.stdout):
        if not (tree.root / path).exists():
            yield path


def _ask(
    sources: Sequence[Path], options: Sequence[str], tree: Tree
) -> subprocess.CompletedProcess[str]:
    compiler = find_compiler()
    argv = [*compiler.argv, "-std=gnu++17", "-w", *options, "-M", "-MG", *map(str, sources)]
    return ask_compiler(argv, folder=tree.root)


def _listed(rules: str) -> Iterator[str]:
    """Yield what the preprocessor's rules name, each once."""
    yield from dict.fromkeys(_RULE.sub("", rules).replace("\\\n", " ").split())


@functools.cache
def _is_installed(header: str) -> bool:
    """Whether the system or opkit has a header, and it does not refuse what includes it."""
    if ".." in Path(header).parts:
        return False
    own = Toolkit.installed().include_dir / header
    if own.is_file():
        return "#error" not in own.read_text(encoding="utf-8")
    return any((folder / header).is_file() for folder in _system_folders())


@functools.cache
def _system_folders() -> tuple[Path, ...]:
    """Return where the compiler looks for headers between angle brackets."""
    done = ask_compiler([*find_compiler().argv, "-x", "c++", "-E", "-v", "/dev/null"])
    told = done.stderr.partition("<...> search starts here:")[2].partition("End of search list")[0]
    return tuple(Path(line.strip()) for line in told.splitlines() if line.strip())
