"""What a library's operators lack, from reading them: headers of host code and kernels, and names.

The compiler's preprocessor lists what a source includes, missing headers among it, under the
options of a build; nothing is compiled. What an operator lacks by these counts does not build;
what lacks nothing may still fail in the compiler, by a call that no function here takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opkit.chips import Chip
from opkit.compat.declared import ask_compiler
from opkit.compat.scan import KernelNames
from opkit.errors import OpkitError, UsageError
from opkit.toolchain import Toolkit, Tree, chip_macros, find_compiler, load_project

__all__ = ["OperatorScan", "scan_operators"]

_REGISTERED = re.compile(r"\bOP_ADD\s*\(\s*(\w+)")
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
    names = {kernel.kernel: kernel.missing for kernel in kernels}
    found = []
    for operator in operators:
        name = operator.relative_to(folder.resolve()).as_posix()
        lacking = dict.fromkeys(_headers(operator, chip))
        lacking.update(dict.fromkeys(_names(f"{name}/op_kernel/", names)))
        found.append(OperatorScan(name, tuple(lacking)))
        progress(name)
    return tuple(found)


def _names(below: str, kernels: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    for kernel, missing in kernels.items():
        if kernel.startswith(below):
            yield from missing


def _headers(operator: Path, chip: Chip) -> Iterator[str]:
    """Yield the headers that an operator's sources include and nobody has."""
    try:
        project = load_project(operator)
    except OpkitError as error:
        yield str(error).partition("\n")[0]
        return
    tree = project.tree
    if tree is None:
        return
    host_options = (*tree.host_options, *tree.own_host_options)
    yield from _missing(tree.host_sources, host_options, tree)
    kernels: dict[Path, None] = {}
    for file in sorted((operator / "op_host").glob("*_def*.cpp")):
        for op in _REGISTERED.findall(file.read_text(encoding="utf-8", errors="replace")):
            try:
                kernels[tree.find_kernel(op, None, soc_config=chip.soc_config).source] = None
            except UsageError:
                yield f"a kernel of {op}"
    options = (*chip_macros(chip), *tree.kernel_includes)
    yield from _missing(tuple(kernels), options, tree)


def _missing(sources: Sequence[Path], options: Sequence[str], tree: Tree) -> Iterator[str]:
    if not sources:
        return
    compiler = find_compiler()
    headers = Toolkit.installed().include_dir
    argv = [*compiler.argv, "-std=gnu++17", "-w", "-isystem", str(headers), *options]
    argv += ["-M", "-MG", *map(str, sources)]
    done = ask_compiler(argv, folder=tree.root)
    for line in done.stderr.splitlines():
        refused = _REFUSAL.search(line)
        if refused:
            yield refused[1]
            return
    listed = _RULE.sub("", done.stdout).replace("\\\n", " ").split()
    for path in dict.fromkeys(listed):
        if not (tree.root / path).exists():
            yield path
